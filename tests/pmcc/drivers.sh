#!/bin/sh
#
# drivers.sh DIRECTORY-OF-PMCC CLANG LLD PLUGIN: pmcc and pm++ as a user calls them. The library is
# a mock here that counts marks.
set -eu
pmcc=$1/pmcc pmxx=$1/pm++ clang=$2 lld=$3 plugin=$4
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

fail() {
    echo "drivers.sh: $*" >&2
    exit 1
}

# says TEXT COMMAND...: the command fails, and says so.
says() {
    text=$1
    shift
    if "$@" >output 2>&1; then
        fail "succeeded: $*"
    fi
    grep -q -e "$text" output || { cat output; fail "did not say '$text': $*"; }
}

# Their own help, not clang's hundreds of lines; but what is not an argument of theirs is clang's.
for driver in pmcc pm++; do
    "$1/$driver" --help >output || fail "$driver --help"
    for text in "^usage: $driver" '--discover' 'PM_TRACKER_STORES' 'LIBPM=static' "  $driver -O2 notes"; do
        grep -q -e "$text" output || fail "$driver --help says nothing of $text"
    done
    [ "$(wc -l <output)" -lt 30 ] || fail "$driver --help is clang's"
    "$1/$driver" --version | grep -q "clang version" || fail "$driver --version is not clang's"
done

