// Damage to a log container: one bit of each byte of its metadata, and whole sectors. Either pm_open() or
// pm_check() refuses the container, with path and offset, or it shows the last commit. Nothing else is ever
// shown, but for a torn tail:
//
// A record that no later record calls durable may have been torn by a crash. So if the newest records are
// damaged, the commit before them may be restored. If the header of the newest chunk reads as zeros, the chunk
// looks void, and all its commits may be gone. On pmem the state page says which epoch was fenced, so both are
// refused. A power failure may lose this word, and a container on an ordinary file has none.
#include "common/process.hpp"
#include "hostile/log_file.hpp"
#include "hostile/memory_file.hpp"

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <set>
#include <unistd.h>

using namespace hostile;

// The container has chunks of all kinds, so nobody empties them.
extern "C" void __wrap_log_clean(struct txn *, uint64_t) {}

namespace
{

constexpr uint64_t SECTOR = 512, BYTES = 48 << 10;
constexpr uint64_t EARLIER = 12, COMMITS = 43,
                   NODES = 8; // of an earlier session; in all; with a new node
const std::vector<uint64_t> IMAGES = {EARLIER, 20, 28, COMMITS - 1};

struct Node {
    Node *next;
    uint64_t value[20];
};

struct Root {
    char bytes[BYTES];
    Node *first;
};

std::string contents_of(pm_container *c)
{
    const Root *root = static_cast<Root *>(pm_getroot(c));
    if (!root || pm_usable_size(root) < sizeof *root)
        return "no root";
    std::string contents(root->bytes, BYTES);
    for (const Node *n = root->first; n; n = n->next) {
        if (pm_usable_size(n) < sizeof *n)
            return "no list";
        contents.append(reinterpret_cast<const char *>(n->value), sizeof n->value);
    }
    return contents;
}

// The i-th commit changes all bytes, or one. The first few also make an object.
void change(pm_container *c, uint64_t i)
{
    Root *root = static_cast<Root *>(pm_getroot(c));
    for (uint64_t at = 0; i % 4 == 0 && at < BYTES; at++)
        root->bytes[at] = (char)(i + at / 64);
    root->bytes[i * 12377 % BYTES] = (char)i;
    if (i > NODES)
        return;
    auto *node = static_cast<Node *>(pm_calloc(c, 1, sizeof(Node)));
    CHILD_REQUIRE(node);
    node->next = root->first;
    std::fill(std::begin(node->value), std::end(node->value), i);
    root->first = node;
}

std::string contents_name(const std::string &path, uint64_t commit)
{
    return path + ".contents." + std::to_string(commit);
}

std::string image_name(const std::string &path, uint64_t commit)
{
    return path + "." + std::to_string(commit);
}

} // namespace

// Arguments: path; "closed" or "killed". Leaves copies of the file after some commits.
CHILD_PROCESS(fills_chunks)
{
    const std::string &path = arguments[0];
    pm_options how = test::small();
    how.max_size = 16 * how.segment_size;
    pm_container *c = pm_open(path.c_str(), &how);
    CHILD_REQUIRE(c);
    CHILD_REQUIRE(pm_setroot(c, pm_calloc(c, 1, sizeof(Root)), 0) == 0);
    for (uint64_t i = 1; i <= COMMITS; i++) {
        change(c, i);
        CHILD_REQUIRE(pm_commit(c) == 0);
        if (i == EARLIER) {
            CHILD_REQUIRE(pm_close(c) == 0);
            c = test::open(path, test::options()).release();
        }
        test::write_file(contents_name(path, i), contents_of(c));
        if (std::count(IMAGES.begin(), IMAGES.end(), i))
            test::write_file(image_name(path, i), test::read_file(path));
    }
    if (arguments[1] == "closed")
        CHILD_REQUIRE(pm_close(c) == 0);
    _exit(0);
}

