#include "crash/workload.hpp"

#include <random>
#include <stdexcept>
#include <vector>

namespace crash
{

namespace
{

// What one transaction does, so that container and model take it from the same place.
struct Operation {
    enum Kind { INSERT, REMOVE, BLOB } kind;
    uint64_t key;   // or the blob's slot
    uint64_t value; // or the blob's size; 0 frees it
};

std::vector<Operation> operations(uint64_t seed, uint64_t number)
{
    std::mt19937_64 random(seed * 0x9E3779B97F4A7C15u + number);
    unsigned count = OPERATIONS_MIN + random() % (OPERATIONS_MAX - OPERATIONS_MIN + 1);
    std::vector<Operation> list;
    for (unsigned i = 0; i < count; i++) {
        uint64_t key = random() % 20000, value = random(), dice = random() % 100;
        if (dice < 60) {
            list.push_back({Operation::INSERT, key, value});
        } else if (dice < 97) {
            list.push_back({Operation::REMOVE, key, 0});
        } else {
            // Mostly small, now and then larger than a segment, now and then freed.
            uint64_t bytes = value % 10 == 0 ? 0 : value % 10 == 1 ? value % 300000 : value % 9000;
            list.push_back({Operation::BLOB, key % 64, bytes});
        }
    }
    return list;
}

uint64_t blob_seed(uint64_t number, uint64_t slot)
{
    return number * 64 + slot + 1;
}

uint64_t blob_word(uint64_t seed, uint64_t index)
{
    return (seed + index) * 0x9E3779B97F4A7C15u;
}

} // namespace

void Model::advance_to(uint64_t transactions)
{
    if (transactions < transactions_)
        throw std::logic_error("the model cannot go back");
    for (; transactions_ < transactions; transactions_++)
        for (const Operation &o : operations(seed_, transactions_))
            switch (o.kind) {
            case Operation::INSERT:
                pairs_[o.key] = o.value;
                break;
            case Operation::REMOVE:
                pairs_.erase(o.key);
                break;
            case Operation::BLOB:
                blobs_[(unsigned)o.key] = {o.value, blob_seed(transactions_, o.key)};
                break;
            }
}

std::string Model::compare(const map_ops &ops, const Root &root) const
{
    if (const char *violated = ops.check(root.map))
        return std::string("the structure is broken: ") + violated;
    if (ops.size(root.map) != pairs_.size())
        return "it has " + std::to_string(ops.size(root.map)) + " pairs, not " +
               std::to_string(pairs_.size());
    for (auto [key, value] : pairs_) {
        uint64_t found = 0;
        if (!ops.lookup(root.map, key, &found))
            return "key " + std::to_string(key) + " is missing";
        if (found != value)
            return "key " + std::to_string(key) + " has another value";
    }
    for (unsigned slot = 0; slot < 64; slot++) {
        auto blob = blobs_.find(slot);
        uint64_t bytes = blob == blobs_.end() ? 0 : blob->second.first;
        if (root.blob_bytes[slot] != bytes || (root.blobs[slot] != nullptr) != (bytes > 0))
            return "blob " + std::to_string(slot) + " has another size";
        const uint64_t *words = static_cast<const uint64_t *>(root.blobs[slot]);
        for (uint64_t i = 0; i < bytes / 8; i++)
            if (words[i] != blob_word(blob->second.second, i))
                return "blob " + std::to_string(slot) + " of " + std::to_string(bytes) +
                       " bytes has other contents at byte " + std::to_string(i * 8);
    }
    return "";
}

void run_transaction(const map_ops &ops, pm_container *c, Root *root, uint64_t seed,
                     uint64_t number)
{
    for (const Operation &o : operations(seed, number))
        switch (o.kind) {
        case Operation::INSERT:
            if (ops.insert(c, root->map, o.key, o.value) < 0)
                throw std::runtime_error(pm_errormsg());
            break;
        case Operation::REMOVE:
            if (ops.remove(c, root->map, o.key) < 0)
                throw std::runtime_error(pm_errormsg());
            break;
        case Operation::BLOB: {
            void *&blob = root->blobs[o.key];
            if (pm_free(blob) != 0)
                throw std::runtime_error(pm_errormsg());
            blob = o.value ? pm_malloc(c, o.value) : nullptr;
            if (o.value && !blob)
                throw std::runtime_error(pm_errormsg());
            root->blob_bytes[o.key] = o.value;
            for (uint64_t i = 0; i < o.value / 8; i++)
                static_cast<uint64_t *>(blob)[i] = blob_word(blob_seed(number, o.key), i);
            break;
        }
        }
    root->transactions = number + 1;
}

const map_ops &ops_by_name(const std::string &name)
{
    for (const map_ops *ops : map_ops_all)
        if (name == ops->name)
            return *ops;
    throw std::invalid_argument("no structure called " + name);
}

} // namespace crash
