/* A container and a pool that end with their scope; what fails becomes an exception. */
#pragma once

#include "micro/mode.h"

#include <cerrno>
#include <libpmemobj.h>
#include <stdexcept>
#include <string>
#include <system_error>

namespace bench
{

class Container
{
  public:
    Container(const std::string &directory, const Mode &mode, unsigned flags = PM_CREATE,
              bool concurrent_stores = false, size_t private_max = 0)
        : path_(directory + "/" + mode.file), mode_(mode), concurrent_stores_(concurrent_stores),
          private_max_(private_max)
    {
        open(flags);
    }
    Container(const Container &) = delete;
    Container &operator=(const Container &) = delete;
    ~Container() { pm_close(c_); }

    operator pm_container *() const { return c_; }

    /** Close and open again, so that no page is open and every counter is zero. */
    void reopen()
    {
        check(pm_close(c_) == 0);
        open(0);
    }

    /** Delete the file; the container must be closed. */
    static void remove(const std::string &directory, const Mode &mode)
    {
        check(pm_delete((directory + "/" + mode.file).c_str()) == 0);
    }

    void *allocate(size_t size) { return check(pm_malloc(c_, size)); }
    void set_root(void *root) { check(pm_setroot(c_, root, 0) == 0); }
    void commit() { check(pm_commit(c_) == 0); }

    struct pm_stats stats() const
    {
        struct pm_stats stats{};
        stats.size = sizeof stats;
        check(pm_stats(c_, &stats) == 0);
        return stats;
    }

  private:
    template <class Result> static Result check(Result result)
    {
        if (!result)
            throw std::runtime_error(std::string("libpm: ") + pm_errormsg());
        return result;
    }

    void open(unsigned flags)
    {
        pm_options options{};
        options.size = sizeof options;
        options.flags = flags;
        options.engine = mode_.engine;
        options.tracker = mode_.tracker;
        options.concurrent_stores = concurrent_stores_;
        options.private_max = private_max_;
        c_ = nullptr; // should the next line throw
        c_ = check(pm_open(path_.c_str(), &options));
    }

    std::string path_;
    Mode mode_;
    bool concurrent_stores_;
    size_t private_max_;
    pm_container *c_ = nullptr;
};

class Pool
{
  public:
    Pool(const std::string &path, size_t size)
        : pool_(pmemobj_create(path.c_str(), "bench", size, 0600))
    {
        if (!pool_)
            throw std::runtime_error(std::string("libpmemobj: ") + pmemobj_errormsg());
    }
    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;
    ~Pool() { pmemobj_close(pool_); }

    operator PMEMobjpool *() const { return pool_; }

    PMEMoid allocate(size_t size)
    {
        PMEMoid oid;
        if (pmemobj_alloc(pool_, &oid, size, 1, nullptr, nullptr) != 0)
            throw std::runtime_error(std::string("libpmemobj: ") + pmemobj_errormsg());
        return oid;
    }

  private:
    PMEMobjpool *pool_;
};

/** Throws what errno says. */
[[noreturn]] inline void fail(const char *what)
{
    throw std::system_error(errno, std::generic_category(), what);
}

} // namespace bench