namespace
{

struct Counts {
    uint64_t tried, refused, torn; // torn: an earlier commit was restored, and legally
};

enum class Ending {
    CLOSED,
    KILLED,
    UNFENCED
}; // UNFENCED: killed, and the state page's word is lost

class Damage
{
  public:
    explicit Damage(Ending ending) : ending_(ending), whole_(make(ending))
    {
        Bytes word(sizeof(uint64_t), 0);
        if (ending == Ending::UNFENCED)
            whole_.bytes.replace(FORMAT_STATE + offsetof(format_state, fenced_epoch), word.size(),
                                 word);
        parts_ = whole_.parts();
        newest_ = whole_.newest();
        REQUIRE(has_history());
        file_.fill(whole_.bytes);
        pm_options how = test::options(PM_ACCEPT_COPY);
        test::Container c = test::open(file_.path(), how);
        REQUIRE_OK(pm_check(c.get()));
        last_ = contents_of(c.get());
        REQUIRE(last_.size() == BYTES + NODES * sizeof Node{}.value);
        REQUIRE(last_ == committed_.back());
    }

    // One bit of each byte of [offset, offset + bytes), or of each `step`-th.
    Counts flip(uint64_t offset, uint64_t bytes, uint64_t step = 1)
    {
        counts_ = {};
        for (uint64_t at = offset; at < offset + bytes; at += step) {
            Bytes file = whole_.bytes;
            file[at] = (char)(file[at] ^ 1 << at % 8);
            INFO("bit " << at % 8 << " of byte " << at);
            judge(file, torn_by(at, 1));
        }
        return counts_;
    }

    // Fill a sector with zeros, with ones, with its neighbour's bytes, and with older contents.
    Counts lose_sector(uint64_t offset)
    {
        counts_ = {};
        put_there("zeros", offset, Bytes(SECTOR, '\0'));
        put_there("ones", offset, Bytes(SECTOR, '\xff'));
        const uint64_t next = offset + SECTOR;
        if (next < whole_.bytes.size())
            put_there("exchanged with the next", offset,
                      whole_.bytes.substr(next, SECTOR) + whole_.bytes.substr(offset, SECTOR));
        for (const Bytes &image : images_)
            if (next <= image.size())
                put_there("its older self", offset, image.substr(offset, SECTOR));
        return counts_;
    }

    const LogFile &whole() const { return whole_; }
    const std::vector<LogPart> &parts() const { return parts_; }

  private:
    Bytes make(Ending ending)
    {
        test::Directory directory;
        const std::string path = directory / "c.pm";
        REQUIRE_CLEAN(
            test::run("fills_chunks", {path, ending == Ending::CLOSED ? "closed" : "killed"}));
        for (uint64_t i : IMAGES)
            images_.push_back(test::read_file(image_name(path, i)));
        committed_.emplace_back();
        for (uint64_t i = 1; i <= COMMITS; i++)
            committed_.push_back(test::read_file(contents_name(path, i)));
        return test::read_file(path);
    }

    // There are several chunks, some are void, and some were filled twice.
    bool has_history() const
    {
        uint64_t used = 0, voided = 0, reused = 0;
        const LogFile older(images_[1]);
        for (uint64_t i = 1; i < whole_.chunks(); i++) {
            const uint64_t first = i * whole_.chunk_size() + PM_LINE;
            const bool was_filled = at<uint64_t>(whole_.bytes, first) != 0,
                       is_void = whole_.chunk_word(i) == 0;
            used += !is_void;
            voided += is_void && was_filled;
            reused += i < older.chunks() && !is_void && at<uint64_t>(older.bytes, first) != 0 &&
                      at<uint64_t>(older.bytes, first) != at<uint64_t>(whole_.bytes, first);
        }
        return used >= 3 && voided >= 1 && reused >= 1 && parts_.size() > 12;
    }

    // The earliest commit that may be restored if these bytes are damaged.
    uint64_t torn_by(uint64_t offset, uint64_t bytes) const
    {
        const uint64_t chunk = whole_.chunk_of(newest_.front().offset);
        if (ending_ == Ending::UNFENCED && bytes == SECTOR && offset == chunk * whole_.chunk_size())
            return COMMITS - epochs_in(chunk);
        uint64_t left = COMMITS; // without the newest records, as far as each is damaged
        while (ending_ == Ending::UNFENCED &&
               is_hit(newest_.front().head.epoch - (COMMITS - left), offset, bytes))
            left--;
        return left;
    }

    bool is_hit(uint64_t epoch, uint64_t offset, uint64_t bytes) const
    {
        return std::any_of(parts_.begin(), parts_.end(), [&](const LogPart &part) {
            return part.head.epoch == epoch && offset < part.end() && part.offset < offset + bytes;
        });
    }

