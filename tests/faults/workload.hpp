// What is in the container: the root and a few objects of all kinds, as a function of the number of
// transactions. Each transaction is a short list of operations, so that container and model take it
// from the same place, and it can be repeated after a rollback.
#ifndef TESTS_FAULTS_WORKLOAD_HPP
#define TESTS_FAULTS_WORKLOAD_HPP

#include <cstdint>
#include <string>
#include <vector>

namespace faults
{

constexpr unsigned SLOTS = 8;

// The root object.
struct Root {
    uint64_t version; // transactions so far
    void *objects[SLOTS];
    uint64_t bytes[SLOTS]; // 0: no object
    uint64_t seeds[SLOTS]; // of their contents
};

struct Operation {
    enum Kind { ROOT, ALLOCATE, CALLOC, REALLOC, FREE, STORE, DIRTY, RESERVE, CLEAR } kind;
    unsigned slot;
    uint64_t bytes;
};

// Those of the transaction that makes version `number`, from 1 to VERSIONS. ALLOCATE and REALLOC
// store to the object, too.
extern const std::vector<std::vector<Operation>> transactions;
constexpr uint64_t VERSIONS = 11;

// What a transaction does that is rolled back.
extern const std::vector<Operation> abandoned;

struct Object {
    uint64_t bytes, seed;
};

struct Model {
    uint64_t version = 0;
    Object objects[SLOTS] = {};

    // `number`: of the transaction that it belongs to.
    void apply(const Operation &o, uint64_t number);
    // What differs in the container whose root this is (null before version 1); empty if nothing.
    std::string compare(const Root *root) const;
    uint64_t object_count() const;
};

// After that many transactions.
Model model_of(uint64_t version);

// Store an object's contents: a word every so often, on every page of it.
void fill(void *object, uint64_t bytes, uint64_t seed);

// Of an object that an operation stores to: different in each.
uint64_t seed_of(uint64_t number, unsigned slot);

} // namespace faults

#endif
