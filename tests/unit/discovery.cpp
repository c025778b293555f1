// Closures at commit: what moves, what is redirected, what cannot be and changes nothing.
#include "common/file_limit.hpp"
#include "common/format.hpp"
#include "unit/discovered.hpp"
#include "unit/page_state.h"

#include <atomic>

extern "C" {
#include "discovery/heap.h"

extern std::atomic<uint32_t> exclusions_count; // discovery/exclusions.h
}

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>
#include <random>
#include <sys/time.h>
#include <thread>
#include <unistd.h>
#include <utility>

using namespace discovered;

namespace
{

const compiled::Module module;

// The library's calls that will be granted; negative: all.
int granted = -1;

bool is_granted()
{
    if (granted == 0)
        return false;
    granted -= granted > 0;
    return true;
}

// What happens in the library's next calls of realloc(3).
std::function<void()> during_realloc;

pm_options how(unsigned flags = 0)
{
    pm_options o = test::small(PM_CREATE | PM_DISCOVER | PM_VOUCHED | flags);
    o.engine = test::engine() == "log" ? PM_ENGINE_LOG : PM_ENGINE_AUTO;
    o.tracker = PM_TRACKER_FAULTS; // implied otherwise
    return o;
}

struct Fixture {
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open(path, how());
    Root *r = root(c.get());

    // What else leads to the heap, from there.
    struct Holder {
        Node *node;
        uint64_t *inside;
    } *holder = compiled::make<Holder>();
    ~Fixture() { pm__free(holder); }

    void commit()
    {
        REQUIRE_OK(pm_commit(c.get()));
        r = root(c.get());
        check(c.get());
        REQUIRE_OK(pm_check(c.get()));
    }
    // Of what leads out of the container.
    void commit_without_check()
    {
        REQUIRE_OK(pm_commit(c.get()));
        r = root(c.get());
    }
    void reopen()
    {
        c.reset();
        c = test::open(path, how());
        r = root(c.get());
        check(c.get());
    }
    // A node of another container, whose `other` is left out.
    Node *make_owner(test::Container &d) const
    {
        d = test::open(directory / "d.pm", how());
        push(root(d.get()), 0, nullptr);
        REQUIRE_OK(pm_commit(d.get()));
        Node *owner = root(d.get())->first;
        REQUIRE_OK(pm_exclude(&owner->other));
        return owner;
    }
    // Repeat what lacks memory, with one call more granted each time, until it has enough; what must
    // hold after each failure is looked at.
    template <class Attempt, class Check> void without_memory(Attempt is_done, Check look)
    {
        int failures = 0;
        for (;; failures++) {
            granted = failures;
            const bool done = is_done();
            const int error = errno;
            granted = -1;
            if (done)
                break;
            REQUIRE(error == ENOMEM);
            look();
        }
        REQUIRE(failures > 2);
    }
    uint64_t objects()
    {
        uint64_t n = 0;
        for (void *p = nullptr; (p = pm_next_object(c.get(), p, nullptr)) != nullptr;)
            n++;
        return n;
    }
    uint64_t volatile_objects() const
    {
        uint64_t n = 0;
        for (heap_object object{}; heap_next(&object);)
            n++;
        return n;
    }
    // A commit that fails so, and has changed nothing: neither before nor after is anything moved.
    void fails(int error, std::initializer_list<const char *> words)
    {
        const uint64_t before = objects(), on_heap = volatile_objects();
        Node *const first = r->first;
        REQUIRE(pm_commit(c.get()) == -1);
        REQUIRE(test::failed_with(error, words));
        REQUIRE(objects() == before);
        REQUIRE(volatile_objects() == on_heap);
        REQUIRE(r->first == first);
        REQUIRE(pm_getroot(c.get()) == r);
    }
};

} // namespace

extern "C" void *__real_realloc(void *p, size_t size);
extern "C" void *__real_calloc(size_t count, size_t size);

extern "C" void *__wrap_realloc(void *p, size_t size)
{
    if (during_realloc)
        during_realloc();
    return is_granted() ? __real_realloc(p, size) : (errno = ENOMEM, nullptr);
}

extern "C" void *__wrap_calloc(size_t count, size_t size)
{
    return is_granted() ? __real_calloc(count, size) : (errno = ENOMEM, nullptr);
}

TEST_CASE_METHOD(Fixture, "what the root leads to moves, once, and all leads there then")
{
    const uint64_t on_heap = volatile_objects();
    for (uint64_t i = 0; i < 300; i++) {
        push(r, i % 7 == 0 ? i * 20 : i % 4, i % 3 ? r->first : nullptr);
        if (i % 50 == 49)
            commit();
    }
    put(r->first->next->next->other, r->first); // a cycle
    put(r->first->next->next->inside, inside_of(r->first));
    commit();
    REQUIRE(objects() == 301);
    REQUIRE(volatile_objects() == on_heap - 1); // the root was one
    reopen();
    REQUIRE(r->count == 300);
}

TEST_CASE_METHOD(Fixture,
                 "pointers elsewhere on the heap, also those that have been there for long")
{
    Node *n = make(0, 3, nullptr);
    put(holder->node, n);
    put(holder->inside, inside_of(n));
    Node *unrelated = make(0, 1, nullptr), *older = unrelated;
    for (int i = 0; i < 5; i++) { // commits that move something, so that all pages are looked at
        push(r, 0, nullptr);
        commit();
        REQUIRE(holder->node == n);
    }
    put(n->number, r->count);
    put(n->next, r->first);
    for (uint64_t i = 0; i < n->words; i++)
        put(words_of(n)[i], word(n, i));
    put(r->first, n);
    put(r->count, r->count + 1);
    commit();
    REQUIRE(holder->node == r->first);
    REQUIRE(holder->inside == inside_of(r->first));
    REQUIRE(unrelated == older);
    REQUIRE(heap_contains(unrelated));
    pm__free(unrelated);
}

// The table that remembers words has room for 1023 at first.
TEST_CASE_METHOD(Fixture, "words are remembered while the table of them grows")
{
    constexpr uint64_t WORDS = 1500;
    Node *n = make(0, 0, nullptr);
    Node **words = compiled::make<Node *>(WORDS * sizeof(Node *));
    for (uint64_t i = 0; i < WORDS; i++)
        put(words[i], n);
    push(r, 0, nullptr); // which moves
    commit();
    put(n->number, r->count);
    put(n->next, r->first);
    put(r->first, n);
    put(r->count, r->count + 1);
    commit();
    REQUIRE(std::count(words, words + WORDS, r->first) == WORDS);
    pm__free(words);
}

TEST_CASE_METHOD(Fixture, "words that hold other things in turn are remembered for what they hold")
{
    Node *kept[3] = {make(0, 0, nullptr), make(0, 0, nullptr), make(0, 0, nullptr)};
    for (int i = 0; i < 5000; i++) {
        put(holder->node, kept[i % 3]);
        push(r, 0, nullptr);
        REQUIRE_OK(pm_commit(c.get()));
    }
    r = root(c.get());
    put(holder->node, kept[1]);
    push(r, 0, nullptr);
    commit();
    put(kept[1]->number, r->count);
    put(kept[1]->next, r->first);
    put(r->first, kept[1]);
    put(r->count, r->count + 1);
    commit();
    REQUIRE(holder->node == r->first);
    pm__free(kept[0]);
    pm__free(kept[2]);
}

TEST_CASE_METHOD(Fixture, "variables and the stack follow")
{
    static Node *variable, *untouched;
    const pm__global globals[] = {{&variable, sizeof variable}, {&untouched, sizeof untouched}};
    const compiled::Module with_variables(globals, 2);
    Node *volatile local = push(r, 2, nullptr);
    uint64_t *volatile end = local->end;
    variable = local;
    untouched = make(0, 0, nullptr);
    Node *was = untouched;
    commit();
    REQUIRE(local == r->first);
    REQUIRE(end == r->first->end);
    REQUIRE(variable == r->first);
    REQUIRE(untouched == was);
    pm__free(was);
}

namespace
{

Node *counter;
volatile uint64_t handled;

void count(int)
{
    put(counter->number, counter->number + 1);
    handled = handled + 1;
}

} // namespace

TEST_CASE_METHOD(Fixture, "what a signal handler stores meanwhile is not lost")
{
    const pm__global globals[] = {{&counter, sizeof counter}};
    const compiled::Module with_variables(globals, 1);
    commit();
    struct sigaction action{}, old;
    action.sa_handler = count;
    REQUIRE(sigaction(SIGALRM, &action, &old) == 0);
    for (int i = 0; i < 20; i++) {
        counter = make(0, 0, nullptr);
        handled = 0;
        put(push(r, 0, nullptr)->other, counter);
        put(r->first->inside, inside_of(counter));
        for (int k = 0; k < 2000; k++)
            push(r, 0, r->first);
        const itimerval often{{0, 50}, {0, 50}}, never{};
        REQUIRE(setitimer(ITIMER_REAL, &often, nullptr) == 0);
        const int result = pm_commit(c.get());
        REQUIRE(setitimer(ITIMER_REAL, &never, nullptr) == 0);
        REQUIRE_OK(result);
        REQUIRE(pm_contains(c.get(), counter));
        REQUIRE(counter->number == handled);
    }
    REQUIRE(sigaction(SIGALRM, &old, nullptr) == 0);
    commit();
}