    uint64_t epochs_in(uint64_t chunk) const
    {
        std::set<uint64_t> epochs;
        for (const LogPart &part : parts_)
            if (whole_.chunk_of(part.offset) == chunk)
                epochs.insert(part.head.epoch);
        return epochs.size();
    }

    void put_there(const char *what, uint64_t offset, const Bytes &bytes)
    {
        if (whole_.bytes.compare(offset, bytes.size(), bytes) == 0)
            return;
        INFO(bytes.size() << " bytes at " << offset << ": " << what);
        Bytes file = whole_.bytes;
        file.replace(offset, bytes.size(), bytes);
        judge(file, torn_by(offset, bytes.size()));
    }

    // `earliest`: the commit that may be restored instead of the last one, or of one between them.
    void judge(const Bytes &file, uint64_t earliest)
    {
        file_.fill(file);
        counts_.tried++;
        shows_the_truth(PM_READONLY, earliest, nullptr);
        if (shows_the_truth(0, earliest, &counts_)) // what this has committed is there
            shows_the_truth(PM_READONLY, COMMITS, nullptr);
    }

    // Whether it opens. A writer commits something, after which that is the last commit.
    bool shows_the_truth(unsigned flags, uint64_t earliest, Counts *counts)
    {
        pm_options how = test::options(flags | PM_ACCEPT_COPY);
        test::Container c(pm_open(file_.path(), &how));
        if (!c || pm_check(c.get()) != 0) {
            const int error = errno;
            const std::string message = pm_errormsg();
            if (error != EBADMSG || message.find(file_.path()) != 0 ||
                message.find("offset") == std::string::npos)
                FAIL("errno " << error << ", message: " << message);
            if (counts)
                counts->refused++;
            return false;
        }
        const std::string contents = contents_of(c.get());
        const std::string &expected = go_on_.empty() ? last_ : go_on_;
        const bool is_earlier =
            go_on_.empty() && std::find(committed_.begin() + (long)earliest, committed_.end(),
                                        contents) != committed_.end();
        if (contents != expected && !is_earlier)
            FAIL("it shows something else than the last commit");
        if (counts) {
            counts->torn += contents != expected;
            static_cast<Root *>(pm_getroot(c.get()))->bytes[7]++;
            REQUIRE_OK(pm_commit(c.get()));
            go_on_ = contents_of(c.get());
        } else {
            go_on_.clear();
        }
        return true;
    }

    Ending ending_;
    std::vector<Bytes> images_;          // older copies
    std::vector<std::string> committed_; // contents after each commit
    LogFile whole_;
    std::vector<LogPart> parts_, newest_;
    std::string last_;
    std::string go_on_; // contents since a writer's commit
    MemoryFile file_;
    Counts counts_{};
};

Counts &operator+=(Counts &sum, const Counts &more)
{
    sum.tried += more.tried;
    sum.refused += more.refused;
    sum.torn += more.torn;
    return sum;
}

std::ostream &operator<<(std::ostream &out, const Counts &n)
{
    return out << n.tried << " tried, " << n.refused << " refused, " << n.torn << " torn";
}

Ending an_ending()
{
    return GENERATE(Ending::CLOSED, Ending::KILLED, Ending::UNFENCED);
}

} // namespace

TEST_CASE("a bit of the first chunk's metadata is flipped")
{
    Damage damage(an_ending());
    Counts headers = damage.flip(FORMAT_HEADER_A, sizeof(format_header));
    headers += damage.flip(FORMAT_HEADER_B, sizeof(format_header));
    REQUIRE(headers.tried == 2 * sizeof(format_header));
    const Counts guard = damage.flip(FORMAT_GUARD, sizeof(format_guard));
    const Counts state = damage.flip(FORMAT_STATE, sizeof(format_state));
    REQUIRE(guard.refused == sizeof(format_guard));
    // Five words of the first line, three of a place, and the sums.
    REQUIRE(state.tried == sizeof(format_state));
    REQUIRE(state.refused == 9 * sizeof(uint64_t));
}

TEST_CASE("a bit of a chunk's header is flipped")
{
    Damage damage(an_ending());
    Counts counts{};
    const uint64_t chunks = damage.whole().chunks();
    for (uint64_t i = 1; i < chunks; i++)
        counts += damage.flip(i * damage.whole().chunk_size(), sizeof(log_chunk));
    std::cout << "headers of chunks: " << counts << "\n";
    REQUIRE(counts.tried == (chunks - 1) * sizeof(log_chunk));
    REQUIRE(counts.refused >= (chunks - 1) * sizeof(uint64_t)); // each word is sealed
}

