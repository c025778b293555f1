/*
 * Small transactions: 1 to 10 updates of 8 B to 1 KiB in a committed array of 32 MiB, each
 * transaction durable. Hot: every transaction updates the same places. Cold: each time other ones,
 * at random. libpm is told nothing about the stores; libpmemobj is told each range beforehand.
 */
#include "harness/clock.h"
#include "harness/random.h"
#include "harness/sample.h"
#include "micro/container.h"
#include "micro/micro.h"
#include "micro/pmemobj_ops.h"

#include <cstring>
#include <deque>
#include <optional>

namespace bench
{
namespace
{

constexpr size_t array_size = 32 << 20;
constexpr size_t largest = 1024;
constexpr size_t transactions = 2000;
constexpr size_t warm_up = 20;

struct Case {
    bool hot;
    size_t updates, length;
};

struct Libpm {
    const char *name;
    Container container;
    char *array;

    Libpm(const std::string &directory, const Mode &mode)
        : name(mode.name), container(directory, mode)
    {
        array = static_cast<char *>(container.allocate(array_size));
        memset(array, 0, array_size);
        container.commit();
    }
    void operator()(const size_t *offsets, size_t count, size_t length, int byte)
    {
        for (size_t i = 0; i < count; i++)
            memset(array + offsets[i], byte, length);
        container.commit();
    }
};

struct Pmemobj {
    static constexpr const char *name = "libpmemobj";
    Pool pool;
    PMEMoid array;

    explicit Pmemobj(const std::string &directory) : pool(directory + "/pool", 3 * array_size)
    {
        array = pool.allocate(array_size);
        pmemobj_memset_persist(pool, pmemobj_direct(array), 0, array_size);
    }
    void operator()(const size_t *offsets, size_t count, size_t length, int byte)
    {
        if (pmemobj_ops_update(pool, array, offsets, count, length, byte) != 0)
            throw std::runtime_error(pmemobj_errormsg());
    }
};

/** Where each transaction stores: places that do not overlap within one transaction. */
std::vector<size_t> choose_offsets(const Case &c)
{
    constexpr size_t slots = array_size / largest;
    std::vector<size_t> offsets;
    auto order = permutation(slots, c.updates * largest + c.length);
    for (size_t i = 0; i < (warm_up + transactions) * c.updates; i++)
        offsets.push_back(largest * order[(c.hot ? i % c.updates : i) % slots]);
    return offsets;
}

template <class Peer> void measure(Peer &peer, const Case &c)
{
    auto offsets = choose_offsets(c);
    auto run = [&](size_t from, size_t to) {
        for (size_t t = from; t < to; t++)
            peer(&offsets[t * c.updates], c.updates, c.length, static_cast<int>(t & 0xff));
    };
    run(0, warm_up);
    double ns = elapsed_ns([&] { run(warm_up, warm_up + transactions); });
    emit({"update",
          {c.hot ? "hot" : "cold", std::to_string(c.updates), std::to_string(c.length) + " B"},
          peer.name,
          ns / transactions,
          "ns",
          transactions});
}

} // namespace

void update(const std::string &directory)
{
    std::deque<Libpm> libpm;
    for (const Mode &mode : modes)
        libpm.emplace_back(directory, mode);
    std::optional<Pmemobj> pmemobj;
    if (with_others)
        pmemobj.emplace(directory);
    for (bool hot : {true, false})
        for (size_t length : {8, 64, 1024})
            for (size_t updates : {1, 2, 4, 10}) {
                for (Libpm &peer : libpm)
                    measure(peer, {hot, updates, length});
                if (pmemobj)
                    measure(*pmemobj, {hot, updates, length});
            }
}

} // namespace bench
