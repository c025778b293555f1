// Each bit of a container's metadata flipped, and each byte of its log inverted: after a clean
// close, after a crash between two transactions, and in one. Whatever flips, libpm mends it or
// reports it, or nothing depends on it; and never is anything shown but the last commit.
//
// After a crash it is two bits of each byte of metadata, or all if LIBPM_LONG is set.
//
// What nothing depends on is what anatomy.cpp calls unused, and what is_void() says of the log: as
// docs/format.md does.
#include "common/format.hpp"
#include "common/process.hpp"
#include "hostile/anatomy.hpp"
#include "hostile/memory_file.hpp"

#include <algorithm>
#include <cerrno>
#include <set>
#include <unistd.h>

using namespace hostile;

namespace
{

constexpr uint64_t PAGES = 4;

// What a container holds: small objects in slabs, and a large one.
struct Root {
    char *pages;
    struct Node {
        Node *next;
        uint64_t value[20];
    } *first;
};

Root *root_of(pm_container *c)
{
    return static_cast<Root *>(pm_getroot(c));
}

void push(pm_container *c, uint64_t value)
{
    auto *node = static_cast<Root::Node *>(pm_calloc(c, 1, sizeof(Root::Node)));
    CHILD_REQUIRE(node);
    node->next = root_of(c)->first;
    CHILD_REQUIRE(pm_mark_pointer(&node->next) == 0);
    std::fill(std::begin(node->value), std::end(node->value), value);
    root_of(c)->first = node;
}

std::string contents_of(pm_container *c)
{
    const Root *root = root_of(c);
    if (!root || pm_usable_size(root->pages) < PAGES * PM_PAGE)
        return "no root";
    std::string contents(root->pages, PAGES * PM_PAGE);
    for (const Root::Node *n = root->first; n; n = n->next) {
        if (pm_usable_size(n) < sizeof *n)
            return "no list";
        contents.append(reinterpret_cast<const char *>(n->value), sizeof n->value);
    }
    return contents;
}

} // namespace

// arguments[1]: closed, committed, or storing.
CHILD_PROCESS(leaves_a_container)
{
    pm_options how = test::small();
    how.max_size = 16 * how.segment_size;
    pm_container *c = pm_open(arguments[0].c_str(), &how);
    CHILD_REQUIRE(c);
    Root *root = static_cast<Root *>(pm_calloc(c, 1, sizeof *root));
    CHILD_REQUIRE(root && pm_setroot(c, root, 0) == 0);
    root->pages = static_cast<char *>(pm_calloc(c, 1, how.segment_size));
    CHILD_REQUIRE(root->pages && pm_commit(c) == 0);
    for (uint64_t i = 1; i <= 3; i++) {
        push(c, i);
        root->pages[i % PAGES * PM_PAGE + i] = (char)i;
        CHILD_REQUIRE(pm_commit(c) == 0);
    }
    if (arguments[1] == "closed")
        CHILD_REQUIRE(pm_close(c) == 0);
    if (arguments[1] == "storing") {
        for (uint64_t page = 0; page < PAGES; page++)
            root->pages[page * PM_PAGE + 100] = 9;
        push(c, 9);
        CHILD_REQUIRE(pm_free(root->first->next) == 0);
    }
    _exit(0);
}

namespace
{

class Flips
{
  public:
    explicit Flips(const std::string &ending)
        : step_(ending == "closed" ? 1 : 8 / test::repetitions(2, 8))
    {
        test::Directory directory;
        std::string path = directory / "c.pm";
        REQUIRE_CLEAN(test::run("leaves_a_container", {path, ending}));
        whole_ = test::read_file(path);
        pieces_ = pieces_of(whole_);
        base_ = base_epoch(whole_);
        newest_ = base_;
        for (const Piece &piece : pieces_)
            if (piece.kind == Kind::record)
                newest_ = std::max(newest_, piece.epoch);
        {
            test::Container c = test::open(path, test::options());
            REQUIRE_OK(pm_check(c.get()));
            expected_ = contents_of(c.get());
            REQUIRE(expected_.size() == PAGES * PM_PAGE + 3 * sizeof Root::Node{}.value);
        }
        opened_ = test::read_file(path);
    }

    // Flip everything that counts, one at a time.
    void flip_each()
    {
        for (const Piece &piece : pieces_) {
            if (!counts(piece))
                continue;
            kinds_.insert(piece.kind);
            for (uint64_t i = piece.offset; i < piece.offset + piece.bytes; i++) {
                if (is_log(piece))
                    judge_log(i);
                else if (piece.kind != Kind::map)
                    for (unsigned bit = i % step_; bit < 8; bit += step_)
                        judge_metadata(i, bit);
                else if (i % 8 == i / 8 % 8 && (i / 8 % 64 == 0 || at<uint64_t>(whole_, i / 8 * 8)))
                    judge_metadata(i, i / 64 % 8); // a bit of each word, but few of zero's
            }
        }
    }