TEST_CASE("a bit of a part is flipped")
{
    const Ending ending = an_ending();
    Damage damage(ending);
    Counts heads{}, contents{};
    uint64_t with_lines = 0; // the others have deltas only, which are in the table
    for (const LogPart &part : damage.parts()) {
        with_lines += part.head.lines > 0;
        heads += damage.flip(part.offset, part.contents() - part.offset);
        contents +=
            damage.flip(part.contents(), part.end() - part.contents(), part.head.lines * 8 - 1);
    }
    std::cout << "heads of parts: " << heads << "; contents: " << contents << "\n";
    REQUIRE(heads.tried >= damage.parts().size() * PM_LINE);
    REQUIRE(with_lines > 0);
    REQUIRE(with_lines < damage.parts().size());
    REQUIRE(contents.tried >= with_lines * 8);
    REQUIRE((heads.torn > 0) == (ending == Ending::UNFENCED));
    REQUIRE(heads.refused + heads.torn > heads.tried / 2);
}

TEST_CASE("a sector comes back wrong")
{
    Damage damage(an_ending());
    Counts counts{};
    std::vector<uint64_t> sectors = {FORMAT_HEADER_A, FORMAT_HEADER_B, FORMAT_GUARD, FORMAT_STATE};
    for (uint64_t i = 1; i < damage.whole().chunks(); i++)
        sectors.push_back(i * damage.whole().chunk_size());
    for (const LogPart &part : damage.parts())
        for (uint64_t at : {part.offset, part.contents() - 1, part.end() - 1})
            sectors.push_back(at / SECTOR * SECTOR);
    std::sort(sectors.begin(), sectors.end());
    sectors.erase(std::unique(sectors.begin(), sectors.end()), sectors.end());
    for (uint64_t offset : sectors)
        counts += damage.lose_sector(offset);
    std::cout << "sectors: " << counts << "\n";
    REQUIRE(sectors.size() > 4 + 12);
    REQUIRE(counts.tried > 3 * sectors.size());
    REQUIRE(counts.refused > counts.tried / 2);
}

namespace
{

constexpr uint64_t VALUE = 20 * PM_PAGE;

bool has_value(pm_container *c)
{
    const char *value = static_cast<char *>(pm_getroot(c));
    return value && pm_usable_size(value) >= VALUE && std::count(value, value + VALUE, 7) == VALUE;
}

Bytes with_whole_pages()
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    pm_options how = test::options(PM_CREATE);
    how.segment_size = 256 << 10; // chunks of 64 KiB have no such parts
    how.max_size = 16 * how.segment_size;
    test::Container c = test::open(path, how);
    void *value = pm_put(c.get(), std::string(VALUE, 7).data(), VALUE);
    REQUIRE(value);
    REQUIRE_OK(pm_setroot(c.get(), value, 0));
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    return test::read_file(path);
}

} // namespace

// The lines in front of the pages are nobody's. A reader copies the pages, and a writer maps them.
TEST_CASE("a bit of a part of whole pages is flipped")
{
    const Bytes whole = with_whole_pages();
    uint64_t found = 0;
    MemoryFile memory;
    for (const LogPart &part : LogFile(whole).parts()) {
        if (!log_part_has_pages(&part.head))
            continue;
        found++;
        for (uint64_t at = part.offset; at < part.end();
             at += at < part.offset + PM_LINE ? 1 : 509) {
            const bool matters = at < part.offset + PM_LINE || at >= part.contents();
            Bytes file = whole;
            file[at] = (char)(file[at] ^ 1 << at % 8);
            INFO("bit " << at % 8 << " of byte " << at - part.offset);
            for (unsigned flags : {(unsigned)PM_READONLY, 0u}) {
                memory.fill(file);
                const pm_options how = test::options(flags | PM_ACCEPT_COPY);
                test::Container c(pm_open(memory.path(), &how));
                REQUIRE((c != nullptr) == !matters);
                if (c)
                    REQUIRE(has_value(c.get()));
                else
                    REQUIRE(errno == EBADMSG);
            }
        }
    }
    REQUIRE(found == 1);
}
