#!/usr/bin/env bash
#
# pieces.sh DIRECTORY-OF-PMCC GENERATOR SEED LIMIT: run programs of functions made up at random (pieces.h).
# Each program has a seed of its own, and is compiled with other options. The limit is a number of programs,
# like 40, or a time, like 40s.
#
# A function that fails loses statements as long as it fails. The script prints the rest of the function, and
# the command that repeats it.
set -eu
shopt -s inherit_errexit
here=$(cd "$(dirname "$0")" && pwd)
directory=$1 generator=$2 seed=$3 limit=$4
export LIBPM=static

options=(-O0 -O2 -O1 "-O3 -fno-strict-aliasing" "-O2 -x c++" -Os "-O0 -x c++" "-O2 -fno-strict-aliasing"
    -O3 "-O2 -flto" "-O1 -fno-strict-aliasing" "-O0 -flto" "-Os -fno-strict-aliasing" "-O2 -flto=thin"
    "-O3 -x c++")
! grep -q ' avx2' /proc/cpuinfo || options+=("-O3 -mavx2")
# These are not among the options of a number of programs: then each seed would have others.
[[ $limit != *s ]] || ! grep -q ' avx512bw' /proc/cpuinfo ||
    options+=("-O3 -march=x86-64-v4" "-O2 -march=x86-64-v4 -fno-strict-aliasing"
        "-O3 -march=x86-64-v4 -mprefer-vector-width=512")
functions=60

work=$(mktemp -d /dev/shm/libpm-pieces.XXXXXX)
trap 'rm -rf "$work"' EXIT
"$directory/pmcc" -O1 -c "$here/pieces_main.c" -o "$work/main.o"

# try OPTIONS ARGUMENT-OF-GENERATOR...: 0 if the program is right, 1 if there is a defect, 2 if there is no
# program. Leaves the program, and what it prints.
try() {
    local options=$1 status=0
    shift
    "$generator" "$@" >"$work/program.c" || return 2
    # shellcheck disable=SC2086 # several options
    "$directory/pmcc" -w $options -I "$here" "$work/program.c" -x none "$work/main.o" -o "$work/program" \
        2>"$work/errors" || return 2
    "$work/program" "$work" >"$work/said" 2>&1 || status=$?
    rm -f "$work"/libpm-pieces-*
    [ $status -le 1 ] || status=1
    return $status
}

# shrink OPTIONS SEED FUNCTION: drop statements, the last one first, as long as the function fails.
shrink() {
    local options=$1 dropped=() again=yes number status
    try "$options" "$2" "$3" 1 && {
        echo "VIOLATION, but not of the function alone: $options, seed $2, function $3"
        return
    }
    while [ $again = yes ]; do
        again=no
        for number in $(sed -n 's|^    /\* \([0-9]*\) \*/$|\1|p' "$work/program.c" | sort -rn); do
            status=0
            try "$options" "$2" "$3" 1 "${dropped[@]}" "$number" || status=$?
            [ $status -ne 1 ] || dropped+=("$number") again=yes
        done
        try "$options" "$2" "$3" 1 "${dropped[@]}" || true
    done
    sed -n '/^NOINLINE/,/^}/p' "$work/program.c"
    cat "$work/said"
    echo "VIOLATION: pmcc $options, pieces_program $2 $3 1 ${dropped[*]}"
}

first=$seed failed=0 moved=0 refused=0
SECONDS=0
while case $limit in *s) ((SECONDS < ${limit%s})) ;; *) ((seed < first + limit)) ;; esac; do
    option=${options[seed % ${#options[@]}]} status=0
    try "$option" "$seed" 0 $functions || status=$?
    if [ $status -eq 2 ]; then
        cat "$work/errors"
        exit 2
    elif [ $status -ne 0 ]; then
        cp "$work/said" "$work/all"
        cat "$work/all"
        for number in $(sed -n 's/^function \([0-9]*\):.*/\1/p' "$work/all" | sort -nu); do
            shrink "$option" "$seed" "$number"
            failed=$((failed + 1))
        done
        grep -q '^function ' "$work/all" || echo "VIOLATION: pmcc $option, seed $seed, all functions"
        failed=$((failed + 1))
    else
        read -r _ _ pointers _ others _ <"$work/said"
        moved=$((moved + pointers)) refused=$((refused + others))
    fi
    seed=$((seed + 1))
done
echo "pieces: $(((seed - first) * functions)) functions, $moved pointers translated," \
    "$refused commits refused, $failed failed"
[ $failed -eq 0 ]