TEST_CASE_METHOD(Fixture, "a number is no pointer, whatever it looks like")
{
    Node *other = make(0, 0, nullptr);
    Node *n = push(r, 1, nullptr);
    put(n->number, reinterpret_cast<uint64_t>(other));
    REQUIRE_OK(pm_commit(c.get()));
    r = root(c.get());
    REQUIRE(r->first->number == reinterpret_cast<uint64_t>(other));
    REQUIRE(heap_contains(other));
    REQUIRE(objects() == 2);
    pm__free(other);
}

TEST_CASE_METHOD(Fixture, "what cannot be moved fails the commit, which can be mended")
{
    push(r, 0, nullptr);
    commit();
    Node *n = push(r, 3, nullptr);
    SECTION("the stack, from the container")
    {
        uint64_t word = 0;
        put(r->first->next->inside, &word);
        fails(EINVAL, {path.c_str(), "offset", "pointer"});
        put(r->first->next->inside, nullptr);
    }
    SECTION("the stack, from an object that would move")
    {
        uint64_t word = 0;
        put(n->inside, &word);
        fails(EINVAL, {path.c_str(), "byte 16 of the object of 72 bytes", "stack"});
        put(n->inside, nullptr);
    }
    SECTION("memory of foreign code")
    {
        void *foreign = malloc(100);
        put(n->other, static_cast<Node *>(foreign));
        fails(EINVAL, {"byte 8 of the object", "allocated"});
        put(n->other, nullptr);
        free(foreign);
    }
    SECTION("what is to be another container's root")
    {
        test::Container d = test::open(directory / "d.pm", how());
        REQUIRE_OK(pm_setroot(d.get(), n, 0));
        fails(EINVAL, {"d.pm", "new root", "another container"});
        REQUIRE(pm_getroot(d.get()) == n);
    }
    SECTION("what another container leads to")
    {
        test::Container d = test::open(directory / "d.pm", how());
        Root *e = root(d.get());
        Node *shared = push(e, 0, nullptr);
        put(n->other, shared);
        put(n->inside, inside_of(shared));
        REQUIRE_OK(pm_commit(d.get())); // it is that one's now
        REQUIRE(pm_contains(d.get(), n->other));
        fails(EINVAL, {path.c_str()});
        put(n->inside, nullptr);
        Node *second = make(0, 0, nullptr);
        put(root(d.get())->first->other, second);
        put(n->other, second);
        fails(EINVAL, {"d.pm", "another container"});
        put(n->other, nullptr);
        REQUIRE_OK(pm_commit(d.get()));
    }
    commit();
    REQUIRE(r->count == 2);
}

namespace
{

// Whether a word is what a commit makes of a pointer to freed memory. Pointers that differ stay different.
bool leads_nowhere(const void *now, const void *before)
{
    return (uintptr_t)now == (UINT64_C(1) << 61) + ((uintptr_t)before - VOLATILE_BASE);
}

} // namespace

TEST_CASE_METHOD(Fixture, "a pointer to freed memory becomes data that leads nowhere, or an error")
{
    pm_options options = how();
    options.foreign_pointers = GENERATE(PM_FOREIGN_ERROR, PM_FOREIGN_WARN, PM_FOREIGN_IGNORE);
    options.freed_pointers = GENERATE(PM_FREED_DATA, PM_FREED_ERROR);
    options.module_pointers = GENERATE(PM_MODULES_KEEP, PM_MODULES_REFUSE);
    const bool moves = GENERATE(true, false); // the object that has the pointers
    c.reset();
    c = test::open(path, options);
    r = root(c.get());
    push(r, 0, nullptr);
    commit();
    Node *n = moves ? push(r, 0, nullptr) : r->first;
    Node *other = make(0, 0, nullptr), *inside = make(0, 3, nullptr);
    uint64_t *const within = words_of(inside) + 1;
    put(n->other, other);
    put(n->inside, within);
    pm__free(other);
    pm__free(inside);
    if (options.freed_pointers == PM_FREED_ERROR) {
        fails(EINVAL, {path.c_str(), moves ? "byte 8 of the object of 48 bytes" : "offset",
                       "has been freed", "set the pointer to NULL", "PM_FREED_DATA"});
        put(n->other, nullptr);
        fails(EINVAL, {"has been freed"});
        put(n->inside, nullptr);
        commit();
        REQUIRE(test::stats(c.get()).pointers_freed == 0);
        return;
    }
    { // a commit that fails has changed nothing
        test::Container d = test::open(directory / "d.pm", how());
        REQUIRE_OK(pm_setroot(d.get(), push(r, 9, nullptr), 0)); // of another size
        fails(EINVAL, {"new root", "another container"});
        REQUIRE(n->other == other);
        REQUIRE(n->inside == within);
        REQUIRE(test::stats(c.get()).pointers_freed == 0);
    }
    auto is_kept = [&] {
        n = r->first->next; // behind the one that failed to move
        return leads_nowhere(n->other, other) && leads_nowhere(n->inside, within) &&
               !pm_next_pointer(&n->other, &n->inside + 1);
    };
    commit_without_check();
    REQUIRE(is_kept());
    REQUIRE_OK(pm_check(c.get()));
    REQUIRE(test::stats(c.get()).pointers_freed == 2);
    Node *again = make(0, 0, nullptr); // where one of them was
    put(n->number, n->number);
    commit_without_check();
    REQUIRE(is_kept());
    REQUIRE(test::stats(c.get()).pointers_freed == 2);
    c.reset();
    c = test::open(path, options);
    r = root(c.get());
    REQUIRE(is_kept());
    REQUIRE_OK(pm_check(c.get()));
    pm__free(again);
}

TEST_CASE_METHOD(Fixture, "a declared pointer to freed memory, stored by code that tells no kinds")
{
    push(r, 0, nullptr);
    push(r, 0, r->first);
    commit();
    Node *freed = make(0, 0, nullptr), *n = r->first;
    pm__free(freed);
    REQUIRE_OK(pm_dirty(&n->other, sizeof n->other));
    n->other = freed;
    commit_without_check();
    REQUIRE(leads_nowhere(n->other, freed));
    REQUIRE(is_mapped(n->other)); // it stays declared
    REQUIRE_OK(pm_check(c.get()));
    REQUIRE(test::stats(c.get()).pointers_freed == 1);
}

TEST_CASE_METHOD(Fixture, "a new root that has been freed is an error whatever pointers may do")
{
    pm_options options = how();
    options.freed_pointers = GENERATE(PM_FREED_DATA, PM_FREED_ERROR);
    options.foreign_pointers = GENERATE(PM_FOREIGN_ERROR, PM_FOREIGN_IGNORE);
    commit();
    c.reset();
    c = test::open(path, options);
    Root *old = root(c.get()), *fresh = compiled::make<Root>();
    REQUIRE_OK(pm_setroot(c.get(), fresh, 0));
    pm__free(fresh);
    REQUIRE(pm_commit(c.get()) == -1);
    REQUIRE(test::failed_with(EINVAL, {"the new root", "freed", "set another root"}));
    REQUIRE_OK(pm_setroot(c.get(), old, 0));
    r = old;
    commit();
}

TEST_CASE_METHOD(Fixture, "foreign memory is an error, whatever becomes of pointers to freed memory")
{
    pm_options options = how();
    options.freed_pointers = GENERATE(PM_FREED_DATA, PM_FREED_ERROR);
    options.foreign_pointers = GENERATE(PM_FOREIGN_ERROR, PM_FOREIGN_IGNORE);
    c.reset();
    c = test::open(path, options);
    r = root(c.get());
    uint64_t word = 0;
    put(push(r, 0, nullptr)->inside, &word);
    if (options.foreign_pointers == PM_FOREIGN_ERROR)
        fails(EINVAL, {"byte 16 of the object of 48 bytes", "the stack"});
    else
        commit_without_check();
    REQUIRE(r->first->inside == &word);
    REQUIRE(test::stats(c.get()).pointers_freed == 0);
    put(r->first->inside, nullptr);
    commit();
}

TEST_CASE_METHOD(Fixture, "where the log has no room a new root does not move either")
{
    for (int i = 0; i < 12000; i++)
        push(r, 1, nullptr);
    commit();
    auto *fresh = compiled::make<Root>();
    put(fresh->first, r->first);
    put(fresh->count, r->count);
    REQUIRE_OK(pm_setroot(c.get(), fresh, 0));
    for (Node *n = r->first; n; n = n->next)
        put(words_of(n)[0], n->number);
    {
        test::FileLimit limit(std::filesystem::file_size(path));
        const int result = pm_commit(c.get());
        const int error = errno;
        REQUIRE((result == -1 && error == EFBIG));
    }
    REQUIRE(pm_getroot(c.get()) == fresh);
    REQUIRE(fresh->first == r->first);
    const Root *const old = r;
    for (Node *n = r->first; n; n = n->next)
        put(words_of(n)[0], word(n, 0));
    commit();
    REQUIRE(r != old);
    REQUIRE(pm_contains(c.get(), r));
}

