// Deltas of the log engine: when a commit logs a line, and when the words of it that have changed (L16). The model
// of the whole container is in model.cpp; this looks at the records.
#include "common/format.hpp"
#include "hostile/log_file.hpp"

#include <cstring>
#include <random>

using namespace hostile;

namespace
{

constexpr uint64_t LINE = 64, WORDS = 8, KiB = 1024;

bool write_fails, cleans = true;

} // namespace

extern "C" {

struct txn;
void __real_log_clean(struct txn *t, uint64_t lines);

void __wrap_log_clean(struct txn *t, uint64_t lines)
{
    if (cleans)
        __real_log_clean(t, lines);
}

int __real_log_store(struct txn *t, uint64_t place, const void *from, uint64_t bytes);

int __wrap_log_store(struct txn *t, uint64_t place, const void *from, uint64_t bytes)
{
    if (write_fails) {
        write_fails = false; // what it has left can be erased
        return -EIO;
    }
    return __real_log_store(t, place, from, bytes);
}
}

namespace
{

// An object of some lines, and what it must hold.
class Subject
{
  public:
    // Announced stores are marked, so that small commits are as under `stores`.
    explicit Subject(uint64_t lines, bool announced) : model(lines * WORDS), announced_(announced)
    {
        pm_options how = test::small(PM_CREATE | (announced ? (unsigned)PM_ANNOUNCED : 0u));
        if (announced)
            how.tracker = PM_TRACKER_STORES;
        how.max_size = 64 << 20;
        c = test::open(path, how);
        void *p = pm_malloc(c.get(), std::max(lines * LINE, 4 * KiB));
        REQUIRE(p);
        REQUIRE_OK(pm_setroot(c.get(), p, 0));
        REQUIRE_OK(pm_commit(c.get()));
    }

    void store(uint64_t word, uint64_t value)
    {
        auto *at = static_cast<uint64_t *>(pm_getroot(c.get())) + word;
        if (announced_)
            REQUIRE_OK(pm_dirty(at, sizeof *at));
        *static_cast<volatile uint64_t *>(at) = model[word] = value;
    }

    // Commit, and return what the record says of the object's first line: the run, or the delta and its words.
    std::vector<uint64_t> commit()
    {
        REQUIRE_OK(pm_commit(c.get()));
        std::vector<uint64_t> found;
        for (const LogPart &part : LogFile(test::read_file(path)).newest())
            for (size_t i = 0; i < part.table.size(); i += log_entry_words(part.table[i]))
                if (run_line(part.table[i]) == line())
                    found.assign(part.table.begin() + (long)i,
                                 part.table.begin() + (long)(i + log_entry_words(part.table[i])));
        return found;
    }

    uint64_t line() const
    {
        const auto *base = static_cast<const char *>(test::stats(c.get()).base);
        return (uint64_t)(static_cast<const char *>(pm_getroot(c.get())) - base) / LINE;
    }

    void holds_now() const
    {
        const bool same = memcmp(pm_getroot(c.get()), model.data(), model.size() * 8) == 0;
        REQUIRE(same);
        REQUIRE_OK(pm_check(c.get()));
    }

    // After a crash, to a reader and a writer, and after a close.
    void holds()
    {
        holds_now();
        const std::string crashed = test::read_file(path);
        c.reset();
        test::write_file(path, crashed);
        for (unsigned flags : {(unsigned)PM_READONLY, 0u, 0u}) {
            c.reset();
            c = reopened(flags);
            holds_now();
        }
    }

    test::Container reopened(unsigned flags) const
    {
        pm_options how = test::options(flags | PM_ACCEPT_COPY);
        if (announced_ && !(flags & PM_READONLY)) {
            how.tracker = PM_TRACKER_STORES;
            how.flags |= PM_ANNOUNCED;
        }
        return test::open(path, how);
    }

    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c;
    std::vector<uint64_t> model;

  private:
    bool announced_;
};

using Table = std::vector<uint64_t>;

} // namespace

TEST_CASE("a delta has all words that differ from the whole line, up to four")
{
    Subject subject(1, GENERATE(true, false));
    const uint64_t line = subject.line(), run = redo_run(line, 1);
    subject.store(3, 1);
    REQUIRE(subject.commit() == Table{run}); // it was not in the log yet
    subject.store(7, 70);
    REQUIRE(subject.commit() == Table{log_delta(line, 0x80), 70});
    subject.store(0, 10);
    REQUIRE(subject.commit() == Table{log_delta(line, 0x81), 10, 70});
    subject.holds();
    subject.store(7, 0); // as it was in the whole line
    REQUIRE(subject.commit() == Table{log_delta(line, 0x81), 10, 0});
    for (uint64_t word = 1; word <= 2; word++)
        subject.store(word, 100 + word);
    REQUIRE(subject.commit() == Table{log_delta(line, 0x87), 10, 101, 102, 0});
    subject.holds();
    subject.store(2, 202); // no further one
    REQUIRE(subject.commit() == Table{log_delta(line, 0x87), 10, 101, 202, 0});
    subject.store(5, 50);
    REQUIRE(subject.commit() == Table{run});
    subject.store(6, 60);
    REQUIRE(subject.commit() == Table{log_delta(line, 0x40), 60});
    subject.holds();
    subject.store(6, 60); // the same
    subject.store(0, 11);
    REQUIRE(subject.commit() == Table{log_delta(line, 0x41), 11, 60}); // after the opening too
    subject.holds();
}

