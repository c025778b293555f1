#!/bin/sh
#
# unlimited_stack.sh DIRECTORY-OF-PMCC: programs compiled by pmcc where the stack is unlimited, so that the
# kernel maps what they allocate inside the arena. They run, but can open no container, and are told why.
set -eu
pmcc=$1/pmcc
(ulimit -s unlimited) 2>/dev/null || {
    echo "this user may not have an unlimited stack" >&2
    exit 77
}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

cat >stores.c <<'END'
#include <libpm.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
enum { SIZE = 64 << 20 };
static char *volatile *memory;
static void *store(void *text)
{
    for (int i = 0; i < SIZE / 4096; i++)
        memory[i * 512] = text;
    strcpy((char *)(memory + 1), text);
    return NULL;
}
static int check(const char *text)
{
    return strcmp(memory[0], text) == 0 && strcmp(memory[SIZE / 8 - 512], text) == 0 &&
           strcmp((const char *)(memory + 1), text) == 0;
}
int main(void)
{
    pthread_t thread;
    int status;
    memory = malloc(SIZE);
    if ((uintptr_t)memory >> 40 < 17 || (uintptr_t)memory >> 40 >= 81)
        return 10;
    store("main");
    if (!check("main"))
        return 11;
    if (pthread_create(&thread, NULL, store, "thread") != 0 || pthread_join(thread, NULL) != 0 ||
        !check("thread"))
        return 12;
    if (fork() == 0) {
        store("child");
        _exit(!check("child"));
    }
    if (wait(&status) < 0 || status != 0)
        return 13;
    if (pm_open("c.pm", &(struct pm_options){.size = sizeof(struct pm_options), .flags = PM_CREATE}))
        return 14;
    printf("%s\n", pm_errormsg());
    store("again");
    return !check("again");
}
END
# Where it is not, programs that open no container have no table of marks.
cat >small.c <<'END'
#include <stdio.h>
int main(void)
{
    long pages;
    return fscanf(fopen("/proc/self/statm", "r"), "%ld", &pages) != 1 || pages > 1L << 20;
}
END
"$pmcc" -O2 -Wall -Werror small.c -o small
(ulimit -s 8192 && ./small) || {
    echo "a program that opens nothing has much mapped" >&2
    exit 1
}

for level in -O0 -O2; do
    for library in shared static; do
        LIBPM=$library "$pmcc" $level -Wall -Werror stores.c -pthread -o stores
        message=$(ulimit -s unlimited && ./stores) || {
            echo "$level, $library: status $?" >&2
            exit 1
        }
        case $message in
        c.pm:*"ulimit -s 8192"*) ;;
        *)
            echo "$level, $library: '$message' names no remedy" >&2
            exit 1
            ;;
        esac
    done
done
