// Checkpoints of the log engine's map. pm_open() reads the map, and of the log only what is behind the checkpoint.
// It finds what a reading of the whole log finds. If a checkpoint is damaged, all of the log is read. The
// simulator has a crash at each of their steps.
#include "common/full_disk.hpp"
#include "hostile/log_file.hpp"
#include "unit/checkpoints.hpp"
#include "unit/page_state.h"

using namespace checkpoints;
using test::disk_is_full;

TEST_CASE("after a clean close no record is read, whatever the container has")
{
    const uint64_t seed = GENERATE(1, 2, 3);
    Subject s(GENERATE(as<uint64_t>(), 1, 16 * KiB, 1 * MiB), seed);
    for (int round = 0; round < 4; round++) {
        s.run(round * 60);
        s.reopen();
        CHECK(test::stats(s.c.get()).recovery_bytes == 0);
        s.model.holds(s.c.get());
    }
    s.c.reset();
    test::Container whole = test::open(s.path, none(PM_READONLY));
    CHECK(test::stats(whole.get()).recovery_bytes > 0);
    s.model.holds(whole.get());
}

TEST_CASE("after a crash the records behind the checkpoint are read, and what they say counts")
{
    const uint64_t seed = GENERATE(range(1, (int)test::repetitions(3, 12)));
    const uint64_t interval = GENERATE(as<uint64_t>(), 1, 4 * KiB, 64 * KiB);
    CAPTURE(seed, interval);
    Subject s(interval, seed);
    for (int round = 0; round < 30; round++) {
        s.run(1 + (int)s.model.below(20));
        if (s.model.below(8) == 0)
            s.reopen();
        s.crash_to_other();
        const uint64_t read = s.other_holds(every(interval, PM_READONLY)),
                       all = s.other_holds(none(PM_READONLY));
        REQUIRE(read <= all);
        if (round > 10)
            CHECK(read < all / 2 + interval);
        s.other_holds(s.model.below(2) ? every(interval) : none());
        s.other_holds(every(interval));
        s.other_holds(none(PM_READONLY));
    }
}

TEST_CASE("only who asks gets checkpoints, and who does not ask names none")
{
    Subject s(1);
    s.run(20);
    s.c.reset();
    REQUIRE(root_of(s.path) != 0);
    {
        test::Container reader = test::open(s.path, none(PM_READONLY));
        s.model.holds(reader.get());
    }
    REQUIRE(root_of(s.path) != 0);
    s.c = test::open(s.path, none());
    REQUIRE(root_of(s.path) == 0);
    s.run(200); // its chunks are filled with records
    s.crash_to_other();
    s.other_holds(every(1, PM_READONLY));
    s.c.reset();
    REQUIRE(root_of(s.path) == 0);
    pm_options bounded = none();
    bounded.private_max = 1;
    s.c = test::open(s.path, bounded);
    s.run(1);
    s.c.reset();
    REQUIRE(root_of(s.path) != 0); // a close leaves one
    s.c = test::open(s.path, bounded);
    CHECK(test::stats(s.c.get()).recovery_bytes == 0);
    s.model.holds(s.c.get());
}

TEST_CASE("checkpoints are as often as the option says, and later by default if they are costly")
{
    Subject s(GENERATE(as<uint64_t>(), 32 * KiB, 256 * KiB));
    std::set<uint64_t> roots;
    const uint64_t before = test::stats(s.c.get()).bytes_logged;
    for (int i = 0; i < 600; i++) {
        s.run(1);
        roots.insert(root_of(s.path));
    }
    const uint64_t logged = test::stats(s.c.get()).bytes_logged - before;
    CAPTURE(logged);
    CHECK(roots.size() >= logged / s.how.checkpoint_bytes / 4);
    CHECK(roots.size() <= logged / s.how.checkpoint_bytes + 2);
}