TEST_CASE_METHOD(Fixture, "containers are forgotten as they are closed, in any order")
{
    test::Container d = test::open(directory / "d.pm", how()),
                    e = test::open(directory / "e.pm", how());
    c.reset();
    push(root(e.get()), 0, nullptr);
    REQUIRE_OK(pm_commit(e.get()));
    d.reset();
    c = test::open(path, how());
    r = root(c.get());
    Node *n = push(r, 0, nullptr);
    put(root(e.get())->first->other, n);
    REQUIRE(pm_commit(c.get()) == -1); // the one that is left is asked
    REQUIRE(test::failed_with(EINVAL, {"e.pm", "in one only"}));
    put(root(e.get())->first->other, nullptr);
    commit();
}

TEST_CASE_METHOD(Fixture, "a container that is full takes all or nothing")
{
    push(r, 0, nullptr);
    commit();
    for (int i = 0; i < 100; i++)
        push(r, (1 << 20) / 8, r->first); // 100 MiB, of 64
    put(holder->node, r->first);
    fails(ENOSPC, {path.c_str()});
    REQUIRE(holder->node == r->first);
    for (int i = 0; i < 90; i++) {
        Node *n = r->first;
        put(r->first, n->next);
        put(r->count, r->count - 1);
        pm__free(n);
    }
    put(holder->node, nullptr);
    commit();
    REQUIRE(r->count == 11);
}

TEST_CASE_METHOD(Fixture, "without memory to note what moves, nothing does")
{
    push(r, 0, nullptr);
    if (GENERATE(true, false)) // the root moves with the others otherwise
        commit();
    const Root *const before_all = r;
    for (int i = 0; i < 3000; i++)
        push(r, 0, r->first);
    put(holder->node, r->first);
    put(holder->inside, inside_of(r->first->next));
    const uint64_t before = objects();
    Node *const first = r->first;
    without_memory([&] { return pm_commit(c.get()) == 0; },
                   [&] {
                       REQUIRE(objects() == before);
                       REQUIRE(pm_getroot(c.get()) == before_all);
                       REQUIRE(r->first == first);
                       REQUIRE(holder->node == first);
                       REQUIRE(heap_contains(holder->inside));
                   });
    commit();
    REQUIRE(holder->node == r->first);
    REQUIRE(holder->inside == inside_of(r->first->next));
}

TEST_CASE_METHOD(Fixture, "without memory to remember what leads where, nothing moves")
{
    std::vector<Node *> leading;
    for (uint64_t i = 0; i < 3000; i++)
        put(leading.emplace_back(make(i, 0, nullptr))->end, nullptr); // which would lead to itself
    Node *target = make(0, 5, nullptr);
    auto lead = [&](size_t from, size_t end, Node *to) {
        for (; from < end; from++)
            put(leading[from]->other, to);
    };
    commit(); // nothing is written then that was not looked at
    lead(0, leading.size(), target);
    Node *const n = push(r, 0, nullptr); // which moves
    put(holder->node, n);                // and is found first, for this was written last
    without_memory([&] { return pm_commit(c.get()) == 0; },
                   [&] { REQUIRE((r->first == n && holder->node == n)); });
    REQUIRE((pm_contains(c.get(), r->first) && holder->node == r->first));
    // When little of what is remembered is true, the table may be smaller; whether or not there is
    // memory for that, there is room for what comes.
    for (int calls = 0; calls < 4; calls++) {
        lead(0, leading.size(), target);
        push(r, 0, nullptr); // so that there is something to look for
        commit();
        lead(0, leading.size(), nullptr);
        for (int more = 0; more < 50; more++) {
            lead(0, 100, target);
            push(r, 0, nullptr);
            granted = calls;
            const bool done = pm_commit(c.get()) == 0;
            granted = -1;
            REQUIRE((done || errno == ENOMEM));
            commit();
        }
    }
    put(r->first->other, target);
    put(r->first->inside, inside_of(target));
    commit();
    REQUIRE(pm_contains(c.get(), r->first->other));
    for (size_t i = 0; i < leading.size(); i++)
        REQUIRE(leading[i]->other == (i < 100 ? r->first->other : nullptr));
    for (Node *node : leading)
        pm__free(node);
}

// A commit looks at a word of the heap once, and skips it while its own object moves. If the commit fails, the
// word stays on the heap after all.
TEST_CASE_METHOD(Fixture, "what a failed commit had moved leads to what moves later")
{
    push(r, 0, nullptr);
    commit();
    Node *stays = make(1, 1000, nullptr); // so large that no other store is near its first words
    Node *moves = make(1, 0, nullptr);
    put(stays->other, moves);
    put(r->first->other, stays);
    uint64_t word = 0;
    put(r->first->inside, &word);
    fails(EINVAL, {path.c_str(), "offset", "pointer"});
    put(r->first->other, moves);
    put(r->first->inside, inside_of(moves));
    commit();
    REQUIRE(pm_contains(c.get(), r->first->other));
    REQUIRE(stays->other == r->first->other);
    pm__free(stays);
}

TEST_CASE_METHOD(Fixture, "a copy of a word of the heap leads to what moves later")
{
    push(r, 0, nullptr);
    Node *moves = make(1, 0, nullptr);
    put(holder->node, moves);
    commit(); // remembers the word
    Holder *copy = compiled::make<Holder>(4096);
    announce_copy(copy, holder, sizeof *copy);
    memcpy(copy, holder, sizeof *copy);
    put(r->first->other, moves);
    put(r->first->inside, inside_of(moves));
    commit();
    REQUIRE(pm_contains(c.get(), r->first->other));
    REQUIRE(holder->node == r->first->other);
    REQUIRE(copy->node == r->first->other);
    pm__free(copy);
}

TEST_CASE_METHOD(Fixture, "a new root that is resized into the container is its root")
{
    REQUIRE_OK(pm_set_current(c.get()));
    r = static_cast<Root *>(pm__realloc(r, 5000));
    REQUIRE_OK(pm_set_current(nullptr));
    REQUIRE(pm_contains(c.get(), r));
    REQUIRE(pm_getroot(c.get()) == r);
    commit();
    REQUIRE(pm_getroot(c.get()) == r);
}

TEST_CASE_METHOD(Fixture, "a root on the heap that becomes smaller is a smaller root")
{
    auto *large = compiled::make<Root>(5000);
    REQUIRE_OK(pm_setroot(c.get(), large, 5000));
    r = static_cast<Root *>(pm__realloc(large, 100));
    commit();
    REQUIRE(pm_contains(c.get(), pm_getroot(c.get())));
    REQUIRE(pm_usable_size(pm_getroot(c.get())) < 5000);
}

TEST_CASE_METHOD(Fixture, "rollback forgets a root on the heap, and leaves the heap alone")
{
    push(r, 0, nullptr);
    Root *mine = r;
    REQUIRE_OK(pm_rollback(c.get()));
    REQUIRE(pm_getroot(c.get()) == nullptr);
    REQUIRE_OK(pm_setroot(c.get(), mine, 0));
    r = mine;
    commit();
    Node *n = push(r, 0, nullptr);
    REQUIRE_OK(pm_rollback(c.get()));
    REQUIRE(r->count == 1);
    REQUIRE(heap_contains(n));
    pm__free(n);
    commit();
    REQUIRE(pm_setroot(c.get(), r->first, 1 << 20) == -1);
    REQUIRE(pm_setroot(c.get(), &holder->inside, 0) == -1);
    REQUIRE(test::failed_with(EINVAL, {"start of a malloc'ed object"}));
    auto *next = compiled::make<Root>();
    REQUIRE_OK(pm_setroot(c.get(), next, 0));
    REQUIRE(pm_setroot(c.get(), &r->count, 0) == -1); // which leaves all as it was
    REQUIRE(pm_getroot(c.get()) == next);
}

TEST_CASE_METHOD(Fixture, "a root in the container takes the place of one on the heap")
{
    push(r, 0, nullptr);
    commit();
    Root *const in_container = r;
    auto *on_heap = compiled::make<Root>();
    REQUIRE_OK(pm_setroot(c.get(), on_heap, 0));
    REQUIRE_OK(pm_setroot(c.get(), in_container, 0));
    REQUIRE(pm_getroot(c.get()) == in_container);
    commit();
    REQUIRE(r == in_container);
    REQUIRE_OK(pm_setroot(c.get(), on_heap, 0));
    REQUIRE_OK(pm_setroot(c.get(), nullptr, 0));
    REQUIRE(pm_getroot(c.get()) == nullptr);
    REQUIRE_OK(pm_setroot(c.get(), in_container, 0));
    commit();
    REQUIRE(heap_contains(on_heap));
    pm__free(on_heap);
}

TEST_CASE_METHOD(Fixture, "objects that have moved are freed and resized as ever")
{
    Node *n = push(r, 4, nullptr);
    push(r, 0, nullptr);
    commit();
    n = r->first->next;
    n = static_cast<Node *>(pm__realloc(n, 10000));
    REQUIRE(pm_contains(c.get(), n));
    put(n->end, words_of(n) + n->words);
    put(r->first->next, n);
    commit();
    Node *gone = r->first;
    put(r->first, gone->next);
    put(r->count, r->count - 1);
    pm__free(gone);
    commit();
    REQUIRE(objects() == 2);
    push(r, 0, nullptr);
    commit();
    gone = r->first;
    put(r->first, gone->next);
    put(r->count, r->count - 1);
    REQUIRE(pm__realloc(gone, 0) == nullptr); // frees, as glibc's
    commit();
    REQUIRE(objects() == 2);
    reopen();
}

