// The redo engine's log, filled exactly, by one less, by one more: records that end with a part,
// with a segment, with the log; and records larger than all of it.
#include "common/format.hpp"
#include "common/process.hpp"

#include <unistd.h>

using test::page_word;

namespace
{

constexpr uint64_t LINE = 64, HEAD = sizeof(redo_part), PART_MAX = FORMAT_SEGMENT_MIN;
constexpr uint64_t PAGES = 2000;

// So many lines in so many runs: all but the last are of one line.
struct Shape {
    uint64_t runs, lines;
    uint64_t stream() const { return runs * sizeof(uint64_t) + lines * LINE; }
};

pm_options how(uint64_t segment = 64 << 10)
{
    pm_options o = test::small();
    o.max_size = 256 << 20;
    o.segment_size = segment;
    return o;
}

volatile uint64_t &line_word(pm_container *c, uint64_t line)
{
    return static_cast<uint64_t *>(pm_getroot(c))[line * LINE / 8];
}

template <typename Visit> void each_line(const Shape &shape, Visit visit)
{
    for (uint64_t i = 0; i + 1 < shape.runs; i++)
        visit(2 * i);
    for (uint64_t i = shape.runs - 1; i < shape.lines; i++)
        visit(shape.runs - 1 + i);
}

void store(pm_container *c, const Shape &shape, uint64_t value)
{
    each_line(shape, [&](uint64_t line) { line_word(c, line) = value; });
}

bool holds(pm_container *c, const Shape &shape, uint64_t value)
{
    uint64_t wrong = 0;
    each_line(shape, [&](uint64_t line) { wrong += line_word(c, line) != value; });
    return wrong == 0;
}

// Bytes of the log that a stream takes from where `end` bytes of a segment are in use, and where
// that leaves it.
struct Place {
    uint64_t end, segment = 64 << 10;
    uint64_t take(uint64_t stream)
    {
        uint64_t taken = 0;
        while (stream > 0) {
            uint64_t most = std::min(segment - end, PART_MAX);
            if (most <= HEAD) {
                end = 0;
                continue;
            }
            uint64_t bytes = std::min(stream, most - HEAD);
            uint64_t padded = align_up(HEAD + bytes, LINE);
            stream -= bytes;
            end += padded;
            taken += padded;
        }
        return taken;
    }
};

} // namespace

// arguments: path, segment size, then runs and lines of each record; all but the last have the
// value 1, 2 and so on, after it the process dies.
CHILD_PROCESS(writes_records)
{
    pm_options options = how(std::stoul(arguments[1]));
    pm_container *c = pm_open(arguments[0].c_str(), &options);
    CHILD_REQUIRE(c);
    Place place{0, options.segment_size};
    for (size_t i = 2; i + 1 < arguments.size(); i += 2) {
        Shape shape{std::stoul(arguments[i]), std::stoul(arguments[i + 1])};
        store(c, shape, i / 2);
        struct pm_stats before = test::stats(c);
        CHILD_REQUIRE(pm_commit(c) == 0);
        struct pm_stats after = test::stats(c);
        CHILD_REQUIRE(after.lines_logged - before.lines_logged == shape.lines);
        // The last record may have words besides: those of the segments that the log gave up.
        if (after.segments_log >= before.segments_log)
            CHILD_REQUIRE(after.bytes_logged - before.bytes_logged == place.take(shape.stream()));
    }
    CHILD_REQUIRE(pm_check(c) == 0);
    _exit(0);
}

