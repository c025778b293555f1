// A medium loses a sector, or a line, of metadata: it reads as zeros, as ones, as its neighbour, or as an
// older copy. pm_open() or pm_check() reports the loss. If neither does, the loss does no harm: after
// further commits the container holds what a model says.
//
// Containers are of each engine, closed or killed, movable or not: eighteen. Each harmless damage is followed by
// eight further commits, or fifty if LIBPM_LONG is set. With LIBPM_SECTORS=all the containers are thirty-six, and
// the further commits a thousand. That takes two minutes under undo, and two hours under redo.
#include "common/format.hpp"
#include "common/process.hpp"
#include "hostile/anatomy.hpp"
#include "hostile/life.hpp"
#include "hostile/memory_file.hpp"

#include <cerrno>
#include <iostream>
#include <unistd.h>

using namespace hostile;

namespace
{

constexpr int EARLIER = 40, STEPS = 80; // transactions of an earlier session, and in all

bool all()
{
    const char *value = getenv("LIBPM_SECTORS");
    return value && strcmp(value, "all") == 0;
}

pm_options how(bool movable, unsigned flags = 0)
{
    pm_options o = test::small(flags | (movable ? (unsigned)PM_MOVABLE : 0u) | PM_ACCEPT_COPY);
    o.max_size = 64 * o.segment_size;
    return o;
}

void live(pm_container *c, Life &life, int steps)
{
    for (int i = 0; i < steps; i++)
        CHILD_REQUIRE(life.change(c) && pm_commit(c) == 0);
}

} // namespace

// Leaves a container, and two older copies of it. Arguments: path, seed, ending (closed, committed or
// storing), and whether it is movable.
CHILD_PROCESS(lives)
{
    const std::string &path = arguments[0];
    const bool movable = arguments[3] == "movable";
    Life life(std::stoull(arguments[1]));
    pm_options options = how(movable, PM_CREATE);
    pm_container *c = pm_open(path.c_str(), &options);
    CHILD_REQUIRE(c);
    Life::begin(c);
    live(c, life, EARLIER);
    CHILD_REQUIRE(pm_close(c) == 0);
    test::write_file(path + ".session", test::read_file(path));
    options = how(movable);
    c = pm_open(path.c_str(), &options);
    CHILD_REQUIRE(c);
    live(c, life, (STEPS - EARLIER) / 2);
    test::write_file(path + ".commit", test::read_file(path));
    live(c, life, (STEPS - EARLIER) / 2);
    if (arguments[2] == "closed")
        CHILD_REQUIRE(pm_close(c) == 0);
    if (arguments[2] == "storing")
        CHILD_REQUIRE(life.change(c));
    _exit(0);
}

namespace
{

class Sectors
{
  public:
    Sectors(uint64_t seed, const std::string &ending, bool movable) : movable_(movable), life_(seed)
    {
        test::Directory directory;
        std::string path = directory / "c.pm";
        REQUIRE_CLEAN(test::run(
            "lives", {path, std::to_string(seed), ending, movable ? "movable" : "fixed"}));
        whole_ = test::read_file(path);
        session_ = test::read_file(path + ".session");
        commit_ = test::read_file(path + ".commit");
        for (int i = 0; i < STEPS; i++)
            life_.change(nullptr);
        REQUIRE_FALSE(is_reported(whole_));
        counts_ = {};
    }

    void damage_each()
    {
        for (uint64_t bytes : {uint64_t{PM_LINE}, uint64_t{512}})
            for (uint64_t offset = 0; offset < whole_.size(); offset += bytes)
                if (has_metadata(offset, bytes))
                    damage(offset, bytes);
        std::cout << counts_.opened << " reported by pm_open, " << counts_.checked
                  << " by pm_check, " << counts_.harmless << " harmless\n";
        REQUIRE(counts_.opened > 0);
        if (std::string(test::mode()) != "log") // there pm_open() reads all
            REQUIRE(counts_.checked > 0);
    }

  private:
    struct Counts {
        uint64_t opened, checked, harmless;
    };

    static bool is_metadata(Kind kind)
    {
        return kind != Kind::object && kind != Kind::unused && kind != Kind::image;
    }

    bool has_metadata(uint64_t offset, uint64_t bytes)
    {
        if (pieces_.empty())
            pieces_ = pieces_of(whole_);
        for (; piece_ > 0 && pieces_[piece_].offset > offset; piece_--)
            ;
        for (; pieces_[piece_].offset + pieces_[piece_].bytes <= offset; piece_++)
            if (piece_ + 1 == pieces_.size())
                return false;
        for (size_t i = piece_; i < pieces_.size() && pieces_[i].offset < offset + bytes; i++)
            if (is_metadata(pieces_[i].kind))
                return true;
        return false;
    }

    // Nothing if an older file was shorter.
    static Bytes part_of(const Bytes &file, uint64_t offset, uint64_t bytes)
    {
        return offset < file.size() ? file.substr(offset, bytes) : Bytes();
    }