TEST_CASE_METHOD(Fixture, "fields that are left out")
{
    Node *outside = make(7, 2, nullptr);
    void *foreign = malloc(100);
    Node *n = push(r, 0, nullptr);
    put(n->other, outside);
    put(n->inside, static_cast<uint64_t *>(foreign));
    REQUIRE_OK(pm_exclude(&n->other)); // on the heap, and then where it moves
    REQUIRE_OK(pm_exclude(&n->inside));
    REQUIRE_OK(pm_exclude(&n->inside));
    REQUIRE_OK(pm_commit(c.get()));
    r = root(c.get());
    REQUIRE(r->first->other == outside);
    REQUIRE(r->first->inside == foreign);
    REQUIRE(objects() == 2);
    REQUIRE_OK(pm_check(c.get()));
    for (int i = 0; i < 3; i++) {
        push(r, 0, nullptr);
        REQUIRE_OK(pm_check(c.get())); // it is no damage what the next commit moves
        REQUIRE_OK(pm_commit(c.get()));
        put(r->first->words, r->first->words);
    }
    Node *last = r->first->next->next->next;
    REQUIRE(last->other == outside);
    put(last->other, nullptr);
    REQUIRE_OK(pm_rollback(c.get()));
    REQUIRE(last->other == outside);
    SECTION("reads NULL in another run")
    {
        c.reset();
        c = test::open(path, how());
        r = root(c.get());
        check(c.get());
        last = r->first->next->next->next;
        REQUIRE(last->other == nullptr);
        REQUIRE(last->inside == nullptr);
        pm__free(outside);
    }
    SECTION("is followed once it is included")
    {
        REQUIRE_OK(pm_include(&last->other));
        REQUIRE(pm_include(&last->other) == -1);
        put(last->other, outside);
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(pm_contains(c.get(), last->other));
        REQUIRE(last->other->number == 7);
        REQUIRE(last->inside == foreign);
    }
    SECTION("is forgotten with its object")
    {
        put(r->first->next->next->next, nullptr);
        pm__free(last);
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE_OK(pm_commit(c.get()));
        Node *again = nullptr;
        for (int i = 0; i < 10; i++) { // one is where the old one was
            again = make(0, 0, nullptr);
            put(again->next, r->first);
            put(r->first, again);
            put(again->other, again);
            REQUIRE_OK(pm_commit(c.get()));
            REQUIRE(r->first->other == r->first);
        }
        c.reset();
        c = test::open(path, how());
        r = root(c.get());
        int seen = 0;
        for (Node *k = r->first; k; k = k->next)
            seen += k->other == k;
        REQUIRE(seen == 10);
        pm__free(outside);
    }
    free(foreign);
}

TEST_CASE_METHOD(Fixture, "fields that are left out go along when their object is resized")
{
    Node *outside = make(7, 2, nullptr), *n = make(0, 0, nullptr);
    put(n->other, outside);
    REQUIRE_OK(pm_exclude(&n->other));
    auto *resized = static_cast<Node *>(pm__realloc(n, 100 * sizeof *n));
    REQUIRE((resized && resized != n));
    put(resized->end, words_of(resized));
    put(resized->next, r->first);
    put(r->first, resized);
    put(r->count, r->count + 1);
    REQUIRE_OK(pm_commit(c.get()));
    r = root(c.get());
    REQUIRE(pm_contains(c.get(), r->first));
    REQUIRE(r->first->other == outside);
    REQUIRE(heap_contains(outside));
    reopen();
    REQUIRE(r->first->other == nullptr);
    pm__free(outside);
}

TEST_CASE_METHOD(Fixture, "fields that are left out follow what moves for others")
{
    Node *n = push(r, 1, nullptr), *on_heap = make(9, 0, nullptr);
    put(n->other, n); // of what moves
    put(on_heap->other, n);
    for (Node *node : {n, on_heap})
        REQUIRE_OK(pm_exclude(&node->other));
    REQUIRE_OK(pm_commit(c.get()));
    r = root(c.get());
    Node *first = r->first;
    REQUIRE(pm_contains(c.get(), first));
    REQUIRE(first->other == first);
    REQUIRE(on_heap->other == first);
    Node *second = push(r, 1, nullptr);
    put(first->other, second); // of what is there already
    SECTION("of the same container")
    {
        REQUIRE_OK(pm_commit(c.get()));
        second = r->first;
        REQUIRE(pm_contains(c.get(), second));
        REQUIRE(first->other == second);
    }
    SECTION("of another")
    {
        test::Container d = test::open(directory / "d.pm", how());
        Root *rd = root(d.get());
        Node *owner = push(rd, 0, nullptr);
        REQUIRE_OK(pm_exclude(&owner->other));
        REQUIRE_OK(pm_commit(d.get()));
        rd = root(d.get());
        owner = rd->first;
        put(owner->other, second);
        REQUIRE_OK(pm_commit(c.get()));
        second = r->first;
        REQUIRE(pm_contains(c.get(), second));
        REQUIRE(owner->other == second);
        REQUIRE_OK(pm_commit(d.get()));
        REQUIRE(owner->other == second);
    }
    SECTION("of another, whose rollback then knows where it went")
    {
        test::Container d;
        Node *owner = make_owner(d);
        put(owner->other, second);
        REQUIRE_OK(pm_commit(d.get()));
        REQUIRE(heap_contains(second));
        REQUIRE_OK(pm_commit(c.get()));
        second = r->first;
        REQUIRE_OK(pm_rollback(d.get()));
        REQUIRE(owner->other == second);
    }
    SECTION("unless the commit fails; a rollback then knows what was committed")
    {
        REQUIRE_OK(pm_commit(c.get()));
        second = r->first;
        put(first->other, on_heap);
        void *foreign = malloc(8);
        put(second->inside, static_cast<uint64_t *>(foreign));
        fails(EINVAL, {"leads out of the container"});
        REQUIRE(first->other == on_heap);
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE(first->other == second);
        free(foreign);
    }
    pm__free(on_heap);
}

TEST_CASE_METHOD(Fixture, "fields of objects that a rollback takes back are left out no more")
{
    commit();
    auto *n = static_cast<Node *>(pm_malloc(c.get(), sizeof(Node)));
    REQUIRE(n);
    REQUIRE_OK(pm_exclude(&n->other));
    REQUIRE_OK(pm_exclude(&r->first));
    REQUIRE_OK(pm_rollback(c.get()));
    REQUIRE(pm_include(&n->other) == -1);
    REQUIRE(test::failed_with(EINVAL, {"not excluded"}));
    REQUIRE_OK(pm_include(&r->first));
}

TEST_CASE_METHOD(Fixture, "a rollback takes back that a field is included again")
{
    auto *out = static_cast<Node *>(pm__calloc(1, sizeof(Node)));
    push(r, 0, nullptr);
    commit_without_check();
    REQUIRE_OK(pm_exclude(&r->first->other));
    put(r->first->other, out);
    commit_without_check();
    for (bool excludes_again : {false, true}) {
        REQUIRE_OK(pm_include(&r->first->other));
        REQUIRE(pm_include(&r->first->other) == -1);
        if (excludes_again)
            REQUIRE_OK(pm_exclude(&r->first->other));
        put(r->first->other, static_cast<Node *>(nullptr));
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE(r->first->other == out);
    }
    commit_without_check();
    REQUIRE(r->first->other == out); // left out as before, so it has not moved
    REQUIRE_OK(pm_include(&r->first->other));
    commit_without_check();
    REQUIRE(pm_contains(c.get(), r->first->other));
    REQUIRE(pm_include(&r->first->other) == -1);
}

TEST_CASE_METHOD(Fixture, "a field that is left out and taken in again in one transaction is as before")
{
    Node *n = push(r, 0, nullptr);
    push(r, 0, n);
    commit();
    for (const bool rolls_back : {true, false}) {
        REQUIRE_OK(pm_exclude(&r->first->other));
        REQUIRE_OK(pm_include(&r->first->other));
        if (rolls_back)
            REQUIRE_OK(pm_rollback(c.get()));
        put(r->commits, r->commits + 1);
        commit();
        reopen();
        REQUIRE(r->first->other == r->first->next);
        REQUIRE(exclusions_count == 0);
    }
}

TEST_CASE_METHOD(Fixture, "fields of another container that are left out follow what leaves")
{
    push(r, 0, nullptr);
    commit();
    Node *n = r->first;
    test::Container d;
    Node *owner = make_owner(d);
    put(owner->other, n);
    REQUIRE_OK(pm_commit(d.get()));
    put(r->first, nullptr);
    auto *left = static_cast<Node *>(pm_detach(n));
    REQUIRE(left);
    REQUIRE(owner->other == left);
    REQUIRE_OK(pm_rollback(d.get()));
    REQUIRE(owner->other == left);
    d.reset();
    pm__free(left);
}

