#!/bin/sh
#
# transcript.sh PROGRAM TRANSCRIPT...: the program, given the lines that begin with '>', answers what
# stands in the others, in a directory where nothing is yet.
set -eu
program=$1
shift
directory=$(mktemp -d /dev/shm/libpm-ports-XXXXXX)
trap 'rm -rf "$directory"' EXIT
for transcript; do
    mkdir "$directory/here"
    sed -n 's/^> *//p' "$transcript" | (cd "$directory/here" && "$program") >"$directory/answers"
    grep -v '^>' "$transcript" | diff - "$directory/answers"
    rm -r "$directory/here"
done