namespace
{

void die_and_compare(const std::string &path, uint64_t segment, const std::vector<Shape> &records)
{
    test::Arguments arguments = {path, std::to_string(segment)};
    std::string told;
    for (const Shape &s : records)
        for (uint64_t n : {s.runs, s.lines}) {
            arguments.push_back(std::to_string(n));
            told += " " + arguments.back();
        }
    INFO("runs and lines:" << told << "; segments of " << segment);
    test::open_with_pages(path, PAGES, how(segment));
    REQUIRE_CLEAN(test::run("writes_records", arguments));
    test::Container c = test::open(path, test::options());
    REQUIRE(test::stats(c.get()).recovered);
    REQUIRE(holds(c.get(), records.back(), records.size()));
    REQUIRE_OK(pm_check(c.get()));
    c.reset();
    REQUIRE_OK(pm_delete(path.c_str()));
}

} // namespace

TEST_CASE("records around the end of a segment", "[redo]")
{
    test::Directory directory;
    const uint64_t exact = (64 << 10) / LINE - 2; // with its header and a line of eight runs
    for (uint64_t before : {0, 1, 20, 500})
        for (uint64_t segments : {1, 2, 3})
            for (int more : {-2, -1, 0, 1, 2})
                for (uint64_t runs : {8, 1, 9}) {
                    uint64_t used = before ? before + 2 : 0; // lines of the segment
                    uint64_t lines = exact - used + (segments - 1) * (exact + 1) + (uint64_t)more;
                    std::vector<Shape> records = {{runs, lines}};
                    if (before)
                        records.insert(records.begin(), {1, before});
                    die_and_compare(directory / "c.pm", 64 << 10, records);
                }
}

TEST_CASE("records around the largest part, in segments that hold several", "[redo]")
{
    test::Directory directory;
    const uint64_t exact = PART_MAX / LINE - 2;
    for (uint64_t before : {0, 3})
        for (uint64_t parts : {1, 2, 4})
            for (int more : {-1, 0, 1}) {
                uint64_t lines = exact + (parts - 1) * (exact + 1) + (uint64_t)more;
                std::vector<Shape> records = {{8, lines}};
                if (before)
                    records.insert(records.begin(), {1, before});
                die_and_compare(directory / "c.pm", 256 << 10, records);
            }
}

TEST_CASE("records that leave room for a header and nothing more, and what comes after", "[redo]")
{
    test::Directory directory;
    const uint64_t exact = (64 << 10) / LINE - 2;
    for (uint64_t left : {0, 1, 2, 3}) // lines of the segment
        for (uint64_t next : {1, 30})
            die_and_compare(directory / "c.pm", 64 << 10,
                            {{8, exact - left}, {1, next}, {1, next}});
}

TEST_CASE("the log grows for a line more than it holds, and not before", "[redo]")
{
    test::Directory directory;
    const uint64_t exact = (64 << 10) / LINE - 2;
    for (uint64_t more : {0, 1}) {
        test::Container c = test::open_with_pages(directory / std::to_string(more), PAGES, how());
        uint64_t log = test::stats(c.get()).segments_log;
        REQUIRE(log == 2);
        // A line less than two segments, for the words that would give up both are reserved too.
        Shape shape{8, exact + exact + more};
        store(c.get(), shape, 1);
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(test::stats(c.get()).segments_log == log + more);
        REQUIRE_OK(pm_check(c.get()));
    }
}

// The log is used round and round, and no record is overwritten while it is needed.
CHILD_PROCESS(goes_round_the_log)
{
    pm_container *c = test::open(arguments[0], test::options()).release();
    uint64_t last = std::stoul(arguments[1]), step = std::stoul(arguments[2]);
    for (uint64_t i = 1; i <= last; i++) {
        store(c, {1, 1 + i * step % 1500}, i);
        line_word(c, 40 * 64 + i % 64) = i;
        CHILD_REQUIRE(pm_commit(c) == 0);
    }
    CHILD_REQUIRE(test::stats(c).segments_log <= 6);
    _exit(0);
}

