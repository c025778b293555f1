#!/bin/sh
#
# opened_by_gcc.sh DIRECTORY-OF-PMCC DIRECTORY-OF-LIBPM INCLUDE: a container whose pointers pmcc has
# recorded, and a copy of it beside it, opened and written by a program that gcc has compiled.
set -eu
pmcc=$1/pmcc library=$2 include=$3
directory=$(mktemp -d -p /dev/shm)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

cat >list.h <<'END'
#include <libpm.h>
#include <stdio.h>
#include <stdlib.h>
struct node { long number; struct node *next, **at; };
struct list { struct node *first; long count; };
static pm_container *open_list(const char *path, enum pm_tracker tracker)
{
    pm_container *c = pm_open(path, &(struct pm_options){.size = sizeof(struct pm_options),
        .flags = PM_CREATE | PM_MOVABLE, .engine = PM_ENGINE_REDO, .tracker = tracker});
    if (!c) { fprintf(stderr, "%s\n", pm_errormsg()); exit(1); }
    return c;
}
static void push(struct list *l, struct node *n)
{
    n->number = l->count++;
    n->next = l->first;
    n->at = &l->first;
    if (l->first)
        l->first->at = &n->next;
    l->first = n;
}
END
cat >write.c <<'END'
#include "list.h"
int main(void)
{
    pm_container *c = open_list("list.pm", PM_TRACKER_STORES);
    struct list *l = pm_calloc(c, 1, sizeof *l);
    pm_setroot(c, l, 0);
    for (int i = 0; i < 1000; i++) {
        push(l, pm_malloc(c, sizeof(struct node)));
        if (i % 100 == 99 && pm_commit(c) != 0)
            return 1;
    }
    return pm_close(c);
}
END
cat >read.c <<'END'
#include "list.h"
static int check(pm_container *c, long count)
{
    struct list *l = pm_getroot(c);
    struct node **at = &l->first;
    long number = l->count;
    for (struct node *n = l->first; n; at = &n->next, n = n->next)
        if (n->number != --number || n->at != at)
            return 1;
    return l->count != count || number != 0;
}
int main(void)
{
    pm_container *c[2] = {open_list("list.pm", PM_TRACKER_FAULTS), open_list("copy.pm", PM_TRACKER_FAULTS)};
    if (pm_getroot(c[0]) == pm_getroot(c[1]))
        return 1;
    for (int i = 0; i < 2; i++) {
        long count = ((struct list *)pm_getroot(c[i]))->count;
        if (check(c[i], count) != 0 || pm_check(c[i]) != 0)
            return 1;
        push(pm_getroot(c[i]), pm_malloc_typed(c[i], PM_TYPE(struct node, next, at), 1));
        if (pm_commit(c[i]) != 0 || check(c[i], count + 1) != 0 || pm_close(c[i]) != 0)
            return 1;
    }
    return 0;
}
END
"$pmcc" -O2 -Wall -Werror -I"$include" write.c -o write
gcc -O2 -Wall -Werror -I"$include" read.c -L"$library" -Wl,-rpath,"$library" -lpm -o read
./write
cp list.pm copy.pm
./read
# What gcc's program has made of the copy is moved once more.
cp copy.pm list.pm
./read
