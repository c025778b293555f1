// There is no memory for a checkpoint of the log's map. This costs that checkpoint, and no commit, and the next
// one is made. An opening that has no memory to read one fails.
#include "system/lines.hpp"
#include "unit/checkpoints.hpp"

using namespace checkpoints;
using namespace lines;

namespace
{

uint64_t calls, fails_at; // of realloc(3); 0: none

uint64_t epoch_of(const std::string &path)
{
    return root_of(path) == 0 ? 0 : test::read_word(path, root_of(path) * LINE + offsetof(log_image, epoch));
}

} // namespace

extern "C" {
void *__real_realloc(void *p, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes)
{
    return ++calls == fails_at ? nullptr : __real_realloc(p, bytes);
}
}

TEST_CASE("a checkpoint for which there is no memory costs no commit, and the next one is made")
{
    const uint64_t interval = GENERATE(as<uint64_t>(), 1, MiB); // at once, or in shares
    const test::Directory directory;
    const std::string path = directory / "c.pm";
    uint64_t at = 1, costs_none = 0;
    for (bool failed = true; failed; at++) {
        INFO("realloc " << at);
        test::Container c = test::open_with_pages(path, PAGES, every(interval, PM_CREATE));
        uint64_t value = 0;
        bool refused = false;
        calls = 0;
        fails_at = at;
        for (int i = 0; i < 30; i++) {
            store(c.get(), value + 1);
            if (pm_commit(c.get()) == 0) {
                value++;
                continue;
            }
            REQUIRE((errno == ENOMEM && !refused));
            refused = true;
            REQUIRE_OK(pm_rollback(c.get()));
        }
        failed = calls >= at;
        costs_none += failed && !refused;
        const uint64_t before = epoch_of(path);
        for (int i = 0; i < 30; i++) {
            store(c.get(), ++value);
            REQUIRE_OK(pm_commit(c.get()));
        }
        REQUIRE(epoch_of(path) > before);
        fails_at = 0;
        test::write_file(directory / "crashed.pm", test::read_file(path));
        c = test::open(directory / "crashed.pm", every(interval, PM_ACCEPT_COPY));
        REQUIRE(value_of(c.get()) == value);
        REQUIRE_OK(pm_check(c.get()));
        c.reset();
        REQUIRE_OK(pm_delete(path.c_str()));
        REQUIRE_OK(pm_delete((directory / "crashed.pm").c_str()));
    }
    CHECK(costs_none > 0);
}

TEST_CASE("an opening that has no memory to read a checkpoint fails, and calls nothing damaged")
{
    const uint64_t bound = GENERATE(as<uint64_t>(), 0, MiB);
    const test::Directory directory;
    const std::string path = directory / "c.pm";
    fails_at = 0;
    test::Container c = test::open_with_pages(path, PAGES, every(1, PM_CREATE));
    store(c.get(), 7);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_close(c.release()));
    pm_options how = every(1);
    how.private_max = bound;
    uint64_t at = 1;
    for (bool failed = true; failed; at++) {
        INFO("realloc " << at);
        calls = 0;
        fails_at = at;
        c = test::Container(pm_open(path.c_str(), &how));
        const int error = errno;
        failed = calls >= at;
        fails_at = 0;
        REQUIRE((c || (failed && error == ENOMEM)));
        if (!c)
            continue;
        CHECK(test::stats(c.get()).recovery_bytes == 0); // by the checkpoint
        REQUIRE(value_of(c.get()) == 7);
        REQUIRE_OK(pm_close(c.release()));
    }
    CHECK(at > 3);
}
