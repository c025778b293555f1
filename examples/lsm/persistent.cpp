// Every node and every value is an object of its own. libpm writes a new object straight home, and logs only
// the pointers that lead to it.
#include "lsm/container_root.hpp"

#include <algorithm>
#include <random>
#include <unistd.h>

namespace lsm
{

namespace
{

constexpr unsigned free_at_once = 100, move_at_once = 100;

// Each size of nodes and values takes a segment at least. In a small container there would be too few.
constexpr uint64_t small_container = UINT64_C(4) << 30, small_segment = 64 << 10;

// At creation.
uint64_t initial_bytes(const Options &options)
{
    switch (options.memtables) {
    case Memtables::mutable_persistent:
    case Memtables::immutable_persistent:
        return 3 * options.persistent_bytes;
    case Memtables::key_lsm:
        return options.persistent_bytes + 3 * options.memtable_bytes;
    default:
        return options.persistent_bytes;
    }
}

pm::container opened(const std::string &path, const Options *creation)
{
    if (!creation && access(path.c_str(), F_OK) != 0)
        throw Error(errno,
                    path + ": cannot open the memtables of the store: " + strerror(errno) +
                        "; restore them from a backup, or if they were moved, say in PLACES where");
    pm::options options;
    options.flags = PM_ANNOUNCED;
    options.tracker = PM_TRACKER_STORES;
    options.layout = "lsm/1";
    if (creation) {
        options.flags |= PM_CREATE;
        options.engine = creation->engine;
        options.max_size = creation->container_bytes;
        options.initial_size = std::min(initial_bytes(*creation), options.max_size);
        if (options.max_size < small_container)
            options.segment_size = small_segment;
    }
    try {
        return pm::container(path, options);
    } catch (const pm::error &error) {
        throw Error(error.code().value(), error.what());
    }
}

} // namespace

// The memory of one list.
class Container::Nodes : public Memory
{
  public:
    Nodes(pm_container *container, size_t bytes) : container_(container) { count(bytes); }

    char *allocate(size_t bytes) override
    {
        auto *at = static_cast<char *>(allocate_in(container_, bytes));
        count(bytes);
        return at;
    }
    void announce(const void *at, size_t bytes) override { announce_stores(at, bytes); }
    void release(void *at, size_t bytes) override
    {
        demand(pm_free(at));
        count(-bytes);
    }

