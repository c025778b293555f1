/*
 * A round of operations on a store of pairs, in random order. Every outcome is looked at, and every
 * value that a get returns: a wrong store cannot be a fast one.
 *
 * `fill` puts all pairs into the empty store, whose file and memory grow, so that the kernel has to
 * clear their pages. Later a random half of them is deleted, and put again: into a store in use.
 */
#pragma once

#include "harness/random.h"
#include "metradb/store.h"

#include <cstring>
#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench
{

enum Operation { fill, get, replace, remove, put };
constexpr const char *operation_names[] = {"fill", "get", "replace", "delete", "put"};
constexpr Operation round_of_operations[] = {fill, get, replace, remove, put};

/** Nanoseconds that this thread has run. None of the stores ever waits, so they are what an operation
 * takes, and other programs on the machine do not count. */
inline double processor_ns()
{
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e9 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec);
}

/** A store in a new file, and the buffers of its one thread. */
class Store
{
  public:
    Store(const store_ops &ops, const std::string &path, uint32_t pairs, size_t bytes)
        : ops_(ops), pairs_(pairs), store_(ops.open(path.c_str(), pairs, bytes)), value_(bytes),
          found_(bytes)
    {
    }
    Store(const Store &) = delete;
    ~Store() { ops_.close(store_); }

    /** The pairs that an operation is for, in an order of its own. */
    std::vector<uint32_t> order(Operation operation) const
    {
        bool half = operation == remove || operation == put;
        auto pairs = permutation(pairs_, half ? remove : operation);
        pairs.resize(half ? pairs_ / 2 : pairs_);
        if (operation != put)
            return pairs;
        std::vector<uint32_t> again;
        for (uint32_t i : permutation(pairs_ / 2, put))
            again.push_back(pairs[i]);
        return again;
    }

    void run(Operation operation, const std::vector<uint32_t> &order)
    {
        bool good = true;
        for (uint32_t i : order)
            good &= step(operation, scramble(i + 1));
        if (!good)
            throw std::runtime_error(std::string(ops_.name) +
                                     ": went wrong: " + operation_names[operation]);
    }

  private:
    bool step(Operation operation, uint64_t key)
    {
        switch (operation) {
        case fill:
        case put:
            memcpy(value_.data(), &key, sizeof key);
            return ops_.put(store_, key, value_.data());
        case replace:
            return ops_.replace(store_, key, value_.data());
        case get:
            return ops_.get(store_, key, found_.data()) &&
                   memcmp(found_.data(), &key, sizeof key) == 0;
        default:
            return ops_.remove(store_, key);
        }
    }

    const store_ops &ops_;
    uint32_t pairs_;
    void *store_;
    std::vector<char> value_, found_;
};

} // namespace bench