TEST_CASE("a container of version 4 gets no deltas, and stays one of version 4")
{
    Subject subject(1, GENERATE(true, false));
    const uint64_t run = redo_run(subject.line(), 1);
    subject.store(0, 1);
    REQUIRE(subject.commit() == Table{run});
    subject.c.reset();
    REQUIRE(test::header_of(subject.path).version == FORMAT_VERSION_LOG);
    test::set_version(subject.path, FORMAT_LOG_OLDEST);
    subject.c = subject.reopened(0);
    for (uint64_t i = 2; i < 5; i++) {
        subject.store(0, i);
        REQUIRE(subject.commit() == Table{run});
        subject.holds();
    }
    subject.c.reset();
    for (uint64_t copy : {FORMAT_HEADER_A, FORMAT_HEADER_B})
        REQUIRE(at<format_header>(test::read_file(subject.path), copy).version ==
                FORMAT_LOG_OLDEST);
}

TEST_CASE("a record that cannot be written leaves the deltas as they were")
{
    const bool announced = GENERATE(true, false);
    const uint64_t before =
        GENERATE(0, 1, 2); // a line as a whole, with a delta, with the longest one
    Subject subject(2, announced);
    subject.store(0, 1);
    subject.store(8, 1);
    REQUIRE_OK(pm_commit(subject.c.get()));
    for (uint64_t word = 0; word < (before == 2 ? LOG_DELTA_WORDS_MAX : before); word++)
        subject.store(1 + word, 10 + word);
    REQUIRE_OK(pm_commit(subject.c.get()));
    subject.store(7, 20);
    subject.store(9, 30);
    write_fails = true;
    REQUIRE(pm_commit(subject.c.get()) == -1);
    REQUIRE_FALSE(write_fails);
    SECTION("and the next attempt is whole")
    {
        REQUIRE_OK(pm_commit(subject.c.get()));
    }
    SECTION("and a rollback brings back what was there")
    {
        REQUIRE_OK(pm_rollback(subject.c.get()));
        subject.model[7] = subject.model[9] = 0;
    }
    subject.holds();
    subject.store(2, 99);
    REQUIRE_OK(pm_commit(subject.c.get()));
    subject.holds();
}

// Some commits are of a few lines, and some of more than there are. So parts are cut between deltas, and chunks
// that have only deltas are emptied and cleaned.
TEST_CASE("random words of random lines are there after a crash")
{
    const bool announced = GENERATE(true, false);
    const uint64_t lines = GENERATE(as<uint64_t>(), 3, 500, 20000);
    Subject subject(lines, announced);
    std::mt19937_64 random(lines);
    for (uint64_t round = 0; round < 6; round++) {
        for (uint64_t i = 0; i < (announced ? 300 : 60); i++) {
            const uint64_t stores = i % 50 == 0 ? 4 * lines / 3 : random() % 12 + 1;
            for (uint64_t k = 0; k < stores; k++)
                subject.store(random() % lines * WORDS + random() % (k % 9 + 1) % WORDS, random() % 3);
            REQUIRE_OK(pm_commit(subject.c.get()));
        }
        subject.holds();
    }
}

// A reservation cleans in the middle of a transaction.
TEST_CASE("the cleaner moves deltas as they were committed, whatever the transaction has stored")
{
    const uint64_t lines = 16 * KiB;
    Subject subject(lines, true);
    std::mt19937_64 random(1);
    cleans = false; // so that there is something to clean
    for (uint64_t i = 0; i < 12 * lines; i++) {
        subject.store(i < lines ? i * WORDS : random() % lines * WORDS + random() % 2, random());
        if (i % 64 == 63)
            REQUIRE_OK(pm_commit(subject.c.get()));
    }
    cleans = true;
    REQUIRE_OK(pm_commit(subject.c.get()));
    const std::vector<uint64_t> committed = subject.model;
    const uint64_t logged = test::stats(subject.c.get()).bytes_logged;
    for (uint64_t line = 0; line < lines; line++)
        subject.store(line * WORDS + line % 3, 7);
    REQUIRE_OK(pm_reserve(subject.c.get(), 2 << 20));
    REQUIRE(test::stats(subject.c.get()).bytes_logged > logged);
    const std::string crashed = test::read_file(subject.path);
    subject.c.reset();
    test::write_file(subject.path, crashed);
    subject.model = committed;
    subject.c = subject.reopened(0);
    subject.holds();
}
