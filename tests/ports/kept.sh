#!/bin/sh
#
# kept.sh PROGRAM: several runs of kept.c, in a directory of their own.
set -eu
directory=$(mktemp -d /dev/shm/libpm-ports-XXXXXX)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
for run in 0 1 2; do
    "$1" $run
done
