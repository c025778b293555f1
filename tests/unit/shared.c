/*
 * The shared library as a C program uses it: the example at the head of libpm.h, run twice. And it
 * exports what the header declares, and nothing else.
 */
#include <dlfcn.h>
#include <libpm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct node *next;
    int value;
};

struct list {
    struct node *first;
    int length;
};

static void push(struct list *l, struct node *n, int value)
{
    n->value = value;
    n->next = l->first;
    l->first = n;
    l->length++;
}

static void require(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "%s: %s\n", what, pm_errormsg());
    exit(1);
}

int main(void)
{
    char path[] = "/dev/shm/libpm-shared-XXXXXX";
    int fd = mkstemp(path);
    require(fd >= 0 && remove(path) == 0, "a name");
    for (int run = 1; run <= 2; run++) {
        pm_container *c = pm_open(path, &(struct pm_options){.size = sizeof(struct pm_options),
                                                             .flags = PM_CREATE,
                                                             .layout = "list/1"});
        require(c != NULL, "pm_open");
        struct list *l = pm_getroot(c);
        require((l != NULL) == (run == 2), "the root");
        if (!l) {
            l = pm_calloc(c, 1, sizeof *l);
            require(l && pm_setroot(c, l, 0) == 0, "a root");
        }
        struct node *n = pm_malloc(c, sizeof *n);
        require(n != NULL, "pm_malloc");
        push(l, n, run);
        require(pm_commit(c) == 0, "pm_commit");
        require(l->length == run && l->first->value == run, "the list");
        require(pm_close(c) == 0, "pm_close");
    }
    require(pm_delete(path) == 0, "pm_delete");

    const char *private_names[] = {"checksum", "txn_commit",   "arena_find", "container_open",
                                   "pm__fail", "medium_fence", "panic"};
    for (size_t i = 0; i < sizeof private_names / sizeof *private_names; i++)
        require(dlsym(RTLD_DEFAULT, private_names[i]) == NULL, private_names[i]);
    return 0;
}