TEST_CASE("a damaged checkpoint is not used, and all of the log is read")
{
    Subject s(1);
    s.run(40);
    s.c.reset();
    const std::string whole = test::read_file(s.path);
    uint64_t refused = 0, lines = 0;
    for (uint64_t chunk = CHUNK; chunk < whole.size(); chunk += CHUNK) {
        uint64_t word;
        memcpy(&word, whole.data() + chunk, sizeof word);
        if (word == 0 || !log_chunk_has_images(word))
            continue;
        for (uint64_t line = chunk; line < chunk + CHUNK; line += LINE) {
            std::string file = whole;
            if (file.compare(line, LINE, std::string(LINE, 0)) == 0)
                continue;
            lines++;
            if (line % (3 * LINE) == 0)
                file.replace(line, LINE, LINE, 0);
            else
                file[line + line / LINE % LINE] ^= 4;
            test::write_file(s.other, file);
            const bool header = line == chunk && line % (3 * LINE) != 0;
            if (header && !seal_is_valid(reinterpret_cast<const uint64_t &>(file[line])))
                continue; // it is told as damage to the log
            refused += s.other_holds(every(1, PM_READONLY)) > 0;
        }
    }
    CHECK(lines > 100);
    CHECK(refused > lines / 8); // some images are of older checkpoints
}

TEST_CASE("the word that names a checkpoint is damaged, or an old one")
{
    Subject s(1);
    s.run(30);
    s.crash_to_other();
    const std::string old_page = test::read_file(s.other).substr(FORMAT_STATE, 64);
    uint64_t old_word;
    memcpy(&old_word, old_page.data() + offsetof(format_state, checkpoint), sizeof old_word);
    s.run(300);
    s.c.reset();
    const std::string whole = test::read_file(s.path);
    const uint64_t at = FORMAT_STATE + offsetof(format_state, checkpoint);
    const uint64_t place = root_of(s.path);
    for (uint64_t word :
         {old_word, seal(1), seal(place + 1), seal(place - 1), seal(whole.size() / LINE),
          seal(whole.size() / LINE - 1), seal(UINT32_MAX), seal(SEAL_BITS), place, uint64_t(0)}) {
        CAPTURE(word);
        test::write_file(s.other, whole);
        test::patch_file(s.other, at, &word, sizeof word);
        s.other_holds(every(1, PM_READONLY));
        s.other_holds(every(1));
        s.other_holds(every(1));
    }
}

namespace
{

// The root and the images of a file, to be forged with right checksums.
struct Forger : hostile::LogFile {
    // Forge something, and say in which image.
    using Forgery = std::function<uint64_t()>;

    const Subject &subject;
    const std::string whole;
    const uint64_t root;

    explicit Forger(const Subject &s)
        : LogFile(test::read_file(s.path)), subject(s), whole(bytes), root(root_of(s.path))
    {
    }
    log_image *image(uint64_t place) { return reinterpret_cast<log_image *>(&bytes[place * LINE]); }
    log_root *contents() { return reinterpret_cast<log_root *>(image(root) + 1); }
    log_root_unit *units() { return log_root_units(contents()); }
    uint64_t *words(uint64_t place) { return reinterpret_cast<uint64_t *>(image(place) + 1); }
    uint32_t *table(uint64_t place) { return reinterpret_cast<uint32_t *>(image(place) + 1); }
    uint64_t deltas_at(uint64_t place)
    {
        return log_place_words(image(place)) + log_left_words(image(place));
    }
    // The first image with a delta.
    uint64_t unit_place()
    {
        for (uint32_t i = 0; i < contents()->units; i++)
            if (units()[i].place != 0 &&
                image(units()[i].place)->words > deltas_at(units()[i].place))
                return units()[i].place;
        FAIL("no image");
        return 0;
    }
    uint64_t &delta() { return words(unit_place())[deltas_at(unit_place())]; }

    // Whether a forgery is noticed. It must harm nobody.
    bool is_noticed(const Forgery &forge)
    {
        bytes = whole;
        const uint64_t forged = forge();
        seal_image(forged * LINE);
        if (forged != root)
            seal_units(root * LINE);
        test::write_file(subject.other, bytes);
        const bool noticed = subject.other_holds(every(1, PM_READONLY)) > 0;
        subject.other_holds(every(1));
        subject.other_holds(none(PM_READONLY));
        return noticed;
    }
    void require_noticed(const std::vector<Forgery> &forgeries)
    {
        for (size_t i = 0; i < forgeries.size(); i++) {
            CAPTURE(i);
            CHECK(is_noticed(forgeries[i]));
        }
    }
};

// Let it have a checkpoint in this version of the format, and close it.
void fill(Subject &s, uint32_t version)
{
    if (version != FORMAT_VERSION_LOG)
        s.become(version);
    s.run(60);
    s.c.reset();
}

} // namespace

