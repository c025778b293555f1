/*
 * A round of operations on a store of pairs: from empty to full and back, each pair once in random
 * order. Every outcome is looked at, and every value that a get returns: a wrong store cannot be a
 * fast one.
 *
 * The first filling is another operation than the later ones, since the store's file and memory
 * grow, and the kernel clears their pages.
 */
#pragma once

#include "harness/random.h"
#include "metradb/store.h"

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench
{

enum Operation { first_put, first_delete, put, get, replace, remove };
constexpr const char *operation_names[] = {"first put", "first delete", "put",
                                           "get",       "replace",      "delete"};
constexpr Operation round_trip[] = {first_put, first_delete, put, get, replace, remove};

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

    /** The pairs in an order of the operation's own. */
    std::vector<uint32_t> order(Operation operation) const
    {
        return permutation(pairs_, static_cast<uint64_t>(operation));
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
        case first_put:
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
