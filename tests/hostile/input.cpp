#include "hostile/input.hpp"

#include <algorithm>
#include <cstring>

namespace hostile
{

namespace
{

struct PieceHead {
    uint32_t zeros, bytes;
};

// A shorter run of zeros is cheaper as it stands.
constexpr size_t ZEROS_MIN = sizeof(PieceHead);

size_t zeros_at(const Bytes &file, size_t from)
{
    size_t end = std::min(file.find_first_not_of('\0', from), file.size());
    return end - from;
}

} // namespace

Bytes decode(const uint8_t *input, size_t size)
{
    Bytes file;
    while (size >= sizeof(PieceHead)) {
        PieceHead head;
        memcpy(&head, input, sizeof head);
        input += sizeof head;
        size -= sizeof head;
        size_t bytes = std::min<size_t>(head.bytes, size);
        if (head.zeros + bytes > FILE_MAX - file.size())
            break;
        file.append(head.zeros, '\0');
        file.append(reinterpret_cast<const char *>(input), bytes);
        input += bytes;
        size -= bytes;
    }
    return file;
}

Bytes encode(const Bytes &file)
{
    Bytes input;
    for (size_t i = 0; i < file.size();) {
        size_t zeros = zeros_at(file, i), from = i + zeros, end = from;
        for (size_t run = 0; end < file.size() && run < ZEROS_MIN; end += std::max<size_t>(run, 1))
            if ((run = zeros_at(file, end)) >= ZEROS_MIN || end + run == file.size())
                break;
        PieceHead head = {(uint32_t)zeros, (uint32_t)(end - from)};
        input.append(reinterpret_cast<const char *>(&head), sizeof head);
        input.append(file, from, end - from);
        i = end;
    }
    return input;
}

} // namespace hostile
