#!/bin/sh
#
# fortified.sh CLANG WRAPPED.DEF: what _FORTIFY_SOURCE, and the version of C that a program is compiled for,
# make of a wrapped function is wrapped too.
set -eu
clang=$1 wrapped=$2

wraps() {
    grep -qE "^WRAP.*[( ]$1," "$wrapped"
}

# What libc has of names with this prefix and suffix.
found=0 missing=
check() {
    for name in $(printf '%s\n' "$defined" | sed -n "s/.* $1\([a-z0-9_]*\)$2@.*/\1/p"); do
        if wraps "$name"; then
            found=$((found + 1))
            wraps "$1$name$2" || missing="$missing $1$name$2"
        fi
    done
}

defined=$(nm -D --defined-only "$("$clang" -print-file-name=libc.so.6)")
check __ _chk
check __isoc99_ ''
check __isoc23_ ''
[ "$found" -gt 30 ] || missing=" all that libc has"
if [ -n "$missing" ]; then
    echo "wrapped.def lacks$missing" >&2
    exit 1
fi
