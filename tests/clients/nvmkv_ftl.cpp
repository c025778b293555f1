// NVMKV's address space: sectors that are mapped or not, whatever was written over whatever.
#include "nvmkv/ftl.hpp"

#include "clients/nvmkv.hpp"

#include <filesystem>
#include <map>
#include <random>

using nvmkv::Ftl, nvmkv::Range, nvmkv::Write, nvmkv::sector_size, nvmkv::sectors_end;
using test::error_of, test::sectors;

namespace
{

struct Fixture {
    test::Directory directory;
    std::string path = directory / "disk.pm";
    std::unique_ptr<Ftl> ftl = open(PM_CREATE);

    std::unique_ptr<Ftl> open(unsigned flags = 0)
    {
        Ftl::Options options;
        options.flags = flags;
        options.segment_size = 64 << 10;
        options.max_size = 64 << 20;
        options.engine = test::engine_option();
        return std::make_unique<Ftl>(path, options);
    }
    void reopen()
    {
        ftl.reset();
        ftl = open();
    }
    std::string read(uint64_t first, uint64_t count)
    {
        std::string bytes(count * sector_size, '?');
        ftl->read(first, bytes);
        return bytes;
    }
};

// What is in each mapped sector, all of whose bytes are alike.
using Model = std::map<uint64_t, char>;

void require_like(Ftl::Snapshot &snapshot, const Model &model)
{
    Model found;
    uint64_t from = 0;
    while (auto extent = snapshot.at_or_after(from)) {
        for (uint64_t i = 0; i < extent->count; i++)
            found[extent->first + i] = snapshot.read(*extent)[i * sector_size];
        from = extent->end();
    }
    REQUIRE(found == model);
}

} // namespace

TEST_CASE_METHOD(Fixture, "what is written is read, what is not reads as zeros")
{
    ftl->write(10, sectors('a', 3));
    REQUIRE(read(9, 5) == sectors(0, 1) + sectors('a', 3) + sectors(0, 1));
    ftl->write(11, sectors('b', 1)); // splits it
    REQUIRE(read(10, 3) == sectors('a', 1) + sectors('b', 1) + sectors('a', 1));
    REQUIRE(ftl->extents() == 3);
    REQUIRE(ftl->range_exist({0, 100}) == std::vector<Range>{{10, 3}});
    ftl->ptrim({11, 1});
    REQUIRE(read(10, 3) == sectors('a', 1) + sectors(0, 1) + sectors('a', 1));
    REQUIRE(ftl->range_exist({10, 3}) == std::vector<Range>{{10, 1}, {12, 1}});
    REQUIRE(ftl->exists(10));
    REQUIRE_FALSE(ftl->exists(11));
    REQUIRE(ftl->atomic_exists(std::array<uint64_t, 3>{10, 11, 12}) ==
            std::vector<bool>{true, false, true});
    ftl->check();
    reopen();
    REQUIRE(ftl->sectors() == 2);
    REQUIRE(read(10, 3) == sectors('a', 1) + sectors(0, 1) + sectors('a', 1));
    ftl->trim({0, sectors_end});
    REQUIRE_FALSE(ftl->iterate(0));
    ftl->check();
}

TEST_CASE_METHOD(Fixture, "the ends of the address space")
{
    ftl->write(sectors_end - 1, sectors('z', 1));
    ftl->write(0, sectors('a', 1));
    REQUIRE(read(sectors_end - 1, 1) == sectors('z', 1));
    REQUIRE(ftl->iterate(1) == Range{sectors_end - 1, 1});
    REQUIRE_FALSE(ftl->iterate(sectors_end));
    REQUIRE(error_of([&] { ftl->write(sectors_end - 1, sectors('z', 2)); }) == EINVAL);
    REQUIRE(error_of([&] { ftl->write(sectors_end, sectors('z', 1)); }) == EINVAL);
    REQUIRE(error_of([&] { ftl->write(UINT64_MAX, sectors('z', 1)); }) == EINVAL);
    REQUIRE(error_of([&] { ftl->ptrim({1, UINT64_MAX}); }) == EINVAL);
    REQUIRE(error_of([&] { ftl->ptrim({1, 0}); }) == EINVAL);
    REQUIRE(error_of([&] { ftl->write(1, std::string(511, 'a')); }) == EINVAL);
    REQUIRE(error_of([&] { ftl->write(1, std::string(513, 'a')); }) == EINVAL);
    const std::string two = sectors('x', 2);
    REQUIRE(error_of([&] { ftl->atomic_write(std::array{Write{5, two}, Write{6, two}}); }) ==
            EINVAL);
    ftl->atomic_write(std::array{Write{7, two}, Write{5, two}}); // adjacent
    REQUIRE(ftl->iterate(1) == Range{5, 4});
    ftl->ptrim({0, sectors_end});
    REQUIRE(ftl->extents() == 0);
    ftl->check();
}

