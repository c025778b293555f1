// What each byte of a container is: docs/format.md, "byte by byte", as a function. A damaged
// container has an anatomy too, of whatever can still be told apart; nothing that the bytes say is
// believed without a look at its range.
#ifndef TESTS_HOSTILE_ANATOMY_HPP
#define TESTS_HOSTILE_ANATOMY_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hostile
{

using Bytes = std::string;

enum class Kind {
    header,
    base_epoch,
    fenced,
    sums,  // those of the base epoch
    guard, // of the state page
    mark,  // of who has it open
    root,
    place, // base, target, movable
    table,
    bitmap,
    map,        // of pointers
    record,     // undo: the first slots of a half
    descriptor, // undo: of a slot behind the record
    image,      // undo: such a slot
    part,       // redo: header and its piece of the stream; log: header and runs
    chunk,      // log: its header
    unit,       // log: the image of a unit of the map, or a piece of a checkpoint's root
    checkpoint, // log: where the root is
    generation, // log: the number of openings for writing
    object,     // in use
    unused,     // nothing is read here, whatever it says
};

struct Piece {
    Kind kind;
    uint64_t offset, bytes;
    uint64_t epoch; // of record, descriptor, image, part
};

// What the header says and the file's size allows.
struct Geometry {
    uint64_t segment_size, segments_max, segments; // segments: whole ones in the file
    uint64_t seed;
};

// From whichever copy of the header has a usable shape.
std::optional<Geometry> geometry_of(const Bytes &file);

// All pieces, in order of offset, without gaps up to the last whole segment.
std::vector<Piece> pieces_of(const Bytes &file);

// The log's segments of one half, in their order.
std::vector<uint64_t> log_segments(const Bytes &file, const Geometry &g, unsigned half);

// Where slot `slot` of such a half lies, and its descriptor.
uint64_t slot_offset(const Geometry &g, const std::vector<uint64_t> &half, uint64_t slot);
uint64_t descriptor_offset(const Geometry &g, const std::vector<uint64_t> &half, uint64_t slot);

// The bytes of the record at the start of a half; empty if nothing there looks like one.
Bytes record_at(const Bytes &file, const Geometry &g, const std::vector<uint64_t> &half);

bool log_is_redo(const Bytes &file);

// A container of the log engine.
bool is_log(const Bytes &file);

// Of the state page.
uint64_t base_epoch(const Bytes &file);

// What records have the checksums of, the space between objects there included: listed pages, and
// fresh ranges as far as they are told in the first part of a record. `entry`: where in the file,
// or for undo in the record, it is told.
struct Proved {
    uint64_t entry, offset, bytes;
};

std::vector<Proved> listed_pages(const Bytes &record);
std::vector<Proved> fresh_ranges(const Bytes &file, uint64_t part);

// Make seals and checksums right again where there is something to be sealed, so that a change goes
// unnoticed by them. `contents`: also what records say of the pages and ranges that they list.
void repair(Bytes &file, bool contents);

// Of all that, only the sums: those that the metadata has as it is now, at the base epoch and in each
// record.
void repair_sums(Bytes &file);

template <typename T> T at(const Bytes &file, uint64_t offset)
{
    T value{};
    if (offset <= file.size() && sizeof value <= file.size() - offset)
        __builtin_memcpy(&value, file.data() + offset, sizeof value);
    return value;
}

template <typename T> void put(Bytes &file, uint64_t offset, const T &value)
{
    if (offset <= file.size() && sizeof value <= file.size() - offset)
        __builtin_memcpy(file.data() + offset, &value, sizeof value);
}

} // namespace hostile

#endif
