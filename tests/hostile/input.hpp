// An input of the fuzzer is a container with its zeros left out, so that it has some kilobytes
// where the file has hundreds: pieces of
//
//   4 bytes: zeros before | 4 bytes: n | n bytes
//
// Any input decodes to a file, of at most FILE_MAX bytes.
#ifndef TESTS_HOSTILE_INPUT_HPP
#define TESTS_HOSTILE_INPUT_HPP

#include "hostile/anatomy.hpp"

namespace hostile
{

constexpr size_t FILE_MAX = 2 << 20;

Bytes decode(const uint8_t *input, size_t size);
Bytes encode(const Bytes &file);

} // namespace hostile

#endif
