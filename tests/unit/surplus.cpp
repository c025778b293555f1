// A file of the log engine gets shorter by itself when its contents have become less (src/txn/log/surplus.c).
// What was cut off is missed by nobody: not after a crash, not by a checkpoint, and not by a copy.
#include "unit/checkpoints.hpp"
#include "unit/page_state.h"

namespace
{

using checkpoints::KiB, checkpoints::MiB, checkpoints::LINE;

constexpr uint64_t SMALL = 1 * MiB, LARGE = 8 * MiB;

pm_options announced(unsigned flags = 0)
{
    pm_options o = test::small(flags | PM_ANNOUNCED | PM_MOVABLE);
    o.tracker = PM_TRACKER_STORES;
    o.max_size = 64 * MiB;
    return o;
}

// A small object that stays, and two large ones that come and go.
struct Subject {
    test::Directory directory;
    const std::string path = directory / "c.pm", other = directory / "other.pm";
    pm_options how;
    test::Container c;
    std::vector<char> model = std::vector<char>(SMALL), before;
    std::mt19937_64 random{1};
    bool in_turn = false; // lines are stored to, and not at random: whole chunks die
    uint64_t next = 0;

    struct Root {
        char small[SMALL], *large[2];
    };
    Root *root() const { return static_cast<Root *>(pm_getroot(c.get())); }

    explicit Subject(pm_options options) : how(options)
    {
        pm_options create = how;
        create.flags |= PM_CREATE;
        c = test::open(path, create);
        void *p = pm_calloc(c.get(), 1, sizeof(Root));
        REQUIRE(p);
        REQUIRE_OK(pm_mark_pointers(static_cast<Root *>(p)->large, 2));
        REQUIRE_OK(pm_setroot(c.get(), p, 0));
        fill();
    }
    void set(int i, char *large)
    {
        REQUIRE_OK(pm_dirty(&root()->large[i], sizeof large));
        root()->large[i] = large;
    }
    void fill(int i = 0)
    {
        auto *large = static_cast<char *>(pm_malloc(c.get(), LARGE));
        REQUIRE(large);
        REQUIRE_OK(pm_dirty(large, LARGE));
        memset(large, 1, LARGE);
        set(i, large);
        REQUIRE_OK(pm_commit(c.get()));
    }
    void drop(int i = 0)
    {
        REQUIRE_OK(pm_free(root()->large[i]));
        set(i, nullptr);
        REQUIRE_OK(pm_commit(c.get()));
    }
    void change_line()
    {
        const uint64_t at = (in_turn ? next++ : random()) % (SMALL / LINE) * LINE;
        char *line = root()->small + at;
        if (pm_dirty(line, LINE) != 0) // a REQUIRE would take most of the time
            FAIL(pm_errormsg());
        memset(line, (int)random(), LINE);
        memcpy(&model[at], line, LINE);
    }
    // Store to lines, so many in a commit.
    void change(int commits, int lines = 1)
    {
        for (int i = 0; i < commits; i++) {
            for (int n = 0; n < lines; n++)
                change_line();
            if (pm_commit(c.get()) != 0)
                FAIL(pm_errormsg());
        }
    }
    uint64_t file_bytes() const { return std::filesystem::file_size(path); }
    // Change lines until the file is shorter. False: it stays so long.
    bool change_until_shorter()
    {
        const uint64_t before = file_bytes();
        for (int i = 0; i < 400 && file_bytes() >= before; i++)
            change(100);
        return file_bytes() < before;
    }
    void holds(pm_container *in) const
    {
        const auto *now = static_cast<const char *>(pm_getroot(in));
        const auto differs = std::mismatch(model.begin(), model.end(), now).first - model.begin();
        REQUIRE(differs == (long)SMALL);
        REQUIRE_OK(pm_check(in));
        REQUIRE(lost_chunks(in) == 0);
    }
    // What a crash would leave now. The checkpoint knows no chunk that is not there.
    void crash_holds() const
    {
        std::filesystem::copy_file(path, other, std::filesystem::copy_options::overwrite_existing);
        if (const uint64_t root = checkpoints::root_of(other)) {
            const std::string file = test::read_file(other);
            const auto at = root * LINE + sizeof(log_image) + offsetof(log_root, chunks);
            uint32_t chunks;
            memcpy(&chunks, &file[at], sizeof chunks);
            REQUIRE(chunks > 0);
            CHECK(chunks <= file.size() / checkpoints::CHUNK);
        }
        for (uint64_t interval : {how.checkpoint_bytes, uint64_t{0}}) {
            pm_options o = how;
            o.flags |= PM_ACCEPT_COPY;
            o.checkpoint_bytes = interval;
            holds(test::open(other, o).get());
        }
    }
};

} // namespace

