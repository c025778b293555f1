#include "faults/workload.hpp"

namespace faults
{

namespace
{

constexpr uint64_t STRIDE = 1000; // bytes from one word of an object's contents to the next

uint64_t &word(void *object, uint64_t at)
{
    return *reinterpret_cast<uint64_t *>(static_cast<char *>(object) + at);
}

uint64_t contents(uint64_t seed, uint64_t at)
{
    return (seed + at + 1) * 0x9E3779B97F4A7C15u;
}

} // namespace

using O = Operation;

// Objects below a page, of a page and more, and of several segments (64 KiB), so that the file
// grows, the log of either engine grows, and what redo keeps privately exceeds its limit.
const std::vector<std::vector<Operation>> transactions = {
    {},
    {{O::ROOT, 0, 0}, {O::CALLOC, 0, 100}, {O::ALLOCATE, 1, 1000}, {O::ALLOCATE, 2, 5000}},
    {{O::ALLOCATE, 3, 150000}, {O::CALLOC, 4, 70000}},
    // The container is opened again: all its pages are closed.
    {{O::STORE, 3, 0}, {O::STORE, 1, 0}, {O::FREE, 0, 0}, {O::CALLOC, 5, 100}},
    {{O::RESERVE, 0, 100000}, {O::DIRTY, 4, 0}, {O::STORE, 4, 0}, {O::REALLOC, 2, 20000}},
    {{O::FREE, 4, 0}, {O::ALLOCATE, 6, 400000}, {O::STORE, 3, 0}},
    {{O::STORE, 6, 0}},
    {{O::STORE, 1, 0}, {O::STORE, 3, 0}, {O::FREE, 2, 0}},
    {{O::CLEAR, 0, 0}, {O::ROOT, 0, 0}, {O::ALLOCATE, 0, 3000}, {O::CALLOC, 1, 90000}},
    // Two that are waited for together.
    {{O::STORE, 1, 0}, {O::ALLOCATE, 2, 100}},
    {{O::ALLOCATE, 3, 9000}, {O::STORE, 0, 0}},
    // After a crash.
    {{O::STORE, 1, 0}, {O::ALLOCATE, 4, 70000}, {O::FREE, 0, 0}},
};

const std::vector<Operation> abandoned = {
    {O::STORE, 3, 0}, {O::ALLOCATE, 7, 200000}, {O::FREE, 1, 0}, {O::REALLOC, 5, 3000}};

uint64_t seed_of(uint64_t number, unsigned slot)
{
    return number * SLOTS + slot + 1;
}

void fill(void *object, uint64_t bytes, uint64_t seed)
{
    for (uint64_t at = 0; at + 8 <= bytes; at += STRIDE)
        word(object, at) = contents(seed, at);
}

void Model::apply(const Operation &o, uint64_t number)
{
    switch (o.kind) {
    case O::ROOT:
    case O::DIRTY:
    case O::RESERVE:
        break;
    case O::ALLOCATE:
    case O::CALLOC:
    case O::REALLOC:
        objects[o.slot] = {o.bytes, seed_of(number, o.slot)};
        break;
    case O::FREE:
        objects[o.slot] = {};
        break;
    case O::STORE:
        objects[o.slot].seed = seed_of(number, o.slot);
        break;
    case O::CLEAR:
        *this = {};
        break;
    }
}

Model model_of(uint64_t version)
{
    Model m;
    for (uint64_t number = 1; number <= version; number++)
        for (const Operation &o : transactions[number])
            m.apply(o, number);
    m.version = version;
    return m;
}

uint64_t Model::object_count() const
{
    uint64_t count = version > 0; // the root
    for (const Object &object : objects)
        count += object.bytes > 0;
    return count;
}

std::string Model::compare(const Root *root) const
{
    if (!root)
        return version == 0 ? "" : "no root";
    if (root->version != version)
        return "version " + std::to_string(root->version) + ", not " + std::to_string(version);
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        auto [bytes, seed] = objects[slot];
        std::string name = "object " + std::to_string(slot);
        if (root->bytes[slot] != bytes || (bytes > 0 && root->seeds[slot] != seed))
            return name + " is another";
        for (uint64_t at = 0; at + 8 <= bytes; at += STRIDE)
            if (word(root->objects[slot], at) != contents(seed, at))
                return name + " has other contents at byte " + std::to_string(at);
    }
    return "";
}

} // namespace faults
