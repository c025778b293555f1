// Records of the log engine at the limits of chunks and parts: exactly, one line less, one more. After each
// record the container is opened again, as it was closed and as a crash would leave it, and compared with a
// model. The last cases are about space: chunks are filled again, and the file stops growing.
#include "common/process.hpp"
#include "hostile/log_file.hpp"

#include <algorithm>
#include <filesystem>
#include <sys/mman.h>

extern "C" {
struct tables;
void *__real_tables_take(struct tables *tables, size_t size);

static bool guards_tables, cleans;

struct txn;
void __real_log_clean(struct txn *t, uint64_t lines);

void __wrap_log_clean(struct txn *t, uint64_t lines)
{
    if (cleans) // otherwise a record would not be where it is expected
        __real_log_clean(t, lines);
}

// If it is set, a container's tables end at a page that nobody may touch. Never given back.
void *__wrap_tables_take(struct tables *tables, size_t size)
{
    if (!guards_tables)
        return __real_tables_take(tables, size);
    size = align_up(size, PM_PAGE);
    void *table = mmap(nullptr, size + PM_PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED || mprotect((char *)table + size, PM_PAGE, PROT_NONE) != 0)
        abort();
    return table;
}
}

using hostile::LogFile;
using hostile::LogPart;

namespace
{

constexpr uint64_t LINE = 64, KiB = 1 << 10, MiB = 1 << 20, PAGES = 240;

pm_options how(uint64_t segment)
{
    pm_options o = test::small();
    o.max_size = 256 * MiB;
    o.segment_size = segment;
    return o;
}

// A record of so many lines in so many runs: all but the last are of one line.
struct Shape {
    uint64_t runs, lines;
};

constexpr uint64_t SHORTEST = 2; // lines of the shortest part

// The shortest record that leaves `left` lines of `room`, in one run.
Shape filling(uint64_t room, uint64_t left)
{
    return {1, room - left - log_part_head(1)};
}

// A container, and what its lines must hold.
class Subject
{
  public:
    explicit Subject(uint64_t segment = 64 * KiB, uint64_t pages = PAGES)
        : lines_(pages * PM_PAGE / LINE), options_(how(segment)),
          container_(test::open_with_pages(path_, pages, options_))
    {
        commit({1, 1}); // from here on, the newest record is in the chunk that is filled
    }

    // Every line changes, too those that only were.
    void commit(const Shape &shape)
    {
        value_++;
        for (uint64_t i = 0; i + 1 < shape.runs; i++)
            store(2 * i);
        const uint64_t first = 2 * (shape.runs - 1);
        for (uint64_t i = 0; i < shape.lines - (shape.runs - 1); i++)
            store(first + i);
        const uint64_t before = test::stats(container_.get()).lines_logged;
        REQUIRE_OK(pm_commit(container_.get()));
        REQUIRE(test::stats(container_.get()).lines_logged - before == shape.lines);
    }

    // All words of one line. No REQUIRE, which would take longer than the commit.
    void commit_line(uint64_t line, uint64_t value)
    {
        std::fill(&word(line), &word(line + 1), value);
        lines_[line] = value;
        if (pm_commit(container_.get()) != 0)
            FAIL(pm_errormsg());
    }

    LogFile file() const { return LogFile(test::read_file(path_)); }

    // Lines left in the chunk that is filled.
    uint64_t room() const
    {
        const LogFile now = file();
        const uint64_t end = now.newest().back().end();
        return (align_up(end, now.chunk_size()) - end) / LINE;
    }

    // Begin a chunk.
    void fill_chunk()
    {
        if (room() >= SHORTEST)
            commit(filling(room(), 0));
        REQUIRE(room() < SHORTEST);
    }

    void leave(uint64_t lines)
    {
        if (room() < SHORTEST + lines) {
            fill_chunk();
            commit({1, 1});
        }
        while (room() > LOG_PART_LINES) // as long as a part can be
            commit({1, LOG_PART_LINES - log_part_head(1)});
        commit(filling(room(), lines));
        REQUIRE(room() == lines);
    }

    // Close it, and leave it as a crash would have.
    void reopen_each()
    {
        const std::string crashed = test::read_file(path_);
        REQUIRE(holds());
        container_.reset();
        compare(false);
        const std::string closed = test::read_file(path_);
        test::write_file(path_, crashed);
        compare(true);
        test::write_file(path_, closed);
        container_ = open();
    }

    pm_container *container() const { return container_.get(); }
    uint64_t bytes() const { return std::filesystem::file_size(path_); }

  private:
    // More words than a delta has.
    void store(uint64_t line)
    {
        for (uint64_t i = 0; i <= LOG_DELTA_WORDS_MAX; i++)
            (&word(line))[i] = value_;
        lines_[line] = value_;
    }

