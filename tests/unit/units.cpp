// Units of the log engine's map. If memory is bounded, the map has the units that somebody needed lately. Of the
// others it has what the checkpoint says, and nobody may notice.
#include "common/full_disk.hpp"
#include "common/process.hpp"
#include "hostile/log_file.hpp"
#include "unit/checkpoints.hpp"
#include "unit/page_state.h"

using namespace checkpoints;
using test::disk_is_full;

namespace
{

constexpr uint64_t PAGE = 4096, UNIT = LOG_UNIT_LINES * LINE, UNITS = 256;
constexpr uint64_t LEAST = 128 * KiB; // private_max cannot be less; half of it is for home and map
constexpr uint64_t ZEROS =
    40; // pages of the map that were read, and of which no checkpoint has anything

pm_options bounded(unsigned flags = 0)
{
    pm_options o = test::options(flags | PM_MOVABLE);
    o.private_max = 1;
    return o;
}

uint64_t number_of(uint64_t word)
{
    return word * 3 + 1;
}

// A large object with a number at the beginning of each page.
void make(const std::string &path)
{
    test::Container c = test::open(path, bounded(PM_CREATE));
    auto *words = static_cast<uint64_t *>(pm_malloc(c.get(), UNITS * UNIT));
    REQUIRE(words);
    REQUIRE_OK(pm_setroot(c.get(), words, 0));
    for (uint64_t i = 0; i < UNITS * UNIT / 8; i += PAGE / 8) {
        REQUIRE_OK(pm_dirty(words + i, 8));
        words[i] = number_of(i);
        if (i % (UNIT / 8) == 0)
            REQUIRE_OK(pm_commit(c.get()));
    }
    REQUIRE_OK(pm_commit(c.get()));
}

const volatile uint64_t *numbers(pm_container *c)
{
    return static_cast<volatile uint64_t *>(pm_getroot(c));
}

// That all numbers are there, in random order.
void require_numbers(pm_container *c)
{
    std::vector<uint64_t> order;
    for (uint64_t i = 0; i < UNITS * UNIT / 8; i += PAGE / 8)
        order.push_back(i);
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    for (uint64_t i : order)
        if (numbers(c)[i] != number_of(i))
            FAIL("word " << i);
}

} // namespace

TEST_CASE("a container is opened without its map, and the map has no more than the limit")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    make(path);
    const unsigned flags = GENERATE(0u, (unsigned)PM_READONLY);
    test::Container c = test::open(path, bounded(flags));
    CHECK(test::stats(c.get()).recovery_bytes == 0);
    const uint64_t least = units_present(c.get());
    CHECK(least < 8); // metadata
    const uint64_t unit = UNITS / 2 * UNIT / 8;
    REQUIRE(numbers(c.get())[unit] == number_of(unit));
    CHECK(units_present(c.get()) == least + 1);
    REQUIRE(numbers(c.get())[unit + (UNIT - PAGE) / 8] == number_of(unit + (UNIT - PAGE) / 8));
    CHECK(units_present(c.get()) <= least + 2); // the object may begin in the midst of one
    require_numbers(c.get());
    CHECK(units_present(c.get()) <= least + LEAST / 2 / PAGE + 1);
    CHECK(map_memory(c.get()) <= (units_present(c.get()) + ZEROS) * PAGE);
    REQUIRE_OK(pm_check(c.get()));
    CHECK(units_present(c.get()) <= least + LEAST / 2 / PAGE + 1);
}

TEST_CASE(
    "what changes all over a container takes no more of the map than the limit, by checkpoints")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    make(path);
    pm_options how = bounded();
    const int together = GENERATE(1, 8); // stores of a commit
    if (together > 1)
        how.private_max = MiB;
    test::Container c = test::open(path, how);
    auto *words = static_cast<uint64_t *>(pm_getroot(c.get()));
    std::vector<uint64_t> copy(UNITS * UNIT / PAGE);
    std::mt19937 random(1);
    uint64_t most = 0, changed = 0;
    for (int i = 0; i < 3000; i++) {
        for (int n = 0; n < together; n++) {
            const uint64_t page = random() % copy.size();
            uint64_t *word = &words[page * (PAGE / 8) + 1];
            REQUIRE_OK(pm_dirty(word, 8));
            *word = ++copy[page];
        }
        REQUIRE_OK(pm_commit(c.get()));
        if (i > 100)
            most = std::max(most, map_memory(c.get()));
        changed = std::max(changed, units_changed(c.get()));
    }
    CHECK(most < (UNITS / 2 + ZEROS) * PAGE);
    if (together > 1)
        CHECK(changed <= how.private_max / PAGE / 4);
    for (uint64_t page = 0; page < copy.size(); page++)
        REQUIRE(words[page * (PAGE / 8) + 1] == copy[page]);
    REQUIRE_OK(pm_check(c.get()));
    REQUIRE_OK(pm_close(c.release()));
    c = test::open(path, test::options(PM_MOVABLE)); // all of the log is read
    words = static_cast<uint64_t *>(pm_getroot(c.get()));
    for (uint64_t page = 0; page < copy.size(); page++)
        REQUIRE(words[page * (PAGE / 8) + 1] == copy[page]);
    REQUIRE_OK(pm_check(c.get()));
}