TEST_CASE_METHOD(Fixture, "fields of objects that a rollback brings back are left out as before")
{
    Node *outside = make(7, 2, nullptr), *n = push(r, 0, nullptr);
    put(n->other, outside);
    REQUIRE_OK(pm_exclude(&n->other));
    REQUIRE_OK(pm_commit(c.get()));
    r = root(c.get());
    n = r->first;
    Node *detached = nullptr;
    bool is_there = true;
    SECTION("freed")
    {
        REQUIRE_OK(pm_free(n));
    }
    SECTION("freed beside a commit, so in the next transaction")
    {
        free_beside_commit(c.get(), n);
    }
    SECTION("moved, and then freed")
    {
        auto *moved = static_cast<Node *>(pm_realloc(n, 10000));
        REQUIRE((moved && moved != n));
        REQUIRE(moved->other == outside);
        is_there = GENERATE(true, false);
        if (!is_there)
            REQUIRE_OK(pm_free(moved));
    }
    SECTION("detached")
    {
        put(r->first, nullptr);
        detached = static_cast<Node *>(pm_detach(n));
        REQUIRE(detached);
        is_there = GENERATE(true, false);
        if (!is_there)
            pm__free(std::exchange(detached, nullptr));
    }
    SECTION("cleared")
    {
        REQUIRE_OK(pm_clear(c.get()));
    }
    SECTION("freed, and not committed")
    {
        void *foreign = malloc(8);
        REQUIRE_OK(pm_free(n));
        put(r->first, static_cast<Node *>(foreign));
        fails(EINVAL, {"leads out of the container"});
        free(foreign);
    }
    REQUIRE_OK(pm_rollback(c.get()));
    n = r->first; // it may have been redirected
    REQUIRE(pm_contains(c.get(), n));
    REQUIRE(n->other == outside);
    push(r, 0, nullptr);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(n->other == outside);
    REQUIRE(pm_include(&n->other) == 0);
    REQUIRE(pm_include(&n->other) == -1);
    put(n->other, nullptr);
    pm__free(outside);
    if (detached)
        pm__free(detached);
    REQUIRE_OK(pm_commit(c.get())); // until then a rollback would bring the exclusion back
    REQUIRE(exclusions_count == 0);
}

TEST_CASE_METHOD(Fixture, "fields that are left out go along when a container is compacted",
                 "[home]")
{
    enum { ALL = 4000, LEFT = 10 };
    Node *outside = make(7, 2, nullptr);
    for (int i = 0; i < ALL; i++)
        push(r, 0, nullptr);
    commit();
    Node *n = r->first;
    for (Node *gone; n->number >= LEFT; pm__free(gone)) {
        gone = n;
        n = n->next;
    }
    put(r->first, n);
    put(r->count, uint64_t{LEFT});
    put(n->other, outside);
    put(n->next->inside, &n->words); // which no other pointer says
    auto last_of = [](Node *list) {
        while (list->next)
            list = list->next;
        return list;
    };
    put(n->next->next->inside, last_of(n)->end); // just past the object, behind which none begins
    REQUIRE_OK(pm_exclude(&n->other));
    REQUIRE_OK(pm_exclude(&n->next->inside));
    REQUIRE_OK(pm_exclude(&n->next->next->inside));
    struct pm_compacted done{};
    done.size = sizeof done;
    static Node *excluding; // whose field is left out, wherever it goes
    static uint64_t told, seen;
    excluding = n;
    told = seen = 0;
    pm_moved *count = [](void *outside, void *from, void *to, size_t) {
        if (excluding == from)
            excluding = static_cast<Node *>(to);
        told++;
        seen += excluding->other == outside;
    };
    REQUIRE_OK(pm_compact(c.get(), count, outside, &done));
    REQUIRE(done.objects_moved >= LEFT);
    REQUIRE(told == done.objects_moved);
    REQUIRE(seen == told);
    r = root(c.get());
    n = r->first;
    put(n->next->inside, nullptr);
    REQUIRE_OK(pm_rollback(c.get())); // to where it leads since the compaction
    for (int i = 0; i < 3; i++) {
        REQUIRE(n->other == outside);
        REQUIRE(n->next->inside == &n->words);
        REQUIRE(n->next->next->inside == last_of(n)->end);
        REQUIRE_OK(pm_check(c.get()));
        if (i == 1)
            put(n->other, nullptr);
        REQUIRE_OK(i == 1 ? pm_rollback(c.get()) : pm_commit(c.get()));
    }
    REQUIRE_OK(pm_compact(c.get(), nullptr, nullptr, nullptr));
    REQUIRE(r == root(c.get()));
    REQUIRE(n->other == outside);
    reopen();
    REQUIRE(r->first->other == nullptr);
    REQUIRE(r->first->next->inside == nullptr);
    REQUIRE(exclusions_count == 0);
    pm__free(outside);
}

TEST_CASE_METHOD(
    Fixture,
    "fields that are left out have gone along with the first steps of a compaction that failed")
{
    enum { ALL = 4000, LEFT = 1000 };
    Node *outside = make(7, 2, nullptr);
    for (int i = 0; i < ALL; i++)
        push(r, 0, nullptr);
    commit();
    std::vector<Node *> left;
    for (Node *n = r->first, *next; n; n = next) { // of each four the first stays
        next = n->next;
        if (n->number % (ALL / LEFT) == 0)
            left.push_back(n);
        else
            pm__free(n);
    }
    put(r->first, left.front());
    put(r->count, uint64_t{LEFT});
    for (size_t i = 0; i < left.size(); i++) {
        put(left[i]->number, left.size() - 1 - i);
        put(left[i]->next, i + 1 < left.size() ? left[i + 1] : nullptr);
        put(left[i]->other, outside);
        REQUIRE_OK(pm_exclude(&left[i]->other));
        put(left[i]->inside, &left[i]->words);
        REQUIRE_OK(pm_exclude(&left[i]->inside));
    }
    // The next step cannot be committed: the program has stored a pointer that leads out.
    struct Sabotage {
        pm_container *c;
        uint64_t told;
        Node *foreign;
    } sabotage = {c.get(), 0, static_cast<Node *>(malloc(8))};
    pm_moved *moved = [](void *context, void *, void *, size_t) {
        auto *s = static_cast<Sabotage *>(context);
        if (s->told++ == 0)
            put(static_cast<Root *>(pm_getroot(s->c))->first, s->foreign);
    };
    REQUIRE(pm_compact(c.get(), moved, &sabotage, nullptr) == -1);
    REQUIRE(test::failed_with(EINVAL, {"leads out of the container"}));
    free(sabotage.foreign);
    REQUIRE(sabotage.told > 0);
    REQUIRE(sabotage.told < LEFT);
    for (bool rolled_back : {false, true}) {
        if (rolled_back)
            REQUIRE_OK(pm_rollback(c.get()));
        r = root(c.get());
        uint64_t count = 0;
        for (Node *n = r->first; n; n = n->next, count++)
            if (n->other != outside || n->inside != &n->words)
                FAIL("node " << n->number << (rolled_back ? ", rolled back" : ""));
        REQUIRE(count == LEFT);
    }
    commit_without_check();
    REQUIRE_OK(pm_check(c.get()));
    pm__free(outside);
}

TEST_CASE_METHOD(Fixture, "fields are left out no more once it is committed that they are free")
{
    Node *n = push(r, 0, nullptr);
    REQUIRE_OK(pm_exclude(&n->other));
    REQUIRE_OK(pm_commit(c.get()));
    r = root(c.get());
    n = r->first;
    SECTION("with their object")
    {
        put(r->first, nullptr);
        REQUIRE_OK(pm_free(n));
        REQUIRE(pm_include(&n->other) == -1);
        REQUIRE_OK(pm_commit(c.get()));
    }
    SECTION("with the end of their object")
    {
        void **all = static_cast<void **>(pm_calloc(c.get(), 100, sizeof(void *)));
        REQUIRE(all);
        REQUIRE_OK(pm_exclude(&all[99]));
        REQUIRE_OK(pm_include(&n->other));
        REQUIRE_OK(pm_commit(c.get()));
        void **few = static_cast<void **>(pm_realloc(all, sizeof(void *)));
        REQUIRE((few && few != all));
        REQUIRE(pm_include(&few[99]) == -1);
        REQUIRE_OK(pm_commit(c.get()));
    }
    SECTION("or taken in again, where their object has left to the heap")
    {
        put(r->first, nullptr);
        n = static_cast<Node *>(pm_detach(n));
        REQUIRE(n);
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE_OK(pm_include(&n->other));
        pm__free(n);
    }
    SECTION("with all")
    {
        REQUIRE_OK(pm_clear(c.get()));
        REQUIRE_OK(pm_commit(c.get()));
    }
    SECTION("or their container is closed")
    {
        REQUIRE_OK(pm_free(n));
        c.reset();
    }
    REQUIRE(exclusions_count == 0);
}