    volatile uint64_t &word(uint64_t line) const
    {
        return static_cast<uint64_t *>(pm_getroot(container_.get()))[line * LINE / 8];
    }

    bool holds() const
    {
        for (uint64_t line = 0; line < lines_.size(); line++)
            if (word(line) != lines_[line])
                return false;
        return pm_check(container_.get()) == 0;
    }

    test::Container open() const { return test::open(path_, test::options(PM_ACCEPT_COPY)); }

    // And go on with it once.
    void compare(bool recovered)
    {
        container_ = open();
        REQUIRE(test::stats(container_.get()).recovered == recovered);
        REQUIRE(holds());
        const std::vector<uint64_t> lines = lines_;
        commit({1, 1});
        container_.reset();
        container_ = open();
        REQUIRE(holds());
        container_.reset();
        lines_ = lines;
    }

    test::Directory directory_;
    const std::string path_ = directory_ / "c.pm";
    std::vector<uint64_t> lines_; // the model
    uint64_t value_ = 0;
    pm_options options_;
    test::Container container_;
};

uint64_t parts_of_newest(const Subject &subject)
{
    return subject.file().newest().size();
}

} // namespace

TEST_CASE("records that fill a chunk", "[log]")
{
    const uint64_t runs = GENERATE(1, 2, 3, 10, 11, 100, 400) /* about where the table of runs grows */;
    Subject subject;
    const uint64_t exact = 64 * KiB / LINE - 1 - log_part_head(runs);
    for (int more : {-1, 0, 1, 2}) {
        INFO(runs << " runs, " << more << " lines more than fit");
        subject.fill_chunk();
        subject.commit({runs, exact + (uint64_t)more});
        REQUIRE(parts_of_newest(subject) == (more > 0 ? 2 : 1));
        if (more <= 0)
            REQUIRE(subject.room() == (uint64_t)-more);
        subject.reopen_each();
        subject.commit({1, 1});
    }
}

TEST_CASE("records that leave a few lines of a chunk, and what comes next", "[log]")
{
    const uint64_t left = GENERATE(0, 1, 2, 3, 4, 5);
    Subject subject;
    for (Shape next : {Shape{1, 1}, {2, 2}, {1, 2}, {1, 3}, {9, 9}, {1, 700}, {1, 1500}}) {
        INFO(left << " lines left, then " << next.lines << " lines in " << next.runs << " runs");
        subject.leave(left);
        const uint64_t end = subject.file().newest().back().end();
        subject.commit(next);
        const std::vector<LogPart> parts = subject.file().newest();
        REQUIRE((parts[0].offset == end) == (left >= SHORTEST)); // shorter parts there are none
        subject.reopen_each();
        subject.commit({1, 1});
    }
}

TEST_CASE("records about as long as those of small commits, where a chunk ends", "[log]")
{
    const uint64_t lines = GENERATE(1, 2, 3, 15, 16, 17);
    const bool scattered = GENERATE(false, true);
    const Shape shape = {scattered ? lines : 1, lines};
    const uint64_t needed = log_part_head(shape.runs) + lines;
    Subject subject;
    for (int more : {-1, 0, 1}) {
        const uint64_t left = needed + (uint64_t)more;
        INFO(left << " lines left for " << needed);
        subject.leave(left);
        subject.commit(shape);
        REQUIRE(parts_of_newest(subject) == (more < 0 && left >= SHORTEST ? 2 : 1));
        subject.reopen_each();
        subject.commit({1, 1});
    }
}

TEST_CASE("records of several chunks", "[log]")
{
    const uint64_t runs = GENERATE(1, 2, 3, 10, 11, 300);
    Subject subject;
    const uint64_t one = 64 * KiB / LINE - 1 - log_part_head(1);
    for (uint64_t chunks : {2, 3, 9})
        for (int more : {-2, -1, 0, 1, 2}) {
            INFO(chunks << " chunks, " << more << " lines more, " << runs << " runs");
            subject.fill_chunk();
            // The first chunk has all the short runs.
            const uint64_t first = one + log_part_head(1) - log_part_head(runs);
            subject.commit({runs, first + (chunks - 1) * one + (uint64_t)more});
            REQUIRE(parts_of_newest(subject) == chunks + (more > 0));
            subject.reopen_each();
            subject.commit({1, 1});
        }
}

TEST_CASE("parts as long as parts can be", "[log]")
{
    const uint64_t runs = GENERATE(1, 2, 3, 10, 11);
    Subject subject(128 * KiB); // larger chunks have parts of whole pages
    for (uint64_t parts : {1, 2, 3, 14})
        for (int more : {-1, 0, 1}) {
            INFO(parts << " parts, " << more << " lines more, " << runs << " runs");
            subject.leave(0);
            uint64_t lines = LOG_PART_LINES - log_part_head(runs);
            for (uint64_t i = 1; i < parts; i++) // every second one ends with the chunk
                lines += LOG_PART_LINES - i % 2 - log_part_head(1);
            subject.commit({runs, lines + (uint64_t)more});
            const std::vector<LogPart> newest = subject.file().newest();
            REQUIRE(newest.size() == parts + (more > 0));
            REQUIRE(newest[0].lines() == LOG_PART_LINES - (parts == 1 && more < 0));
            subject.reopen_each();
            subject.commit({1, 1});
        }
}

