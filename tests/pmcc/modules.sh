#!/bin/sh
#
# modules.sh DIRECTORY-OF-PMCC CLANG LLD SOURCE-DIRECTORY: the tables of `pmcc --discover` in programs of several
# modules: sections dropped by the linker, shared objects, those that are loaded and unloaded. The
# library is a mock here that knows what is registered.
set -eu
pmcc=$1/pmcc pmxx=$1/pm++ clang=$2 lld=$3 source=$4
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

fail() {
    echo "modules.sh: $*: $step" >&2
    exit 1
}

cat >library.c <<'END'
#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include "runtime/heap.h"
static const struct pm__roots *all[8];
void pm__register(const struct pm__roots *roots)
{
    for (int i = 0; i < 8; i++) {
        assert(all[i] != roots);
        if (!all[i]) {
            all[i] = roots;
            return;
        }
    }
    abort();
}
void pm__unregister(const struct pm__roots *roots)
{
    for (int i = 0; i < 8; i++)
        if (all[i] == roots) {
            all[i] = NULL;
            return;
        }
    abort();
}
int modules(void)
{
    int count = 0;
    for (int i = 0; i < 8; i++)
        count += all[i] != NULL;
    return count;
}
/* How many entries there are, of anything, for this address. */
int entries(const void *address)
{
    int count = 0;
    for (int i = 0; i < 8; i++) {
        if (!all[i])
            continue;
        for (const struct pm__global *g = all[i]->globals; g < all[i]->globals_end; g++)
            count += g->address == address;
        for (const struct pm__local *l = all[i]->locals; l < all[i]->locals_end; l++)
            count += l->address() == address;
        for (const struct pm__function *f = all[i]->functions; f < all[i]->functions_end; f++)
            count += f->start == address;
    }
    return count;
}
int functions(void)
{
    int count = 0;
    for (int i = 0; i < 8; i++)
        count += all[i] ? (int)(all[i]->functions_end - all[i]->functions) : 0;
    return count;
}
void *pm__malloc(size_t n) { return malloc(n); }
void *pm__memalign(size_t a, size_t n) { return aligned_alloc(a, n); }
void *pm__realloc(void *p, size_t n) { return realloc(p, n); }
void pm__free(void *p) { free(p); }
size_t pm__malloc_usable_size(void *p) { return p != NULL; }
__attribute__((preserve_most)) void pm__mark(const void *p) { assert(p); }
__attribute__((preserve_most)) void pm__mark_range(const void *p, size_t n) { assert(p && n); }
END
step="the mock"
"$clang" -shared -fPIC -I"$source" library.c -o libpm.so

cat >library.h <<'END'
#ifdef __cplusplus
extern "C" {
#endif
int modules(void);
int entries(const void *address);
int functions(void);
#ifdef __cplusplus
}
#endif
END
cat >other.c <<'END'
#include "library.h"
void *unused_variable;
void *used_variable;
void unused_function(void) { unused_variable = 0; }
void used_function(void) { used_variable = &used_variable; }
END
cat >main.c <<'END'
#include <stdio.h>
#include "library.h"
extern void *used_variable;
void used_function(void);
static _Thread_local void *local;
int main(void)
{
    used_function();
    printf("%d %d %d %d, %d functions in %d\n", entries(main), entries(used_function),
           entries(&used_variable), entries(&local), functions(), modules());
    return 0;
}
END
link="-L. -Wl,-rpath,$directory"
says() { # says TEXT PROGRAM
    got=$("$2")
    [ "$got" = "$1" ] || fail "'$got', not '$1'"
}

