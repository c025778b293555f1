#include "simulation/workload.hpp"

#include "sim/explorer.hpp"
#include "sim/random.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace simulation
{

using sim::mix;
using sim::Random;

// clang-format off
static const Profile profiles[] = {
    {"small",      48,  1,   3, 45,  0,  0, BLOBS,  0,      0,  5, 3,  0},
    {"mixed",     200,  1,   6, 40,  8,  5, BLOBS, 67,   6000, 10, 5,  3},
    {"large",     100,  1,   4, 35, 30, 10, BLOBS, 67, 200000, 10, 5,  5},
    {"bulk",     2000, 60, 200, 30,  2,  0, BLOBS, 67,   3000, 10, 2,  2},
    {"allocator",   8,  4,  24,  3, 85, 10, BLOBS, 67,   3000, 15, 5,  5},
    // Slabs become empty, and the log takes them.
    {"slabs",       8,  1,   6,  3, 45, 50,     6, 60, 120000,  5, 30, 3},
    // The log grows and shrinks, goes round, and takes what others had.
    {"rewrite",    50,  1,   3, 10, 20, 55,     4, 10, 200000, 10, 5, 10},
    // See reclaim().
    {"reclaim",     1,  0,   0,  0,  0,  0, BLOBS,  0,      0,  0, 0,  0, true},
    {"values",      8,  1,   5,  5, 70, 15,     3, 20, 400000, 25, 5,  5, false, true},
    // See waves().
    {"waves",       1,  0,   0,  0,  0,  0, BLOBS,  0,      0,  5, 0,  0, false, false, true},
};
// clang-format on

const Profile &profile_by_name(const std::string &name)
{
    for (const Profile &profile : profiles)
        if (name == profile.name)
            return profile;
    throw std::invalid_argument("no profile called " + name);
}

const map_ops &structure_by_name(const std::string &name)
{
    for (const map_ops *ops : map_ops_all)
        if (name == ops->name)
            return *ops;
    throw std::invalid_argument("no structure called " + name);
}

struct Operation {
    enum Kind { BEGIN, CLEAR, ROLLBACK, ROOT, INSERT, REMOVE, BLOB, EDIT, VISIT, END } kind;
    uint64_t key;   // or the blob's slot
    uint64_t value; // or the seed of the blob's contents; END: transactions
    uint64_t bytes; // of the blob; 0: free it. EDIT, VISIT: words, unless it has less; 0: all
};

Workload::Workload(const map_ops &structure, const Profile &profile, uint64_t seed)
    : ops_(structure), profile_(profile), seed_(seed)
{
    states_.emplace_back();
}

// In turn: two slabs are filled; emptied but for an object each, so that the record has words of
// their bitmaps; one is given back; and the log takes it, for every time more pages are stored to.
static void reclaim(uint64_t number, Random &random, std::vector<Operation> &list)
{
    constexpr uint64_t object = 8000, objects = 14, large = 480000, page_words = 512;
    if (number == 0) {
        list.push_back({Operation::BLOB, 0, random(), large});
        return;
    }
    uint64_t cycle = (number - 1) / 4;
    switch (number % 4) {
    case 1:
        for (uint64_t slot = 1; slot <= objects; slot++)
            list.push_back({Operation::BLOB, slot, random(), object});
        break;
    case 2:
        for (uint64_t slot = 2; slot < objects; slot++)
            list.push_back({Operation::BLOB, slot, 0, 0});
        break;
    case 3:
        for (uint64_t slot : {UINT64_C(1), objects})
            list.push_back({Operation::BLOB, slot, 0, 0});
        break;
    default:
        list.push_back({Operation::EDIT, 0, random(), (60 + 15 * cycle) * page_words});
    }
}

// In turn: large blobs come; they go; and another one is changed again and again. So chunks of the log are taken,
// but not all that are free.
static void waves(uint64_t number, Random &random, std::vector<Operation> &list)
{
    constexpr uint64_t bytes = 60000, large = 200000, large_blobs = 8, cycle = 48;
    if (number == 0)
        list.push_back({Operation::BLOB, 0, random(), bytes});
    else if (number % cycle <= 2)
        for (uint64_t slot = 1; slot <= large_blobs; slot++)
            list.push_back({Operation::BLOB, slot, random(), number % cycle == 1 ? large : 0});
    else
        list.push_back({Operation::EDIT, 0, random(), 0});
}

std::vector<Operation> Workload::operations(uint64_t number) const
{
    Random random(mix(seed_) + number);
    std::vector<Operation> list;
    auto some = [&] {
        uint64_t count = profile_.operations_min +
                         random.below(profile_.operations_max - profile_.operations_min + 1);
        for (uint64_t i = 0; i < count; i++) {
            uint64_t dice = random.below(100), key = random.below(profile_.keys), value = random();
            if (dice < profile_.removes) {
                list.push_back({Operation::REMOVE, key, 0, 0});
            } else if (dice < profile_.removes + profile_.blobs) {
                uint64_t most = random.below(100) < profile_.small ? 200 : profile_.blob_max;
                uint64_t bytes = random.below(3) ? 1 + random.below(most) : 0;
                list.push_back({Operation::BLOB, random.below(profile_.slots), value, bytes});
            } else if (dice < profile_.removes + profile_.blobs + profile_.edits) {
                list.push_back({random.below(4) ? Operation::EDIT : Operation::VISIT,
                                random.below(profile_.slots), value,
                                random.below(2) ? 1 + random.below(64) : 0});
            } else {
                list.push_back({Operation::INSERT, key, value, 0});
            }
        }
    };
    if (number == 0) {
        list.push_back({Operation::BEGIN, 0, 0, 0});
    } else if (random.below(100) < profile_.clears) {
        list.push_back({Operation::CLEAR, 0, 0, 0});
        list.push_back({Operation::BEGIN, 0, 0, 0});
    } else if (random.below(100) < profile_.rollbacks) {
        some();
        list.push_back({Operation::ROLLBACK, 0, 0, 0});
    }
    if (random.below(100) < profile_.roots)
        list.push_back({Operation::ROOT, 0, 0, 0});
    some();
    if (profile_.reclaims)
        reclaim(number, random, list);
    if (profile_.waves)
        waves(number, random, list);
    list.push_back({Operation::END, 0, number + 1, 0});
    return list;
}

// ---- on the container --------------------------------------------------------------------------

static void *require(void *p)
{
    if (!p)
        throw sim::Violation(std::string("a call failed: ") + pm_errormsg());
    return p;
}

static void require(int result)
{
    if (result < 0)
        throw sim::Violation(std::string("a call failed: ") + pm_errormsg());
}

// The words [first, end) of a blob.
static void fill(void *blob, uint64_t first, uint64_t end, uint64_t seed)
{
    for (uint64_t i = first; i < end; i++)
        static_cast<uint64_t *>(blob)[i] = seed++;
}

Workload::Edit Workload::edit_of(const Operation &o, uint64_t bytes)
{
    uint64_t words = bytes / 8, count = o.bytes == 0 || o.bytes > words ? words : o.bytes;
    uint64_t first = mix(o.value) % (words - count + 1);
    return {first, first + count, o.value};
}

static Root *root_of(pm_container *c)
{
    return static_cast<Root *>(pm_getroot(c));
}

void Workload::begin(pm_container *c) const
{
    Root *root = static_cast<Root *>(require(pm_calloc(c, 1, sizeof(Root))));
    root->map = require(ops_.create(c));
    require(pm_setroot(c, root, 0));
}

static void move_root(pm_container *c)
{
    Root *root = static_cast<Root *>(require(pm_malloc(c, sizeof(Root)))), *old = root_of(c);
    *root = *old;
    require(pm_setroot(c, root, 0));
    require(pm_free(old));
}

static void *store(pm_container *c, uint64_t bytes, uint64_t seed)
{
    void *blob = require(pm_malloc(c, bytes));
    fill(blob, 0, bytes / 8, seed);
    return blob;
}

static void *put(pm_container *c, uint64_t bytes, uint64_t seed)
{
    std::vector<uint64_t> words(bytes / 8 + 1);
    fill(words.data(), 0, bytes / 8, seed);
    return require(pm_put(c, words.data(), bytes));
}

static void set_blob(pm_container *c, uint64_t slot, uint64_t bytes, uint64_t seed, bool puts)
{
    Root *root = root_of(c);
    require(pm_free(root->blobs[slot]));
    root->blobs[slot] = nullptr;
    if (bytes > 0)
        root->blobs[slot] = puts ? put(c, bytes, seed) : store(c, bytes, seed);
    root->blob_bytes[slot] = bytes;
    root->blob_seeds[slot] = seed;
}

// Change words, let others look, and change them back: what they were in between may be what the
// medium has when they are as they were.
static void visit(uint64_t *words, uint64_t first, uint64_t end, uint64_t seed,
                  const std::function<void()> &pause)
{
    std::vector<uint64_t> before(words + first, words + end);
    fill(words, first, end, seed);
    pause();
    std::copy(before.begin(), before.end(), words + first);
}

void Workload::perform(pm_container *c, const Operation &o,
                       const std::function<void()> &pause) const
{
    switch (o.kind) {
    case Operation::BEGIN:
        begin(c);
        break;
    case Operation::CLEAR:
        require(pm_clear(c));
        break;
    case Operation::ROLLBACK:
        require(pm_rollback(c));
        break;
    case Operation::ROOT:
        move_root(c);
        break;
    case Operation::INSERT:
        require(ops_.insert(c, root_of(c)->map, o.key, o.value));
        break;
    case Operation::REMOVE:
        require(ops_.remove(c, root_of(c)->map, o.key));
        break;
    case Operation::BLOB:
        set_blob(c, o.key, o.bytes, o.value, profile_.puts);
        break;
    case Operation::EDIT:
    case Operation::VISIT: {
        Edit e = edit_of(o, root_of(c)->blob_bytes[o.key]);
        uint64_t *words = static_cast<uint64_t *>(root_of(c)->blobs[o.key]);
        if (o.kind == Operation::EDIT)
            fill(words, e.first, e.end, e.seed);
        else
            visit(words, e.first, e.end, e.seed, pause);
        break;
    }
    case Operation::END:
        root_of(c)->transactions = o.value;
        break;
    }
}

void Workload::run(pm_container *c, uint64_t number, const std::function<void()> &pause) const
{
    for (const Operation &o : operations(number)) {
        perform(c, o, pause);
        pause();
    }
}

// ---- on the model ------------------------------------------------------------------------------

void Workload::perform(State &state, const Operation &o)
{
    switch (o.kind) {
    case Operation::CLEAR:
        state = {};
        break;
    case Operation::INSERT:
        state.pairs[o.key] = o.value;
        break;
    case Operation::REMOVE:
        state.pairs.erase(o.key);
        break;
    case Operation::BLOB:
        state.blobs[o.key] = {o.bytes, o.value, {}};
        break;
    case Operation::EDIT: {
        Blob &b = state.blobs[o.key];
        Edit e = edit_of(o, b.bytes);
        if (e.first == 0 && e.end == b.bytes / 8)
            b.edits.clear(); // all of them are hidden
        b.edits.push_back(e);
        break;
    }
    default: // ROLLBACK is dealt with by state(), and a VISIT changes nothing
        break;
    }
}

const Workload::State &Workload::state(uint64_t transactions)
{
    while (states_.size() <= transactions) {
        State next = states_.back();
        for (const Operation &o : operations(states_.size() - 1)) {
            if (o.kind == Operation::ROLLBACK)
                next = states_.back();
            else
                perform(next, o);
        }
        states_.push_back(std::move(next));
    }
    return states_[transactions];
}

void Workload::stamp(pm_container *c)
{
    Root *root = root_of(c);
    if (!root->stamp)
        root->stamp = static_cast<uint64_t *>(require(pm_malloc(c, STAMP_WORDS * 8)));
    root->attempts++;
    std::fill_n(root->stamp, STAMP_WORDS, root->attempts);
}

uint64_t Workload::transactions(pm_container *c)
{
    const Root *root = root_of(c);
    return root ? root->transactions : 0;
}

static int collect(uint64_t key, uint64_t value, void *pairs)
{
    static_cast<std::vector<std::pair<uint64_t, uint64_t>> *>(pairs)->emplace_back(key, value);
    return 0;
}

std::vector<uint64_t> Workload::contents(const Blob &blob)
{
    std::vector<uint64_t> words(blob.bytes / 8);
    fill(words.data(), 0, words.size(), blob.seed);
    for (const Edit &e : blob.edits)
        fill(words.data(), e.first, e.end, e.seed);
    return words;
}

std::string Workload::compare(pm_container *c, uint64_t transactions)
{
    const Root *root = root_of(c);
    if (!root)
        return transactions == 0 ? "" : "the root is gone";
    const State &expected = state(transactions);
    if (const char *violated = ops_.check(root->map))
        return std::string("the structure is broken: ") + violated;
    std::vector<std::pair<uint64_t, uint64_t>> pairs;
    ops_.walk(root->map, collect, &pairs);
    if (!ops_.ordered)
        std::sort(pairs.begin(), pairs.end());
    if (!std::equal(pairs.begin(), pairs.end(), expected.pairs.begin(), expected.pairs.end(),
                    [](const auto &a, const auto &b) {
                        return a.first == b.first && a.second == b.second;
                    }))
        return "the pairs are not those after transaction " + std::to_string(transactions);
    if (root->stamp && std::count(root->stamp, root->stamp + STAMP_WORDS, root->attempts) !=
                           (ptrdiff_t)STAMP_WORDS)
        return "the stamp is of several attempts to commit";
    for (unsigned slot = 0; slot < BLOBS; slot++) {
        uint64_t bytes = expected.blobs[slot].bytes;
        const uint64_t *words = static_cast<const uint64_t *>(root->blobs[slot]);
        if ((words != nullptr) != (bytes > 0) || root->blob_bytes[slot] != bytes)
            return "blob " + std::to_string(slot) + " has another size";
        std::vector<uint64_t> wanted = contents(expected.blobs[slot]);
        if (wanted.empty() || memcmp(words, wanted.data(), wanted.size() * 8) == 0)
            continue;
        for (uint64_t i = 0; i < wanted.size(); i++)
            if (words[i] != wanted[i])
                return "blob " + std::to_string(slot) + " has other contents at byte " +
                       std::to_string(i * 8);
    }
    return "";
}

} // namespace simulation
