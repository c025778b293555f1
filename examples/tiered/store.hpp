// A store of durable objects: a libpm container for records and for values in persistent memory, and tiers
// for the other values. Everything since the last commit is one transaction over all of them.
//
//     tiered::store store("people");
//     auto &all = store.root<tiered::vector<durable::person>>("all");
//     durable::person ada = store.make<durable::person>();
//     ada.set_age(36);
//     all.push_back(ada);
//     store.commit();
//
// A commit syncs the values that were set first, once for all, and then commits the container. After any
// crash each object has all fields as of the last commit that returned.
//
// Under pressure values go down to the next tier of their field, and back up when there is room. A thread in
// the background copies them. The copies take effect at a commit.
//
// Threads. Any number may read. One at a time may change objects, commit or roll back, and nobody reads
// meanwhile. What a getter shows in persistent memory is valid until the next commit or rollback.
//
// Sources: George et al., Tiered Object Storage using Persistent Memory (arXiv 1807.06417); Apache Mnemonic.
#ifndef EXAMPLES_TIERED_STORE_HPP
#define EXAMPLES_TIERED_STORE_HPP

#include "tiered/collections.hpp"
#include "tiered/error.hpp"
#include "tiered/object.hpp"
#include "tiered/records.hpp"
#include "tiered/schema.hpp"

#include <libpm.hpp>

#include <functional>
#include <memory>

namespace tiered
{

struct options {
    bool create = true; // make the store if there is none; else ENOENT
    /// The container's path, for instance on a file system of persistent memory. Default: container.pm in
    /// the store's directory. The path must be the same at every opening.
    std::filesystem::path container{};
    uint64_t max_size = UINT64_C(16) << 30; // of the container
    /// PM_ENGINE_AUTO: redo, or log if the store was made so. PM_ENGINE_LOG: only if the store is new.
    /// PM_ENGINE_UNDO: if the disk is full, a store to an object may end the process.
    pm_engine engine = PM_ENGINE_AUTO;
    /// Bytes of values for tiers by name. Other tiers have no limit but their own.
    std::map<std::string, uint64_t> budgets{};
    /// The user's own tiers by name. A store that has values in one needs it at every opening.
    std::map<std::string, std::shared_ptr<tier>> tiers{};
};

struct usage {
    uint64_t bytes;  // of values in this tier; fields that lie in records do not count
    uint64_t budget; // UINT64_MAX: no limit
};

class store
{
  public:
    /// Open the store in a directory. EBUSY: another process has it open. EMEDIUMTYPE: another version of
    /// the program's types has written it; the message says what differs. Both throw tiered::error.
    explicit store(const std::filesystem::path &directory, const options &options = {});
    /// Rolls back what is not committed.
    ~store();
    store(const store &) = delete;

    /// A new object, whose fields are zero or empty. ENOSPC. Constant time.
    template <class T> T make()
    {
        return T(static_cast<typename T::durable_record_type *>(make(T::durable_type())));
    }
    /// Free an object and its values. No field and no collection may refer to it any more. EINVAL: it is
    /// not an object of this store, or is a field of another one. Constant time.
    template <class T> void destroy(T object)
    {
        destroy(T::durable_type(), object.durable_record());
    }
    /// All objects of a type, in any order.
    template <class T> objects<T> all() const { return objects<T>(first_block(T::durable_type())); }
    /// The object with an id that durable_id() returned in this run or an earlier one. EINVAL: none has it.
    /// Constant time.
    template <class T> T find(uint64_t id) const
    {
        return T(static_cast<typename T::durable_record_type *>(find(T::durable_type(), id)));
    }

    /// The collection of this name; an empty one at first. ENOSPC. EINVAL: it was made as something else.
    /// The reference is valid until the store is closed, unless the transaction that made it is rolled back.
    template <class C> C &root(const std::string &name)
    {
        static_assert(can_last<C>,
                      "a collection in a store can have values, durable types, and strings and "
                      "collections of namespace tiered; no pointers, and nothing with "
                      "another allocator");
        return *static_cast<C *>(
            root(name, typeid(C).name(), sizeof(C),
                 [](void *at, store_root *in) { new (at) C(typename C::allocator_type(in)); }));
    }

    /// Make everything since the last commit durable. After a failure the transaction is as it was: commit
    /// again, or roll back. EIO: a value cannot be written. ENOSPC: the container's log has no room, as the
    /// disk is full.
    void commit();
    /// Undo everything since the last commit. References to what was made since are invalid.
    void rollback();

    /// EINVAL: no tier has this name.
    usage usage_of(const std::string &tier) const;
    /// Change a budget. Values move in the background, or at settle(). EINVAL: no tier has this name.
    void set_budget(const std::string &tier, uint64_t bytes);
    /// Commit, and move values until every tier has what it should have, or has no room for it. The errors
    /// of commit().
    void settle();

    /// Copy the last commit, container and values together, to a new directory. Commits may go on. EEXIST,
    /// ENOSPC. After a failure nothing of the copy is left. Linear in all bytes.
    void backup(const std::filesystem::path &directory);

    /// Write what getters and setters have counted to a file, for `pm-tier place`. All of a program must be
    /// compiled with TIERED_PROFILE, or nothing of it.
    static void write_profile(const std::filesystem::path &path);

    const std::filesystem::path &directory() const;

    // For generated code: set or read a slot of any open store.
    static void set(slot &to, bytes value, const schema &type, unsigned field);
    // False: the value was lost with the process that set it.
    static bool read(const slot &from, std::span<std::byte> value, const schema &type,
                     unsigned field);

    class implementation;

  private:
    friend class use;
    using make_root = void(void *at, store_root *in);

    void *make(const schema &type);
    void destroy(const schema &type, void *record);
    block *first_block(const schema &type) const;
    void *find(const schema &type, uint64_t id) const;
    void *root(const std::string &name, const char *kind, size_t bytes, make_root *make);

    std::unique_ptr<implementation> all_;
};

/// While it lives, collections and strings that name no store are made in this one by this thread.
class use
{
  public:
    explicit use(store &store);
    ~use();
    use(const use &) = delete;

  private:
    store_root *const before_;
};

} // namespace tiered

#endif
