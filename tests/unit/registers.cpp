// What a commit leaves in the processor: after data in the upper halves of the AVX registers, SSE instructions
// of the program would be slow.
#include "common/fixture.hpp"

extern "C" {
#include "base/checksum.h"
}

#include <cstring>
#include <immintrin.h>
#include <vector>

namespace
{

// XGETBV tells which parts of the registers are in use: bits 2 and 6 are the upper halves.
__attribute__((target("xsave,avx"))) bool upper_halves_are_used()
{
    uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
    return low & 0x44;
}

__attribute__((target("avx"))) void clear_upper_halves()
{
    _mm256_zeroupper();
}

// Another process on this processor may leave something too, so one clean time of many will do.
template <class Work> bool leaves_them_clear(Work work)
{
    for (int i = 0; i < 100; i++) {
        clear_upper_halves();
        work();
        if (!upper_halves_are_used())
            return true;
    }
    return false;
}

} // namespace

TEST_CASE("checksums and commits leave the upper halves of the AVX registers clear")
{
    if (!__builtin_cpu_supports("avx") || !leaves_them_clear([] {}))
        return; // this processor cannot tell
    std::vector<char> bytes(8192, 'b');
    for (const size_t size : {16, 240, 241, 512, 1024, 1025, 4096, 8192})
        CHECK(leaves_them_clear([&] { checksum(bytes.data(), size, 1); }));

    test::Directory directory;
    const test::Container c = test::open(directory / "c.pm", test::options(PM_CREATE));
    auto *object = static_cast<char *>(pm_malloc(c.get(), bytes.size()));
    REQUIRE(object);
    int value = 0;
    CHECK(leaves_them_clear([&] {
        memset(object, ++value, bytes.size());
        pm_commit(c.get());
    }));
    CHECK(leaves_them_clear([&] {
        object[1] = static_cast<char>(++value);
        pm_rollback(c.get());
    }));
}
