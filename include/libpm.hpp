// libpm for C++: containers that close themselves, and failures as exceptions. Nothing else: the
// objects in a container are plain C++ objects behind plain pointers. C++17, header only.
//
//     pm::container c("list.pm", {.flags = PM_CREATE});             // C++20's designated fields
//     auto *list = c.root<List>();
//     if (!list) c.set_root(list = c.make<List>());
//     list->push(c.make<Node>(42));
//     c.commit();
//
// The type of an object in a container must be trivially destructible, since nobody runs destructors
// when a program dies. It must have no virtual functions: their table lies elsewhere in another run.
// (Only a container that is PM_MOVABLE follows the table, in a run of the same build. There placement
// new makes objects with virtual functions.)
// Thread-safety and cost are those of the C functions in libpm.h.
#ifndef LIBPM_HPP
#define LIBPM_HPP

#include <libpm.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace pm
{

/// A failure: what() is the message of pm_errormsg(), code() is its errno.
class error : public std::system_error
{
  public:
    error() : std::system_error(errno, std::generic_category()), message_(pm_errormsg()) {}
    /// The message alone. It already has the errno's own text where this text says more.
    const char *what() const noexcept override { return message_.what(); }

  private:
    std::runtime_error message_; // whose copies cannot fail
};

/// pm_options without its first field.
struct options {
    unsigned flags = 0;
    pm_engine engine = PM_ENGINE_AUTO;
    pm_tracker tracker = PM_TRACKER_FAULTS;
    pm_foreign_pointers foreign_pointers = PM_FOREIGN_ERROR;
    pm_freed_pointers freed_pointers = PM_FREED_DATA;
    pm_module_pointers module_pointers = PM_MODULES_KEEP;
    const char *layout = nullptr;
    bool concurrent_stores = false;
    mode_t mode = 0;
    bool check_owner = false;
    uint64_t holes_max = 0;
    uint64_t private_max = 0;
    uint64_t checkpoint_bytes = 0;
    unsigned live_percent = 0;
    uint64_t max_size = 0;
    uint64_t initial_size = 0;
    uint64_t segment_size = 0;
    uint32_t granularity = 0;
};

/// Owns an open container. Movable; a moved-from container is empty, and may only be destroyed or
/// assigned to.
class container
{
  public:
    /// pm_open(); throws pm::error.
    explicit container(const std::string &path, const options &o = {})
    {
        pm_options c{sizeof(pm_options),
                     o.flags,
                     o.engine,
                     o.tracker,
                     o.foreign_pointers,
                     o.freed_pointers,
                     o.module_pointers,
                     o.layout,
                     o.concurrent_stores,
                     o.mode,
                     o.check_owner,
                     o.holes_max,
                     o.private_max,
                     o.checkpoint_bytes,
                     o.live_percent,
                     o.max_size,
                     o.initial_size,
                     o.segment_size,
                     o.granularity};
        container_ = pm_open(path.c_str(), &c);
        if (!container_)
            throw error();
    }
    /// Rolls back uncommitted changes. A failure to close cleanly costs a recovery, no data.
    ~container() { pm_close(container_); }
    container(container &&other) noexcept : container_(std::exchange(other.container_, nullptr)) {}
    /// Closes the container that this one has, as the destructor does.
    container &operator=(container &&other) noexcept
    {
        if (this != &other) {
            pm_close(container_);
            container_ = std::exchange(other.container_, nullptr);
        }
        return *this;
    }

    /// A new T in the container, as `new T(arguments...)`; throws pm::error, or what T's
    /// constructor throws.
    template <class T, class... Arguments> T *make(Arguments &&...arguments)
    {
        static_assert(std::is_trivially_destructible_v<T>, "nobody would run its destructor");
        static_assert(!std::is_polymorphic_v<T>, "its virtual table moves between runs");
        void *memory = check(pm_aligned_alloc(container_, alignof(T), sizeof(T)));
        try {
            return new (memory) T(std::forward<Arguments>(arguments)...);
        } catch (...) {
            pm_free(memory);
            throw;
        }
    }
    /// pm_put(); throws pm::error.
    void *put(const void *data, size_t bytes) { return check(pm_put(container_, data, bytes)); }
    /// Frees what make() or put() returned; nullptr is allowed.
    void destroy(void *object) { check(pm_free(object)); }

    /// The root as a T, or nullptr. libpm does not know its type: see options::layout.
    template <class T> T *root() const { return static_cast<T *>(pm_getroot(container_)); }
    template <class T> void set_root(T *object)
    {
        check(pm_setroot(container_, object, sizeof(T)));
    }

    void commit() { check(pm_commit(container_)); }
    /// pm_commit_async() and pm_wait().
    pm_ticket commit_async()
    {
        pm_ticket ticket = pm_commit_async(container_);
        check(ticket.container ? 0 : -1);
        return ticket;
    }
    static void wait(pm_ticket ticket) { check(pm_wait(ticket)); }
    void rollback() { check(pm_rollback(container_)); }
    void clear() { check(pm_clear(container_)); }
    void reserve(size_t bytes) { check(pm_reserve(container_, bytes)); }
    /// pm_compact(); pointers that are kept outside are invalid afterwards.
    pm_compacted compact()
    {
        pm_compacted result{};
        result.size = sizeof result;
        check(pm_compact(container_, nullptr, nullptr, &result));
        return result;
    }
    /// The same, with `moved(void *from, void *to, size_t bytes)` called for each object that has
    /// moved. `moved` must not throw.
    template <class Moved> pm_compacted compact(Moved moved)
    {
        pm_compacted result{};
        result.size = sizeof result;
        auto tell = [](void *context, void *from, void *to, size_t bytes) noexcept {
            (*static_cast<Moved *>(context))(from, to, bytes);
        };
        check(pm_compact(container_, tell, &moved, &result));
        return result;
    }

    /// pm_copy(): the last commit, to a new file at `path`.
    void copy(const std::string &path) { check(pm_copy(container_, path.c_str(), nullptr, nullptr)); }
    /// The same, with `progress(uint64_t done, uint64_t total)` called meanwhile. `progress` must not
    /// throw; false stops the copy.
    template <class Progress> void copy(const std::string &path, Progress progress)
    {
        auto tell = [](void *context, uint64_t done, uint64_t total) noexcept {
            return (*static_cast<Progress *>(context))(done, total) ? 0 : 1;
        };
        check(pm_copy(container_, path.c_str(), tell, &progress));
    }

    /// For the C functions. Stays owned by this object.
    pm_container *get() const { return container_; }

  private:
    static void check(int result)
    {
        if (result != 0)
            throw error();
    }
    static void *check(void *result) { return result ? result : throw error(); }

    pm_container *container_ = nullptr;
};

} // namespace pm

#endif