TEST_CASE_METHOD(Fixture, "aligned objects stay so")
{
    const size_t alignment = GENERATE(32, 64, 1024, 4096, 16384, 65536);
    const size_t size = GENERATE(8, 32, 64, 1000, 20000, 70000);
    CAPTURE(alignment, size);
    char **all = compiled::make<char *>(9 * sizeof(char *));
    for (int i = 0; i < 8; i++) {
        auto *p = static_cast<char *>(pm__memalign(alignment, size));
        memset(p, i, size);
        put(all[i], p);
        heap_object object{};
        REQUIRE(heap_find(p + size, &object) == HEAP_LIVE);
        REQUIRE(object.start == p);
        REQUIRE(object.size == size);
    }
    REQUIRE_OK(pm_setroot(c.get(), all, 0));
    REQUIRE_OK(pm_commit(c.get()));
    all = static_cast<char **>(pm_getroot(c.get()));
    for (int i = 0; i < 8; i++) {
        REQUIRE(pm_contains(c.get(), all[i]));
        REQUIRE(reinterpret_cast<uintptr_t>(all[i]) % alignment == 0);
        REQUIRE(all[i][0] == i);
        REQUIRE(all[i][size - 1] == i);
    }
    char *last = all[7];
    put(all[7], static_cast<char *>(nullptr));
    auto *out = static_cast<char *>(pm_detach(last));
    REQUIRE(out);
    REQUIRE(reinterpret_cast<uintptr_t>(out) % alignment == 0);
    pm__free(out);
    REQUIRE_OK(pm_setroot(c.get(), nullptr, 0));
}

TEST_CASE_METHOD(Fixture, "an object with a larger alignment than a segment's does not move")
{
    const uint64_t segment = how().segment_size;
    commit();
    put(r->first, static_cast<Node *>(pm__memalign(2 * segment, sizeof(Node))));
    fails(EINVAL, {"larger alignment", "segment"});
    pm__free(r->first);
    put(r->first, static_cast<Node *>(pm__memalign(segment, sizeof(Node))));
    commit_without_check();
    REQUIRE(pm_contains(c.get(), r->first));
    REQUIRE(reinterpret_cast<uintptr_t>(r->first) % segment == 0);
}

TEST_CASE_METHOD(Fixture, "no signal comes while objects leave")
{
    push(r, 0, nullptr);
    commit();
    Node *n = r->first;
    put(r->first, nullptr);
    put(r->count, 0);
    sigset_t now{};
    during_realloc = [&] { pthread_sigmask(SIG_SETMASK, nullptr, &now); };
    auto *out = static_cast<Node *>(pm_detach(n));
    during_realloc = nullptr;
    REQUIRE(out);
    REQUIRE(sigismember(&now, SIGALRM) == 1);
    REQUIRE(sigismember(&now, SIGSEGV) == 0);
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    REQUIRE(sigismember(&now, SIGALRM) == 0);
    commit();
    pm__free(out);
}

TEST_CASE_METHOD(Fixture, "a rollback follows what a left-out field leads behind")
{
    test::Container d;
    Node *owner = make_owner(d), *moves = make(9, 0, nullptr);
    put(owner->other, reinterpret_cast<Node *>(words_of(moves))); // one past its end
    REQUIRE_OK(pm_commit(d.get()));
    put(r->first, moves);
    commit_without_check();
    REQUIRE(owner->other == reinterpret_cast<Node *>(words_of(r->first)));
    put(owner->other, nullptr);
    REQUIRE_OK(pm_rollback(d.get()));
    REQUIRE(owner->other == reinterpret_cast<Node *>(words_of(r->first)));
}

TEST_CASE_METHOD(Fixture, "fields are left out while threads commit at once")
{
    push(r, 0, nullptr);
    commit();
    REQUIRE_OK(pm_exclude(&r->first->other));
    Node *outside = make(7, 2, nullptr);
    put(r->first->other, outside);
    auto commits = [this] {
        for (int i = 0; i < 2000; i++)
            if (pm_commit(c.get()) != 0)
                return false;
        return true;
    };
    bool done = false;
    std::thread thread([&] { done = commits(); });
    REQUIRE(commits());
    thread.join();
    REQUIRE(done);
    REQUIRE(r->first->other == outside);
    pm__free(outside);
}

TEST_CASE_METHOD(Fixture, "a root that has been freed is named")
{
    auto *again = compiled::make<Root>();
    REQUIRE_OK(pm_setroot(c.get(), again, 0));
    pm__free(again);
    REQUIRE(pm_commit(c.get()) == -1);
    REQUIRE(test::failed_with(EINVAL, {"new root", "freed"}));
    REQUIRE_OK(pm_setroot(c.get(), r, 0));
    REQUIRE_OK(pm_commit(c.get()));
    r = root(c.get());
    commit();
}

TEST_CASE_METHOD(Fixture, "what cannot be left out")
{
    REQUIRE(pm_mark_data(holder, SIZE_MAX / 2) == -1);
    REQUIRE(test::failed_with(EINVAL, {"beyond the heap"}));
    REQUIRE(pm_exclude(nullptr) == -1);
    int local = 0;
    REQUIRE(pm_exclude(&local) == -1);
    commit();
    REQUIRE(pm_exclude(reinterpret_cast<char *>(&r->first) + 4) == -1);
    REQUIRE(test::failed_with(EINVAL, {"aligned"}));
    REQUIRE(pm_include(&r->first) == -1);
    REQUIRE(test::failed_with(EINVAL, {"not excluded"}));
}

TEST_CASE_METHOD(Fixture, "without memory to note what leaves, nothing does")
{
    Node *top = make(0, 1, push(r, 1, nullptr)), *holds = push(r, 1, nullptr);
    for (int i = 0; i < 200; i++) {
        Node *n = make(0, 1, nullptr);
        put(n->next, top);
        top = n;
    }
    put(holds->other, top);
    put(holds->inside, inside_of(top));
    REQUIRE_OK(pm_commit(c.get()));
    r = root(c.get());
    top = r->first->other;
    put(r->first->other, nullptr);
    put(r->first->inside, nullptr);
    const uint64_t before = objects();
    Node *out = nullptr;
    without_memory([&] { return (out = static_cast<Node *>(pm_detach(top))) != nullptr; },
                   [&] { REQUIRE((objects() == before && pm_contains(c.get(), top->next))); });
    commit();
    REQUIRE(objects() == before - 201);
    for (Node *next; out; out = next) {
        next = out->next;
        pm__free(out);
    }
}

TEST_CASE_METHOD(Fixture,
                 "what is opened for reading, or does not discover, excludes and detaches nothing")
{
    push(r, 0, nullptr);
    commit();
    REQUIRE(pm_set_current(c.get()) == 0);
    c.reset(); // and is nobody's current one any more
    c = test::open(path, test::small(PM_READONLY));
    auto *closed = static_cast<Root *>(pm_getroot(c.get()));
    REQUIRE(pm_exclude(&closed->first) == -1);
    REQUIRE(test::failed_with(EROFS, {"PM_READONLY"}));
    REQUIRE_FALSE(pm_detach(closed->first));
    REQUIRE(test::failed_with(EROFS, {"PM_READONLY"}));
    REQUIRE(pm_set_current(c.get()) == -1);
    REQUIRE(test::failed_with(EROFS, {"PM_READONLY"}));
    c.reset();
    c = test::open(path, test::small(PM_MOVABLE));
    REQUIRE_FALSE(pm_detach(root(c.get())->first));
    REQUIRE(test::failed_with(EINVAL, {"PM_DISCOVER"}));
}

TEST_CASE_METHOD(Fixture, "what an object alone leads to leaves with it")
{
    Node *deep = make(52, 1, nullptr), *shared = push(r, 1, deep); // the list leads to it, too
    Node *top = make(50, 1, shared), *below = make(51, 3, nullptr);
    put(top->next, below);
    put(below->other, top); // a cycle among them
    put(below->inside, inside_of(top));
    Node *holds = push(r, 0, nullptr);
    put(holds->other, top);
    put(holds->inside, inside_of(top));
    REQUIRE_OK(pm_commit(c.get()));
    r = root(c.get());
    top = r->first->other;
    put(holder->node, top->next);
    REQUIRE(objects() == 6);
    REQUIRE_FALSE(pm_detach(top));
    REQUIRE(test::failed_with(EINVAL, {"offset", "to be detached"}));
    put(r->first->other, nullptr);
    put(r->first->inside, nullptr);
    uint64_t number = r->first->number;
    put(r->first->number, reinterpret_cast<uint64_t>(top)); // which is no pointer
    Node *volatile local = top;
    auto *out = static_cast<Node *>(pm_detach(top));
    REQUIRE(out);
    put(r->first->number, number);
    REQUIRE(heap_contains(out));
    REQUIRE(local == out);
    REQUIRE(holder->node == out->next);
    REQUIRE(out->number == 50);
    REQUIRE(out->other == r->first->next);
    REQUIRE(pm_contains(c.get(), out->other->other)); // to which the list leads by way of that
    REQUIRE(out->next->number == 51);
    REQUIRE(out->next->other == out);
    REQUIRE(out->next->inside == inside_of(out));
    REQUIRE(out->end == words_of(out) + 1);
    REQUIRE(words_of(out)[0] == word(out, 0));
    commit();
    REQUIRE(objects() == 4);
    put(r->first->other, out); // and back again
    put(r->first->inside, inside_of(out));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(objects() == 6);
    REQUIRE(pm_contains(c.get(), holder->node));
    REQUIRE_FALSE(pm_detach(r));
    REQUIRE(test::failed_with(EINVAL, {"root"}));
    REQUIRE_FALSE(pm_detach(&r->count));
    REQUIRE_FALSE(pm_detach(holder));
}