TEST_CASE("a forged root is not used, and harms nobody")
{
    Subject s(1);
    fill(s, GENERATE(FORMAT_VERSION_LOG, FORMAT_LOG_UNPACKED));
    Forger f(s);
    f.require_noticed({
        [&] { return f.image(f.root)->next = (uint32_t)f.root, f.root; },
        [&] { return f.image(f.root)->next = 1, f.root; },
        [&] { return f.image(f.root)->next = UINT32_MAX, f.root; },
        [&] { return f.image(f.root)->number = LOG_ROOT | 1, f.root; },
        [&] { return f.image(f.root)->epoch = 0, f.root; },
        [&] { return f.image(f.root)->epoch = EPOCH_CREATED << 60, f.root; },
        [&] { return f.image(f.root)->words--, f.root; },
        [&] { return f.image(f.root)->words = 0, f.root; },
        [&] { return f.image(f.root)->words = UINT32_MAX, f.root; },
        [&] { return f.contents()->map++, f.root; },
        [&] { return f.contents()->units++, f.root; },
        [&] { return f.contents()->units = UINT32_MAX, f.root; },
        [&] { return f.contents()->chunks = UINT32_MAX, f.root; },
        [&] { return f.contents()->segments = UINT32_MAX, f.root; },
        [&] { return f.contents()->lines++, f.root; },
        [&] { return log_root_chunks(f.contents())[1].end = CHUNK / LINE + 1, f.root; },
        [&] { return log_root_chunks(f.contents())[1].live++, f.root; },
        [&] { return log_root_chunks(f.contents())[1].live = UINT32_MAX, f.root; },
        [&] { return f.units()[0].place = (uint32_t)f.root, f.root; },
        [&] { return f.units()[0].place = UINT32_MAX, f.root; },
        [&] { return f.units()[0].place = CHUNK / LINE, f.root; },
        [&] { return f.units()[0].place = 1, f.root; },
        [&] { return f.units()[0].sum++, f.root; },
    });
    (void)f.is_noticed([&] { return f.image(f.root)->epoch--, f.root; }); // an older root may do
}

TEST_CASE("a root that says wrongly how long images are is not used")
{
    Subject s(1);
    fill(s, FORMAT_VERSION_LOG);
    Forger f(s);
    const auto forge = [&](uint64_t unit, uint8_t lines) {
        return [&f, unit, lines] { return log_root_lines(f.contents())[unit] = lines, f.root; };
    };
    uint64_t without = 0; // a unit
    while (without < f.contents()->units && f.units()[without].place != 0)
        without++;
    REQUIRE(without < f.contents()->units);
    f.require_noticed(
        {forge(0, 0), forge(0, LOG_IMAGE_LINES + 1), forge(0, UINT8_MAX), forge(without, 1)});
    CHECK(!f.is_noticed(forge(0, LOG_IMAGE_LINES))); // it is only counted
}

TEST_CASE("a forged image is not used, and harms nobody")
{
    Subject s(1);
    fill(s, GENERATE(FORMAT_VERSION_LOG, FORMAT_LOG_UNPACKED));
    Forger f(s);
    const auto forge = [&](auto change) {
        return [&f, change] {
            const uint64_t place = f.unit_place();
            change(f.image(place));
            return place;
        };
    };
    const auto forge_delta = [&](uint64_t delta) {
        return forge([&f, delta](log_image *) { f.delta() = delta; });
    };
    f.require_noticed({
        forge([](log_image *i) { i->number++; }),
        forge([](log_image *i) { i->epoch = EPOCH_CREATED << 50; }),
        forge([](log_image *i) { i->words--; }),
        forge([](log_image *i) { i->words = 1; }),
        forge([](log_image *i) { i->packed |= 4; }),
        forge([](log_image *i) { i->packed ^= LOG_RUNS; }),
        forge([](log_image *i) { i->packed ^= LOG_NONE_LEFT; }),
        forge_delta(log_unit_delta(0, 0, CHUNK / 8 + 16)),
        forge_delta(log_unit_delta(LOG_UNIT_LINES, 1, CHUNK / 8 + 16)),
        forge_delta(log_unit_delta(0, 255, 2 * CHUNK / 8 - 1)),
        forge_delta(f.delta() | ((UINT64_C(1) << 40) - 1)),
    });
}

