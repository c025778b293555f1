// The process in which a call fails: it does the workload, checks at each step what it sees, and
// stops with a message when that is wrong. On standard output it says how far it got.
#include "common/format.hpp"
#include "common/process.hpp"
#include "faults/case.hpp"
#include "faults/workload.hpp"
#include "simulation/addresses.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace faults;

namespace
{

Place place_of(const std::string &name)
{
    return {name == "file", name == "old"};
}

// The transaction is to be done again from its start.
struct Restart {
};

class Session
{
  public:
    Session(const std::string &directory, const Case &what)
        : path_(directory + "/c.pm"), copy_(directory + "/copy.pm"), directory_(directory),
          case_(what)
    {
        arm(what.fault, place_of(what.place));
        descriptors_ = entries_of("/proc/self/fd");
    }

    void run()
    {
        open(PM_CREATE | PM_EXCLUSIVE);
        transact(1);
        transact(2);
        close();
        open();
        transact(3);
        roll_back();
        for (uint64_t version = 4; version <= 8; version++)
            transact(version);
        check();
        copy();
        compact();
        transact_together(10);
        restart_as_after_a_crash();
        open(PM_READONLY);
        close();
        open();
        transact(VERSIONS);
        close();
        test::patch_file(path_, FORMAT_HEADER_B, "damaged", 7);
        open();
        close();
        std::string problem = judge(path_, options_in(case_.place, 0), VERSIONS, VERSIONS);
        require(problem.empty(), problem);
        remove();
    }

  private:
    const std::string path_, copy_, directory_;
    const Case case_;
    uint64_t descriptors_; // open when no container is
    pm_container *c_ = nullptr;
    bool failed_ = false, copying_ = false;
    Model committed_, now_; // at the last commit; in the open transaction
    uint64_t durable_ = 0, attempted_ = 0;

    void require(bool condition, const std::string &what)
    {
        test::child_require(condition, what.c_str());
    }

    Root *root() { return static_cast<Root *>(pm_getroot(c_)); }

    // Of somebody else are, from the second opening on, the addresses that the pointers mean.
    bool elsewhere() const { return case_.place == "elsewhere"; }

    // What the public functions show is as the model says.
    void verify(const Model &model)
    {
        Window window("an access");
        std::string difference = model.compare(root());
        require(difference.empty(), difference);
    }

    // ---- calls ----

    // Call a public function, which fails only when a call of the system did.
    template <typename Call> bool attempt(const char *name, Call call)
    {
        bool done;
        {
            Window window(name);
            done = call();
        }
        if (done)
            return true;
        int error = errno;
        require(fired() && !failed_, std::string(name) + " failed without a reason");
        failed_ = true;
        test::say("failed");
        check_message(name, error);
        return false;
    }

    template <typename Call> void must(const char *name, Call call)
    {
        const std::string who = name;
        struct pm_stats before = test::stats(c_);
        while (!attempt(name, call)) {
            if (is_sticky())
                reopen_after_sticky_error();
            verify(now_);
            require(pm_check(c_) == 0, "pm_check() after a failed call");
            struct pm_stats after = test::stats(c_);
            // An object that could not be opened is freed; its slab remains, for the next.
            require(after.epoch == before.epoch && after.segments_data <= before.segments_data + 1,
                    who + " failed and changed something");
            require(after.file_bytes == fs::file_size(path_),
                    who + " failed and left the file longer than its segments");
            stop_if_asked();
            if (case_.then == "rollback")
                restart();
        }
    }

    void stop_if_asked()
    {
        if (case_.then == "stop")
            _exit(STOPPED);
    }

    [[noreturn]] void restart()
    {
        must("pm_rollback", [&] { return pm_rollback(c_) == 0; });
        now_ = committed_;
        verify(now_);
        throw Restart();
    }

    void check_message(const char *name, int error)
    {
        std::string message = pm_errormsg(), told = std::string(name) + " says: " + message;
        int cause = case_.fault.error;
        require(cause != EINTR, told + ": an interruption is no reason");
        int expected = c_ && is_sticky() ? EIO : cause;
        if (case_.fault.call == "fcntl" && (cause == EAGAIN || cause == EACCES))
            expected = EBUSY;
        // What is documented of memory, whatever the kernel says of it.
        if ((case_.fault.call == "mmap" || case_.fault.call == "munlock" ||
             case_.fault.call == "mprotect") &&
            error == ENOMEM)
            expected = ENOMEM;
        if (view_is_full(case_) && error == ENOMEM)
            expected = ENOMEM;
        require(error == expected, told + ": errno is " + error_name(error));
        require(has_one_of(message, path_ + "|" + copy_), told + ": names no file");
        for (const Call &call : calls)
            if (call.name == case_.fault.call)
                require(has_one_of(message, call.words), told + ": does not say what failed");
        bool in_words = error == EBUSY || (c_ && is_sticky());
        require(in_words || has_one_of(message, strerror(error)), told + ": does not say why");
        static const std::map<int, const char *> remedies = {{ENOSPC, "free"},
                                                             {EDQUOT, "free"},
                                                             {EMFILE, "ulimit"},
                                                             {ENFILE, "close"},
                                                             {ENOMEM, "max_size|free|ulimit"},
                                                             {EFBIG, "ulimit"}};
        auto remedy = remedies.find(error);
        require(remedy == remedies.end() || has_one_of(message, remedy->second),
                told + ": does not say what to do");
    }

