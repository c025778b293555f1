// Logs that no libpm writes, with every checksum right: somebody means harm, or a bug wrote them.
// Recovery believes no number in a record before it has looked at its range, and no log that cannot
// be whole; it says so, and writes nowhere.
#include "common/format.hpp"
#include "common/process.hpp"
#include "hostile/anatomy.hpp"
#include "hostile/memory_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unistd.h>

using namespace hostile;

// Leaves a log of three records, each with a new slab, a new object, and stores to old ones.
CHILD_PROCESS(leaves_three_records)
{
    pm_options how = test::small();
    how.max_size = 32 * how.segment_size;
    pm_container *c = pm_open(arguments[0].c_str(), &how);
    CHILD_REQUIRE(c);
    auto *root = static_cast<char *>(pm_calloc(c, 1, how.segment_size));
    CHILD_REQUIRE(root && pm_setroot(c, root, 0) == 0 && pm_commit(c) == 0);
    CHILD_REQUIRE(pm_close(c) == 0);
    c = test::open(arguments[0], test::options()).release();
    root = static_cast<char *>(pm_getroot(c));
    for (size_t size : {100, 1000, 5000}) {
        void *fresh = pm_malloc(c, size);
        CHILD_REQUIRE(fresh);
        memset(fresh, 1, size);
        root[3 * size] = 1;
        CHILD_REQUIRE(pm_commit(c) == 0);
    }
    _exit(0);
}

namespace
{

// Equal entries of a record, each of which begins with where in the file it leads: in units of a
// byte, a line or a page.
struct Row {
    const char *name;
    uint64_t unit, at, count, size;

    // How many bytes of the file the entry at `entry` speaks of.
    uint64_t bytes(const Bytes &file, uint64_t entry) const
    {
        uint64_t first = hostile::at<uint64_t>(file, entry);
        if (unit == PM_LINE)
            return run_count(first) * PM_LINE;
        bool has_length = name != std::string("words") && unit == 1;
        return has_length ? hostile::at<uint64_t>(file, entry + 8) : unit == 1 ? 8 : unit;
    }

    // Let it lead elsewhere.
    void move(Bytes &file, uint64_t entry, uint64_t offset) const
    {
        uint64_t value = offset / unit;
        if (unit == PM_LINE)
            value = redo_run(run_line(value), run_count(hostile::at<uint64_t>(file, entry)));
        put(file, entry, value);
    }
};

struct Record {
    uint64_t head; // where it is in the file
    Row clears, words, fresh, runs, pages;
    std::vector<Row> rows() const { return {clears, words, fresh, runs, pages}; }
};

class Forger
{
  public:
    Forger()
    {
        REQUIRE_CLEAN(test::run("leaves_three_records", {path()}));
        file = test::read_file(path());
        geometry = *geometry_of(file);
        find_records();
    }

    std::string path() const { return directory_ / "c.pm"; }

    // Open it, its checksums made right. Whether libpm refuses it as damaged, in such words.
    bool is_refused(std::initializer_list<const char *> words, unsigned flags = 0)
    {
        repair(file, false);
        file_.fill(file);
        pm_options how = test::options(flags | PM_ACCEPT_COPY);
        test::Container c(pm_open(file_.path(), &how));
        return !c && test::failed_with(EBADMSG, words);
    }

    void set_base_epoch(uint64_t epoch)
    {
        uint64_t flags = at<uint64_t>(file, FORMAT_STATE) & BASE_REDO;
        put(file, FORMAT_STATE, seal(epoch | flags));
    }
    void set_fenced_epoch(uint64_t epoch)
    {
        put(file, FORMAT_STATE + offsetof(format_state, fenced_epoch), seal(epoch));
    }
    void set_fenced_images(uint64_t epoch, uint64_t slots)
    {
        put(file, FORMAT_STATE + offsetof(format_state, fenced_images),
            fenced_images(epoch, slots));
    }

    uint64_t end_of_file() const { return geometry.segments * geometry.segment_size; }
    uint64_t first_data() const
    {
        return geometry.segment_size *
               format_meta_segments(geometry.segment_size,
                                    geometry.segments_max * geometry.segment_size);
    }

    Bytes file;
    Geometry geometry;
    std::vector<Record> records; // by their epochs

  private:
    void find_records()
    {
        std::vector<Piece> found;
        for (const Piece &piece : pieces_of(file))
            if (piece.kind == Kind::record || (piece.kind == Kind::part && is_new(piece)))
                found.push_back(piece);
        std::sort(found.begin(), found.end(),
                  [](const Piece &a, const Piece &b) { return a.epoch < b.epoch; });
        for (const Piece &piece : found)
            records.push_back(log_is_redo(file) ? redo_record(piece.offset)
                                                : undo_record(piece.offset));
    }

