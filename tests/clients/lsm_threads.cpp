// Two writers and two readers on one LSM store, in each mode. A writer writes ever larger numbers to keys of its
// own. A reader must find a number no smaller than the last that was acknowledged before it asked, and a walk
// must be in order, with no key twice. Each mode takes a second, or LIBPM_SECONDS; longer where a sanitizer and
// the audit make it slow, until enough has happened.
#include "clients/lsm_tiny.hpp"
#include "crash/spawn.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace
{

constexpr uint64_t writers = 2, keys = 400; // of each writer
constexpr uint64_t enough = 100;            // writes, and reads

class Race
{
  public:
    explicit Race(lsm::Store &store) : store_(store) {}

    // Returns what is wrong; empty: nothing.
    std::string run(std::chrono::milliseconds time)
    {
        std::vector<std::thread> threads;
        for (uint64_t writer = 0; writer < writers; writer++)
            threads.emplace_back([this, writer] { guard([&] { write(writer); }); });
        threads.emplace_back([this] { guard([&] { get(); }); });
        threads.emplace_back([this] { guard([&] { walk(); }); });
        std::this_thread::sleep_for(time);
        while (!over_ && (writes_ < enough || reads_ < enough))
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        over_ = true;
        for (std::thread &thread : threads)
            thread.join();
        return wrong_;
    }

  private:
    template <class Work> void guard(Work work)
    {
        try {
            work();
        } catch (const std::exception &error) {
            complain(error.what());
        }
    }

    void complain(const std::string &what)
    {
        std::lock_guard guard(lock_);
        wrong_ = what;
        over_ = true;
    }

    static std::string key_of(uint64_t key) { return "key" + std::to_string(10000 + key); }

    void write(uint64_t writer)
    {
        std::mt19937_64 random(writer);
        for (uint64_t number = 1; !over_; number++) {
            const uint64_t key = writer * keys + random() % keys;
            const std::string value = std::to_string(number) + std::string(random() % 600, ' ');
            store_.put(key_of(key), value, {.sync = number % 100 == 0});
            acknowledged_[key] = number;
            writes_++;
        }
    }

    void get()
    {
        std::mt19937_64 random(7);
        while (!over_) {
            const uint64_t key = random() % (writers * keys), least = acknowledged_[key];
            const auto found = store_.get(key_of(key));
            if ((found ? std::stoull(*found) : 0) < least)
                complain(key_of(key) + ": a write that was acknowledged is missing");
            reads_++;
        }
    }

    void walk()
    {
        while (!over_) {
            const auto snapshot = store_.snapshot();
            const auto at = store_.iterator(snapshot.get());
            std::string before;
            for (at->seek_to_first(); at->valid(); at->next()) {
                if (at->key() <= before)
                    complain(before + ": the next key is not larger");
                before = at->key();
            }
            if (!before.empty() && store_.get(before, snapshot.get()) == std::nullopt)
                complain(before + ": a walk finds it, and a get does not");
            reads_++;
        }
    }

    lsm::Store &store_;
    std::atomic<bool> over_{false};
    std::atomic<uint64_t> acknowledged_[writers * keys]{}, writes_{0}, reads_{0};
    std::mutex lock_;
    std::string wrong_;
};

} // namespace

TEST_CASE("threads write and read together")
{
    test::Directory directory;
    lsm::Options options = tiny(GENERATE(from_range(all_modes)));
    options.read_workers = GENERATE(0U, 2U);
    options.bloom_bits = options.read_workers ? 0 : 10;
    options.container_bytes = UINT64_C(8) << 30; // a second fills the default of these tests
    const uint64_t ms = crash::from_environment("LIBPM_SECONDS", 1) * 1000 / 2; // of two runs a mode
    auto store = lsm::Store::open(directory.path(), options);
    Race race(*store);
    REQUIRE(race.run(std::chrono::milliseconds(ms)).empty());
}