// Each checkpoint writes the units that have changed. If it came sooner, commits all over a container would write
// each unit again and again.
TEST_CASE("no checkpoint begins before a quarter of the limit may be units that have changed")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    make(path);
    pm_options how = bounded();
    how.private_max = 2 * MiB;
    const uint64_t most = how.private_max / 2 / PAGE / 4;
    test::Container c = test::open(path, how);
    auto *words = static_cast<uint64_t *>(pm_getroot(c.get()));
    const auto change = [&](uint64_t unit) {
        REQUIRE_OK(pm_dirty(&words[unit * UNIT / 8 + 1], 8));
        words[unit * UNIT / 8 + 1]++;
        REQUIRE_OK(pm_commit(c.get()));
    };
    const uint64_t root = root_of(path);
    REQUIRE(root != 0);
    for (uint64_t unit = 0; unit < most; unit++)
        change(unit);
    for (uint64_t i = 0; i < 4 * most; i++)
        change(i % most);
    REQUIRE(root_of(path) == root);
    for (uint64_t i = 0; i < 2 * most; i++) // a commit writes an image, and some more do the root
        change(most);
    REQUIRE(root_of(path) != root);
}

TEST_CASE("after a crash the map has what has changed since the checkpoint, and not all around it")
{
    test::Directory directory;
    const std::string path = directory / "c.pm", other = directory / "other.pm";
    make(path);
    pm_options how = bounded();
    how.private_max = 64 * MiB; // so no checkpoint is made
    {
        test::Container c = test::open(path, how);
        auto *words = static_cast<uint64_t *>(pm_getroot(c.get()));
        for (uint64_t unit = 0; unit < UNITS; unit += 16) { // in each segment
            REQUIRE_OK(pm_dirty(&words[unit * UNIT / 8 + 1], 8));
            words[unit * UNIT / 8 + 1] = unit + 1;
            REQUIRE_OK(pm_commit(c.get()));
        }
        test::write_file(other, test::read_file(path));
    }
    test::Container c = test::open(other, bounded(PM_ACCEPT_COPY));
    CHECK(test::stats(c.get()).recovery_bytes > 0);
    CHECK(units_present(c.get()) <= 2 * UNITS / 16 + 8);
    for (uint64_t unit = 0; unit < UNITS; unit += 16)
        REQUIRE(numbers(c.get())[unit * UNIT / 8 + 1] == unit + 1);
    require_numbers(c.get());
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("objects come and go in bounded memory, with crashes, and a reading of the whole log "
          "says the same")
{
    const uint64_t seed = GENERATE(range(1, (int)test::repetitions(3, 12)));
    const uint64_t interval = GENERATE(as<uint64_t>(), 1, 64 * KiB);
    CAPTURE(seed, interval);
    Subject s(interval, seed, 1);
    pm_options reads = s.how;
    reads.flags |= PM_READONLY;
    for (int round = 0; round < 20; round++) {
        s.run(1 + (int)s.model.below(30));
        if (s.model.below(4) == 0)
            s.reopen();
        s.crash_to_other();
        s.other_holds(reads);
        s.other_holds(none(PM_READONLY));
        s.other_holds(s.model.below(2) ? s.how : none());
        s.other_holds(s.how);
        s.other_holds(none(PM_READONLY));
    }
    CHECK(lost_chunks(s.c.get()) == 0);
}

TEST_CASE("the file is not much longer for the checkpoints, however long objects come and go")
{
    constexpr size_t OBJECTS = 4000, MOST = 4096;
    test::Directory directory;
    pm_options o = bounded(PM_CREATE);
    o.private_max = 8 * MiB;
    o.segment_size = CHUNK;
    o.live_percent = 90;
    test::Container c = test::open(directory / "c.pm", o);
    auto **objects = static_cast<char **>(pm_calloc(c.get(), OBJECTS, sizeof(char *)));
    REQUIRE(objects);
    REQUIRE_OK(pm_setroot(c.get(), objects, 0));
    test::grows_by_least = true;
    std::vector<size_t> sizes(OBJECTS);
    std::mt19937_64 random(1);
    const auto replace = [&](size_t i) {
        pm_free(objects[i]);
        sizes[i] = 64 + random() % MOST;
        REQUIRE_OK(pm_dirty(objects + i, sizeof *objects));
        objects[i] = static_cast<char *>(pm_malloc(c.get(), sizes[i]));
        REQUIRE(objects[i]);
        REQUIRE_OK(pm_dirty(objects[i], sizes[i]));
        memset(objects[i], (int)random(), sizes[i]);
    };
    for (size_t i = 0; i < OBJECTS; i++) {
        replace(i);
        if (i % 50 == 49)
            REQUIRE_OK(pm_commit(c.get()));
    }
    for (int i = 0; i < 20000; i++) {
        replace(random() % OBJECTS);
        REQUIRE_OK(pm_commit(c.get()));
    }
    test::grows_by_least = false;
    uint64_t live = 0;
    for (size_t size : sizes)
        live += size;
    const double file = (double)std::filesystem::file_size(directory / "c.pm") / (double)live;
    CAPTURE(live);
    CHECK(file < 1.31); // it is 1.28 to 1.30, and 1.32 without chunks that are kept for images
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("a compaction brings the whole map to memory, and the next checkpoint lets it go")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    make(path);
    test::Container c = test::open(path, bounded());
    void *freed[100];
    for (void *&p : freed) {
        p = pm_malloc(c.get(), 100 * KiB);
        REQUIRE(p);
        REQUIRE_OK(pm_dirty(p, 100 * KiB));
        memset(p, 'f', 100 * KiB);
    }
    REQUIRE_OK(pm_commit(c.get()));
    for (void *p : freed)
        REQUIRE_OK(pm_free(p));
    REQUIRE_OK(pm_commit(c.get()));
    require_numbers(c.get());
    const uint64_t before = std::filesystem::file_size(path);
    REQUIRE_OK(pm_compact(c.get(), nullptr, nullptr, nullptr));
    CHECK(std::filesystem::file_size(path) < before);
    CHECK(root_of(path) == 0);
    require_numbers(c.get());
    REQUIRE_OK(pm_check(c.get()));
    c.reset();
    c = test::open(path, bounded());
    CHECK(units_present(c.get()) < 8);
    require_numbers(c.get());
}

TEST_CASE("on a full disk images are given up, when all their units are in memory", "[given_up]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    make(path);
    test::Container c = test::open(path, bounded());
    disk_is_full = true;
    while (root_of(path) != 0) {
        void *p = pm_malloc(c.get(), 8 * KiB);
        REQUIRE(p);
        REQUIRE_OK(pm_dirty(p, 8 * KiB));
        memset(p, 'a', 8 * KiB);
        if (pm_commit(c.get()) != 0)
            break;
    }
    CHECK(root_of(path) == 0);
    (void)pm_rollback(c.get());
    disk_is_full = false;
    require_numbers(c.get());
    REQUIRE_OK(pm_check(c.get()));
}

namespace
{

std::vector<uint64_t> image_places(const std::string &file, uint64_t root)
{
    std::vector<uint64_t> places;
    std::string copy = file;
    auto *contents = reinterpret_cast<log_root *>(&copy[(root + 1) * LINE]);
    for (uint64_t i = 0; i < contents->units; i++)
        if (log_root_units(contents)[i].place != 0)
            places.push_back(log_root_units(contents)[i].place);
    return places;
}

} // namespace

// Argument: a path. It reads all numbers, and is right, or ends.
CHILD_PROCESS(reads_numbers)
{
    pm_options how = bounded();
    pm_container *c = pm_open(arguments[0].c_str(), &how);
    CHILD_REQUIRE(c);
    for (uint64_t i = 0; i < UNITS * UNIT / 8; i += PAGE / 8)
        CHILD_REQUIRE(numbers(c)[i] == number_of(i));
    CHILD_REQUIRE(pm_check(c) == 0 && pm_close(c) == 0);
    _exit(0);
}

TEST_CASE(
    "a damaged image ends the process that needs it, and the next opening reads the whole log")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    make(path);
    const std::string whole = test::read_file(path);
    const std::vector<uint64_t> places = image_places(whole, root_of(path));
    REQUIRE(places.size() >= UNITS);
    uint64_t at_access = 0, at_opening = 0;
    for (size_t i = 0; i < places.size(); i += i < 8 ? 1 : 61) {
        std::string file = whole;
        file[places[i] * LINE + 100] ^= 1;
        test::write_file(path, file);
        {
            pm_options reads = bounded(PM_READONLY | PM_ACCEPT_COPY);
            test::Container c = test::open(path, reads);
            const bool is_told = test::stats(c.get()).recovery_bytes > 0;
            CHECK((pm_check(c.get()) != 0) == !is_told);
        }
        const test::Ended first = test::run("reads_numbers", {path});
        if (test::exited(first.status)) {
            at_opening++;
        } else {
            at_access++;
            CHECK(first.errors.find("this part of a checkpoint is damaged") != std::string::npos);
            REQUIRE(root_of(path) == 0);
        }
        REQUIRE_CLEAN(test::run("reads_numbers", {path}));
    }
    CHECK(at_opening > 0);
    CHECK(at_access > 2);
}