TEST_CASE_METHOD(Fixture, "nothing leaves a container whose pointer map has lost a sector",
                 "[home]")
{
    for (int i = 0; i < 100; i++)
        push(r, 1, nullptr);
    commit();
    c.reset();
    std::string file = test::read_file(path);
    uint64_t map = 0;
    while (segment_kind(test::read_word(path, FORMAT_TABLE + 8 * map)) != SEGMENT_MAP)
        map++;
    const uint64_t size = test::small().segment_size;
    const std::string zeros(size, '\0');
    test::patch_file(path, map * size, zeros.data(), size);
    c = test::open(path, how());
    r = root(c.get());
    REQUIRE_FALSE(pm_detach(r->first->next)); // to which the first leads
    REQUIRE(test::failed_with(EBADMSG, {"pointer map", "backup"}));
    c.reset();
    test::write_file(path, file);
    reopen();
}

TEST_CASE_METHOD(Fixture, "a word that code of other compilers stored on the heap goes by its value when it is copied")
{
    push(r, 1, nullptr);
    commit();
    put(r->first->other, r->first);
    put(r->first->inside, inside_of(r->first));
    commit(); // a pointer is mapped there
    auto *foreign = static_cast<uint64_t *>(pm__calloc(1, 64));
    foreign[1] = 12345678; // which nobody tells
    announce_copy(&r->first->other, foreign + 1, 8);
    memcpy(static_cast<void *>(&r->first->other), foreign + 1, 8);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(pm_next_pointer(&r->first->other, &r->first->other + 1) == nullptr);
    REQUIRE_OK(pm_check(c.get()));
    pm__free(foreign);
}

TEST_CASE_METHOD(Fixture, "what leaves, and comes back, is led to from the heap as before")
{
    push(r, 1, nullptr);
    commit();
    put(holder->node, r->first);
    push(r, 1, nullptr);
    commit(); // has looked at the heap
    Node *n = r->first->next;
    put(r->first->next, nullptr);
    auto *out = static_cast<Node *>(pm_detach(n));
    REQUIRE(out);
    REQUIRE(holder->node == out);
    put(r->first->next, out);
    commit();
    REQUIRE(holder->node == r->first->next);
}

TEST_CASE_METHOD(Fixture, "what leaves, and comes back, is led to by a word that led to it before it came")
{
    Node *n = make(9, 3, nullptr);
    put(holder->node, n);
    push(r, 0, nullptr);
    commit(); // has looked at the heap, and remembers the word
    push(r, 0, n);
    commit_without_check();
    REQUIRE(holder->node == r->first->other);
    put(r->first->other, nullptr);
    put(r->first->inside, nullptr);
    auto *out = static_cast<Node *>(pm_detach(holder->node));
    INFO(pm_errormsg());
    REQUIRE(out);
    REQUIRE(holder->node == out);
    put(r->first->other, out);
    commit_without_check();
    REQUIRE(pm_contains(c.get(), r->first->other));
    REQUIRE(holder->node == r->first->other);
}

TEST_CASE_METHOD(Fixture, "a rollback of what left leaves a field that is left out as it was")
{
    push(r, 3, nullptr);
    push(r, 0, nullptr);
    commit();
    Node *n = r->first->next;
    REQUIRE_OK(pm_exclude(&r->first->other));
    put(r->first->other, n);
    commit_without_check();
    put(r->first->next, nullptr);
    put(r->first->other, nullptr);
    void *out = pm_detach(n);
    INFO(pm_errormsg());
    REQUIRE(out);
    REQUIRE_OK(pm_rollback(c.get()));
    REQUIRE(pm_contains(c.get(), r->first->next)); // `n` leads to what left
    REQUIRE(r->first->other == r->first->next);
    pm__free(out);
}

TEST_CASE_METHOD(Fixture, "a part of a word that realloc() keeps is data")
{
    auto **words = static_cast<Node **>(pm__calloc(2, sizeof(Node *)));
    Node *n = make(9, 0, nullptr);
    put(words[1], n);
    put(r->first, static_cast<Node *>(pm__realloc(words, 14)));
    commit_without_check();
    REQUIRE(pm_contains(c.get(), r->first));
    put(r->first, nullptr);
    pm__free(n);
}

TEST_CASE_METHOD(Fixture, "realloc() into the container keeps the bytes behind the last whole word")
{
    constexpr size_t SIZE = PM_LINE + 4;
    const std::string text(SIZE, 'x');
    auto *p = static_cast<char *>(memcpy(pm__malloc(SIZE), text.data(), SIZE));
    REQUIRE_OK(pm_set_current(c.get()));
    p = static_cast<char *>(pm__realloc(p, SIZE + 1));
    REQUIRE_OK(pm_set_current(nullptr));
    REQUIRE(pm_contains(c.get(), p));
    REQUIRE((uintptr_t)p % PM_LINE == 0); // nothing else stores to the line of these bytes
    REQUIRE_OK(pm_setroot(c.get(), p, 0));
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    c = test::open(path, how());
    REQUIRE(std::string(static_cast<char *>(pm_getroot(c.get())), SIZE) == text);
}

TEST_CASE_METHOD(Fixture, "what leaves may lead to the root, which stays")
{
    Node *n = push(r, 1, nullptr);
    put(n->other, reinterpret_cast<Node *>(r));
    REQUIRE_OK(pm_commit(c.get()));
    r = root(c.get());
    n = r->first;
    REQUIRE(n->other == reinterpret_cast<Node *>(r));
    put(r->first, nullptr);
    put(r->count, 0);
    auto *out = static_cast<Node *>(pm_detach(n));
    REQUIRE(out);
    REQUIRE(pm_contains(c.get(), out->other));
    REQUIRE(pm_getroot(c.get()) == out->other);
    commit();
    REQUIRE(objects() == 1);
    pm__free(out);
}

TEST_CASE_METHOD(Fixture, "fields are left out wherever their objects go")
{
    Node *outside = make(7, 2, nullptr), *n = push(r, 0, nullptr);
    put(n->other, outside);
    REQUIRE_OK(pm_exclude(&n->other));
    SECTION("to the container, and back as the commit fails")
    {
        commit_without_check();
        n = push(r, 0, nullptr);
        put(n->other, outside);
        REQUIRE_OK(pm_exclude(&n->other));
        void *foreign = malloc(8);
        put(r->first->next->inside, static_cast<uint64_t *>(foreign));
        fails(EINVAL, {"leads out of the container"});
        put(r->first->next->inside, nullptr);
        free(foreign);
    }
    SECTION("to the heap, and back into the container")
    {
        commit_without_check();
        n = r->first;
        put(r->first, nullptr);
        n = static_cast<Node *>(pm_detach(n));
        REQUIRE(n);
        put(r->first, n);
    }
    commit_without_check();
    REQUIRE(r->first->other == outside);
    REQUIRE(heap_contains(outside));
    REQUIRE_OK(pm_include(&r->first->other));
    put(r->first->other, nullptr);
    if (r->first->next)
        put(r->first->next->other, nullptr);
    pm__free(outside);
}

TEST_CASE_METHOD(Fixture, "what a failed commit took is without marks when it is taken again")
{
    // Five adjacent objects of a page and a quarter: only the first and the last have a whole page.
    constexpr uint64_t OBJECTS = 5, BYTES = PM_PAGE * 5 / 4, LAST = 5;
    commit();
    void *foreign = malloc(8);
    const uint64_t before = test::stats(c.get()).file_bytes;
    for (uint64_t i = 0; i < OBJECTS; i++) {
        Node *n = push(r, (BYTES - 256 - sizeof(Node)) / sizeof(uint64_t), nullptr);
        if (i == 0) // which moves last
            put(n->inside, static_cast<uint64_t *>(foreign));
    }
    fails(EINVAL, {"leads to what cannot move there"});
    free(foreign);
    REQUIRE(test::stats(c.get()).file_bytes == before); // it had grown
    for (Node *n = r->first, *next; n; n = next) {
        next = n->next;
        pm__free(n);
    }
    put(r->first, nullptr);
    put(r->count, uint64_t{0});
    const auto first = (uintptr_t)pm_malloc(c.get(), BYTES);
    REQUIRE(first % PM_PAGE == 0);
    for (uint64_t i = 1; i < OBJECTS; i++)
        REQUIRE((uintptr_t)pm_malloc(c.get(), BYTES) == first + i * BYTES);
    // As stores run on from page to page, the last page is opened along with the one before it. So it
    // does not fault, and must not seem to be marked.
    auto word = [&](uint64_t page) -> uint64_t & {
        return *reinterpret_cast<uint64_t *>(first + page * PM_PAGE);
    };
    for (uint64_t page = LAST - 2; page <= LAST; page++)
        put(word(page), page);
    commit();
    reopen();
    for (uint64_t page = LAST - 2; page <= LAST; page++)
        REQUIRE(word(page) == page);
}

