// The stores that are open. A slot or a collection finds its store by its address.
#include "tiered/registry.hpp"
#include "tiered/generated.hpp"

#include <algorithm>
#include <cerrno>

namespace tiered
{
namespace
{

// Readers need no lock.
constexpr size_t open_max = 64;
std::mutex registry_lock;
std::atomic<store::implementation *> registry[open_max];
std::atomic<size_t> registry_end;
std::atomic<store_root *> last_opened;
thread_local store_root *used = nullptr;

} // namespace

void enter(store::implementation *all)
{
    std::lock_guard guard(registry_lock);
    for (size_t i = 0; i < open_max; i++)
        if (!registry[i]) {
            registry[i] = all;
            registry_end = std::max(registry_end.load(), i + 1);
            last_opened = all->root;
            return;
        }
    throw error(EMFILE, all->directory.string() + ": " + std::to_string(open_max) +
                            " stores are open; close one first");
}

void leave(store::implementation *all)
{
    std::lock_guard guard(registry_lock);
    store_root *other = nullptr;
    for (std::atomic<store::implementation *> &entry : registry)
        if (entry == all)
            entry = nullptr;
        else if (entry)
            other = entry.load()->root;
    if (last_opened == all->root)
        last_opened = other;
}

store::implementation &open_at(const void *address)
{
    for (size_t i = 0; i < registry_end.load(std::memory_order_acquire); i++) {
        store::implementation *all = registry[i].load(std::memory_order_acquire);
        if (all && all->has(address))
            return *all;
    }
    throw error(EINVAL,
                "an object or a collection is used that belongs to no open store; open its store "
                "before, and close it after");
}

void demand_store(const void *holder, const void *object)
{
    const store::implementation &all = open_at(holder);
    if (object && !all.has(object))
        throw error(EINVAL, all.directory.string() +
                                ": a field cannot refer to an object of another store; make one "
                                "here, and copy the fields");
}

store_root *use_root(store_root *root)
{
    return std::exchange(used, root);
}

store_root *current_root()
{
    return used ? used : last_opened.load();
}

void *allocate_in(store_root *root, size_t bytes)
{
    return open_at(root).allocate(bytes);
}

void release(void *memory) noexcept
{
    pm_free(memory);
}

} // namespace tiered