    bool is_new(const Piece &piece) const
    {
        return piece.epoch > base_epoch(file);
    }

    static Row row(const char *name, uint64_t unit, uint64_t &offset, uint64_t count, uint64_t size)
    {
        Row row = {name, unit, offset, count, size};
        offset += count * size;
        return row;
    }

    Record undo_record(uint64_t offset) const
    {
        log_record head = at<log_record>(file, offset);
        REQUIRE(head.bytes <= PM_PAGE); // one slot
        Record record{};
        record.head = offset;
        offset += sizeof head;
        record.clears = row("clears", 1, offset, head.clears, sizeof(record_clear));
        record.words = row("words", 1, offset, head.words, sizeof(record_word));
        record.pages = row("pages", PM_PAGE, offset, head.pages, sizeof(record_page));
        return record;
    }

    Record redo_record(uint64_t offset) const
    {
        redo_part head = at<redo_part>(file, offset);
        REQUIRE(head.bytes == head.total); // one part
        Record record{};
        record.head = offset;
        offset += sizeof head;
        record.clears = row("clears", 1, offset, head.clears, sizeof(record_clear));
        record.words = row("words", 1, offset, head.words, sizeof(record_word));
        record.fresh = row("fresh", 1, offset, head.fresh, sizeof(redo_fresh));
        record.runs = row("runs", PM_LINE, offset, head.runs, sizeof(uint64_t));
        return record;
    }

    test::Directory directory_;
    MemoryFile file_;
};

// Offsets that an entry of this row may not have, and the last one that it may.
std::vector<uint64_t> bad_offsets(const Forger &forger, const Row &row, uint64_t bytes)
{
    const uint64_t first = forger.first_data(), end = forger.end_of_file();
    std::vector<uint64_t> bad = {0,
                                 FORMAT_STATE,
                                 first - row.unit,
                                 end - bytes + row.unit,
                                 end,
                                 align_down(UINT64_MAX, PM_PAGE)};
    if (row.unit == 1)
        bad.insert(bad.end(), {first + 4, first - 8, end - bytes + 8});
    if (row.unit == PM_PAGE) // as a page's number in memory it would be the first
        bad.push_back((uint64_t{1} << 32) * PM_PAGE + first);
    return bad;
}

template <typename Judge> void for_each_entry(Forger &forger, Judge judge)
{
    for (const Record &record : forger.records)
        for (const Row &row : record.rows())
            for (uint64_t i = 0; i < row.count; i++)
                judge(row, row.at + i * row.size);
}

} // namespace

TEST_CASE("the forger's container is believed as it is")
{
    Forger forger;
    const bool undo = test::mode() == "undo";
    REQUIRE(forger.records.size() == (undo ? 2 : 3)); // undo keeps two
    for (const Record &record : forger.records)
        for (const Row &row : record.rows()) {
            INFO(row.name);
            REQUIRE((row.count > 0) == (row.name != nullptr));
        }
    REQUIRE_FALSE(forger.is_refused({}));
}

TEST_CASE("a record refers to what it may not")
{
    Forger forger;
    const Bytes whole = forger.file;
    for_each_entry(forger, [&](const Row &row, uint64_t entry) {
        for (uint64_t offset : bad_offsets(forger, row, row.bytes(whole, entry))) {
            INFO(row.name << " at " << offset);
            forger.file = whole;
            row.move(forger.file, entry, offset);
            REQUIRE(forger.is_refused({"commit record", "beyond"}, PM_READONLY));
            REQUIRE(forger.is_refused({"commit record", "beyond"}));
        }
    });
}

TEST_CASE("a record refers to the last place that it may")
{
    Forger forger;
    const Bytes whole = forger.file;
    for_each_entry(forger, [&](const Row &row, uint64_t entry) {
        INFO(row.name);
        forger.file = whole;
        row.move(forger.file, entry, forger.end_of_file() - row.bytes(whole, entry));
        // What it does there may yet contradict the rest; but that is another message.
        REQUIRE_FALSE(forger.is_refused({"commit record", "beyond"}));
    });
}

