#!/bin/sh
#
# fortified.sh CLANG WRAPPED.DEF: what _FORTIFY_SOURCE makes of a wrapped function is wrapped too.
set -eu
clang=$1 wrapped=$2

wraps() {
    grep -qE "^WRAP.*[( ]$1," "$wrapped"
}

found=0 missing=
for name in $(nm -D --defined-only "$("$clang" -print-file-name=libc.so.6)" |
    sed -n 's/.* __\([a-z0-9_]*\)_chk@.*/\1/p'); do
    if wraps "$name"; then
        found=$((found + 1))
        wraps "__${name}_chk" || missing="$missing __${name}_chk"
    fi
done
[ "$found" -gt 30 ] || missing=" all that libc has"
if [ -n "$missing" ]; then
    echo "wrapped.def lacks$missing" >&2
    exit 1
fi
