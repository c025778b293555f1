// What the tests of NVMKV share.
#ifndef TESTS_CLIENTS_NVMKV_HPP
#define TESTS_CLIENTS_NVMKV_HPP

#include "common/fixture.hpp"

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

inline std::string sectors(char c, size_t count)
{
    return std::string(count * 512, c);
}

} // namespace test

#endif
