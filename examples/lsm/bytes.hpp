// How numbers and strings stand in files: fixed widths in little-endian order, and varints of 7 bits a byte.
#ifndef EXAMPLES_LSM_BYTES_HPP
#define EXAMPLES_LSM_BYTES_HPP

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace lsm
{

static_assert(std::endian::native == std::endian::little);

template <class T> void put_fixed(std::string &to, T value)
{
    to.append(reinterpret_cast<const char *>(&value), sizeof value);
}

template <class T> T fixed_at(const char *from)
{
    T value;
    memcpy(&value, from, sizeof value);
    return value;
}

inline void put_varint(std::string &to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        to.push_back(static_cast<char>(value | 0x80));
    to.push_back(static_cast<char>(value));
}

inline void put_string(std::string &to, std::string_view text)
{
    put_varint(to, text.size());
    to += text;
}

// Takes parts off the front of some bytes. Once a part is not there, `ok` is false, and all further parts are
// empty.
struct Reader {
    std::string_view rest;
    bool ok = true;

    std::string_view bytes(uint64_t count)
    {
        if (count > rest.size()) {
            ok = false;
            rest = {};
            return {};
        }
        std::string_view part = rest.substr(0, count);
        rest.remove_prefix(count);
        return part;
    }

    template <class T> T fixed()
    {
        std::string_view part = bytes(sizeof(T));
        return ok ? fixed_at<T>(part.data()) : T{};
    }

    uint64_t varint()
    {
        uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            auto byte = fixed<uint8_t>();
            value |= uint64_t(byte & 0x7f) << shift;
            if (!(byte & 0x80))
                return value;
        }
        ok = false;
        return 0;
    }

    std::string_view string() { return bytes(varint()); }
};

} // namespace lsm

#endif
