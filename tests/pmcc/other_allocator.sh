#!/bin/sh
#
# other_allocator.sh DIRECTORY-OF-PMCC DIRECTORY-OF-LIBPM CLANG: a program with discovery runs with another
# malloc() than libc's, preloaded or linked. Memory that libc or a library has allocated goes back to it.
set -eu
pmcc=$1/pmcc library=$2 clang=$3
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

fail() {
    echo "other_allocator.sh: $*" >&2
    exit 1
}

# An allocator that takes back its own memory only. The header of an object has its size.
cat >allocator.c <<'END'
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define MAGIC 0x616c6c6f63617465
struct header {
    uint64_t magic, size;
};
static _Alignas(4096) char memory[16 << 20];
static _Atomic size_t used;
_Atomic long frees, reallocs;
static struct header *header_of(void *p)
{
    struct header *h = (struct header *)p - 1;
    if ((char *)p < memory || (char *)p >= memory + sizeof memory || h->magic != MAGIC)
        abort();
    return h;
}
static void *allocate(size_t alignment, size_t size)
{
    size_t bytes = (size + sizeof(struct header) + 2 * alignment) & ~(size_t)15, at = used += bytes;
    if (at > sizeof memory)
        abort();
    uintptr_t p = ((uintptr_t)memory + at - bytes + sizeof(struct header) + alignment - 1) & ~(alignment - 1);
    ((struct header *)p)[-1] = (struct header){MAGIC, size};
    return (void *)p;
}
void *malloc(size_t size) { return allocate(16, size); }
void *calloc(size_t n, size_t size) { return allocate(16, n * size); }
void *memalign(size_t alignment, size_t size) { return allocate(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return allocate(alignment, size); }
int posix_memalign(void **p, size_t alignment, size_t size)
{
    *p = allocate(alignment, size);
    return 0;
}
void free(void *p)
{
    if (p && header_of(p))
        frees++;
}
void *realloc(void *p, size_t size)
{
    void *q = malloc(size);
    reallocs++;
    if (p)
        memcpy(q, p, header_of(p)->size < size ? header_of(p)->size : size);
    return q;
}
size_t malloc_usable_size(void *p) { return p ? header_of(p)->size : 0; }
END
# A library that pmcc has not compiled. Its constructor runs before the program's. An error of the dynamic linker
# is pending then, whose message the next look-up frees.
cat >foreign.c <<'END'
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
char *foreign_text;
__attribute__((constructor)) static void begin(void)
{
    if (dlopen("/no such library.so", RTLD_NOW))
        abort();
    free(malloc(10));
    foreign_text = realloc(strdup("text"), 100);
}
void foreign_free(void *p) { free(p); }
END
cat >program.c <<'END'
#include <assert.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
extern char *foreign_text;
void foreign_free(void *);
__attribute__((weak)) extern long frees, reallocs;
int main(int count, char **arguments)
{
    assert(strcmp(foreign_text, "text") == 0);
    int is_other = count > 1;
    assert(is_other == (&frees != NULL));
    long frees_before = is_other ? frees : 0, reallocs_before = is_other ? reallocs : 0;
    char *path = realpath("/", NULL);
    assert(path && strcmp(path, "/") == 0 && malloc_usable_size(path) >= 2);
    path = realloc(path, 5000);
    assert(path && strcmp(path, "/") == 0 && malloc_usable_size(path) >= 5000);
    free(path);
    foreign_free(foreign_text);
    foreign_free(strdup("ours"));
    assert(!is_other || (frees - frees_before >= 2 && reallocs - reallocs_before == 1));
    return arguments[0] == NULL;
}
END
"$clang" -O2 -fno-builtin -fPIC -shared allocator.c -o liballocator.so
"$clang" -O2 -fno-builtin -fPIC -shared foreign.c -o libforeign.so
"$pmcc" --discover -O2 program.c -L. -lforeign -Wl,-rpath,"$directory" -o program
./program || fail "with libc's allocator"
LD_PRELOAD=$directory/liballocator.so ./program other || fail "with a preloaded allocator"
"$pmcc" --discover -O2 program.c -L. -lforeign -lallocator -Wl,-rpath,"$directory" -o linked
./linked other || fail "with a linked allocator"
