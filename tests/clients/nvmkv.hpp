// What the tests of NVMKV share.
#ifndef TESTS_CLIENTS_NVMKV_HPP
#define TESTS_CLIENTS_NVMKV_HPP

#include "common/fixture.hpp"
#include "nvmkv/nvmkv.hpp"

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

namespace test
{

// The errno of the std::system_error that this throws, which has a message; 0 if it throws none.
template <class Call> int error_of(Call &&call)
{
    try {
        call();
    } catch (const std::system_error &error) {
        return error.what()[0] ? error.code().value() : -1;
    }
    return 0;
}

// Small segments make boundaries cheap to reach.
inline nvmkv::Options small_store(unsigned key_bits = 36, unsigned value_bits = 12)
{
    nvmkv::Options options;
    options.key_bits = key_bits;
    options.value_bits = value_bits;
    options.segment_size = 64 << 10;
    options.max_size = 64 << 20;
    options.engine = engine_option();
    return options;
}

inline std::string sectors(char c, size_t count)
{
    return std::string(count * 512, c);
}

} // namespace test

#endif