TEST_CASE("a forged delta that goes on in the next chunk is noticed")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    make(path);
    {
        test::Container c = test::open(path, bounded());
        auto *word = static_cast<uint64_t *>(pm_getroot(c.get())) + UNITS / 2 * UNIT / 8 + 1;
        REQUIRE_OK(pm_dirty(word, 8));
        *word = 1;
        REQUIRE_OK(pm_commit(c.get()));
    }
    hostile::LogFile file(test::read_file(path));
    const uint64_t chunk = log_chunk_size(test::header_of(path).segment_size);
    uint64_t forged = 0;
    for (uint64_t place : image_places(file.bytes, root_of(path))) {
        auto *image = reinterpret_cast<log_image *>(&file.bytes[place * LINE]);
        const uint64_t before = log_place_words(image) + log_left_words(image);
        if (image->number < UNITS / 2 || image->words == before)
            continue;
        uint64_t &delta = reinterpret_cast<uint64_t *>(image + 1)[before];
        delta = log_unit_delta(log_unit_delta_line(delta), 3, 2 * chunk / 8 - 1); // two words
        file.seal_image(place * LINE);
        forged++;
    }
    REQUIRE(forged == 1);
    file.seal_units(root_of(path) * LINE);
    test::write_file(path, file.bytes);
    const test::Ended first = test::run("reads_numbers", {path});
    CHECK(first.errors.find("this part of a checkpoint is damaged") != std::string::npos);
    REQUIRE_CLEAN(test::run("reads_numbers", {path}));
}