cat >library.c <<'END'
#include <stddef.h>
static int marks;
__attribute__((preserve_most)) void pm__mark(const void *p) { marks += p != NULL; }
__attribute__((preserve_most)) void pm__mark_range(const void *p, size_t n) { marks += p != NULL && n; }
__attribute__((preserve_most)) void pm__mark_data(const void *p, size_t n) { marks += p != NULL && n; }
__attribute__((preserve_most)) void pm__mark_copy(const void *p, const void *q, size_t n) { marks += p != q && n; }
__attribute__((preserve_most)) unsigned long pm__kinds(const void *p, size_t n) { return p && n; }
int count(void) { return marks; }
END
"$clang" -shared -fPIC library.c -o libpm.so
cat >store.c <<'END'
void store(long *p, long x) { p[1] = x; }
END
# A page of the arena and of the table of marks; two stores to a line, and no mark is remembered.
cat >main.c <<'END'
#include <stdio.h>
#include <sys/mman.h>
extern int count(void);
extern void store(long *, long);
static void *map(unsigned long at)
{
    return mmap((void *)at, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}
int main(int argc, char **argv)
{
    long *arena = map(0x110000000000);
    map(0x510000000000);
    store(arena, argc);
    long *volatile p = arena;
    *p = argv != NULL;
    printf("%d\n", count());
    return 0;
}
END
cp main.c main.cc
sed -i 's/extern/extern "C"/; s/long \*arena = map/long *arena = (long *)map/' main.cc

link="-L. -Wl,-rpath,$directory"
marks() { # marks EXPECTED PROGRAM
    got=$("$2")
    [ "$got" = "$1" ] || fail "$got marks, not $1: $step"
}

for lto in -fno-lto -flto=full -flto=thin; do
    for level in -O0 -O1 -O2; do
        step="$lto $level"
        # shellcheck disable=SC2086 # several words
        {
            "$pmcc" $lto $level -c store.c -o store.o
            "$pmcc" $lto $level -c main.c -o main.o
            "$pmcc" $lto $level $link main.o store.o -o program
            marks 2 ./program
            "$pmcc" $lto $link main.c store.c -o program
            marks 2 ./program
            "$pmxx" $lto $level $link -x c++ main.cc -x none store.o -o program
            marks 2 ./program

            # The dynamic linker would not preserve what pm__mark() does, so no lazy binding.
            if readelf --wide --relocs program | grep -q 'JUMP_SLO.*pm__mark'; then
                fail "pm__mark() is called through the PLT: $step"
            fi

            # Files compiled without pmcc link with the others, and mark nothing.
            "$clang" -fno-lto $level -c store.c -o plain.o
            "$pmcc" $lto $level $link main.o plain.o -o program
            marks 1 ./program
        }
        [ "$lto" != -fno-lto ] || continue
        [ $level != -O0 ] || continue
        # Linkers that do not load the plugin must not make a program.
        for linker in "--ld-path=$lld" -fuse-ld=bfd; do
            says pm__not_marked "$clang" $lto $level "$linker" -L. main.o store.o -lpm -o program
        done
        says "would drop the marks" "$pmcc" $lto -fuse-ld=gold main.o store.o -o program
    done
done

# A file without marks has the same inline functions and classes, and comes first.
cat >shared.h <<'END'
template <class T> struct cell {
    T value;
    __attribute__((noinline)) void set(T x) { value = x; }
    virtual void reset() { value = 0; }
};
long store_there(long x, cell<long> *other);
END
cat >other.cc <<'END'
#include "shared.h"
extern "C" void keeps_its_name(void);
long store_there(long x, cell<long> *other)
{
    cell<long> here;
    here.set(x);
    other->reset();
    keeps_its_name();
    return here.value;
}
END
cat >copies.cc <<'END'
#include "shared.h"
#include <new>
#define main other_main
#include "main.cc"
#undef main
extern "C" __attribute__((used)) inline void keeps_its_name(void) {}
int main(int argc, char **)
{
    long *arena = (long *)map(0x110000000000);
    map(0x510000000000);
    auto *c = new (arena) cell<long>; /* a store to its first word */
    c->set(argc);
    int before = count();
    store_there(5, c); /* resets it */
    printf("%d\n", before * 10 + count());
    return c->value != 0;
}
END
"$clang" -O0 -c other.cc -o other.o
for lto in -fno-lto -flto=full -flto=thin; do
    for level in -O0 -O2; do
        step="copies $lto $level"
        "$pmxx" $lto $level -c copies.cc -o copies.o
        # shellcheck disable=SC2086 # several words
        "$pmxx" $lto $level $link other.o copies.o plain.o -o program
        marks 23 ./program
    done
done

step="plain clang with the plugin"
"$clang" -O2 -fpass-plugin="$plugin" main.c store.c -L. -Wl,-rpath,"$directory" -lpm -o program
marks 2 ./program

step="arguments in a file"
echo '-flto "-O2"' >arguments
echo "@arguments main.c '-DUNUSED=1 2'" >more_arguments
# shellcheck disable=SC2086 # several words
"$pmcc" $link @more_arguments store.c -o program
marks 2 ./program

step="files behind --"
cp store.c ./-store.c
# shellcheck disable=SC2086 # several words
"$pmcc" -O2 $link -o program -- main.c -store.c
marks 2 ./program

step="headers"
echo 'extern void store(long *, long);' >store.h
for arguments in "store.h" "-x c-header store.h" "-xc-header store.c" "-- store.h"; do
    # shellcheck disable=SC2086 # several words
    "$pmcc" -o store.h.pch $arguments || fail "not compiled: $arguments"
done
# shellcheck disable=SC2086 # several words
"$pmcc" $link -x c store.h -x none main.c store.c -o program
marks 2 ./program

# An archive that is linked is no C.
for library in "shared --discover" "static --discover" "static "; do
    # shellcheck disable=SC2086 # several words
    LIBPM=${library%% *} "$pmcc" -### ${library#* } -x c store.c -o program >output 2>&1
    [ "$(grep -c '"-cc1"' output)" = 1 ] || { cat output; fail "compiles a library: $library"; }
done

step="declarations that are not libc's"
# warns TEXT DECLARATION
warns() {
    local level
    for level in -O0 -O2; do
        printf '%s\nint fill(char *p) { return read(0, p, 8); }\n' "$2" >old.c
        "$pmcc" -std=c89 $level -c old.c -o old.o 2>output
        [ "$(grep -c "$1" output)" = 1 ] || { cat output; fail "no warning, or several"; }
    done
}
warns 'declared without parameters' 'int read();'
warns 'declared with other integers' 'int read(int, void *, unsigned);'
printf 'long read(int, void *, unsigned long);\nint fill(char *p) { return read(0, p, 8); }\n' >old.c
"$pmcc" -O2 -c old.c -o old.o 2>output
[ ! -s output ] || { cat output; fail "warns of libc's own declaration"; }

"$pmcc" --version | grep -q clang || fail "no version"
says "no input files" "$pmcc"
LIBPM=neither says "must be shared or static" "$pmcc" main.c

# Of arrays of a variable length it has nothing to say.
cat >array.c <<'END'
void fill(char *p, unsigned long n);
void fill_all(unsigned long n)
{
    while (n--) {
        char array[n];
        fill(array, n);
    }
}
END
for level in -O0 -O2; do
    "$pmcc" -Wall -Wextra -Werror $level -c array.c || fail "a warning"
done

# What is left on the stack is not left in a union of which a part is set.
cat >residue.c <<'END'
#include <string.h>
union value { void *pointer; unsigned short number; };
__attribute__((noinline)) unsigned long leave(void)
{
    volatile unsigned long words[64];
    for (int i = 0; i < 64; i++)
        words[i] = -1ul;
    return words[3];
}
__attribute__((noinline)) unsigned long word(void)
{
    union value value;
    unsigned long word;
    value.number = 7;
    memcpy(&word, &value, sizeof word);
    return word;
}
int main(void) { return leave() != -1ul || word() != 7; }
END
# shellcheck disable=SC2086 # several words
"$pmcc" -O0 $link residue.c -o program
./program || fail "a variable begins with what was on the stack"
# shellcheck disable=SC2086 # several words
"$pmcc" -O0 $link -ftrivial-auto-var-init=uninitialized residue.c -o program
if ./program; then fail "the user has no say in how variables begin"; fi

# But for large variables, of which that would be most of the cost.
cat >large.c <<'END'
void use(char *);
void use_small(void) { char small[1024]; use(small); }
void use_large(void) { char large[1025]; use(large); }
END
"$pmcc" -O2 -S -emit-llvm large.c -o large.ll
grep -q 'memset.*i64 1024,' large.ll || fail "a variable of 1024 bytes does not begin as zeros"
if grep -q 'memset.*i64 1025,' large.ll; then fail "a variable of 1025 bytes is cleared"; fi

# What it cannot see it warns of.
cat >unseen.c <<'END'
void save(void *p) { __builtin_ia32_xsave(p, ~0ull); }
END
says "does not know what llvm.x86.xsave writes" "$pmcc" -Werror -mxsave -c unseen.c
cat >unseen.c <<'END'
void clear(char *p, unsigned long n) { __asm__("rep stosb" : "+D"(p), "+c"(n), "=m"(*(char(*)[])p) : "a"(0)); }
END
says "does not know how much inline assembly writes" "$pmcc" -Werror -c unseen.c
