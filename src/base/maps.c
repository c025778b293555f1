/*
 * Reads /proc/self/maps once into a vector. The kernel lists the mappings by address, so a look-up is a
 * binary search.
 *
 * A thread's stack has no name in this file. So maps_describe() asks the kernel where each thread keeps its
 * list of robust mutexes: one system call a thread. Mappings may change meanwhile, so a description is a
 * hint.
 */
#define _GNU_SOURCE
#include "base/maps.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME 80

struct region {
    uint64_t start, end;
    bool readable;
    char name[NAME]; /* of the file, or as the kernel calls it, or "": anonymous */
};

int maps_read(struct maps *maps)
{
    int error = 0;
    char *line = NULL;
    size_t room = 0;
    *maps = (struct maps){.regions = {.items = NULL}};
    FILE *file = fopen("/proc/self/maps", "re");
    if (!file)
        return -errno;
    while (error == 0 && getline(&line, &room, file) > 0) {
        struct region r = {.start = 0}, *next;
        char permissions[5];
        int fields = sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %79[^\n]", &r.start,
                            &r.end, permissions, r.name);
        if (fields < 3) {
            error = -EBADMSG;
        } else if ((next = vector_push(&maps->regions, sizeof *next)) == NULL) {
            error = -ENOMEM;
        } else {
            r.readable = permissions[0] == 'r';
            *next = r;
        }
    }
    free(line);
    fclose(file);
    if (error != 0)
        maps_free(maps);
    return error;
}

void maps_free(struct maps *maps)
{
    vector_free(&maps->regions);
}

static const struct region *find(const struct maps *maps, uint64_t address)
{
    const struct region *regions = maps->regions.items;
    uint64_t low = 0, high = maps->regions.count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (regions[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < maps->regions.count && regions[low].start <= address ? &regions[low] : NULL;
}

bool maps_have(const struct maps *maps, uint64_t address)
{
    const struct region *r = find(maps, address);
    return r && r->readable;
}

/*
 * The thread on whose stack an address is; 0: on none. glibc keeps its data of a thread at the upper
 * end of the thread's stack. The list of the thread's robust mutexes is there, and the kernel tells its
 * address. A guard page bounds the stack below. The main thread's list is elsewhere, but its stack has
 * a name.
 */
static long thread_of(const struct region *r, uint64_t address)
{
    long found = 0;
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *e; threads && !found && (e = readdir(threads)) != NULL;) {
        long thread = strtol(e->d_name, NULL, 10);
        void *list;
        size_t size;
        if (thread > 0 && thread != getpid() && syscall(SYS_get_robust_list, thread, &list, &size) == 0 &&
            (uint64_t)list - r->start < r->end - r->start && address < (uint64_t)list)
            found = thread;
    }
    if (threads)
        closedir(threads);
    return found;
}

void maps_describe(const struct maps *maps, uint64_t address, char text[MAPS_TEXT])
{
    const struct region *r = find(maps, address);
    const char *name = r ? r->name : "";
    Dl_info module;
    long thread;
    if (dladdr((void *)address, &module) != 0) {
        const struct region *first = find(maps, (uint64_t)module.dli_fbase); /* of the file */
        name = first && first->name[0] ? first->name : module.dli_fname;
        const char *slash = strrchr(name, '/');
        snprintf(text, MAPS_TEXT, "the module %s", slash ? slash + 1 : name);
    } else if (strcmp(name, "[stack]") == 0) {
        snprintf(text, MAPS_TEXT, "the stack of the main thread");
    } else if (strcmp(name, "[heap]") == 0) {
        snprintf(text, MAPS_TEXT, "the heap");
    } else if (name[0]) {
        snprintf(text, MAPS_TEXT, "other memory: %s", name);
    } else if (r && (thread = thread_of(r, address)) != 0) {
        snprintf(text, MAPS_TEXT, "the stack of thread %ld", thread);
    } else {
        snprintf(text, MAPS_TEXT, "the heap, or other anonymous memory");
    }
}