TEST_CASE("forged runs of places are noticed")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    make(path);
    hostile::LogFile file(test::read_file(path));
    const uint64_t chunk = log_chunk_size(test::header_of(path).segment_size) / LINE;
    const std::string whole = file.bytes;
    const uint64_t root = root_of(path), at = image_places(file.bytes, root).at(UNITS / 2);
    auto *image = reinterpret_cast<log_image *>(&file.bytes[at * LINE]);
    auto *runs = reinterpret_cast<uint64_t *>(image + 1);
    REQUIRE(image->packed == (LOG_RUNS | LOG_NONE_LEFT));
    REQUIRE(image->runs == UNIT / PAGE);
    REQUIRE(log_unit_run_line(runs[1]) == PAGE / LINE);
    struct Case {
        uint64_t line, count, place;
        bool is_noticed = true;
    };
    const Case cases[] = {
        {64, 1, chunk + 1, false},
        {64, 0, chunk + 1},
        {0, 1, chunk + 1}, // a line that has a place
        {1, 1, chunk + 1, false},
        {64, 64, chunk + 1, false},
        {64, 65, chunk + 1}, // the next run begins there
        {64, LOG_UNIT_LINES - 64, chunk + 1},
        {64, UINT16_MAX, chunk + 1},
        {UINT16_MAX, 1, chunk + 1},
        {64, 1, 0},
        {64, 1, chunk - 1},
        {64, 1, chunk},
        {64, 2, 2 * chunk - 2, false},
        {64, 3, 2 * chunk - 2},
        {64, 1, whole.size() / LINE},
        {64, 1, UINT32_MAX},
        {64, 2, UINT32_MAX},
    };
    const auto read = [&] {
        file.seal_image(at * LINE);
        file.seal_units(root * LINE);
        test::write_file(path, file.bytes);
        return test::run("reads_numbers", {path});
    };
    const auto is_noticed = [](const test::Ended &ended) {
        return ended.errors.find("this part of a checkpoint is damaged") != std::string::npos;
    };
    for (size_t i = 0; i < std::size(cases); i++) {
        CAPTURE(i);
        const Case &now = cases[i];
        std::copy(whole.begin(), whole.end(), file.bytes.begin());
        runs[1] = log_unit_run(now.line, now.count, now.place);
        CHECK(is_noticed(read()) == now.is_noticed);
    }
    const auto last = [&](uint64_t line, uint64_t count) {
        std::copy(whole.begin(), whole.end(), file.bytes.begin());
        runs[image->runs - 1] = log_unit_run(line, count, chunk + 1);
        return is_noticed(read());
    };
    CHECK(!last(LOG_UNIT_LINES - 64, 64));
    CHECK(last(LOG_UNIT_LINES - 64, 65));
    CHECK(!last(LOG_UNIT_LINES - 1, 1));
    CHECK(last(LOG_UNIT_LINES, 1));
    const auto heads = [&](unsigned packed, unsigned more_runs) {
        std::copy(whole.begin(), whole.end(), file.bytes.begin());
        image->packed = (uint16_t)packed;
        image->runs = (uint16_t)(image->runs + more_runs);
        return is_noticed(read());
    };
    CHECK(!heads(LOG_RUNS | LOG_NONE_LEFT, 0));
    CHECK(heads(LOG_RUNS | LOG_NONE_LEFT, 1)); // more than there are words
    CHECK(heads(LOG_RUNS, 0));
    CHECK(heads(LOG_NONE_LEFT, 0));
    CHECK(heads(0, 0));
    CHECK(heads(LOG_RUNS | LOG_NONE_LEFT | 4, 0));
}