TEST_CASE("when contents have become less the file gets shorter, commit by commit")
{
    pm_options o = announced();
    o.checkpoint_bytes = GENERATE(as<uint64_t>(), 0, 1, 256 * KiB);
    const bool in_turn = GENERATE(false, true);
    CAPTURE(o.checkpoint_bytes, in_turn);
    Subject s(o);
    s.in_turn = in_turn;
    const uint64_t full = s.file_bytes();
    REQUIRE(full > LARGE);
    s.drop();
    int times = 0;
    for (; s.file_bytes() > 5 * SMALL && s.change_until_shorter(); times++)
        s.crash_holds();
    CHECK(s.file_bytes() <= 5 * SMALL);
    CHECK(times > 0);
    s.holds(s.c.get());
    s.fill(); // it grows again
    s.c.reset();
    s.holds(test::open(s.path, s.how).get());
}

TEST_CASE("a file is not cut off below initial_size, nor what is reserved")
{
    pm_options o = announced();
    const bool reserves = GENERATE(false, true);
    CAPTURE(reserves);
    if (!reserves)
        o.initial_size = 12 * MiB;
    Subject s(o);
    s.in_turn = true;
    s.drop();
    for (int i = 0; i < 200; i++) {
        if (reserves)
            REQUIRE_OK(pm_reserve(s.c.get(), LARGE));
        const uint64_t before = s.file_bytes();
        s.change(1, 1000);
        CHECK(s.file_bytes() == before);
    }
    CHECK(s.file_bytes() >= 8 * MiB);
    s.holds(s.c.get());
}

TEST_CASE("while a copy is made the file stays as long as it is")
{
    Subject s(announced());
    s.drop();
    const auto progress = [](void *context, uint64_t, uint64_t) {
        auto *subject = static_cast<Subject *>(context);
        const uint64_t before = subject->file_bytes();
        subject->before = subject->model;
        subject->change(3000);
        CHECK(subject->file_bytes() >= before);
        return 0;
    };
    REQUIRE_OK(pm_copy(s.c.get(), s.other.c_str(), progress, &s));
    s.model.swap(s.before); // the last call comes when all has been copied
    s.holds(test::open(s.other, s.how).get());
    s.model.swap(s.before);
    CHECK(s.change_until_shorter());
    s.holds(s.c.get());
}

TEST_CASE("a file whose contents come and go gets no shorter")
{
    Subject s(announced());
    uint64_t longest = 0;
    for (int i = 0; i < 8; i++) {
        s.drop();
        for (int n = 0; n < 6; n++) {
            s.change(500);
            CHECK(s.file_bytes() >= longest);
        }
        s.fill();
        CHECK(s.file_bytes() >= longest);
        longest = std::max(longest, s.file_bytes());
    }
}

// What is large lies at the file's end, and images before it, where another large object was.
TEST_CASE("a file is not cut off below what the checkpoint knows that is named")
{
    pm_options o = announced();
    o.checkpoint_bytes = 64 * MiB;
    Subject s(o);
    s.fill(1);
    s.drop(0);
    s.change(10);
    s.c.reset(); // the close writes a checkpoint
    s.c = test::open(s.path, s.how);
    const uint64_t before = s.file_bytes();
    s.drop(1);
    s.change(800, 100);
    s.crash_holds();
    s.c.reset();
    s.c = test::open(s.path, s.how);
    s.change(800, 100);
    CHECK(s.file_bytes() < before);
}

TEST_CASE("a file is not cut off below what the checkpoint knows that is being made")
{
    pm_options o = announced();
    o.checkpoint_bytes = 32 * MiB; // its images are written with the next 8 MiB
    Subject s(o);
    s.in_turn = true;
    s.fill(1);
    s.drop(0);
    s.change(260, 1000); // one is due
    s.drop(1);
    for (int i = 0; i < 10; i++) {
        s.change(20, 1000);
        s.crash_holds();
    }
    s.c.reset();
    s.holds(test::open(s.path, s.how).get());
}
