#!/bin/sh
#
# glib.sh PORT VOLATILE PM: what malloc'ed memory of a library that pmcc has not compiled leads to.
# Commits fail, and say where; the container has nothing of it.
set -eu
port=$1 volatile=$2 pm=$3
directory=$(mktemp -d /dev/shm/libpm-ports-XXXXXX)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

fail() {
    echo "glib.sh: $*" >&2
    cat errors >&2
    exit 1
}

echo "to be or not to be" >text
"$volatile" <text | grep -qx "words: 6, different ones: 4"
for run in first second; do
    status=0
    "$port" <text >answers 2>errors || status=$?
    [ $status -eq 1 ] || fail "status $status of the $run run"
    grep -q "the pointer 0x[0-9a-f]* at byte 0 of the object of 16 bytes at 0x[0-9a-f]*, to which the \
container leads, leads to what cannot move there" errors || fail "another message"
    "$pm" info words.pm >errors
    grep -q "^root *none" errors || fail "there is a root"
    grep -q "^objects *0 of" errors || fail "there are objects"
done