TEST_CASE("a forged table of places is not used, and harms nobody")
{
    Subject s(1);
    fill(s, FORMAT_LOG_UNPACKED);
    Forger f(s);
    const auto forge = [&](uint64_t line, uint64_t place) {
        return [&f, line, place] {
            f.table(f.unit_place())[line] = (uint32_t)place;
            return f.unit_place();
        };
    };
    f.require_noticed({
        forge(1, 1),
        forge(1, CHUNK / LINE),
        forge(1, UINT32_MAX),
        forge(1, f.bytes.size() / LINE),
        [&] {
            const uint32_t place = f.units()[0].place; // of the headers' lines, too
            f.table(place)[0] = CHUNK / LINE + 1;
            return place;
        },
        [&] {
            std::fill_n(f.table(f.unit_place()), LOG_UNIT_LINES, CHUNK / LINE + 1);
            return f.unit_place();
        },
    });
}

TEST_CASE("a container of an older format gets no checkpoints")
{
    Subject s(1);
    s.become(FORMAT_LOG_UNCHECKED);
    s.run(300);
    s.reopen();
    s.model.holds(s.c.get());
    CHECK(test::stats(s.c.get()).recovery_bytes > 0);
    CHECK(root_of(s.path) == 0);
}

TEST_CASE("on a full disk a checkpoint makes room for commits")
{
    Subject s(GENERATE(as<uint64_t>(), 1, 8 * KiB));
    s.run(100);
    disk_is_full = true;
    REQUIRE(root_of(s.path) != 0);
    std::vector<char *> added;
    for (;;) {
        auto *object = static_cast<char *>(pm_malloc(s.c.get(), 8 * KiB));
        REQUIRE(object);
        REQUIRE_OK(pm_dirty(object, 8 * KiB));
        memset(object, 'a', 8 * KiB);
        if (pm_commit(s.c.get()) != 0)
            break;
        added.push_back(object);
    }
    REQUIRE(errno == ENOSPC);
    REQUIRE_OK(pm_rollback(s.c.get()));
    CHECK(root_of(s.path) == 0);
    CHECK(added.size() > 4);
    s.model.holds(s.c.get());
    s.crash_to_other();
    s.other_holds(every(1, PM_READONLY));
    for (int i = 0; i < 200; i++) { // there is room for what overwrites
        const size_t at = s.model.below(Model::COUNT);
        char *object = Model::root(s.c.get())->objects[at];
        if (!object)
            continue;
        REQUIRE_OK(pm_dirty(object, 1));
        object[0] = (char)i;
        REQUIRE_OK(pm_commit(s.c.get()));
        s.model.copy[at][0] = (char)i;
    }
    for (const char *object : added)
        REQUIRE(std::count(object, object + 8 * KiB, 'a') == 8 * KiB);
    s.model.holds(s.c.get());
    REQUIRE(lost_chunks(s.c.get()) == 0);
    s.reopen(); // a close may find no room for one
    disk_is_full = false;
    s.model.holds(s.c.get());
    s.run(100);
    s.reopen();
    CHECK(test::stats(s.c.get()).recovery_bytes == 0);
    s.model.holds(s.c.get());
}

