#!/bin/sh
#
# transcript.sh --together|--apart PROGRAM TRANSCRIPT...: the program, given the lines that begin with
# '>', answers what stands in the others, in a directory where nothing is yet. --apart: each line is
# given to a process of its own, so that nothing is left of it but what it has committed.
set -eu
how=$1 program=$2
shift 2
directory=$(mktemp -d /dev/shm/libpm-ports-XXXXXX)
trap 'rm -rf "$directory"' EXIT

answer() {
    if [ "$how" = --together ]; then
        "$program"
    else
        while IFS= read -r line; do
            printf '%s\n' "$line" | "$program"
        done
    fi
}

for transcript; do
    mkdir "$directory/here"
    sed -n 's/^> *//p' "$transcript" | (cd "$directory/here" && answer) >"$directory/answers"
    grep -v '^>' "$transcript" | diff - "$directory/answers"
    rm -r "$directory/here"
done