    // A failed sync leaves nobody knowing what is on the medium, unless it was of a copy.
    bool is_sticky() const
    {
        return !copying_ && case_.place == "file" && test::mode() != "undo" &&
               (case_.fault.call == "fsync" || case_.fault.call == "fdatasync");
    }

    [[noreturn]] void reopen_after_sticky_error()
    {
        verify(now_);
        require(pm_commit(c_) == -1 && test::failed_with(EIO, {path_.c_str()}), "a commit");
        require(!pm_malloc(c_, 10) && test::failed_with(EIO, {path_.c_str()}), "an allocation");
        require(pm_close(c_) == -1 && test::failed_with(EIO, {path_.c_str()}), "closing");
        c_ = nullptr;
        stop_if_asked();
        open_file(0);
        committed_ = model_of(root() ? root()->version : 0);
        require(committed_.version >= durable_ && committed_.version <= attempted_,
                "not in the state of a commit");
        is_durable(committed_.version);
        verify(now_ = committed_);
        throw Restart();
    }

    // ---- the container as a whole ----

    void open_file(unsigned flags)
    {
        pm_options options = options_in(case_.place, flags | PM_ACCEPT_COPY);
        bool there = fs::exists(path_);
        if (there && elsewhere())
            take_addresses_of(path_.c_str());
        while (!attempt("pm_open", [&] {
            c_ = pm_open(path_.c_str(), &options);
            return c_;
        })) {
            nothing_is_open();
            require(fs::exists(path_) == there && entries_of(directory_) == there,
                    "pm_open failed and left a file");
            stop_if_asked();
        }
        require(pm_check(c_) == 0, "pm_check() after pm_open()");
    }

    void open(unsigned flags = 0)
    {
        open_file(flags);
        verify(committed_);
    }

    // A failed close closes, too.
    void close()
    {
        pm_container *c = c_;
        c_ = nullptr;
        if (!attempt("pm_close", [&] { return pm_close(c) == 0; }))
            stop_if_asked();
        nothing_is_open();
        now_ = committed_;
    }

    void nothing_is_open()
    {
        require(entries_of("/proc/self/fd") == descriptors_, "a descriptor stays open");
        std::ifstream maps("/proc/self/maps");
        std::stringstream text;
        text << maps.rdbuf();
        bool may_stay = case_.fault.call == "munmap" || case_.fault.call == "mmap";
        require(may_stay || text.str().find(directory_) == std::string::npos, "a mapping stays");
    }

    // With a transaction open, exactly what a kill would leave.
    void restart_as_after_a_crash()
    {
        repeat([&] { run_operations(transactions[VERSIONS], VERSIONS); });
        std::string image = test::read_file(path_);
        close();
        remove();
        test::write_file(path_, image);
    }

    void remove()
    {
        test::say("deleting");
        while (!attempt("pm_delete", [&] { return pm_delete(path_.c_str()) == 0; })) {
            nothing_is_open();
            stop_if_asked();
            if (!fs::exists(path_)) // it is documented that only its durability is in question
                return;
        }
        require(!fs::exists(path_), "pm_delete() left the file");
    }

    void check()
    {
        repeat([&] { must("pm_check", [&] { return pm_check(c_) == 0; }); });
    }

    // A copy that fails leaves no file, and the container as it was.
    void copy()
    {
        copying_ = true;
        while (!attempt("pm_copy",
                        [&] { return pm_copy(c_, copy_.c_str(), nullptr, nullptr) == 0; })) {
            verify(now_);
            require(pm_check(c_) == 0, "pm_check() after pm_copy() failed");
            require(entries_of(directory_) == 1, "pm_copy() failed and left a file");
            stop_if_asked();
        }
        copying_ = false;
        fs::remove(copy_);
    }

    // What has failed goes on where it was: some objects may have moved.
    void compact()
    {
        repeat([&] {
            while (!attempt("pm_compact",
                            [&] { return pm_compact(c_, nullptr, nullptr, nullptr) == 0; })) {
                if (is_sticky())
                    reopen_after_sticky_error();
                verify(now_);
                require(pm_check(c_) == 0, "pm_check() after pm_compact() failed");
                stop_if_asked();
            }
        });
        verify(now_);
        check();
    }

    // ---- transactions ----

    // Stores are not calls: they end the process when they cannot be honoured.
    template <typename Store> void store(Store stores)
    {
        Window window("an access");
        stores();
    }

