// Structures in C++ whose pointers the pass records: what templates do is compiled with the
// program.
#include "recorded.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace
{

pm_container *container; // the one that is being built

template <class T> struct Allocator {
    using value_type = T;
    Allocator() = default;
    template <class U> Allocator(const Allocator<U> &) {}
    T *allocate(size_t count) { return static_cast<T *>(make_bytes(container, count * sizeof(T))); }
    void deallocate(T *p, size_t) { pm_free(p); }
    bool operator==(const Allocator &) const = default;
};
template <class T> using Vector = std::vector<T, Allocator<T>>;

struct Freed {
    void operator()(void *p) const { pm_free(p); }
};

struct Item {
    long number;
    Item *friends[2];
    std::optional<Item *> best;
    std::unique_ptr<long, Freed> owned;
    std::pair<const char *, double> pair;
};

struct Root {
    Vector<Item *> items;
    Vector<Item> values;
    std::array<std::atomic<Item *>, 3> seen;
};

// The words of a vector, as libstdc++ has them.
template <class T> void declare_vector(Vector<T> &vector)
{
    for (int i = 0; i < 3; i++)
        has_pointer(reinterpret_cast<char **>(&vector) + i);
}

void declare(Item &item)
{
    for (Item *&other : item.friends)
        has_pointer(&other);
    has_pointer(&item.best);
    /* Behind its pointer and flag it has what was on the stack, which may look like a pointer. */
    memset(reinterpret_cast<char *>(&item.best) + sizeof(Item *) + 1, 0, sizeof(Item *) - 1);
    has_pointer(&item.owned);
    has_pointer(&item.pair);
}

} // namespace

STRUCTURE(objects)
static void build_objects(pm_container *c, int step)
{
    container = c;
    auto *root = static_cast<Root *>(pm_getroot(c));
    if (step == 0) {
        root = new (make_bytes(c, sizeof(Root))) Root();
        pm_setroot(c, root, 0);
    }
    for (long i = 0; i < 30; i++) {
        auto *item = new (make_bytes(c, sizeof(Item))) Item{i * 7919 % 101, {}, {}, {}, {}};
        item->owned.reset(static_cast<long *>(make_bytes(c, sizeof(long))));
        if (!root->items.empty()) {
            item->friends[0] = root->items[i % root->items.size()];
            item->friends[1] = root->items.back();
            item->best = root->items.front();
        }
        item->pair = {reinterpret_cast<const char *>(&item->number), 1.5};
        if (i % 2)
            std::swap(item->friends[0], item->friends[1]);
        root->items.push_back(item);
        Item value{i, {item, item}, item, {}, {item->pair}};
        value.owned = std::move(item->owned);
        root->values.push_back(std::move(value));
        root->seen[i % 3] = item;
    }
    std::sort(root->items.begin(), root->items.end(),
              [](const Item *a, const Item *b) { return a->number < b->number; });
    std::reverse(root->values.begin(), root->values.end());
    declare_vector(root->items);
    declare_vector(root->values);
    for (Item *&item : root->items) {
        has_pointer(&item);
        declare(*item);
    }
    for (Item &value : root->values)
        declare(value);
    for (auto &seen : root->seen)
        has_pointer(&seen);
}
static const char *check_objects(pm_container *c)
{
    const auto *root = static_cast<const Root *>(pm_getroot(c));
    REQUIRE_THAT_IT_HAS(root->items.size() == 30 * STEPS && root->values.size() == 30 * STEPS);
    for (const Item *item : root->items) {
        REQUIRE_THAT_IT_HAS(pm_contains(c, item) && !item->owned);
        REQUIRE_THAT_IT_HAS(item->pair.first == (const char *)&item->number);
    }
    for (const Item &value : root->values) {
        REQUIRE_THAT_IT_HAS(pm_contains(c, value.friends[0]) && pm_contains(c, *value.best));
        REQUIRE_THAT_IT_HAS(pm_contains(c, value.owned.get()) && *value.owned == 0);
    }
    for (const auto &seen : root->seen)
        REQUIRE_THAT_IT_HAS(pm_contains(c, seen.load()));
    return nullptr;
}

// Variants of a pointer and a smaller number: the optimiser keeps each in several variables.
namespace
{

template <class Number> using Either = std::variant<Item *, Number>;

volatile double sum;

template <class Number> [[gnu::noinline]] void copy(Either<Number> *to, const Either<Number> *from)
{
    Either<Number> value = *from;
    if (auto *number = std::get_if<1>(&value))
        sum = *number;
    *to = value;
}

template <class Number> struct Eithers {
    Either<Number> made[6], copied[6];

    void build(Item *item, int step)
    {
        for (int i = 0; i < 6; i++) {
            bool is_pointer = (i + step) % 2;
            if (is_pointer)
                made[i] = item;
            else {
#ifndef __OPTIMIZE__ // through memory, where libpm does not know of the rest of a pointer
                made[i] = nullptr;
#endif
                made[i] = static_cast<Number>(number(i));
            }
            copy(&copied[i], &made[i]);
            for (auto *either : {&made[i], &copied[i]}) {
                has_data(either, sizeof *either);
                if (is_pointer)
                    has_pointer(either);
            }
        }
    }
    bool check(const Item *item) const
    {
        for (int i = 0; i < 6; i++)
            if (auto *pointer = std::get_if<0>(&copied[i]); pointer && *pointer != item)
                return false;
        return true;
    }
};

struct Variants {
    Eithers<bool> bools;
    Eithers<char> chars;
    Eithers<short> shorts;
    Eithers<int> ints;
    Eithers<float> floats;
    Eithers<double> doubles;
    Item item;
};

} // namespace

STRUCTURE(variants)
static void build_variants(pm_container *c, int step)
{
    auto *r = static_cast<Variants *>(root_bytes(c, step, sizeof(Variants)));
    r->bools.build(&r->item, step);
    r->chars.build(&r->item, step);
    r->shorts.build(&r->item, step);
    r->ints.build(&r->item, step);
    r->floats.build(&r->item, step);
    r->doubles.build(&r->item, step);
}
static const char *check_variants(pm_container *c)
{
    const auto *r = static_cast<const Variants *>(pm_getroot(c));
    REQUIRE_THAT_IT_HAS(r->bools.check(&r->item) && r->chars.check(&r->item));
    REQUIRE_THAT_IT_HAS(r->shorts.check(&r->item) && r->ints.check(&r->item));
    REQUIRE_THAT_IT_HAS(r->floats.check(&r->item) && r->doubles.check(&r->item));
    return nullptr;
}
