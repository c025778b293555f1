#include "hostile/calls.hpp"

#include "common/compiled.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

extern "C" {
#include "discovery/heap.h"
}

namespace hostile
{

namespace
{

constexpr size_t OBJECTS_MAX = 300, STORED_MAX = 4096;

struct Object {
    char *start;
    size_t size;
};

struct Node {
    Node *next;
    uint64_t value;
    Node *others[3];
};

void demand(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "%s; message: %s\n", what, pm_errormsg());
    abort();
}

struct pm_stats stats_of(pm_container *c)
{
    struct pm_stats stats{};
    stats.size = sizeof stats;
    demand(pm_stats(c, &stats) == 0, "pm_stats() fails");
    return stats;
}

// Whether what is at an offset in the container is there in the file, too.
bool is_home(const struct pm_stats &stats)
{
    return stats.engine != std::string("log");
}

// The first objects, each of which must lie in the file and behind the one before. Those of a log container lie
// in memory, and can be read.
std::vector<Object> walk(pm_container *c)
{
    std::vector<Object> objects;
    const struct pm_stats stats = stats_of(c);
    const char *end = (const char *)stats.base, *file_end = end + stats.file_bytes;
    size_t size = 0;
    for (void *p = nullptr; (p = pm_next_object(c, p, &size)) && objects.size() < OBJECTS_MAX;) {
        char *start = static_cast<char *>(p);
        demand(start >= end, "an object overlaps another");
        demand(!is_home(stats) || (start < file_end && size <= (size_t)(file_end - start)),
               "an object leaves the file");
        (void)*(volatile char *)(start + size - 1);
        demand(pm_contains(c, start), "an object is not in its container");
        objects.push_back({start, size});
        end = start + size;
    }
    return objects;
}

// Follow what the pointer map says of an object.
void follow(pm_container *c, const Object &object)
{
    char *end = object.start + object.size;
    void **field = pm_next_pointer(object.start, end);
    for (int n = 0; field && n < 100; n++) {
        demand((char *)field >= object.start && (char *)(field + 1) <= end,
               "a pointer is mapped beyond its object");
        if (pm_contains(c, *field))
            pm_usable_size(*field);
        field = pm_next_pointer(field + 1, end);
    }
}

// The map as a whole: each word that it tells can be read.
void follow_all(pm_container *c)
{
    const struct pm_stats stats = stats_of(c);
    const char *end = (const char *)stats.base + stats.file_bytes;
    void **field = pm_next_pointer(stats.base, end);
    for (int n = 0; field && n < 1000; n++) {
        demand((char *)(field + 1) <= end, "a pointer is mapped beyond the file");
        if (pm_contains(c, *field))
            pm_usable_size(*field);
        field = pm_next_pointer(field + 1, end);
    }
}

// Announced, so that what cannot be logged is an error and not the end of the process.
bool store(void *p, int value, size_t bytes)
{
    bytes = std::min(bytes, STORED_MAX);
    if (pm_dirty(p, bytes) != 0)
        return false;
    memset(p, value, bytes);
    return true;
}

bool commit(pm_container *c)
{
    if (pm_commit(c) == 0)
        return true;
    pm_rollback(c);
    return false;
}

void allocate(pm_container *c)
{
    for (size_t size : {0, 40, 500, 5000, 40000, 70000})
        if (void *p = pm_malloc(c, size))
            store(p, 1, pm_usable_size(p));
    if (void *p = pm_calloc(c, 3, 100))
        if (void *q = pm_realloc(p, 3000))
            pm_realloc(q, 10);
    if (void *p = pm_aligned_alloc(c, 4096, 100))
        pm_free(p);
    const std::string bytes(70000, 'p');
    for (size_t size : {100, 5000, 70000})
        if (void *p = pm_put(c, bytes.data(), size))
            pm_write(static_cast<char *>(p) + 50, bytes.data(), size - 50);
    auto *nodes = static_cast<Node *>(pm_malloc_typed(c, PM_TYPE(Node, next, others), 5));
    if (nodes && pm_setroot(c, nodes, sizeof *nodes) == 0 && pm_dirty(nodes, 5 * sizeof *nodes) == 0)
        for (int i = 0; i < 5; i++)
            nodes[i].next = nodes + (i + 1) % 5;
    if (nodes)
        pm_realloc(nodes, 20000);
}

void change(const std::vector<Object> &objects)
{
    for (size_t i = 0; i < objects.size(); i++) {
        const Object &object = objects[i];
        switch (i % 6) {
        case 0:
            pm_free(object.start);
            break;
        case 1:
            store(object.start + object.size / 2, 0x5a, object.size / 2);
            break;
        case 2:
            pm_mark_pointer(object.start + object.size - sizeof(void *));
            pm_mark_pointers(object.start, object.size / sizeof(void *));
            break;
        case 3:
            pm_mark_data(object.start, object.size);
            break;
        case 4:
            pm_realloc(object.start, object.size * 2);
            break;
        default:
            pm_free(object.start + 8); // no object begins there
        }
    }
}

void commit_in_turns(pm_container *c)
{
    pm_ticket tickets[3];
    for (pm_ticket &ticket : tickets) {
        if (void *p = pm_malloc(c, 100))
            store(p, 2, 100);
        ticket = pm_commit_async(c);
    }
    for (const pm_ticket &ticket : tickets)
        pm_wait(ticket);
}

void follow_moved(void *context, void *from, void *to, size_t bytes)
{
    auto *c = static_cast<pm_container *>(context);
    demand(pm_contains(c, from) && pm_contains(c, to) &&
               pm_contains(c, static_cast<char *>(to) + bytes - 1),
           "an object moves out of its container");
}

void compact(pm_container *c)
{
    struct pm_compacted done{};
    done.size = sizeof done;
    pm_compact(c, follow_moved, c, &done);
    for (const Object &object : walk(c))
        follow(c, object);
}

// As compiled code does it: heap objects that the container leads to, and back.
void discover(pm_container *c, const std::vector<Object> &objects)
{
    using compiled::put;
    auto *first = compiled::make<Node>(), *second = compiled::make<Node>();
    put(first->next, second);
    put(second->next, first);
    if (pm_setroot(c, first, 0) != 0 || pm_commit(c) != 0) {
        pm_rollback(c);
        pm__free(first);
        pm__free(second);
    } else if (auto *root = static_cast<Node *>(pm_getroot(c))) {
        pm_exclude(&root->others[0]);
        commit(c);
        pm_include(&root->others[0]);
        pm_exclude(&root->others[1]);
        commit(c);
    }
    if (pm_set_current(c) == 0)
        pm__free(pm__malloc(100));
    pm_set_current(nullptr);
    commit(c);
    for (size_t i = 0; i < objects.size(); i += 7)
        pm_detach(objects[i].start);
    commit(c);
}

// What was detached, with all that was reached only by way of it.
void free_heap()
{
    for (heap_object object{}; heap_next(&object);)
        heap_free(object.start);
}

// What it makes of a forged container is a container, or an error and no file.
void copy(pm_container *c)
{
    const std::string path = "/dev/shm/libpm-calls-" + std::to_string(getpid()) + ".pm";
    if (pm_copy(c, path.c_str(), nullptr, nullptr) == 0)
        demand(unlink(path.c_str()) == 0, "a copy is not where it should be");
    else
        demand(access(path.c_str(), F_OK) != 0, "a copy that failed has left a file");
}

void write_all(pm_container *c, const Opened &how)
{
    pm_reserve(c, 20 * 4096);
    allocate(c);
    commit(c);
    change(walk(c));
    walk(c);
    pm_rollback(c);
    change(walk(c));
    commit(c);
    commit_in_turns(c);
    compact(c);
    change(walk(c));
    commit(c);
    if (how.discovers)
        discover(c, walk(c));
    compact(c);
    pm_check(c);
    pm_clear(c);
    walk(c);
    pm_rollback(c);
    for (const Object &object : walk(c))
        follow(c, object);
    pm_clear(c);
    commit(c);
    compact(c);
}

} // namespace

void call_all(pm_container *c, const Opened &how)
{
    demand(pm_version() && pm_errormsg(), "there is no version, or no message");
    pm_check(c);
    for (const Object &object : walk(c))
        follow(c, object);
    follow_all(c);
    if (void *root = pm_getroot(c))
        pm_usable_size(root);
    pm_delete(how.path); // it is open
    copy(c);
    if (how.writable)
        write_all(c, how);
    pm_close(c);
    if (how.discovers)
        free_heap();
}

} // namespace hostile