TEST_CASE("a compaction gives the checkpoint up, and the close makes another one")
{
    Subject s(1);
    s.run(200);
    const uint64_t before = std::filesystem::file_size(s.path);
    for (size_t i = 0; i < Model::COUNT; i++) {
        char *object = Model::root(s.c.get())->objects[i];
        if (object && i % 3 != 0) {
            REQUIRE_OK(pm_free(object));
            s.model.set(s.c.get(), i, nullptr, 0);
            s.model.copy[i].clear();
        }
    }
    REQUIRE_OK(pm_commit(s.c.get()));
    REQUIRE_OK(pm_compact(s.c.get(), nullptr, nullptr, nullptr));
    CHECK(std::filesystem::file_size(s.path) < before);
    REQUIRE(lost_chunks(s.c.get()) == 0);
    s.crash_to_other();
    s.other_holds(every(1));
    s.reopen();
    CHECK(test::stats(s.c.get()).recovery_bytes == 0);
    s.run(100);
    s.crash_to_other();
    s.other_holds(every(1));
    s.other_holds(none(PM_READONLY));
}

TEST_CASE("what was freed behind the end of a container that has become smaller does not come back")
{
    const uint64_t interval = GENERATE(as<uint64_t>(), 1, 64 * MiB);
    Subject s(interval);
    auto *kept = static_cast<char *>(pm_malloc(s.c.get(), 60 * KiB));
    auto *freed = static_cast<char *>(pm_malloc(s.c.get(), 2 * MiB)); // behind it
    REQUIRE((kept && freed));
    REQUIRE_OK(pm_dirty(kept, 60 * KiB));
    REQUIRE_OK(pm_dirty(freed, 2 * MiB));
    for (uint64_t i = 0; i < 60 * KiB; i += LINE) // the chunks stay: most of what is in them does
        kept[i] = 'k';
    for (uint64_t i = 0; i < 2 * MiB; i += 256 * KiB)
        freed[i] = 'f';
    s.model.set(s.c.get(), 0, kept, 60 * KiB);
    s.model.copy[0].assign(kept, 60 * KiB);
    REQUIRE_OK(pm_commit(s.c.get()));
    REQUIRE_OK(pm_free(freed));
    REQUIRE_OK(pm_commit(s.c.get()));
    REQUIRE_OK(pm_compact(s.c.get(), nullptr, nullptr, nullptr));
    s.reopen();
    for (int i = 0; i < 3; i++) { // there again, and nobody stores to it
        auto *again = static_cast<char *>(pm_malloc(s.c.get(), 2 * MiB));
        REQUIRE(again);
        REQUIRE_OK(pm_dirty(again, 1));
        again[0] = 'a';
        s.model.set(s.c.get(), 1, again, 2 * MiB);
        s.model.copy[1].assign(again, 2 * MiB);
        REQUIRE_OK(pm_commit(s.c.get()));
        s.crash_to_other();
        s.other_holds(none(PM_READONLY));
        s.other_holds(every(1, PM_READONLY));
        REQUIRE_OK(pm_free(again));
        s.model.set(s.c.get(), 1, nullptr, 0);
        s.model.copy[1].clear();
        REQUIRE_OK(pm_commit(s.c.get()));
    }
}

// No word says that it was there: neither a bitmap nor the segment table has changed.
TEST_CASE("a large value that was handed over and freed in one transaction does not count behind a "
          "checkpoint",
          "[logged]")
{
    const size_t bytes = GENERATE(80 * KiB, 100 * KiB, 300 * KiB, 3 * MiB);
    CAPTURE(bytes);
    test::Directory directory;
    const std::string path = directory / "c.pm", other = directory / "other.pm";
    pm_options how = test::options(PM_CREATE | PM_MOVABLE);
    how.checkpoint_bytes = 64 * MiB;
    test::Container c = test::open(path, how);
    const std::string value(bytes, 'v');
    void *kept = pm_put(c.get(), value.data(), bytes); // so a segment of such values stays
    REQUIRE(kept);
    REQUIRE_OK(pm_setroot(c.get(), kept, 0));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_close(c.release()));
    how.flags = PM_MOVABLE;
    c = test::open(path, how);
    REQUIRE(root_of(path) != 0);
    REQUIRE_OK(pm_free(pm_put(c.get(), value.data(), bytes)));
    auto *stored = static_cast<char *>(pm_getroot(c.get()));
    REQUIRE_OK(pm_dirty(stored, 1));
    *stored = 's';
    REQUIRE_OK(pm_commit(c.get()));
    test::write_file(other, test::read_file(path));
    how.flags |= PM_ACCEPT_COPY;
    c = test::open(other, how);
    CHECK(test::stats(c.get()).recovery_bytes > 0);
    CHECK(*static_cast<char *>(pm_getroot(c.get())) == 's');
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("a chunk that has lost its header is missed, with a checkpoint too")
{
    Subject s(1);
    s.run(100);
    s.c.reset();
    const std::string whole = test::read_file(s.path);
    int missed = 0;
    for (uint64_t chunk = CHUNK; chunk < whole.size(); chunk += CHUNK) {
        uint64_t word;
        memcpy(&word, whole.data() + chunk, sizeof word);
        if (word == 0 || log_chunk_has_images(word))
            continue;
        std::string file = whole;
        file.replace(chunk, LINE, LINE, 0);
        test::write_file(s.other, file);
        pm_options how = every(1, PM_READONLY | PM_ACCEPT_COPY);
        test::Container c(pm_open(s.other.c_str(), &how));
        if (c)
            s.model.holds(c.get()); // nothing in it was alive
        else
            missed += test::failed_with(EBADMSG, {"restore"});
    }
    CHECK(missed > 0);
}