TEST_CASE_METHOD(Fixture, "conditional writes and reads")
{
    const std::string a = sectors('a', 1), b = sectors('b', 2);
    REQUIRE(ftl->cond_atomic_write(std::array{Write{100, a}, Write{200, b}}));
    REQUIRE_FALSE(ftl->cond_atomic_write(std::array{Write{50, a}, Write{201, a}}));
    REQUIRE_FALSE(ftl->exists(50));
    std::string buffer = sectors('?', 4);
    REQUIRE(ftl->cond_range_read({0, 1000}, buffer) == std::vector<Range>{{100, 1}, {200, 2}});
    REQUIRE(buffer == a + b + sectors('?', 1));
    REQUIRE(ftl->cond_range_read({0, 1000}, std::span(buffer).first(2 * sector_size)) ==
            std::vector<Range>{{100, 1}, {200, 1}});
    REQUIRE(ftl->cond_range_read({201, 1}, buffer) == std::vector<Range>{{201, 1}});
    ftl->batch(std::array{Write{200, a}, Write{201, a}, Write{202, a}});
    REQUIRE(ftl->range_exist({150, 100}) == std::vector<Range>{{200, 3}});
    ftl->atomic_ptrim(std::array{Range{100, 1}, Range{200, 3}});
    REQUIRE_FALSE(ftl->iterate(0));
    REQUIRE(ftl->counters().writes == 5);
    REQUIRE(ftl->counters().bytes_written == 6 * sector_size);
}

// Random changes beside a map of sectors; the snapshots held meanwhile stay what they were.
TEST_CASE_METHOD(Fixture, "any sequence of changes does what a map of sectors would")
{
    const unsigned seed = GENERATE(1u, 2u, 3u);
    std::mt19937 random(seed);
    INFO("seed " << seed);
    const uint64_t base = seed == 3 ? sectors_end - 64 : 4000; // over a border of the tree's nodes
    auto below = [&](uint64_t n) { return random() % n; };
    Model model;
    for (int round = 0; round < 12; round++) {
        {
            Ftl::Snapshot before = ftl->snapshot();
            const Model then = model;
            for (int i = 0; i < 25; i++) {
                std::vector<nvmkv::Replacement> change;
                std::vector<std::string> bytes;
                bytes.reserve(4);
                uint64_t from = base;
                for (size_t n = 1 + below(3); n-- > 0 && from < base + 60;) {
                    const uint64_t first = from + below(base + 60 - from), count = 1 + below(4);
                    const char c = static_cast<char>('a' + below(26));
                    from = first + count;
                    nvmkv::Replacement r{{first, count}, {}};
                    for (uint64_t s = first; s < first + count; s++)
                        model.erase(s);
                    if (below(3) > 0) { // somewhere inside
                        const uint64_t skip = below(count), length = 1 + below(count - skip);
                        bytes.push_back(sectors(c, length));
                        r.put = {first + skip, bytes.back()};
                        for (uint64_t s = 0; s < length; s++)
                            model[first + skip + s] = c;
                    }
                    change.push_back(r);
                }
                ftl->wait(*ftl->submit(change));
            }
            require_like(before, then);
            Ftl::Snapshot after = ftl->snapshot();
            require_like(after, model);
        }
        ftl->check();
        if (round % 4 == 3)
            reopen();
    }
}

TEST_CASE_METHOD(Fixture, "a change that does not fit changes nothing")
{
    ftl->write(1, sectors('a', 8));
    const std::string large(48 << 20, 'b');
    REQUIRE(error_of([&] {
                ftl->atomic_write(std::array{Write{3, sectors('c', 1)}, Write{100, large},
                                             Write{1000000, large}});
            }) == ENOSPC);
    REQUIRE(read(1, 8) == sectors('a', 8));
    REQUIRE(ftl->iterate(9) == std::nullopt);
    ftl->check();
    ftl->write(3, sectors('c', 1));
    REQUIRE(read(3, 1) == sectors('c', 1));
    ftl->check();
}