    // Invert everything else but objects and what records prove, all at once: no difference.
    void invert_the_rest()
    {
        Bytes file = whole_;
        uint64_t inverted = 0;
        for (const Piece &piece : pieces_)
            if (!counts(piece) && piece.kind != Kind::object)
                for (uint64_t i = piece.offset; i < piece.offset + piece.bytes; i++, inverted++)
                    file[i] = (char)~file[i];
        REQUIRE(inverted > 3 * PM_PAGE);
        for (const Proved &range : proved())
            file.replace(range.offset, range.bytes, whole_, range.offset, range.bytes);
        for (unsigned flags : {(unsigned)PM_READONLY, 0u})
            if (is_reported(file, flags))
                FAIL("bytes called unused, inverted: " << pm_errormsg());
    }

    const std::set<Kind> &kinds() const { return kinds_; }

  private:
    static bool is_log(const Piece &piece)
    {
        return piece.kind == Kind::record || piece.kind == Kind::descriptor ||
               piece.kind == Kind::image || piece.kind == Kind::part;
    }

    // Parts of the log that no recovery of this container needs; of an undo log also the record
    // before the last, which it needs only if the power failed as well.
    bool is_void(const Piece &piece) const
    {
        if (piece.kind == Kind::part)
            return piece.epoch <= base_;
        uint64_t needed = piece.kind == Kind::record ? newest_ : newest_ + 1;
        return piece.epoch <= base_ || piece.epoch != needed;
    }

    bool counts(const Piece &piece) const
    {
        return piece.kind != Kind::unused && piece.kind != Kind::object &&
               !(is_log(piece) && is_void(piece));
    }

    std::vector<Proved> proved() const
    {
        std::optional<Geometry> g = geometry_of(whole_);
        std::vector<Proved> all;
        for (const Piece &piece : pieces_) {
            if (!counts(piece) || !is_log(piece))
                continue;
            std::vector<Proved> some;
            if (piece.kind == Kind::part)
                some = fresh_ranges(whole_, piece.offset);
            else if (piece.kind == Kind::record)
                some = listed_pages(
                    record_at(whole_, *g, log_segments(whole_, *g, (piece.epoch + 1) % 2)));
            all.insert(all.end(), some.begin(), some.end());
        }
        return all;
    }

    // Open it. Either open or check names file and offset, or all is there.
    bool is_reported(const Bytes &file, unsigned flags)
    {
        file_.fill(file);
        pm_options how = test::options(flags | PM_ACCEPT_COPY);
        test::Container c(pm_open(file_.path(), &how));
        if (!c || pm_check(c.get()) != 0) {
            int error = errno;
            std::string message = pm_errormsg();
            if ((error != EBADMSG && error != ENOTSUP) || message.find(file_.path()) != 0 ||
                message.find("offset") == std::string::npos)
                FAIL("errno " << error << ", message: " << message);
            return true;
        }
        if (contents_of(c.get()) != expected_)
            FAIL("it shows something else than the last commit");
        return false;
    }

    void judge_metadata(uint64_t offset, unsigned bit)
    {
        INFO("bit " << bit << " of byte " << offset);
        Bytes file = whole_;
        file[offset] = (char)(file[offset] ^ 1 << bit);
        bool reader_reports = is_reported(file, PM_READONLY);
        if (is_reported(file, 0))
            return;
        if (!reader_reports && offset < FORMAT_STATE)
            FAIL("a damaged header goes unnoticed by a reader");
        if (file_.byte_at(offset) != opened_[offset])
            FAIL("neither reported nor mended");
    }

    void judge_log(uint64_t offset)
    {
        INFO("byte " << offset << " of the log");
        Bytes file = whole_;
        file[offset] = (char)~file[offset];
        if (!is_reported(file, 0))
            FAIL("it counts and goes unnoticed");
    }

    const unsigned step_; // from a bit of metadata to the next one
    MemoryFile file_;
    Bytes whole_, opened_; // before and after an open that finds nothing wrong
    std::vector<Piece> pieces_;
    uint64_t base_, newest_;
    std::string expected_;
    std::set<Kind> kinds_;
};

const std::set<Kind> METADATA = {Kind::header, Kind::base_epoch, Kind::fenced, Kind::mark,
                                 Kind::sums,   Kind::guard,      Kind::root,   Kind::place,
                                 Kind::table,  Kind::bitmap,     Kind::map};

std::set<Kind> with(std::set<Kind> kinds, std::set<Kind> more)
{
    kinds.merge(more);
    return kinds;
}

} // namespace

TEST_CASE("flips after a clean close")
{
    Flips flips("closed");
    flips.invert_the_rest();
    flips.flip_each();
    REQUIRE(flips.kinds() == METADATA);
}

TEST_CASE("flips after a crash between transactions")
{
    Flips flips("committed");
    flips.invert_the_rest();
    flips.flip_each();
    REQUIRE(flips.kinds() ==
            with(METADATA, test::mode() == "undo"
                               ? std::set<Kind>{Kind::record, Kind::descriptor, Kind::image}
                               : std::set<Kind>{Kind::part}));
}

TEST_CASE("flips after a crash in a transaction")
{
    Flips flips("storing");
    flips.invert_the_rest();
    flips.flip_each();
    REQUIRE(flips.kinds() ==
            with(METADATA, test::mode() == "undo"
                               ? std::set<Kind>{Kind::record, Kind::descriptor, Kind::image}
                               : std::set<Kind>{Kind::part}));
}
