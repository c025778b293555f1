/*
 * Allocation and release of 64-byte objects in durable transactions of 1 and of 1000, objects
 * released in random order. The objects are not stored to: the figure is the allocator and the
 * transaction, not the page faults of the stores. malloc, which makes nothing durable, is the
 * floor.
 */
#include "harness/clock.h"
#include "harness/random.h"
#include "harness/sample.h"
#include "micro/container.h"
#include "micro/micro.h"
#include "micro/pmemobj_ops.h"

#include <cstdlib>
#include <span>

namespace bench
{
namespace
{

constexpr size_t object_size = 64;

/** A peer has three kinds of transaction: to allocate, to free, to do both at once. */
struct Libpm {
    const char *name;
    using object = void *;
    Container container;

    Libpm(const std::string &directory, const Mode &mode)
        : name(mode.name), container(directory, mode)
    {
    }

    void allocate(std::span<object> objects)
    {
        for (object &o : objects)
            o = container.allocate(object_size);
        container.commit();
    }
    void release(std::span<const object> objects)
    {
        for (object o : objects)
            if (pm_free(o) != 0)
                throw std::runtime_error(pm_errormsg());
        container.commit();
    }
    void pairs(size_t count)
    {
        for (size_t i = 0; i < count; i++)
            pm_free(container.allocate(object_size));
        container.commit();
    }
};

struct Pmemobj {
    static constexpr const char *name = "libpmemobj";
    using object = PMEMoid;
    Pool pool;

    explicit Pmemobj(const std::string &directory) : pool(directory + "/pool", 64 << 20) {}

    void allocate(std::span<object> objects)
    {
        if (pmemobj_ops_allocate(pool, objects.data(), objects.size(), object_size) != 0)
            throw std::runtime_error(pmemobj_errormsg());
    }
    void release(std::span<const object> objects)
    {
        if (pmemobj_ops_free(pool, objects.data(), objects.size()) != 0)
            throw std::runtime_error(pmemobj_errormsg());
    }
    void pairs(size_t count)
    {
        if (pmemobj_ops_pairs(pool, count, object_size) != 0)
            throw std::runtime_error(pmemobj_errormsg());
    }
};

struct Malloc {
    static constexpr const char *name = "malloc";
    using object = void *;

    void allocate(std::span<object> objects)
    {
        for (object &o : objects)
            o = malloc(object_size);
    }
    void release(std::span<const object> objects)
    {
        for (object o : objects)
            free(o);
    }
    void pairs(size_t count)
    {
        for (size_t i = 0; i < count; i++) {
            void *volatile o = malloc(object_size); // volatile: else there would be no call
            free(o);
        }
    }
};

/** Reports nothing when `warm_up`. */
template <class Peer> void measure(Peer &peer, size_t batch, size_t total, bool warm_up = false)
{
    std::vector<typename Peer::object> objects(total), shuffled;
    double allocated = elapsed_ns([&] {
        for (size_t at = 0; at < total; at += batch)
            peer.allocate(std::span(objects).subspan(at, batch));
    });
    for (uint32_t i : permutation(static_cast<uint32_t>(total), 1))
        shuffled.push_back(objects[i]);
    double released = elapsed_ns([&] {
        for (size_t at = 0; at < total; at += batch)
            peer.release(std::span(shuffled).subspan(at, batch));
    });
    double at_once = elapsed_ns([&] {
        for (size_t at = 0; at < total; at += batch)
            peer.pairs(batch);
    });
    if (warm_up)
        return;
    auto report = [&](const char *step, double ns) {
        emit({"allocate",
              {step, std::to_string(batch)},
              peer.name,
              ns / static_cast<double>(total),
              "ns",
              total});
    };
    report("allocate", allocated);
    report("free", released);
    report("pair", allocated + released);
    report("pair at once", at_once);
}

template <class Peer> void measure_peer(Peer &&peer)
{
    measure(peer, 1000, 100'000, true);
    measure(peer, 1, 20'000);
    measure(peer, 1000, 100'000);
}

} // namespace

void allocate(const std::string &directory)
{
    for (const Mode &mode : modes)
        measure_peer(Libpm(directory, mode));
    if (with_others) {
        measure_peer(Malloc());
        measure_peer(Pmemobj(directory));
    }
}

} // namespace bench