  private:
    pm_container *container_;
};

Container::Container(const std::string &path, const Options *creation)
    : path_(path), container_(opened(path, creation)), root_(container_.root<Root>())
{
    if (root_ && root_->claimed && creation)
        throw Error(EEXIST, path + ": belongs to another store; choose another path");
    if (root_) {
        enlarge_root();
        find_tables();
        return;
    }
    if (!creation)
        throw Error(EBADMSG, path + ": has no memtables; restore it from a backup");
    root_ = static_cast<Root *>(allocate_in(container_.get(), sizeof *root_));
    announce_stores(root_, sizeof *root_);
    std::random_device random;
    *root_ = {uint64_t(random()) << 32 | random(),
              false,
              nullptr,
              nullptr,
              nullptr,
              nullptr,
              creation->container_bytes};
    demand(pm_setroot(container_.get(), root_, sizeof *root_));
    commit();
}

// Of a container that an earlier libpm made.
void Container::enlarge_root()
{
    if (pm_usable_size(root_) >= sizeof(Root))
        return;
    auto *larger = static_cast<Root *>(allocate_in(container_.get(), sizeof(Root)));
    announce_stores(larger, sizeof *larger);
    *larger = {root_->id, root_->claimed, root_->newest, nullptr, nullptr, nullptr, 0};
    demand(pm_setroot(container_.get(), larger, sizeof *larger));
    demand(pm_free(root_));
    commit();
    root_ = larger;
}

uint64_t Container::id() const
{
    return root_->id;
}

uint64_t Container::max_bytes() const
{
    return root_->max_bytes;
}

void Container::claim()
{
    if (root_->claimed)
        return;
    Hold hold(*this);
    announce_stores(root_, sizeof *root_);
    root_->claimed = true;
    commit();
}

void Container::commit()
{
    demand(pm_commit(container_.get()));
    has_links_ = false;
}

// If a commit has failed, the transaction is still open. A rollback would take nodes from under readers.
void Container::commit_links()
{
    if (has_links_)
        commit();
}

void Container::roll_back()
{
    pm_rollback(container_.get());
    has_links_ = false;
}

std::vector<std::shared_ptr<PersistentMemtable>> Container::memtables()
{
    std::vector<std::shared_ptr<PersistentMemtable>> found;
    for (List *list = root_->newest; list; list = list->older)
        found.push_back(std::make_shared<PersistentMemtable>(*this, list, 0));
    return found;
}

std::shared_ptr<PersistentMemtable> Container::begin(Sequence first, size_t filter_bytes)
{
    Hold hold(*this);
    commit_links();
    try {
        Nodes memory(container_.get(), 0);
        auto *list = static_cast<List *>(allocate_in(container_.get(), sizeof(List)));
        announce_stores(list, sizeof *list);
        announce_stores(&root_->newest, sizeof root_->newest);
        *list = {Memtable::make_head(memory), 0, first, first - 1, false, root_->newest};
        root_->newest = list;
        commit();
        return std::make_shared<PersistentMemtable>(*this, list, filter_bytes);
    } catch (...) {
        roll_back(); // no reader has seen anything of it
        throw;
    }
}

void Container::check()
{
    Hold hold(*this);
    demand(pm_check(container_.get()));
}

uint64_t Container::bytes_logged() const
{
    struct pm_stats stats{};
    stats.size = sizeof stats;
    demand(pm_stats(container_.get(), &stats));
    return stats.bytes_logged - stats.bytes_fresh;
}

// Nobody else frees. So what is chosen here is still there when writers have to wait.
bool Container::free_some()
{
    List *list = nullptr; // NULL: a table
    {
        std::lock_guard guard(unneeded_lock_);
        if (unneeded_tables_.empty() && unneeded_.empty())
            return false;
        if (unneeded_tables_.empty())
            list = unneeded_.back();
    }
    if (list)
        Memtable::warm_first(list->head, free_at_once);
    Hold hold(*this);
    if (!list) {
        std::lock_guard guard(unneeded_lock_);
        return free_table();
    }
    commit_links();
    try {
        const bool gone = free_nodes(list);
        commit();
        times_freed_++;
        std::lock_guard guard(unneeded_lock_);
        if (gone)
            std::erase(unneeded_, list);
    } catch (...) {
        roll_back(); // nobody reads them
        throw;
    }
    return true;
}

bool Container::is_freeing()
{
    std::lock_guard guard(unneeded_lock_);
    return !unneeded_.empty() || !unneeded_tables_.empty();
}

// Free the first nodes of a list; at its end, the list: true.
bool Container::free_nodes(List *list)
{
    Nodes memory(container_.get(), 0);
    if (Memtable::free_first(memory, list->head, free_at_once) == free_at_once)
        return false;
    List **to = &root_->newest;
    while (*to != list)
        to = &(*to)->older;
    announce_stores(to, sizeof *to);
    *to = list->older;
    demand(pm_free(list->head));
    demand(pm_free(list));
    return true;
}

PersistentMemtable::PersistentMemtable(Container &container, Container::List *list,
                                       size_t filter_bytes)
    : Memtable(std::make_unique<Container::Nodes>(container.container_.get(), list->bytes),
               list->head, filter_bytes),
      container_(container), list_(list)
{
}

PersistentMemtable::~PersistentMemtable()
{
    std::lock_guard guard(container_.unneeded_lock_);
    if (unneeded_)
        container_.unneeded_.push_back(list_);
}

Sequence PersistentMemtable::first() const
{
    return list_->first;
}

Sequence PersistentMemtable::last() const
{
    return list_->last;
}

bool PersistentMemtable::synced() const
{
    return list_->synced;
}

void PersistentMemtable::drop()
{
    Container::Hold hold(container_);
    commit(list_->first - 1, false);
    set_unneeded();
}

// Readers stand on what was linked, so it cannot be rolled back. Each pointer is in a cache line, which must
// be logged, and so is the list.
void PersistentMemtable::reserve(size_t links)
{
    demand(pm_reserve(container_.container_.get(), (links + 1) * size_t{64} + sizeof *list_));
    container_.has_links_ = true;
}

// A node that moves is taken from before the nodes that lead to it, and linked elsewhere. Nobody else changes
// these lists. So the places are searched first, and writers wait for the changes only.
bool PersistentMemtable::take_some(PersistentMemtable &newer, PersistentMemtable &grave,
                                   Sequence oldest)
{
    warm(newer, move_at_once);
    Container::Hold hold(container_);
    container_.commit_links();
    reserve(2 * move_at_once * (2 * height_max + 2));
    for (PersistentMemtable *list : {this, &newer, &grave})
        announce_stores(list->list_, sizeof *list->list_);
    try {
        move_nodes(newer, *this, grave, oldest, move_at_once, container_.moves_);
    } catch (...) { // the medium has failed: no node may be in neither list
        container_.roll_back();
        move_nodes(newer, *this, grave, oldest, 0, container_.moves_); // readers search anew
        throw;
    }
    for (PersistentMemtable *list : {this, &newer, &grave})
        list->list_->bytes = list->bytes();
    const Container::List before = *list_, newer_before = *newer.list_;
    const bool is_last = newer.empty();
    if (is_last) {
        list_->last = newer.list_->last;
        list_->synced |= newer.list_->synced;
        newer.list_->last = newer.list_->first - 1;
    }
    try {
        container_.commit();
    } catch (...) { // readers have seen the nodes where they are now, so there they stay
        *list_ = before;
        *newer.list_ = newer_before;
        throw;
    }
    return is_last;
}

void PersistentMemtable::commit(Sequence last, bool synced)
{
    announce_stores(list_, sizeof *list_);
    list_->bytes = bytes();
    list_->last = last;
    list_->synced |= synced;
    container_.commit();
}

} // namespace lsm