TEST_CASE("a record larger than all that is free", "[log]")
{
    Subject subject;
    const uint64_t before = subject.bytes();
    subject.commit({1, PAGES * PM_PAGE / LINE});
    REQUIRE(subject.bytes() >= before + 12 * 64 * KiB);
    subject.reopen_each();
    subject.commit({1000, 5000});
    subject.reopen_each();
}

TEST_CASE("a transaction of 64 MiB", "[log]")
{
    const uint64_t segment = GENERATE(as<uint64_t>(), 64 * KiB, MiB);
    Subject subject(segment, 64 * MiB / PM_PAGE);
    subject.commit({1, 64 * MiB / LINE});
    REQUIRE(parts_of_newest(subject) > 64 * MiB / (segment == MiB ? MiB : LOG_PART_LINES * LINE));
    subject.reopen_each();
}

TEST_CASE("the file stops growing if the same data is written again and again", "[log]")
{
    const uint64_t segment = GENERATE(as<uint64_t>(), 64 * KiB, MiB);
    const uint64_t lines = GENERATE(as<uint64_t>(), 1, 40, 1000, PAGES * PM_PAGE / LINE);
    INFO("segments of " << segment << " bytes, " << lines << " lines");
    Subject subject(segment);
    cleans = true;
    for (int i = 0; i < 40; i++)
        subject.commit({1, lines});
    uint64_t logged = 0, chunk = subject.file().chunk_size();
    while (logged < 6 * chunk) {
        subject.commit({1, lines});
        logged += lines * LINE;
    }
    const uint64_t before = subject.bytes();
    while (logged < 60 * chunk) {
        subject.commit({1, lines});
        logged += std::max<uint64_t>(lines, 20) * LINE;
    }
    REQUIRE(subject.bytes() == before);
    // The data; three commits, for two are not void yet; and the file grows by an eighth.
    REQUIRE(before <= (PAGES * PM_PAGE + 3 * lines * LINE) * 9 / 8 + 10 * chunk);
    subject.reopen_each();
    REQUIRE(subject.bytes() <= before + chunk);
    cleans = false;
}

TEST_CASE("chunks that are emptied many times before one line of them stays", "[log]")
{
    // In each chunk, every record takes the last piece of the one before. Recovery sees each of these moves. The
    // last record of a chunk has a line that stays. All others have lines of one page: a million pieces.
    constexpr uint64_t CHUNKS = 125, RECORDS = (MiB / LINE - 1) / SHORTEST, PAGE_LINES = PM_PAGE / LINE;
    static_assert(CHUNKS * (RECORDS - 1) > 1'000'000);
    Subject subject(MiB);
    REQUIRE((uintptr_t)pm_getroot(subject.container()) % PM_PAGE == 0);
    subject.leave(0);
    for (uint64_t chunk = 0; chunk < CHUNKS; chunk++) {
        for (uint64_t i = 1; i < RECORDS; i++)
            subject.commit_line(80 * PAGE_LINES + chunk % PAGE_LINES, i);
        subject.commit_line(81 * PAGE_LINES + chunk, 1);
        if (chunk % 60 == 0) // this reads the file
            REQUIRE(subject.room() < SHORTEST);
    }
    REQUIRE(subject.bytes() >= CHUNKS * MiB);
    guards_tables = true;
    subject.reopen_each();
    guards_tables = false;
}

// Not of CI: it takes 18 GiB of memory. scripts/soak runs it.
TEST_CASE("a transaction of more than 4 GiB", "[.huge]")
{
    constexpr uint64_t WORDS = (UINT64_C(4) << 30) / sizeof(uint64_t) + 1000;
    const test::Directory directory;
    const std::string path = directory / "c.pm";
    pm_options options = test::options(PM_CREATE);
    options.max_size = UINT64_C(16) << 30;
    test::Container c = test::open(path, options);
    auto *words = static_cast<uint64_t *>(pm_malloc(c.get(), WORDS * sizeof(uint64_t)));
    REQUIRE(words);
    REQUIRE_OK(pm_setroot(c.get(), words, 0));
    for (uint64_t i = 0; i < WORDS; i += 8)
        words[i] = i + 1;
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    c = test::open(path, test::options(PM_READONLY));
    words = static_cast<uint64_t *>(pm_getroot(c.get()));
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < WORDS; i += 8)
        wrong += words[i] != i + 1;
    REQUIRE(wrong == 0);
}
