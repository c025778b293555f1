#!/bin/sh
# emitted.sh CLANG PLUGIN FILECHECK SOURCE: check the comments CHECK in SOURCE against the output.
set -eu
clang=$1 plugin=$2 filecheck=$3 source=$4

"$clang" -O2 -fno-unroll-loops -fpass-plugin="$plugin" -S -emit-llvm "$source" -o - |
    "$filecheck" "$source"
# Without optimisation too: of outside() all is proven but what goes through two pointer variables.
marks=$("$clang" -O0 -fpass-plugin="$plugin" -S -emit-llvm "$source" -o - |
    sed -n '/@outside(/,/^}/p' | grep -c 'call preserve_mostcc void @pm__mark')
[ "$marks" = 2 ] || {
    echo "outside() has $marks marks at -O0, not 2" >&2
    exit 1
}
