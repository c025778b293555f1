// Stores that the optimiser might move across a commit or a rollback: through `restrict` parameters, into
// results that are built in place, and into what allocators return. And structs that functions of other
// compilers return into a container.
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <libpm.h>
#include <malloc.h>
#include <new>
#include <string>
#include <unistd.h>

#ifdef NDEBUG
#error these tests are made of assertions
#endif

namespace
{

struct Job {
    long state, balance, log[20];
};

struct Report {
    long before;
    struct mallinfo2 memory;
    std::filesystem::space_info space;
    long after;
};

struct Root {
    Job job, result;
    Report report;
};

struct Node {
    long value;
};

pm_container *container;
bool new_is_persistent; // what the program's own operator new allocates

// What the last commit has: open a copy that was made by it.
template <class Look> void look_at_commit(Look look)
{
    const std::string path = "/dev/shm/libpm-committed-" + std::to_string(getpid()) + ".copy";
    assert(pm_copy(container, path.c_str(), nullptr, nullptr) == 0);
    pm_options how{};
    how.size = sizeof how;
    how.flags = PM_MOVABLE;
    how.tracker = PM_TRACKER_STORES;
    pm_container *copy = pm_open(path.c_str(), &how);
    assert(copy);
    look(*static_cast<const Root *>(pm_getroot(copy)));
    assert(pm_close(copy) == 0 && pm_delete(path.c_str()) == 0);
}

__attribute__((noinline)) void step(Job *__restrict job)
{
    job->state = 1;
    assert(pm_commit(container) == 0);
    look_at_commit([](const Root &root) { assert(root.job.state == 1); });
    job->state = 2;
}

__attribute__((noinline)) void count(Job *__restrict job, int times)
{
    for (int i = 1; i <= times; i++) {
        job->log[0] += i;
        assert(pm_commit(container) == 0);
        look_at_commit([&](const Root &root) { assert(root.job.log[0] == i * (i + 1) / 2); });
    }
}

__attribute__((noinline)) void take_back(Job *__restrict job)
{
    job->balance -= 100;
    assert(pm_rollback(container) == 0);
    job->balance += 1;
}

__attribute__((noinline)) Job made()
{
    Job job{};
    job.state = 1;
    assert(pm_commit(container) == 0);
    look_at_commit([](const Root &root) { assert(root.result.state == 1); });
    job.state = 2;
    return job;
}

__attribute__((malloc, noinline)) Node *allocate()
{
    return static_cast<Node *>(pm_malloc(container, sizeof(Node)));
}

__attribute__((noinline)) void take_back_allocated()
{
    Node *node = allocate();
    node->value = 1;
    assert(pm_commit(container) == 0);
    node->value = 2;
    assert(pm_rollback(container) == 0);
    assert(node->value == 1);
}

__attribute__((noinline)) void take_back_new()
{
    new_is_persistent = true;
    Node *node = new Node;
    new_is_persistent = false;
    node->value = 1;
    assert(pm_commit(container) == 0);
    node->value = 2;
    assert(pm_rollback(container) == 0);
    assert(node->value == 1);
}

} // namespace

__attribute__((noinline)) void *operator new(size_t bytes)
{
    void *p = new_is_persistent ? pm_malloc(container, bytes) : malloc(bytes);
    assert(p);
    return p;
}

void operator delete(void *p) noexcept
{
    free(p);
}

void operator delete(void *p, size_t) noexcept
{
    free(p);
}

int main()
{
    const std::string path = "/dev/shm/libpm-committed-" + std::to_string(getpid());
    pm_options how{};
    how.size = sizeof how;
    how.flags = PM_CREATE | PM_MOVABLE;
    how.tracker = PM_TRACKER_STORES;
    container = pm_open(path.c_str(), &how);
    assert(container);
    auto *root = static_cast<Root *>(pm_calloc(container, 1, sizeof(Root)));
    assert(root && pm_setroot(container, root, 0) == 0);
    root->job.balance = 1000;
    assert(pm_commit(container) == 0);

    step(&root->job);
    count(&root->job, 5);
    take_back(&root->job);
    assert(pm_commit(container) == 0);
    look_at_commit([](const Root &now) { assert(now.job.balance == 1001); });
    new (&root->result) Job(made());
    assert(pm_commit(container) == 0);
    look_at_commit([](const Root &now) { assert(now.result.state == 2); });

    take_back_allocated();
    take_back_new();

    root->report.after = 7; // so that the line is open
    new (&root->report) Report{3, mallinfo2(), std::filesystem::space("/"), 4};
    assert(pm_commit(container) == 0 && root->report.space.capacity != 0);
    look_at_commit([&](const Root &now) {
        assert(now.report.space.capacity == root->report.space.capacity);
        assert(now.report.memory.arena == root->report.memory.arena);
        assert(now.report.before == 3 && now.report.after == 4);
    });
    assert(pm_close(container) == 0 && pm_delete(path.c_str()) == 0);
}
