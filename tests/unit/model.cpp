// The allocator and transactions against a model: random allocations of all sizes and alignments,
// frees, resizes, stores, commits, rollbacks, clears and reopenings, from one seed.
//
// LIBPM_SEED repeats a failing run.
#include "common/fixture.hpp"

#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <vector>

namespace
{

struct Object {
    size_t size;
    char letter; // that fills it
};

using Objects = std::map<char *, Object>;

class Run
{
  public:
    Run(uint64_t seed, const pm_options &options)
        : random_(seed), options_(options), container_(test::open(path_, options_))
    {
    }

    void step()
    {
        switch (unsigned dice = random_() % 1000; dice) {
        case 0 ... 449:
            allocate();
            break;
        case 450 ... 879:
            release();
            break;
        case 880 ... 929:
            resize();
            break;
        case 930 ... 979:
            overwrite();
            break;
        case 980 ... 985:
            REQUIRE_OK(pm_commit(container_.get()));
            committed_ = now_;
            break;
        case 986 ... 988:
            REQUIRE_OK(pm_rollback(container_.get()));
            now_ = committed_;
            break;
        case 989:
            if (random_() % 8 == 0) {
                REQUIRE_OK(pm_clear(container_.get()));
                now_.clear();
            }
            break;
        case 990:
            container_.reset(); // rolls back
            container_ = test::open(path_, options_);
            now_ = committed_;
            verify();
            break;
        default:
            break;
        }
    }

    // Every object is there, whole, and of at least its size.
    void verify()
    {
        REQUIRE_OK(pm_check(container_.get()));
        for (auto &[p, object] : now_) {
            REQUIRE(pm_usable_size(p) >= object.size);
            REQUIRE(std::string_view(p, object.size).find_first_not_of(object.letter) ==
                    std::string_view::npos);
        }
    }

  private:
    size_t random_size()
    {
        unsigned dice = random_() % 100;
        return 1 + random_() % (dice < 95 ? 300 : dice < 99 ? 20000 : 400000);
    }

    void fill(char *p, size_t size)
    {
        // No other object may reach into it.
        auto after = now_.lower_bound(p);
        REQUIRE((after == now_.end() || p + size <= after->first));
        REQUIRE((after == now_.begin() ||
                 std::prev(after)->first + std::prev(after)->second.size <= p));
        char letter = (char)('a' + random_() % 26);
        memset(p, letter, size);
        now_[p] = {size, letter};
    }

    Objects::iterator any()
    {
        // Any object: the first from a random place between the first and the last.
        if (now_.empty())
            return now_.end();
        char *low = now_.begin()->first, *high = now_.rbegin()->first;
        return now_.lower_bound(low + random_() % (size_t)(high - low + 1));
    }

    void allocate()
    {
        size_t size = random_size(), alignment = (size_t)16 << random_() % 13;
        bool aligned = random_() % 10 == 0;
        char *p = static_cast<char *>(aligned ? pm_aligned_alloc(container_.get(), alignment, size)
                                              : pm_malloc(container_.get(), size));
        INFO(pm_errormsg());
        REQUIRE(p);
        REQUIRE((uintptr_t)p % (aligned ? alignment : 16) == 0);
        fill(p, size);
    }

    void release()
    {
        auto object = any();
        if (object == now_.end())
            return;
        REQUIRE(pm_free(object->first) == 0);
        REQUIRE(pm_free(object->first) == -1);
        now_.erase(object);
    }

    void resize()
    {
        auto object = any();
        if (object == now_.end())
            return;
        auto [old, before] = *object;
        size_t size = random_size();
        char *p = static_cast<char *>(pm_realloc(old, size));
        REQUIRE(p);
        REQUIRE(std::string_view(p, std::min(size, before.size)).find_first_not_of(before.letter) ==
                std::string_view::npos);
        now_.erase(object);
        fill(p, size);
    }

    void overwrite()
    {
        auto object = any();
        if (object != now_.end()) {
            object->second.letter = (char)('A' + random_() % 26);
            memset(object->first, object->second.letter, object->second.size);
        }
    }

    std::mt19937_64 random_;
    test::Directory directory_;
    std::string path_ = directory_ / "c";
    pm_options options_;
    test::Container container_;
    Objects now_, committed_;
};

} // namespace

TEST_CASE("random operations agree with a model")
{
    pm_options options = test::small();
    options.max_size = 1 << 30;
    SECTION("small segments") {}
    SECTION("small segments, concurrent stores")
    {
        options.concurrent_stores = !test::stores();
    }
    SECTION("the largest granularity")
    {
        options.granularity = 4096;
    }
    SECTION("segments of 1 MiB")
    {
        options.segment_size = 1 << 20;
    }
    const char *given = getenv("LIBPM_SEED");
    uint64_t seed = given ? std::stoull(given) : std::random_device{}();
    INFO("repeat with LIBPM_SEED=" << seed);
    Run run(seed, options);
    for (int i = 0; i < 60000; i++)
        run.step();
    run.verify();
}
