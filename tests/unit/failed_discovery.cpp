// The commit after a failed discovering commit. The failed commit redirected pointers on the heap, and put
// them back. The next commit must find every one of these pointers again, though nobody stored to them in
// between. Every container here is on an ordinary file, whose writes fail on demand.
#include "common/file_medium.hpp"
#include "common/fixture.hpp"
#include "unit/discovered.hpp"

#include <cerrno>
#include <functional>
#include <thread>

using namespace discovered;

// What another thread does while a commit that has failed puts everything back.
static std::function<void()> meanwhile;

extern "C" {

void __real_closure_undo(struct discovery *d);

void __wrap_closure_undo(struct discovery *d)
{
    __real_closure_undo(d);
    if (meanwhile)
        std::thread(meanwhile).join();
}
}

namespace
{

const compiled::Module module;

struct Fixture {
    test::Directory directory;
    test::Container c = [this] {
        pm_options how = test::small(PM_CREATE | PM_DISCOVER | PM_VOUCHED);
        how.engine = test::engine() == "log" ? PM_ENGINE_LOG : PM_ENGINE_AUTO;
        how.tracker = PM_TRACKER_FAULTS; // implied otherwise
        return test::open(directory / "c.pm", how);
    }();
    Root *r = root(c.get());

    Fixture() { commit(); }

    void commit()
    {
        REQUIRE_OK(pm_commit(c.get()));
        r = root(c.get());
        check(c.get());
        REQUIRE_OK(pm_check(c.get()));
    }
    void fail_to_commit()
    {
        test::file_medium = {};
        test::file_medium.write_fails = 1;
        test::file_medium.write_error = ENOSPC;
        int result = pm_commit(c.get()), error = errno;
        test::file_medium = {};
        REQUIRE((result == -1 && error == ENOSPC));
    }
};

// Of the heap.
struct Holder {
    Node *node;
    uint64_t *inside;
};

} // namespace

TEST_CASE_METHOD(Fixture, "after a failed commit the next one redirects the heap's pointers")
{
    auto *holder = compiled::make<Holder>();
    Node *node = push(r, 3, nullptr);
    put(holder->node, node);
    put(holder->inside, inside_of(node));
    for (int again = 0; again < 3; again++) {
        fail_to_commit();
        REQUIRE((r->first == node && holder->node == node));
        REQUIRE(holder->inside == inside_of(node));
    }
    commit();
    REQUIRE(pm_contains(c.get(), r->first));
    REQUIRE(holder->node == r->first);
    REQUIRE(holder->inside == inside_of(r->first));
    pm__free(holder);
}

TEST_CASE_METHOD(Fixture, "a failed commit leaves the pointers that another thread declares")
{
    constexpr size_t SIZE = 200 << 10; // segments of its own, without a map
    auto *object = static_cast<char *>(pm_calloc(c.get(), 1, SIZE));
    REQUIRE(object);
    auto first_declared = [&] { return (char *)pm_next_pointer(object, object + SIZE); };
    push(r, 3, nullptr);
    int result = -1;
    meanwhile = [&] { result = pm_mark_pointers(object + 64, 1); };
    fail_to_commit();
    meanwhile = nullptr;
    REQUIRE(result == 0);
    REQUIRE(first_declared() == object + 64);
    commit();
    REQUIRE(first_declared() == object + 64);
}

TEST_CASE_METHOD(Fixture, "after a failed commit pointers of an object that stays are redirected")
{
    Node *target = push(r, 3, nullptr), *owner = push(r, 2, target); // both would move
    fail_to_commit();
    put(r->first, target); // only the target does
    put(r->count, r->count - 1);
    commit();
    REQUIRE(pm_contains(c.get(), r->first));
    REQUIRE((owner->next == r->first && owner->other == r->first));
    REQUIRE(owner->inside == inside_of(r->first));
    pm__free(owner);
}

TEST_CASE_METHOD(Fixture, "after a failed commit pointers are followed that were found long ago")
{
    auto *holder = compiled::make<Holder>();
    Node *node = make(r->count, 3, nullptr);
    put(holder->node, node);
    put(holder->inside, inside_of(node));
    push(r, 0, nullptr);
    commit(); // which remembers where the holder leads
    put(node->number, r->count);
    put(words_of(node)[0], word(node, 0));
    put(words_of(node)[1], word(node, 1));
    put(words_of(node)[2], word(node, 2));
    put(node->next, r->first);
    put(r->first, node);
    put(r->count, r->count + 1);
    fail_to_commit();
    REQUIRE((holder->node == node && holder->inside == inside_of(node)));
    commit();
    REQUIRE(pm_contains(c.get(), r->first));
    REQUIRE((holder->node == r->first && holder->inside == inside_of(r->first)));
    pm__free(holder);
}
