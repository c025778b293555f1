#!/bin/sh
#
# committing_operator.sh DIRECTORY-OF-PMCC INCLUDE: a program's own operator new may commit. With -fwrapv a
# pointer may lead outside its object meanwhile. Then the pass must make the pointer anew after the call.
set -eu
pmxx=$1/pm++ include=$2
directory=$(mktemp -d -p /dev/shm)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

cat >operators.cc <<'END'
#include <cassert>
#include <cstdlib>
#include <libpm.h>
#include <new>
pm_container *container;
bool is_to_commit;
void *operator new(size_t size)
{
    if (is_to_commit) {
        is_to_commit = false;
        assert(pm_commit(container) == 0);
        auto *numbers = *static_cast<long **>(pm_getroot(container));
        assert(pm_contains(container, numbers));
        numbers[5] += 1000;
    }
    return std::malloc(size);
}
void operator delete(void *p) noexcept
{
    std::free(p);
}
END
cat >outside.cc <<'END'
#include <cassert>
#include <cstdlib>
#include <libpm.h>
#include <new>
extern pm_container *container;
extern bool is_to_commit;
int *volatile kept;
volatile long distance = 100000;
__attribute__((noinline)) long read(long *numbers, long distance, long i)
{
    long *before = numbers - distance;
    kept = new int;
    return before[i];
}
int main(int, char **arguments)
{
    pm_options options = {sizeof options};
    options.flags = PM_CREATE | PM_DISCOVER;
    container = pm_open(arguments[1], &options);
    assert(container);
    auto **root = static_cast<long **>(pm_calloc(container, 1, sizeof(long *)));
    assert(root && pm_setroot(container, root, 0) == 0);
    *root = static_cast<long *>(std::calloc(10, sizeof(long)));
    (*root)[5] = 5;
    is_to_commit = true;
    long far = distance;
    assert(read(*root, far, far + 5) == 1005);
    delete kept;
    assert(pm_close(container) == 0);
}
END
for level in -O1 -O2; do
    "$pmxx" --discover -fwrapv $level -Wall -Werror -I"$include" outside.cc operators.cc -o program
    ./program c.pm
    rm c.pm
done
