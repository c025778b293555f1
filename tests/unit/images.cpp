// How long the images of a checkpoint are. An image has runs of places if these take fewer words than a table, and no
// bits if no line is left. Each container is opened in three ways, and must hold the same. All images are read at once,
// or each when somebody needs it, or no image but the log.
#include "unit/checkpoints.hpp"
#include "unit/page_state.h"

using namespace checkpoints;

namespace
{

constexpr uint64_t PAGE = 4 * KiB, UNIT = LOG_UNIT_LINES * LINE;

pm_options plain(unsigned flags = 0)
{
    pm_options o = none(flags);
    o.segment_size = 1 * MiB;
    return o;
}

pm_options from_images(unsigned flags = 0)
{
    pm_options o = plain(flags);
    o.checkpoint_bytes = 64 * MiB; // just one, at the close
    return o;
}

pm_options bounded(unsigned flags = 0)
{
    pm_options o = plain(flags);
    o.private_max = 1;
    return o;
}

// A unit, all of which is an object, or several.
struct OneUnit {
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c;
    std::string model = std::string(UNIT, 0);
    std::vector<uint64_t> freed; // bytes of the unit
    uint64_t number = 0;

    explicit OneUnit(uint32_t version = FORMAT_VERSION_LOG)
    {
        test::open(path, plain(PM_CREATE));
        test::set_version(path, version);
        c = test::open(path, from_images());
    }
    char *allocate(uint64_t bytes) const
    {
        auto *p = static_cast<char *>(pm_aligned_alloc(c.get(), bytes, bytes));
        REQUIRE(p);
        return p;
    }
    // The unit is a single object, or one for each page.
    void allocate_unit(uint64_t bytes = UNIT)
    {
        char *first = allocate(bytes);
        while (!begins_unit(c.get(), first))
            first = allocate(bytes);
        for (uint64_t at = bytes; at < UNIT; at += bytes)
            REQUIRE(allocate(bytes) == first + at);
        REQUIRE_OK(pm_setroot(c.get(), first, 0));
        number = unit_of(c.get(), first);
        commit();
    }
    char *unit(pm_container *in) const { return static_cast<char *>(pm_getroot(in)); }
    char *unit() const { return unit(c.get()); }
    void commit() const { REQUIRE_OK(pm_commit(c.get())); }
    void store(uint64_t at, uint64_t bytes, char value)
    {
        REQUIRE_OK(pm_dirty(unit() + at, bytes));
        memset(unit() + at, value, bytes);
        model.replace(at, bytes, bytes, value);
    }
    // A line each, so many, and one line between two.
    void store_lines(uint64_t first, uint64_t count)
    {
        for (uint64_t i = 0; i < count; i++)
            store((first + 2 * i) * LINE, LINE, (char)(1 + i % 100));
        commit();
    }
    void free(uint64_t at)
    {
        REQUIRE_OK(pm_free(unit() + at));
        commit();
        freed.push_back(at);
        model.replace(at, PAGE, PAGE, 0); // the log has nothing there
    }
    void holds(const pm_options &how) const
    {
        test::Container in = test::open(path, how);
        CHECK((test::stats(in.get()).recovery_bytes == 0) ==
              (how.checkpoint_bytes != 0 || how.private_max != 0));
        for (uint64_t at : freed)
            CHECK(line_is_left(in.get(), unit(in.get()) + at));
        CHECK(!line_is_left(in.get(), unit(in.get())));
        CHECK(std::equal(model.begin(), model.end(), unit(in.get())));
        REQUIRE_OK(pm_check(in.get()));
    }
    // Close the container, and let others read it.
    void close()
    {
        c.reset();
        for (unsigned flags : {(unsigned)PM_READONLY, 0u}) {
            holds(from_images(flags));
            holds(bounded(flags));
        }
        holds(plain(PM_READONLY));
    }
    std::string root() const
    {
        const std::string file = test::read_file(path);
        const uint64_t at = root_of(path) * LINE;
        REQUIRE(at != 0);
        auto *head = reinterpret_cast<const log_image *>(&file[at]);
        REQUIRE(head->next == 0); // it is of one piece
        return file.substr(at + LINE, head->words * sizeof(uint64_t));
    }
    // With its header.
    std::string image_of(uint64_t unit) const
    {
        std::string words = root();
        const uint64_t at = log_root_units(reinterpret_cast<log_root *>(words.data()))[unit].place;
        return at == 0 ? std::string() : test::read_file(path).substr(at * LINE, 2 * UNIT);
    }
    log_image image() const
    {
        log_image head;
        memcpy(&head, image_of(number).data(), sizeof head);
        return head;
    }
};

} // namespace

TEST_CASE("a unit has runs, as long as they take fewer words than a table")
{
    struct Case {
        uint64_t even, odd; // lines that are stored to, by a commit each: no two of them are a run
        uint64_t runs;      // 0: a table
    };
    const auto [even, odd, runs] = GENERATE(
        Case{1, 0, 1}, Case{8, 0, 8}, Case{9, 0, 9}, Case{510, 0, 510}, Case{511, 0, 511},
        Case{510, 1, 511}, Case{512, 0, 0}, Case{511, 1, 0}, Case{512, 1, 0}, Case{512, 512, 0});
    CAPTURE(even, odd);
    OneUnit s;
    s.allocate_unit();
    s.store_lines(0, even);
    s.store_lines(1, odd);
    s.close();
    const log_image image = s.image();
    CHECK(image.packed == (runs ? LOG_RUNS | LOG_NONE_LEFT : LOG_NONE_LEFT));
    CHECK(image.runs == runs);
    CHECK(image.words == (runs ? runs : 512));
}

