#!/bin/sh
#
# types.sh INCLUDE-DIRECTORY C-COMPILER C++-COMPILER: PM_TYPE() compiles in each version of the languages
# without a warning, but for a field that is no pointer.
set -eu
include=$1 cc=$2 cxx=$3
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

cat >type.c <<'END'
#include <libpm.h>
struct node {
    struct node *next;
    void **array;
    char *text[2][3];
    long number;
    long numbers[2][2];
};
size_t size(void);
size_t size(void) { return PM_TYPE(struct node, FIELDS)->size; }
END
cp type.c type.cc

# compiles FIELDS: by $compile
compiles() {
    # shellcheck disable=SC2086 # several words
    $compile -Wall -Wextra -Werror "-I$include" "-DFIELDS=$1" -o type.o >output 2>&1
}

fail() {
    cat output
    echo "types.sh: $compile: $*" >&2
    exit 1
}

check() {
    compiles next,array,text || fail "pointers do not compile"
    for field in number numbers; do
        if compiles $field; then fail "$field is no pointer, and compiles"; fi
        grep -q 'field.is.not.a.pointer' output || fail "does not say that $field is no pointer"
    done
}

for compiler in gcc "$cc"; do
    for version in c89 gnu89 c99 gnu99 c11 gnu17; do
        compile="$compiler -std=$version -c type.c"
        check
    done
done
for compiler in g++ "$cxx"; do
    for version in c++17 gnu++20; do
        compile="$compiler -std=$version -c type.cc"
        check
    done
done