TEST_CASE("an older image in the place of a newer one is noticed", "[older_image]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    make(path);
    hostile::LogFile file(test::read_file(path));
    const uint64_t place = image_places(file.bytes, root_of(path)).at(UNITS / 2);
    auto *image = reinterpret_cast<log_image *>(&file.bytes[place * LINE]);
    image->epoch--; // as if it were of the commit before
    file.seal_image(place * LINE);
    test::write_file(path, file.bytes);
    const test::Ended first = test::run("reads_numbers", {path});
    CHECK(!test::exited(first.status));
    REQUIRE_CLEAN(test::run("reads_numbers", {path}));
}

TEST_CASE("checkpoints of version 8 are read, and units come and go")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    make(path);
    test::set_version(path, FORMAT_LOG_UNPACKED);
    test::open(path, test::options(PM_MOVABLE)); // the checkpoint of version 9 is forgotten
    for (int i = 0; i < 3; i++) {
        test::Container c = test::open(path, bounded());
        CHECK((test::stats(c.get()).recovery_bytes == 0) == (i > 0));
        auto *words = static_cast<uint64_t *>(pm_getroot(c.get()));
        for (uint64_t unit = 0; unit < UNITS; unit += 7) {
            REQUIRE_OK(pm_dirty(&words[unit * UNIT / 8 + 1], 8));
            words[unit * UNIT / 8 + 1] = unit + 1;
            REQUIRE_OK(pm_commit(c.get()));
        }
        require_numbers(c.get());
        REQUIRE_OK(pm_check(c.get()));
    }
    CHECK(test::header_of(path).version == FORMAT_LOG_UNPACKED);
    const std::string file = test::read_file(path);
    for (uint64_t place : image_places(file, root_of(path)))
        CHECK(reinterpret_cast<const log_image *>(&file[place * LINE])->packed == 0);
}

TEST_CASE("checkpoints of version 7 are not read, and it gets none")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    make(path);
    test::set_version(path, FORMAT_LOG_BARE_ROOTS);
    for (int i = 0; i < 2; i++) {
        test::Container c = test::open(path, bounded());
        CHECK(test::stats(c.get()).recovery_bytes > 0);
        CHECK(root_of(path) == 0);
        require_numbers(c.get());
        REQUIRE_OK(pm_check(c.get()));
    }
    CHECK(test::header_of(path).version == FORMAT_LOG_BARE_ROOTS);
}
