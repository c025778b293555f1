/*
 * Fragmentation after workloads of "Log-structured memory for DRAM-based storage" (Rumble et al., FAST 2014),
 * which the log engine's paper uses too. A phase allocates five times as many bytes as may be live. When these
 * are there, a new object replaces others, chosen at random. Then a share of the objects is freed, and a second
 * phase allocates objects of another size.
 *
 *   W1   100 bytes
 *   W2   100 bytes, 90 % freed, 130 bytes
 *   W3   100 to 150 bytes, 90 % freed, 200 to 250 bytes
 *
 * Fragmentation is the share of the bytes in use that are no object's. In use are, for
 *
 *   log          chunks that have live words. "live words": these words alone. "compacted": after pm_compact().
 *   log, N %     chunks that have live words. The file cannot grow, and the objects take N % of it.
 *   redo         segments that have objects.
 *   libpmemobj   stats.heap.run_active: runs, which have all objects of these sizes.
 *
 * The program keeps the addresses of objects outside.
 */
#include "harness/random.h"
#include "harness/sample.h"
#include "harness/status.h"
#include "log/full_disk.h"
#include "log/log_memory.h"

#include <CLI/CLI.hpp>
#include <libpm.h>
#include <libpmemobj.h>
#include <memory>
#include <stdexcept>
#include <string.h>
#include <vector>

namespace bench
{
namespace
{

constexpr uint64_t MiB = 1 << 20, TOGETHER = 100, TURNS = 5;

struct Setting {
    std::string peer, workload, path;
    uint64_t mebibytes, percent = 0;
};

struct Sizes {
    uint64_t least, most;
};

void check(bool holds, const std::string &what)
{
    if (!holds)
        throw std::runtime_error(what);
}

/** Where objects are. A transaction is always open. */
class Heap
{
  public:
    virtual ~Heap() = default;
    virtual void *allocate(uint64_t bytes) = 0;
    virtual void release(void *object) = 0;
    virtual void commit() = 0;
    virtual void report(const Setting &setting, uint64_t live) = 0;

  protected:
    static void emit_share(const Setting &setting, const std::string &peer, uint64_t live,
                           double in_use)
    {
        emit({"fragments",
              {setting.workload},
              peer,
              100 * (1 - static_cast<double>(live) / in_use),
              "%",
              1});
    }
};

class Libpm : public Heap
{
  public:
    explicit Libpm(const Setting &setting)
    {
        pm_options options{};
        options.size = sizeof options;
        options.flags = PM_CREATE | PM_ANNOUNCED | (unsigned)PM_MOVABLE;
        options.engine = setting.peer == "log" ? PM_ENGINE_LOG : PM_ENGINE_REDO;
        options.tracker = PM_TRACKER_STORES;
        c_ = pm_open(setting.path.c_str(), &options);
        require(c_, "pm_open");
    }
    ~Libpm() override { pm_close(c_); }
    Libpm(const Libpm &) = delete;

    void *allocate(uint64_t bytes) override
    {
        void *object = pm_malloc(c_, bytes);
        require(object && pm_dirty(object, bytes) == 0, "pm_malloc");
        memset(object, 1, bytes);
        return object;
    }
    void release(void *object) override { require(pm_free(object) == 0, "pm_free"); }
    void commit() override { require(pm_commit(c_) == 0, "pm_commit"); }

    void report(const Setting &setting, uint64_t live) override
    {
        struct pm_stats stats{};
        stats.size = sizeof stats;
        require(pm_stats(c_, &stats) == 0, "pm_stats");
        if (setting.peer == "redo") {
            emit_share(setting, "redo", live, static_cast<double>(stats.segments_data * MiB));
            return;
        }
        if (setting.percent) {
            const std::string file = "log, " + std::to_string(setting.percent) + " %";
            emit_share(setting, file, live, memory().chunks);
            return;
        }
        emit_share(setting, "log", live, memory().chunks);
        emit_share(setting, "log, live words", live, memory().live);
        require(pm_compact(c_, nullptr, nullptr, nullptr) == 0, "pm_compact");
        emit_share(setting, "log, compacted", live, memory().chunks);
    }