    void set(unsigned slot, void *object, uint64_t bytes, uint64_t seed)
    {
        Root *r = root();
        store([&] {
            r->objects[slot] = object;
            r->bytes[slot] = bytes;
            r->seeds[slot] = seed;
        });
    }

    void run_operation(const Operation &o, uint64_t number)
    {
        Root *r = root();
        void *object = r ? r->objects[o.slot] : nullptr;
        uint64_t seed = seed_of(number, o.slot), bytes = o.bytes;
        switch (o.kind) {
        case Operation::ROOT:
            must("pm_calloc", [&] { return object = pm_calloc(c_, 1, sizeof *r); });
            must("pm_setroot", [&] { return pm_setroot(c_, object, 0) == 0; });
            must("pm_mark_pointers", [&] { return pm_mark_pointers(root()->objects, SLOTS) == 0; });
            break;
        case Operation::ALLOCATE:
            must("pm_malloc", [&] { return object = pm_malloc(c_, bytes); });
            store([&] { fill(object, bytes, seed); });
            set(o.slot, object, bytes, seed);
            break;
        case Operation::CALLOC:
            must("pm_calloc", [&] { return object = pm_calloc(c_, 1, bytes); });
            store([&] { fill(object, bytes, seed); });
            set(o.slot, object, bytes, seed);
            break;
        case Operation::REALLOC: {
            void *before = object;
            must("pm_realloc", [&] {
                void *after = pm_realloc(before, bytes);
                object = after ? after : before;
                return after;
            });
            store([&] { fill(object, bytes, seed); });
            set(o.slot, object, bytes, seed);
            break;
        }
        case Operation::FREE:
            must("pm_free", [&] { return pm_free(object) == 0; });
            set(o.slot, nullptr, 0, 0);
            break;
        case Operation::STORE:
            bytes = r->bytes[o.slot];
            store([&] { fill(object, bytes, seed); });
            set(o.slot, object, bytes, seed);
            break;
        case Operation::DIRTY:
            must("pm_dirty", [&] { return pm_dirty(object, r->bytes[o.slot]) == 0; });
            break;
        case Operation::RESERVE:
            must("pm_reserve", [&] { return pm_reserve(c_, bytes) == 0; });
            break;
        case Operation::CLEAR:
            must("pm_clear", [&] { return pm_clear(c_) == 0; });
            break;
        }
        now_.apply(o, number);
    }

    void run_operations(const std::vector<Operation> &operations, uint64_t number)
    {
        for (const Operation &o : operations)
            run_operation(o, number);
        store([&] { root()->version = number; });
        now_.version = number;
        verify(now_);
    }

    // Do it until nothing comes between.
    template <typename Body> void repeat(Body body)
    {
        for (;;) {
            try {
                body();
                return;
            } catch (Restart) {
            }
        }
    }

    void say(const char *what, uint64_t number)
    {
        test::say((what + std::string(" ") + std::to_string(number)).c_str());
    }

    void is_attempted(uint64_t number)
    {
        attempted_ = std::max(attempted_, number);
        say("attempted", number);
    }

    void is_durable(uint64_t number)
    {
        durable_ = number;
        say("durable", number);
    }

    void transact(uint64_t number)
    {
        repeat([&] {
            if (committed_.version == number) // a commit that failed got through
                return;
            run_operations(transactions[number], number);
            is_attempted(number);
            must("pm_commit", [&] { return pm_commit(c_) == 0; });
            committed_ = now_;
            is_durable(number);
        });
    }

    // All transactions up to `last`, waited for together.
    void transact_together(uint64_t last)
    {
        repeat([&] {
            if (committed_.version == last) // a wait that failed got through
                return;
            pm_ticket ticket{};
            while (committed_.version < last) {
                uint64_t number = committed_.version + 1;
                run_operations(transactions[number], number);
                is_attempted(number);
                must("pm_commit_async", [&] {
                    ticket = pm_commit_async(c_);
                    return ticket.container;
                });
                committed_ = now_;
            }
            must("pm_wait", [&] { return pm_wait(ticket) == 0; });
            is_durable(last);
        });
    }

    void roll_back()
    {
        repeat([&] {
            run_operations(abandoned, 0);
            must("pm_rollback", [&] { return pm_rollback(c_) == 0; });
        });
        verify(now_ = committed_);
        check();
    }
};

} // namespace

// arguments: directory, case, or only the place, then to say how many calls were made.
CHILD_PROCESS(runs_the_workload)
{
    bool counting = arguments[1].find(' ') == std::string::npos;
    Case what = counting ? Case{arguments[1], {}, "retry"} : case_of(arguments[1]);
    Session(arguments[0], what).run();
    CHILD_REQUIRE(counting || fired());
    if (counting)
        for (auto [call, count] : counts())
            test::say((call + " " + std::to_string(count)).c_str());
}