TEST_CASE("round and round the log", "[redo]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    for (uint64_t step : {1, 37, 700})
        for (uint64_t last = 180; last < 200; last++) {
            INFO(last << " commits of " << step << " lines more each");
            test::open_with_pages(path, PAGES, how());
            REQUIRE_CLEAN(test::run("goes_round_the_log",
                                    {path, std::to_string(last), std::to_string(step)}));
            test::Container c = test::open(path, test::options());
            REQUIRE(holds(c.get(), {1, 1 + last * step % 1500}, last));
            for (uint64_t i = last - 63; i <= last; i++)
                REQUIRE(line_word(c.get(), 40 * 64 + i % 64) == i);
            REQUIRE_OK(pm_check(c.get()));
            c.reset();
            REQUIRE_OK(pm_delete(path.c_str()));
        }
}

CHILD_PROCESS(changes_every_line)
{
    pm_container *c = test::open(arguments[0], test::options()).release();
    for (uint64_t line = 0; line < PAGES * 64; line++)
        line_word(c, line) = line + 1;
    if (arguments[1] == "roll back") {
        CHILD_REQUIRE(pm_rollback(c) == 0);
        for (uint64_t line = 0; line < PAGES * 64; line++)
            CHILD_REQUIRE(line_word(c, line) == 0);
        line_word(c, 5) = 6;
    }
    CHILD_REQUIRE(pm_commit(c) == 0);
    uint64_t log = test::stats(c).segments_log;
    if (arguments[1] != "roll back")
        CHILD_REQUIRE(log > PAGES * 64 / 1024);
    if (arguments[1] == "shrink") {
        // It gives up segments from its end, once it no longer writes to the last.
        for (uint64_t i = 0; i < 1500; i++) {
            line_word(c, 0) = i + 2;
            CHILD_REQUIRE(pm_commit(c) == 0);
        }
        CHILD_REQUIRE(test::stats(c).segments_log <= 6);
        // The segments serve others now.
        uint64_t bytes = test::stats(c).file_bytes;
        for (uint64_t i = 0; i + 6 < log; i++)
            CHILD_REQUIRE(pm_malloc(c, 64 << 10));
        CHILD_REQUIRE(test::stats(c).file_bytes == bytes);
        line_word(c, 0) = 1;
        CHILD_REQUIRE(pm_commit(c) == 0);
    }
    CHILD_REQUIRE(pm_check(c) == 0);
    _exit(0);
}

TEST_CASE("the log begins anew behind a compaction", "[redo]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm", crashed = directory / "crashed.pm";
    pm_options movable = how();
    movable.flags |= PM_MOVABLE;
    test::Container c = test::open_with_pages(path, PAGES, movable);
    const uint64_t before = GENERATE(1u, 3u); // commits
    uint64_t value = 0;
    for (uint64_t i = 0; i < before; i++) {
        line_word(c.get(), 0) = ++value;
        REQUIRE_OK(pm_commit(c.get()));
    }
    REQUIRE_OK(pm_compact(c.get(), nullptr, nullptr, nullptr));
    for (int i = 0; i < 2; i++) {
        line_word(c.get(), 0) = ++value;
        REQUIRE_OK(pm_commit(c.get()));
    }
    const std::string file = test::read_file(path); // as a crash leaves it
    c.reset();
    test::write_file(crashed, file);
    c = test::open(crashed, test::options(PM_ACCEPT_COPY | PM_MOVABLE));
    REQUIRE(line_word(c.get(), 0) == value);
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("a transaction larger than the log", "[redo]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    std::string how_it_ends = GENERATE(as<std::string>(), "commit", "roll back", "shrink");
    test::open_with_pages(path, PAGES, how());
    REQUIRE_CLEAN(test::run("changes_every_line", {path, how_it_ends}));
    test::Container c = test::open(path, test::options());
    REQUIRE(test::stats(c.get()).recovered);
    REQUIRE_OK(pm_check(c.get()));
    bool all = how_it_ends != "roll back";
    for (uint64_t line = 0; line < PAGES * 64; line++)
        if (line_word(c.get(), line) != (all || line == 5 ? line + 1 : 0))
            FAIL("line " << line);
}
