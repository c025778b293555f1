// Mutations that know what a container is, and mostly make its checksums right afterwards. Without
// them a fuzzer would see one error message for ever.
#include "common/format.hpp"
#include "hostile/input.hpp"

extern "C" {
#include "container/format_log.h"
}

#include <cstring>
#include <random>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

namespace
{

using namespace hostile;
using Random = std::minstd_rand;

uint64_t below(Random &random, uint64_t end)
{
    return end == 0 ? 0 : random() % end;
}

uint64_t random_word(Random &random)
{
    return (uint64_t)random() << 33 ^ (uint64_t)random() << 12 ^ random();
}

// Values at which code decides.
uint64_t interesting(Random &random, const Bytes &file)
{
    const uint64_t values[] = {0,
                               1,
                               UINT64_MAX,
                               INT64_MAX,
                               UINT32_MAX,
                               UINT64_C(1) << 54,
                               file.size(),
                               file.size() / PM_PAGE,
                               FORMAT_STATE,
                               FORMAT_TABLE,
                               FORMAT_SEGMENT_MIN,
                               FORMAT_SIZE_MAX,
                               PM_PAGE,
                               LOG_ANEW,
                               LOG_ANEW | LOG_LAST,
                               LOG_PAGES,
                               LOG_PAGES | LOG_LAST,
                               LOG_ROOT,
                               segment_word(SEGMENT_SLAB, below(random, 4096)),
                               segment_word(SEGMENT_LARGE, below(random, 16)),
                               segment_word(SEGMENT_MORE, below(random, 16)),
                               segment_log_word((unsigned)below(random, 2), (uint32_t)random())};
    return values[below(random, std::size(values))] +
           (below(random, 4) == 0 ? random() % 5 - 2 : 0);
}

uint64_t changed(Random &random, uint64_t value, const Bytes &file)
{
    switch (below(random, 6)) {
    case 0:
        return value ^ UINT64_C(1) << below(random, 64);
    case 1:
        return value + 1 + below(random, 8);
    case 2:
        return value - 1 - below(random, 8);
    case 3:
        return at<uint64_t>(file, below(random, file.size() / 8) * 8);
    case 4:
        return random_word(random);
    default:
        return interesting(random, file);
    }
}

// A kind of which there is a piece, each as likely as the others; then a piece of it.
const Piece &choose(Random &random, const std::vector<Piece> &pieces)
{
    for (;;) {
        Kind kind = (Kind)below(random, (uint64_t)Kind::unused + 1);
        std::vector<const Piece *> of_kind;
        for (const Piece &piece : pieces)
            if (piece.kind == kind)
                of_kind.push_back(&piece);
        if (!of_kind.empty())
            return *of_kind[below(random, of_kind.size())];
    }
}

// Where there are few bytes, or the first ones say most.
uint64_t offset_in(Random &random, const Piece &piece)
{
    uint64_t bytes = below(random, 2) ? std::min<uint64_t>(piece.bytes, 256) : piece.bytes;
    return piece.offset + below(random, bytes);
}

void change_word(Random &random, Bytes &file, const Piece &piece)
{
    uint64_t offset = offset_in(random, piece);
    if (below(random, 3) == 0) {
        offset = offset / 4 * 4;
        put(file, offset, (uint32_t)changed(random, at<uint32_t>(file, offset), file));
    } else {
        offset = offset / 8 * 8;
        put(file, offset, changed(random, at<uint64_t>(file, offset), file));
    }
}

void copy_over(Random &random, Bytes &file, const Piece &from, const Piece &to)
{
    uint64_t bytes = std::min(from.bytes, to.bytes);
    bytes = below(random, 4) ? bytes : below(random, bytes) + 1;
    if (from.offset + bytes <= file.size() && to.offset + bytes <= file.size())
        memmove(file.data() + to.offset, file.data() + from.offset, bytes);
}

void resize(Random &random, Bytes &file)
{
    uint64_t unit = below(random, 2) ? FORMAT_SEGMENT_MIN : PM_PAGE;
    uint64_t size = file.size() / unit * unit + (below(random, 5) - 2) * unit;
    file.resize(std::min<uint64_t>(size, FILE_MAX)); // a negative size is a large one
}

void mutate(Random &random, Bytes &file)
{
    std::vector<Piece> pieces = pieces_of(file);
    if (pieces.empty())
        return;
    switch (below(random, 16)) {
    case 0:
        resize(random, file);
        break;
    case 1:
    case 2:
        copy_over(random, file, choose(random, pieces), choose(random, pieces));
        break;
    case 3: {
        const Piece &piece = choose(random, pieces);
        if (piece.offset + piece.bytes <= file.size())
            LLVMFuzzerMutate(reinterpret_cast<uint8_t *>(file.data()) + piece.offset, piece.bytes,
                             piece.bytes);
        break;
    }
    default:
        change_word(random, file, choose(random, pieces));
    }
}

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                                          unsigned seed)
{
    Random random(seed + 1);
    Bytes file = decode(data, size);
    if (pieces_of(file).empty() || below(random, 64) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    for (uint64_t n = 1 + below(random, 4); n > 0; n--)
        mutate(random, file);
    if (below(random, 8) != 0)
        repair(file, below(random, 2));
    Bytes input = encode(file);
    if (input.size() > max_size)
        return LLVMFuzzerMutate(data, size, max_size);
    memcpy(data, input.data(), input.size());
    return input.size();
}