TEST_CASE("a copy has the checkpoint that its contents need")
{
    Subject s(GENERATE(as<uint64_t>(), 1, 16 * KiB));
    for (int i = 0; i < 20; i++) {
        s.run(10);
        std::filesystem::remove(s.other);
        REQUIRE_OK(pm_copy(s.c.get(), s.other.c_str(), nullptr, nullptr));
        s.other_holds(every(1, PM_READONLY));
        s.other_holds(every(1));
        s.other_holds(none(PM_READONLY));
    }
}

TEST_CASE("images take a bounded share of the file, however long it is used")
{
    Subject s(4 * KiB);
    uint64_t most = 0;
    for (int i = 0; i < 60; i++) {
        s.run(60);
        REQUIRE(lost_chunks(s.c.get()) == 0);
        if (i % 20 == 19)
            s.reopen();
        const std::string file = test::read_file(s.path);
        uint64_t images = 0;
        for (uint64_t at = CHUNK; at < file.size(); at += CHUNK)
            images += log_chunk_has_images(reinterpret_cast<const uint64_t &>(file[at])) &&
                      reinterpret_cast<const uint64_t &>(file[at]) != 0;
        most = std::max(most, images);
    }
    CAPTURE(most);
    CHECK(most <= 6); // it is 4, and 11 if chunks with few images stay
}

TEST_CASE("what is reserved is not for checkpoints")
{
    Subject s(1);
    s.run(50);
    for (int i = 0; i < 20; i++) {
        REQUIRE_OK(pm_reserve(s.c.get(), 200 * KiB));
        disk_is_full = true;
        for (int n = 0; n < 3; n++)
            s.model.step(s.c.get());
        REQUIRE_OK(pm_commit(s.c.get()));
        disk_is_full = false;
    }
    s.model.holds(s.c.get());
    s.reopen();
    s.model.holds(s.c.get());
}

// Records of eleven lines fill a chunk but for its first line, 93 of them. So when a chunk is filled again, an
// old record begins wherever a new one ends.
TEST_CASE("what a chunk has of its earlier life is not read behind a checkpoint")
{
    test::Directory directory;
    for (int commits = 1000; commits < 1000 + 93; commits++) {
        CAPTURE(commits);
        const std::string path = directory / ("c" + std::to_string(commits));
        test::Container c = test::open(path, every(4 * KiB, PM_CREATE));
        auto *object = static_cast<char *>(pm_aligned_alloc(c.get(), LINE, 10 * LINE));
        REQUIRE(object);
        REQUIRE_OK(pm_setroot(c.get(), object, 0));
        for (int i = 0; i < commits; i++) {
            memset(object, i, 10 * LINE);
            REQUIRE_OK(pm_commit(c.get()));
        }
        for (const pm_options &how : {every(4 * KiB), none()}) {
            c.reset();
            c = test::open(path, how);
            REQUIRE(*static_cast<char *>(pm_getroot(c.get())) == (char)(commits - 1));
        }
        c.reset();
        REQUIRE_OK(pm_delete(path.c_str()));
    }
}