TEST_CASE_METHOD(Fixture,
                 "a change that fails while a snapshot is held ends all changes, not reading")
{
    ftl->write(1, sectors('a', 8));
    const std::string large(65 << 20, 'b');
    const auto fails = [&] {
        ftl->atomic_write(std::array{Write{3, sectors('c', 1)}, Write{9, large}});
    };
    {
        Ftl::Snapshot snapshot = ftl->snapshot();
        REQUIRE(error_of(fails) == ENOSPC);
    }
    REQUIRE(read(1, 8) == sectors('a', 8));
    REQUIRE(error_of([&] { ftl->write(1, sectors('d', 1)); }) == EIO);
    REQUIRE(read(1, 8) == sectors('a', 8));
    reopen();
    REQUIRE(read(1, 8) == sectors('a', 8));
    ftl->write(1, sectors('d', 1));
    ftl->check();
}

TEST_CASE_METHOD(Fixture, "a snapshot that is held for too long is told, and loses nothing")
{
    ftl->write(1, sectors('a', 1));
    {
        Ftl::Snapshot snapshot = ftl->snapshot();
        for (int i = 0; i < 1023; i++) // one less than may be remembered, and that one
            ftl->write(1, sectors('b', 1));
        ftl->write(1, sectors('c', 1));
        REQUIRE(error_of([&] { ftl->write(1, sectors('d', 1)); }) == ETIMEDOUT);
        REQUIRE(snapshot.read(snapshot.overlapping({1, 1}).at(0))[0] == 'a');
    }
    REQUIRE(read(1, 1) == sectors('c', 1));
    ftl->write(1, sectors('d', 1));
    REQUIRE(read(1, 1) == sectors('d', 1));
    ftl->check();
}

TEST_CASE_METHOD(Fixture, "as much may be replaced at once as the ring of retired objects holds")
{
    constexpr size_t most = 16384 / 13; // extents with two objects, and up to eleven nodes each
    std::vector<Write> writes;
    std::vector<Range> ranges;
    const std::string one = sectors('a', 1);
    for (uint64_t i = 0; i <= most; i++) {
        writes.push_back({i * 0x9e3779b97, one});
        ranges.push_back({i * 0x9e3779b97, 1});
    }
    ftl->atomic_write(writes);
    REQUIRE(error_of([&] { ftl->atomic_ptrim(ranges); }) == E2BIG);
    REQUIRE(ftl->extents() == most + 1);
    ranges.pop_back();
    ftl->atomic_ptrim(ranges);
    REQUIRE(ftl->extents() == 1);
    ftl->check();
    ftl->atomic_write(writes);
    ftl->atomic_write(writes); // in their places
    ftl->ptrim({0, sectors_end});
    reopen();
    REQUIRE(ftl->extents() == 0);
    ftl->check();
}

TEST_CASE_METHOD(Fixture, "who may open it")
{
    REQUIRE(error_of([&] { open(); }) == EBUSY);
    ftl->write(5, sectors('a', 1));
    ftl->write(5, sectors('b', 1)); // leaves something in the ring
    ftl.reset();
    {
        auto one = open(PM_READONLY), two = open(PM_READONLY);
        ftl = std::move(one);
        REQUIRE(read(5, 1) == sectors('b', 1));
        REQUIRE(error_of([&] { ftl->write(5, sectors('c', 1)); }) == EROFS);
        REQUIRE(read(5, 1) == sectors('b', 1));
        ftl->check();
    }
    ftl.reset();
    std::filesystem::copy_file(path, path + ".copy");
    ftl = open();
    Ftl copy(path + ".copy", {}); // beside the original: all its pointers move
    copy.check();
    copy.write(5, sectors('d', 1));
    REQUIRE(read(5, 1) == sectors('b', 1));
    copy.check();

    const std::string other = directory / "other.pm";
    pm_options options = test::small();
    options.layout = "other/1";
    test::open(other, options).reset();
    REQUIRE(error_of([&] { Ftl(other, {}); }) == EMEDIUMTYPE);
    REQUIRE(error_of([&] { Ftl(directory / "none", {}); }) == ENOENT);
    options.layout = "nvmkv/1";
    test::open(path + ".cut", options).reset(); // created, but not more
    REQUIRE(error_of([&] { Ftl(path + ".cut", {}); }) == ENODATA);
}

TEST_CASE("what is async is there when the process has gone on, and flushed when told")
{
    test::Directory directory;
    Ftl ftl(directory / "disk.pm", {.flags = PM_CREATE, .durability = nvmkv::Durability::async});
    ftl.flush();
    ftl.write(1, sectors('a', 1));
    REQUIRE(ftl.exists(1));
    ftl.flush();
    ftl.check();
}