TEST_CASE("a record's counts do not make up its length", "[redo]")
{
    Forger forger;
    const Bytes whole = forger.file;
    const uint64_t head = forger.records.back().head;
    for (uint64_t field : {offsetof(redo_part, clears), offsetof(redo_part, words),
                           offsetof(redo_part, fresh), offsetof(redo_part, runs)})
        for (uint32_t more : {-1, 1, INT32_MAX}) {
            INFO("count at " << field << ", " << more << " more");
            forger.file = whole;
            put(forger.file, head + field, at<uint32_t>(whole, head + field) + more);
            REQUIRE(forger.is_refused({"commit record", "beyond"}));
        }
}

// Recovery would look at the container again and again.
TEST_CASE("a record's fresh ranges cover the container many times over", "[redo]")
{
    Forger forger;
    const Bytes whole = forger.file;
    const Record &last = forger.records.back();
    const uint64_t first = forger.first_data(), end = forger.end_of_file();
    const uint64_t too_many = 16 * end / (end - first) + 1;
    for (uint64_t count : {too_many, too_many - 1}) {
        forger.file = whole;
        auto head = at<redo_part>(whole, last.head);
        head.fresh = (uint32_t)count;
        head.runs = 0;
        head.total = last.fresh.at + count * sizeof(redo_fresh) - (last.head + sizeof head);
        head.bytes = (uint32_t)head.total;
        put(forger.file, last.head, head);
        for (uint64_t i = 0; i < count; i++) // where its lines were, and behind
            put(forger.file, last.fresh.at + i * sizeof(redo_fresh),
                redo_fresh{.offset = first, .bytes = end - first, .sum = 0});
        REQUIRE(forger.is_refused({"commit record", "beyond"}) == (count == too_many));
    }
}

TEST_CASE("a record clears more than a segment at once", "[redo]")
{
    Forger forger;
    const Row &clears = forger.records.front().clears;
    for (uint64_t more : {8, 0}) {
        put(forger.file, clears.at,
            record_clear{forger.first_data(), forger.geometry.segment_size + more});
        REQUIRE(forger.is_refused({"commit record", "beyond"}) == (more > 0));
    }
}

TEST_CASE("records of epochs that cannot follow each other", "[undo]")
{
    Forger forger;
    const uint64_t head = forger.records.back().head, field = head + offsetof(log_record, epoch);
    put(forger.file, field, at<uint64_t>(forger.file, field) + 2);
    REQUIRE(forger.is_refused({"adjacent"}));
}

TEST_CASE("a last record that does not hold, and what came before it", "[undo]")
{
    Forger forger;
    const Record &before = forger.records.front(), &last = forger.records.back();
    const uint64_t epoch = at<uint64_t>(forger.file, last.head + offsetof(log_record, epoch));
    const uint64_t sum = last.pages.at + offsetof(record_page, sum);
    put(forger.file, sum, ~at<uint64_t>(forger.file, sum));
    // Those of the epoch whose words home has.
    const auto sums = at<uint64_t>(forger.file, last.head + offsetof(log_record, sums));
    SECTION("is refused when it was fenced")
    {
        REQUIRE(forger.is_refused({"was committed, but only"}));
    }
    SECTION("is not there")
    {
        put(forger.file, before.head, uint64_t{0});
        REQUIRE(forger.is_refused({"the one before is gone"}));
    }
    SECTION("is the base")
    {
        put(forger.file, before.head, uint64_t{0});
        forger.set_base_epoch(epoch - 1);
        forger.set_fenced_epoch(epoch - 1);
        put(forger.file, FORMAT_STATE + offsetof(format_state, sums), sums);
        REQUIRE_FALSE(forger.is_refused({}));
    }
}

TEST_CASE("more images are said to be fenced than there are", "[undo]")
{
    Forger forger;
    const Bytes whole = forger.file;
    const uint64_t last =
        at<uint64_t>(whole, forger.records.back().head + offsetof(log_record, epoch));
    const uint64_t slots = log_segments(whole, forger.geometry, (last + 1) % 2).size() *
                           log_segment_slots(forger.geometry.segment_size);
    forger.set_fenced_images(last + 1, slots);
    REQUIRE(forger.is_refused({"the image of a page"}));
    forger.set_fenced_images(last + 1, slots + 1);
    REQUIRE(forger.is_refused({"a part of it is missing"}));
}

TEST_CASE("a base epoch at the end of all epochs")
{
    Forger forger;
    forger.set_fenced_epoch(0);
    forger.set_base_epoch(UINT64_C(1) << (SEAL_BITS - 2));
    REQUIRE_FALSE(forger.is_refused({"epochs"}));
    forger.set_base_epoch((UINT64_C(1) << (SEAL_BITS - 2)) + 1);
    REQUIRE(forger.is_refused({"epochs"}));
}
