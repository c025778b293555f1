// The format's definitions for tests that look at the bytes on the medium.
#ifndef TESTS_FORMAT_HPP
#define TESTS_FORMAT_HPP

extern "C" {
#include "base/checksum.h"
#include "container/format.h"
#include "container/sums.h"
}

#include "common/fixture.hpp"

#include <cstring>

namespace test
{

// Change a journaled word of a closed container, and the sums with it: what somebody would do who means
// harm.
inline void forge_word(const std::string &path, uint64_t offset, uint64_t word)
{
    std::string file = read_file(path);
    auto *header = reinterpret_cast<format_header *>(file.data());
    auto *state = reinterpret_cast<format_state *>(file.data() + FORMAT_STATE);
    auto *old = reinterpret_cast<uint64_t *>(file.data() + offset);
    uint64_t seed = header->id[0] ^ header->id[1];
    auto *sum = &state->sums;
    bool is_fixed = offset < header->meta_segments * header->segment_size;
    auto term = is_fixed && offset >= FORMAT_TABLE ? sums_table_term : sums_term;
    struct sums sums = sums_of_word(*sum);
    (is_fixed ? sums.fixed : sums.rest) += term(seed, offset, word) - term(seed, offset, *old);
    *sum = sums_word(sums);
    *old = word;
    write_file(path, file);
}

inline format_header header_of(const std::string &path)
{
    format_header header;
    memcpy(&header, read_file(path).data() + FORMAT_HEADER_A, sizeof header);
    return header;
}

// Let a closed container have another format version, as an older libpm made it.
inline void set_version(const std::string &path, uint32_t version)
{
    format_header header = header_of(path);
    header.version = version;
    header.checksum = checksum(&header, offsetof(format_header, checksum), header.version);
    for (uint64_t copy : {FORMAT_HEADER_A, FORMAT_HEADER_B})
        patch_file(path, copy, &header, sizeof header);
}

} // namespace test

#endif