// The lines of each copy are marked together where a copy before it has opened the page.
TEST_CASE_METHOD(Fixture,
                 "what a failed commit took has no marks of new objects when the next one takes it")
{
    constexpr int NODES = 200; // more than a segment of 64 KiB
    commit();
    void *foreign = malloc(8);
    auto segments = [&] {
        const struct pm_stats s = test::stats(c.get());
        return s.segments_data + s.segments_free;
    };
    Node *last = push(r, 100, nullptr); // which moves last
    put(last->inside, static_cast<uint64_t *>(foreign));
    for (int i = 1; i < NODES; i++)
        push(r, 100, nullptr);
    const uint64_t before = segments();
    fails(EINVAL, {"leads to what cannot move there"});
    free(foreign);
    REQUIRE(segments() == before);
    put(last->inside, static_cast<uint64_t *>(nullptr));
    commit();
    REQUIRE(segments() > before);
    reopen();
    REQUIRE(r->count == NODES);
}

TEST_CASE_METHOD(Fixture, "allocation straight into the container")
{
    commit();
    REQUIRE_OK(pm_set_current(c.get()));
    Node *n = push(r, 3, nullptr);
    REQUIRE(pm_contains(c.get(), n));
    std::thread([] {
        void *p = pm__malloc(10); // the thread's own choice
        if (!heap_contains(p))
            abort();
        pm__free(p);
    }).join();
    int child = test::in_child([] { // has the heap only
        void *p = pm__malloc(10);
        CHILD_REQUIRE(heap_contains(p));
        pm__free(p);
    });
    REQUIRE(test::exited(child));
    REQUIRE_OK(pm_set_current(nullptr));
    REQUIRE(heap_contains(push(r, 0, nullptr)));
    commit();
    REQUIRE(r->count == 2);
}

TEST_CASE("what PM_DISCOVER needs")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    pm_options o = how();
    o.engine = PM_ENGINE_UNDO;
    REQUIRE_FALSE(pm_open(path.c_str(), &o));
    REQUIRE(errno == EINVAL);
    o = test::small(PM_CREATE | PM_VOUCHED);
    REQUIRE_FALSE(pm_open(path.c_str(), &o));
    REQUIRE(test::failed_with(EINVAL, {"PM_VOUCHED"}));
    o = how(PM_READONLY);
    o.flags &= ~static_cast<unsigned>(PM_CREATE);
    REQUIRE_FALSE(pm_open(path.c_str(), &o));
    REQUIRE(test::failed_with(EINVAL, {"PM_DISCOVER"}));
    test::Container c = test::open(path, test::small(PM_CREATE));
    void *p = pm__malloc(10);
    REQUIRE(pm_setroot(c.get(), p, 0) == -1);
    REQUIRE(test::failed_with(EINVAL, {"PM_DISCOVER"}));
    pm__free(p);
}

TEST_CASE("who may hold pointers that nobody looks at must be vouched for")
{
    test::Directory directory;
    pm_options o = how();
    o.flags &= ~static_cast<unsigned>(PM_VOUCHED);
    test::Container c = test::open(directory / "c.pm", o);
    REQUIRE_OK(pm_commit(c.get())); // nothing moves
    push(root(c.get()), 0, nullptr);
    REQUIRE(pm_commit(c.get()) == -1); // this function is none of pmcc's
    REQUIRE(test::failed_with(EINVAL, {"has not compiled", "PM_VOUCHED"}));
}

TEST_CASE("a container that lies where another was begins without the other's marks", "[home]")
{
    struct Pair {
        Pair *self;
        uint64_t number;
    };
    test::Directory directory;
    std::string path = directory / "c.pm";
    pm_options faults = test::small(PM_CREATE | PM_MOVABLE);
    faults.engine = PM_ENGINE_REDO;
    test::Container c = test::open(path, faults);
    auto *pair = static_cast<Pair *>(pm_calloc(c.get(), 1, sizeof(Pair)));
    REQUIRE_OK(pm_setroot(c.get(), pair, 0));
    REQUIRE_OK(pm_commit(c.get()));
    compiled::put(pair->number, 1); // here stores fault, so the page's marks stay set
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    c = test::open(path, how());
    REQUIRE(pm_getroot(c.get()) == pair);
    compiled::put(pair->self, pair);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(pm_next_pointer(pair, pair + 1) == (void **)&pair->self);
}

TEST_CASE_METHOD(Fixture, "a word of unknown kind that leads just behind the last page of objects")
{
    constexpr size_t BYTES = 128 << 10; // two whole segments: the next page holds no object
    auto **fields = static_cast<char **>(pm_calloc(c.get(), 2, sizeof(char *)));
    auto *large = static_cast<char *>(pm_calloc(c.get(), 1, BYTES));
    REQUIRE((fields && large));
    char *const ends[] = {large + BYTES, large + BYTES + 1}; // nobody tells the kinds of the stack
    announce_copy(fields, ends, sizeof ends);
    memcpy(fields, ends, sizeof ends);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(pm_next_pointer(fields, fields + 2) == (void **)fields);
    REQUIRE(pm_next_pointer(fields + 1, fields + 2) == nullptr);
}

TEST_CASE_METHOD(Fixture, "what is to become the root may be resized and freed")
{
    commit();
    auto *next = compiled::make<Root>();
    put(next->count, 17);
    REQUIRE_OK(pm_setroot(c.get(), next, sizeof *next));
    SECTION("resized")
    {
        auto *larger = static_cast<Root *>(pm__realloc(next, 1000));
        auto *other = compiled::make<Root>(); // where it was
        REQUIRE(other == next);
        REQUIRE(pm_getroot(c.get()) == larger);
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(static_cast<Root *>(pm_getroot(c.get()))->count == 17);
        REQUIRE(pm_contains(c.get(), pm_getroot(c.get())));
        pm__free(other);
    }
    SECTION("freed")
    {
        pm__free(next);
        auto *other = compiled::make<Root>();
        REQUIRE(other == next);
        REQUIRE(pm_commit(c.get()) == -1);
        REQUIRE(test::failed_with(EINVAL, {"new root", "freed"}));
        REQUIRE_OK(pm_setroot(c.get(), r, 0));
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(pm_getroot(c.get()) == r);
        pm__free(other);
    }
}

TEST_CASE_METHOD(Fixture, "a root that is set beside a commit stays for the next")
{
    commit();
    Root *next = compiled::make<Root>();
    for (int i = 0; i < 300; i++) // what moves needs some calls of realloc(3)
        push(r, 0, nullptr);
    std::jthread other;
    int result = -1, calls = 0;
    during_realloc = [&] {
        if (++calls != 4) // the commit has looked at the root
            return;
        other = std::jthread([&] { result = pm_setroot(c.get(), next, 0); });
        usleep(20000); // it would be done by now
    };
    REQUIRE_OK(pm_commit(c.get()));
    during_realloc = nullptr;
    REQUIRE(other.joinable());
    other.join();
    REQUIRE(result == 0);
    REQUIRE(pm_getroot(c.get()) == next);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(pm_contains(c.get(), pm_getroot(c.get())));
    REQUIRE(pm_getroot(c.get()) != r);
}

TEST_CASE_METHOD(Fixture, "a remembered word that leads to freed memory is data, as any other")
{
    Node *target = make(9, 0, nullptr), *leads = make(8, 0, target);
    put(leads->inside, nullptr);
    push(r, 0, nullptr);
    commit(); // has looked at the heap
    REQUIRE(*kinds_of(&leads->other) & KIND_REMEMBERED);
    pm__free(target);
    put(r->first->other, leads);
    commit_without_check();
    REQUIRE(pm_contains(c.get(), r->first->other));
    REQUIRE(leads_nowhere(r->first->other->other, target));
    REQUIRE(test::stats(c.get()).pointers_freed == 1);
}

TEST_CASE_METHOD(Fixture, "containers whose objects move at the same time")
{
    constexpr int ROUNDS = 300, LEADING = 50;
    test::Container d = test::open(directory / "d.pm", how());
    pm_container *const containers[] = {c.get(), d.get()};
    Root *roots[] = {r, root(d.get())};
    REQUIRE_OK(pm_commit(d.get()));
    REQUIRE_OK(pm_commit(c.get()));
    for (int i = 0; i < 2; i++)
        roots[i] = root(containers[i]);
    Holder *leading[2][LEADING];
    for (auto &holders : leading)
        for (Holder *&h : holders)
            h = compiled::make<Holder>();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2; i++)
            for (Holder *h : leading[i])
                put(h->node, push(roots[i], 0, nullptr));
        int failures = 0;
        std::thread other([&] { failures += pm_commit(containers[1]) != 0; });
        const int result = pm_commit(containers[0]);
        other.join();
        REQUIRE(result == 0);
        REQUIRE(failures == 0);
        for (int i = 0; i < 2; i++) {
            roots[i] = root(containers[i]);
            Node *n = roots[i]->first;
            for (int k = LEADING; k-- > 0; n = n->next)
                REQUIRE(leading[i][k]->node == n);
        }
    }
    for (auto &holders : leading)
        for (Holder *h : holders)
            pm__free(h);
}