TEST_CASE("a unit of which all lines lie together has one run, and its image two lines")
{
    OneUnit s;
    s.allocate_unit();
    s.store(0, UNIT, 'a');
    s.commit();
    s.close();
    const log_image image = s.image();
    CHECK(image.packed == (LOG_RUNS | LOG_NONE_LEFT));
    CHECK(image.runs == 1);
    CHECK(log_image_lines(&image) == 2);
}

TEST_CASE("lines that lie together in the file and not in the unit are not one run, nor are others")
{
    OneUnit s;
    s.allocate_unit();
    s.store(0, 4 * LINE, 'a');
    s.store(5 * LINE, 3 * LINE, 'b');
    s.commit();
    s.store(2 * LINE, LINE, 'c');
    s.commit();
    s.close();
    const std::string bytes = s.image_of(s.number);
    const log_image image = s.image();
    REQUIRE(image.runs == 4);
    const auto *runs = reinterpret_cast<const uint64_t *>(&bytes[LINE]);
    const uint64_t expected[][2] = {{0, 2}, {2, 1}, {3, 1}, {5, 3}};
    for (int i = 0; i < 4; i++) {
        CHECK(log_unit_run_line(runs[i]) == expected[i][0]);
        CHECK(log_unit_run_count(runs[i]) == expected[i][1]);
    }
    CHECK(log_unit_run_place(runs[2]) == log_unit_run_place(runs[0]) + 3);
    CHECK(log_unit_run_place(runs[3]) == log_unit_run_place(runs[0]) + 4);
}

TEST_CASE("behind runs or a table an image has deltas")
{
    const uint64_t lines = GENERATE(1, 511, 512);
    CAPTURE(lines);
    OneUnit s;
    s.allocate_unit();
    s.store_lines(0, lines);
    for (uint64_t i = 0; i < lines; i += 5)
        s.store(2 * i * LINE + 8, 8, 'd');
    s.commit();
    s.close();
    const log_image image = s.image();
    CHECK(image.runs == lines % 512);
    CHECK(image.words == lines + (lines + 4) / 5);
}

TEST_CASE("an image says which lines are left, if any are")
{
    const bool is_table = GENERATE(false, true);
    OneUnit s;
    s.allocate_unit(PAGE);
    s.store_lines(0, 512);
    if (is_table)
        s.store_lines(1, 512);
    s.free(UNIT / 4);
    s.free(UNIT / 2);
    s.close();
    const log_image image = s.image();
    CHECK(image.packed == (is_table ? 0 : LOG_RUNS));
    CHECK(image.runs == (is_table ? 0 : 512 - 2 * 32)); // what was freed has no places
    CHECK(image.words == (is_table ? LOG_TABLE_WORDS : image.runs) + LOG_LEFT_WORDS);
}

TEST_CASE("a unit of which all is left has no places")
{
    OneUnit s;
    s.allocate_unit();
    s.store_lines(0, 512);
    auto *kept = pm_malloc(s.c.get(), 64);
    REQUIRE(kept);
    char *unit = s.unit();
    REQUIRE_OK(pm_setroot(s.c.get(), kept, 0));
    REQUIRE_OK(pm_free(unit));
    s.commit();
    s.c.reset();
    const log_image image = s.image();
    CHECK(image.packed == LOG_RUNS);
    CHECK(image.runs == 0);
    CHECK(image.words == LOG_LEFT_WORDS);
    const uint64_t offset = s.number * UNIT;
    for (const pm_options &how : {from_images(PM_READONLY), bounded(), from_images()}) {
        test::Container c = test::open(s.path, how);
        CHECK(test::stats(c.get()).recovery_bytes == 0);
        CHECK(line_is_left(c.get(), address_of(c.get(), offset)));
        REQUIRE_OK(pm_check(c.get()));
    }
}

TEST_CASE("a root says how many lines each image has, also of images that were there before")
{
    OneUnit s;
    s.allocate_unit();
    s.store_lines(0, 100);
    s.close();
    if (GENERATE(false, true)) {
        s.c = test::open(s.path, GENERATE(from_images(), bounded()));
        s.allocate(PAGE);
        s.commit();
        s.c.reset();
    }
    std::string words = s.root();
    auto *root = reinterpret_cast<log_root *>(words.data());
    REQUIRE(words.size() == log_root_words_with_lines(root->chunks, root->units) * 8);
    for (uint32_t i = 0; i < root->units; i++) {
        const std::string image = s.image_of(i);
        const uint64_t lines =
            image.empty() ? 0 : log_image_lines(reinterpret_cast<const log_image *>(image.data()));
        CHECK(log_root_lines(root)[i] == lines);
    }
    CHECK(log_root_lines(root)[s.number] == 1 + divide_up(100, PM_LINE_WORDS));
}

TEST_CASE("in a container of version 8 images are tables, and they are used")
{
    OneUnit s(FORMAT_LOG_UNPACKED);
    s.allocate_unit(PAGE);
    s.store_lines(0, 100);
    s.store(8, 8, 'd');
    s.commit();
    if (GENERATE(false, true))
        s.free(UNIT / 8);
    s.close();
    CHECK(test::header_of(s.path).version == FORMAT_LOG_UNPACKED);
    const log_image image = s.image();
    CHECK(image.packed == 0);
    CHECK(image.runs == 0);
    CHECK(image.words == LOG_TABLE_WORDS + LOG_LEFT_WORDS + 1);
    std::string words = s.root();
    auto *root = reinterpret_cast<log_root *>(words.data());
    CHECK(words.size() == log_root_words(root->chunks, root->units) * 8);
}