for lto in -fno-lto -flto=full -flto=thin; do
    for level in -O0 -O2; do
        for linker in bfd lld; do
            [ "$lto" = -fno-lto ] || [ $linker = lld ] || continue
            step="$lto $level $linker"
            flags="--discover $lto $level"
            case $linker in
            bfd) ld=-fuse-ld=bfd ;;
            lld) ld=--ld-path=$lld ;;
            esac
            # shellcheck disable=SC2086 # several words
            {
                # All, then only what is used.
                "$pmcc" $flags -c main.c other.c
                "$pmcc" $flags $ld $link main.o other.o -o program
                [ "$lto" != -fno-lto ] || says "1 1 1 1, 3 functions in 1" ./program
                "$pmcc" $flags -ffunction-sections -fdata-sections -c main.c other.c
                "$pmcc" $flags $ld $link -Wl,--gc-sections main.o other.o -o program
                case $linker in
                bfd) says "1 1 1 1, 3 functions in 1" ./program ;; # it keeps what tables name
                lld) says "1 1 1 1, 2 functions in 1" ./program ;;
                esac
            }
        done
    done
done

# Shared objects have tables of their own. The first is linked with the program, which has its variable
# (so does the linker where the program does not use a table of offsets), the second is loaded.
cat >shared.cc <<'END'
#include "library.h"
void *variable;
thread_local void *local;
inline void *common;
extern "C" void *variable_address() { return &variable; }
extern "C" void *local_address() { return &local; }
extern "C" void *common_address() { return &common; }
extern "C" int own_function() { return entries((void *)&own_function); }
END
cat >loads.cc <<'END'
#include <dlfcn.h>
#include <cassert>
#include "library.h"
extern void *variable;
inline void *common;
extern "C" void *variable_address();
extern "C" void *local_address();
extern "C" void *common_address();
int main(int, char **argv)
{
    assert(modules() == 2);
    assert(entries(&variable) && variable_address() == &variable);
    assert(entries(&common) && common_address() == &common);
    assert(entries(local_address()) == 1);
    for (int i = 1; i <= 2; i++) {
        int before = functions();
        void *object = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        assert(object && modules() == 3 && functions() > before);
        assert(entries(dlsym(object, "local_address")) == 1);
        auto own = (void *(*)())dlsym(object, "local_address");
        if (i == 1) // the names of the first object loaded count
            assert(own() == local_address() && entries(own()) == 2);
        else
            assert(own() != local_address() && entries(own()) == 1);
        auto function = (int (*)())dlsym(object, "own_function");
        assert(function() == 1);
        dlclose(object);
        assert(modules() == 2 && functions() == before);
    }
}
END
for level in -O0 -O2; do
    for pie in -no-pie -pie; do
        step="shared objects $level $pie"
        flags="--discover $level -std=c++20 -Wno-pointer-bool-conversion"
        pic=-fPIE
        [ $pie = -pie ] || pic=-fno-pie
        # shellcheck disable=SC2086 # several words
        {
            "$pmxx" $flags -fPIC -shared $link shared.cc -o linked.so
            cp linked.so loaded.so
            "$pmxx" $flags -fPIC -shared $link -Wl,-Bsymbolic shared.cc -o apart.so
            "$pmxx" $flags $pic $pie $link loads.cc -Wl,-rpath,"$directory" linked.so -o program
            ./program "$directory/loaded.so" "$directory/apart.so" || fail "a table is wrong"
        }
    done
done

# A program's own operators are called by all of it, also through those that it does not replace.
cat >replaced.cc <<'END'
#include <cstdlib>
#include <new>
int allocations, releases;
void *operator new(size_t size)
{
    allocations++;
    return std::malloc(size);
}
void operator delete(void *p) noexcept
{
    releases++;
    std::free(p);
}
END
cat >calls.cc <<'END'
#include <cassert>
#include <new>
extern int allocations, releases;
int *volatile kept;
int main()
{
    kept = new int;
    delete kept;
    kept = new int[3];
    delete[] kept;
    kept = new (std::nothrow) int;
    delete kept;
    assert(allocations == 3 && releases == 3);
}
END
for lto in -fno-lto -flto=full -flto=thin; do
    for level in -O0 -O2; do
        step="replaced operators $lto $level"
        # shellcheck disable=SC2086 # several words
        "$pmxx" --discover $lto $level $link calls.cc replaced.cc -o program
        ./program || fail "an operator was not called"
    done
done