    void damage(uint64_t offset, uint64_t bytes)
    {
        const Bytes zeros(bytes, '\0');
        put_there("zeros", offset, zeros);
        // Most of a pointer map is zero, and no seal fits ones: once for each sector is enough.
        if (all() || bytes > PM_LINE || whole_.compare(offset, bytes, zeros) != 0)
            put_there("ones", offset, Bytes(bytes, '\xff'));
        put_there("its older self, of a session", offset, part_of(session_, offset, bytes));
        put_there("its older self, of a commit", offset, part_of(commit_, offset, bytes));
        uint64_t next = offset + bytes; // exchanged with its neighbour
        if (next + bytes <= whole_.size())
            put_there("its neighbour's bytes", offset,
                      whole_.substr(next, bytes) + whole_.substr(offset, bytes));
    }

    void put_there(const char *what, uint64_t offset, const Bytes &bytes)
    {
        if (bytes.empty() || whole_.compare(offset, bytes.size(), bytes) == 0)
            return;
        INFO(bytes.size() << " bytes at " << offset << ": " << what);
        Bytes file = whole_;
        file.replace(offset, bytes.size(), bytes);
        if (!is_reported(file))
            go_on();
    }

    bool is_reported(const Bytes &file)
    {
        container_.reset(); // in case that the one before was open still
        file_.fill(file);
        pm_options options = how(movable_);
        container_.reset(pm_open(file_.path(), &options));
        if (container_ && pm_check(container_.get()) == 0)
            return false;
        (container_ ? counts_.checked : counts_.opened)++;
        std::string message = pm_errormsg();
        if ((errno != EBADMSG && errno != ENOTSUP) || message.find(file_.path()) != 0 ||
            message.find("offset") == std::string::npos)
            FAIL("errno " << errno << ", message: " << message);
        return true;
    }

    void go_on()
    {
        counts_.harmless++;
        Life life = life_;
        if (!life.matches(container_.get()))
            FAIL("not the last commit");
        for (int i = 0, end = all() ? 1000 : (int)test::repetitions(8, 50); i < end; i++)
            if (!life.change(container_.get()) || pm_commit(container_.get()) != 0)
                FAIL("further commit " << i << ": " << pm_errormsg());
        if (!life.matches(container_.get()))
            FAIL("not what was committed since");
        REQUIRE_OK(pm_check(container_.get()));
    }

    bool movable_;
    Life life_; // up to the last commit
    Bytes whole_, session_, commit_;
    std::vector<Piece> pieces_;
    size_t piece_ = 0;
    MemoryFile file_;
    test::Container container_;
    Counts counts_{};
};

} // namespace

TEST_CASE("sectors and lines of a container come back wrong")
{
    const std::string ending = GENERATE("closed", "committed", "storing");
    const bool movable = GENERATE(false, true);
    const uint64_t seed = all() ? GENERATE(1, 2) : 1;
    std::cout << test::mode() << ", " << ending << (movable ? ", movable" : "") << ": "
              << std::flush;
    Sectors(seed, ending, movable).damage_each();
}

// Arguments: path of a movable container. Stores a pointer, and does not vouch that the map has it.
CHILD_PROCESS(stores_a_pointer)
{
    pm_options options = how(false);
    pm_container *c = pm_open(arguments[0].c_str(), &options);
    CHILD_REQUIRE(c);
    auto **root = static_cast<void **>(pm_getroot(c));
    *root = root;
    CHILD_REQUIRE(pm_commit(c) == 0);
    _exit(0);
}

TEST_CASE("the state page of an older opening comes back, its guard does not, and the log is lost",
          "[home]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    pm_options options = how(false, PM_CREATE);
    auto commits = [&](uint64_t count) {
        test::Container c = test::open(path, options);
        if (!pm_getroot(c.get()))
            REQUIRE_OK(pm_setroot(c.get(), pm_calloc(c.get(), 1, 64), 0));
        for (uint64_t i = 0; i < count; i++) {
            ++*static_cast<uint64_t *>(pm_getroot(c.get()));
            REQUIRE_OK(pm_commit(c.get()));
        }
    };
    commits(1);
    const Bytes older = test::read_file(path).substr(FORMAT_STATE, 512);
    commits(20);
    Bytes file = test::read_file(path);
    file.replace(FORMAT_STATE, older.size(), older);
    for (const Piece &piece : pieces_of(file))
        if (piece.kind == Kind::record || piece.kind == Kind::descriptor ||
            piece.kind == Kind::image || piece.kind == Kind::part)
            file.replace(piece.offset, piece.bytes, piece.bytes, '\0');
    test::write_file(path, file);
    REQUIRE_FALSE(pm_open(path.c_str(), &options));
    REQUIRE(test::failed_with(EBADMSG, {path.c_str(), "was committed, but only"}));
}

// Moved, it would hold the pointer's old value.
TEST_CASE("the sector that says that a container can be moved comes back when it cannot any more")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    {
        test::Container c = test::open(path, how(true, PM_CREATE));
        void *root = pm_calloc(c.get(), 1, 64);
        REQUIRE(root);
        REQUIRE_OK(pm_setroot(c.get(), root, 0));
        REQUIRE_OK(pm_commit(c.get()));
    }
    const Bytes older = test::read_file(path).substr(FORMAT_STATE, 512);
    REQUIRE_CLEAN(test::run("stores_a_pointer", {path}));
    test::patch_file(path, FORMAT_STATE, older.data(), older.size());
    pm_options options = how(true);
    REQUIRE_FALSE(pm_open(path.c_str(), &options));
    REQUIRE(test::failed_with(EBADMSG, {path.c_str(), "contradicts its guard"}));
}
