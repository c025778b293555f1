// Damage at random, anywhere in a crashed container: whatever open and check say, they say it.
#include "common/format.hpp"
#include "common/process.hpp"

#include <cerrno>
#include <cstring>
#include <random>
#include <unistd.h>

using test::page_word;

CHILD_PROCESS(leaves_much_to_recover)
{
    test::Container c = test::open_with_pages(arguments[0], 100, test::small());
    for (uint64_t round = 1; round <= 3; round++) {
        for (uint64_t i = 0; i < 40; i++)
            page_word(c.get(), i * round % 100) = round;
        for (size_t size : {30, 3000, 90000})
            CHILD_REQUIRE(pm_malloc(c.get(), size));
        if (round < 3)
            CHILD_REQUIRE(pm_commit(c.get()) == 0);
    }
    _exit(0);
}

TEST_CASE("a root at the end of the file is refused, and one in the last word is none", "[home]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::open_with_pages(path, 1, test::small());
    const uint64_t size = test::read_file(path).size(); // a byte more than any object has
    const uint64_t root = FORMAT_STATE + offsetof(format_state, root_offset);
    test::forge_word(path, root, seal(size));
    REQUIRE(pm_open(path.c_str(), nullptr) == nullptr);
    REQUIRE(test::failed_with(EBADMSG, {path.c_str(), "the root's word is damaged", "backup"}));
    test::forge_word(path, root, seal(size - 8));
    test::Container c = test::open(path, test::options());
    REQUIRE(pm_check(c.get()) == -1);
    REQUIRE(test::failed_with(EBADMSG, {"the root is no object"}));
}

namespace
{

// Open it in either way, and look at everything that a program may ask for.
void look_at(const std::string &path)
{
    for (unsigned flags : {(unsigned)PM_READONLY, 0u}) {
        pm_options options = test::options(flags | PM_ACCEPT_COPY);
        test::Container c(pm_open(path.c_str(), &options));
        if (!c) {
            int error = errno;
            INFO(pm_errormsg());
            REQUIRE((error == EBADMSG || error == ENOTSUP));
            continue;
        }
        if (pm_check(c.get()) != 0) {
            REQUIRE(test::failed_with(EBADMSG, {path.c_str()}));
            continue;
        }
        test::stats(c.get());
        void *root = pm_getroot(c.get());
        if (root)
            REQUIRE(pm_usable_size(root) > 0);
        if (flags)
            continue;
        void *p = pm_malloc(c.get(), 100);
        if (p)
            memset(p, 1, 100);
        pm_free(p);
        pm_malloc(c.get(), 200000);
        if (pm_commit(c.get()) == 0)
            REQUIRE_OK(pm_check(c.get()));
    }
}

} // namespace

TEST_CASE("bits flipped at random in a crashed container", "[home]")
{
    test::Directory directory;
    std::string path = directory / "c.pm", copy = directory / "copy.pm";
    REQUIRE_CLEAN(test::run("leaves_much_to_recover", {path}));
    const std::string whole = test::read_file(path);
    look_at(path);
    // Where it hurts: metadata, bitmaps, the log's descriptors and records.
    std::vector<uint64_t> interesting;
    for (uint64_t i = 0; i < whole.size() >> 16; i++) {
        uint64_t word;
        memcpy(&word, whole.data() + FORMAT_TABLE + 8 * i, sizeof word);
        if (segment_kind(word) == SEGMENT_LOG || segment_kind(word) == SEGMENT_SLAB)
            interesting.push_back(i << 16);
    }
    std::mt19937_64 random(7);
    for (int round = 0; round < 1500; round++) {
        std::string bytes = whole;
        uint64_t flips = 1 + random() % 4;
        std::string flipped;
        for (uint64_t i = 0; i < flips; i++) {
            uint64_t at;
            switch (random() % 4) {
            case 0:
                at = random() % (4 * PM_PAGE); // headers, state, table
                break;
            case 1:
                at = random() % bytes.size();
                break;
            default: // the first pages of a slab or log segment
                at = interesting[random() % interesting.size()] + random() % (3 * PM_PAGE);
            }
            if (random() % 8 == 0)
                memset(bytes.data() + at / 8 * 8, random() % 2 ? 0xFF : 0, 8); // a whole word
            else
                bytes[at] = (char)(bytes[at] ^ 1 << random() % 8);
            flipped += " " + std::to_string(at);
        }
        INFO("round " << round << ", bytes" << flipped);
        test::write_file(copy, bytes);
        look_at(copy);
    }
}

TEST_CASE("a slot whose bit is damaged is not given out", "[home]")
{
    constexpr uint64_t SEGMENT = 64 << 10, SIZE = 64, LOST = 3;
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small());
    const char *base = (const char *)test::stats(c.get()).base;
    void *objects[10];
    for (void *&object : objects)
        REQUIRE((object = pm_malloc(c.get(), SIZE)));
    REQUIRE_OK(pm_setroot(c.get(), objects[0], 0));
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    uint64_t bitmap = (uint64_t)((const char *)objects[0] - base) / SEGMENT * SEGMENT;
    test::flip_bit(path, bitmap, LOST); // the slots are given out in order
    c = test::open(path, test::options());
    for (uint64_t i = 0; i < 2 * SEGMENT / SIZE; i++) {
        const void *object = pm_malloc(c.get(), SIZE);
        REQUIRE(object);
        REQUIRE(object != objects[LOST]);
    }
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(pm_check(c.get()) == -1);
    REQUIRE(test::failed_with(EBADMSG, {path.c_str()}));
}