  private:
    log_memory memory() const
    {
        struct log_memory memory;
        check(log_memory_of(c_, &memory) == 0, "mincore");
        return memory;
    }
    static void require(bool holds, const char *what)
    {
        check(holds, std::string(what) + ": " + pm_errormsg());
    }
    pm_container *c_;
};

class Pmemobj : public Heap
{
  public:
    explicit Pmemobj(const Setting &setting)
        : pool_(
              pmemobj_create(setting.path.c_str(), "fragments", 8 * setting.mebibytes * MiB, 0600))
    {
        require(pool_, "pmemobj_create");
        int on = 1;
        require(pmemobj_ctl_set(pool_, "stats.enabled", &on) == 0, "stats.enabled");
        begin();
    }
    ~Pmemobj() override
    {
        pmemobj_tx_commit();
        (void)pmemobj_tx_end();
        pmemobj_close(pool_);
    }
    Pmemobj(const Pmemobj &) = delete;

    void *allocate(uint64_t bytes) override
    {
        const PMEMoid object = pmemobj_tx_alloc(bytes, 0);
        require(!OID_IS_NULL(object), "pmemobj_tx_alloc");
        memset(pmemobj_direct(object), 1, bytes);
        return pmemobj_direct(object);
    }
    void release(void *object) override
    {
        require(pmemobj_tx_free(pmemobj_oid(object)) == 0, "pmemobj_tx_free");
    }
    void commit() override
    {
        pmemobj_tx_commit();
        require(pmemobj_tx_end() == 0, "pmemobj_tx_end");
        begin();
    }
    void report(const Setting &setting, uint64_t live) override
    {
        uint64_t active = 0;
        require(pmemobj_ctl_get(pool_, "stats.heap.run_active", &active) == 0,
                "stats.heap.run_active");
        emit_share(setting, "libpmemobj", live, static_cast<double>(active));
    }

  private:
    static void require(bool holds, const char *what)
    {
        check(holds, std::string(what) + ": " + pmemobj_errormsg());
    }
    void begin()
    {
        require(pmemobj_tx_begin(pool_, nullptr, TX_PARAM_NONE) == 0, "pmemobj_tx_begin");
    }
    PMEMobjpool *pool_;
};

class Objects
{
  public:
    Objects(Heap &heap, uint64_t most) : heap_(heap), most_(most) {}

    void replace(Sizes sizes)
    {
        for (uint64_t allocated = 0; allocated < TURNS * most_;) {
            const uint64_t bytes = sizes.least + random_.below(sizes.most - sizes.least + 1);
            while (live_ + bytes > most_)
                release();
            objects_.push_back({heap_.allocate(bytes), bytes});
            live_ += bytes;
            allocated += bytes;
            done();
        }
    }
    void release_percent(uint64_t percent)
    {
        for (uint64_t left = objects_.size() * percent / 100; left > 0; left--) {
            release();
            done();
        }
    }
    uint64_t live() const { return live_; }

  private:
    struct Object {
        void *at;
        uint64_t bytes;
    };

    void release()
    {
        std::swap(objects_[random_.below(objects_.size())], objects_.back());
        heap_.release(objects_.back().at);
        live_ -= objects_.back().bytes;
        objects_.pop_back();
    }
    void done()
    {
        if (++changes_ % TOGETHER == 0)
            heap_.commit();
    }

    Heap &heap_;
    uint64_t most_, live_ = 0, changes_ = 0;
    std::vector<Object> objects_;
    Random random_{1};
};

void measure(const Setting &setting)
{
    const uint64_t most = setting.mebibytes * MiB;
    if (setting.percent)
        full_disk(most * 100 / setting.percent);
    std::unique_ptr<Heap> heap;
    if (setting.peer == "libpmemobj")
        heap = std::make_unique<Pmemobj>(setting);
    else
        heap = std::make_unique<Libpm>(setting);
    const Sizes before = setting.workload == "W3" ? Sizes{100, 150} : Sizes{100, 100},
                after = setting.workload == "W3" ? Sizes{200, 250} : Sizes{130, 130};
    Objects objects(*heap, most);
    objects.replace(before);
    if (setting.workload != "W1") {
        objects.release_percent(90);
        objects.replace(after);
    }
    heap->commit();
    heap->report(setting, objects.live());
}

} // namespace
} // namespace bench

int main(int argc, char **argv)
{
    bench::Setting setting{};
    CLI::App app("Measure fragmentation");
    app.add_option("peer", setting.peer)
        ->required()
        ->check(CLI::IsMember({"log", "redo", "libpmemobj"}));
    app.add_option("workload", setting.workload)
        ->required()
        ->check(CLI::IsMember({"W1", "W2", "W3"}));
    app.add_option("mebibytes", setting.mebibytes, "of live objects")->required();
    app.add_option("path", setting.path, "file to create")->required();
    app.add_option("--percent", setting.percent, "of a file that cannot grow, which objects take");
    CLI11_PARSE(app, argc, argv);
    return bench::status_of([&] { bench::measure(setting); });
}
