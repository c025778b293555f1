#!/bin/sh
#
# crash.sh PM PROGRAM CASE SAYS [OPTION...]: `PROGRAM FILE CASE` is crashed by `pm crash` with these
# options, on persistent memory and on a file; `PROGRAM --check FILE CASE` finds no fault, and the
# report says SAYS. If LIBPM_LONG is set, at every event.
set -u
pm=$1 program=$2 case=$3 reported=$4
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../tool/expect.sh
. "$here/../tool/expect.sh"
shift 4
[ -z "${LIBPM_LONG:-}" ] || set -- --seeds 1
directory=$(mktemp -d /dev/shm/libpm-crash-XXXXXX)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
export TMPDIR="$directory"
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"

for medium in pmem file; do
    expect 0 crash "$@" --medium $medium --check "'$program' --check data '$case'" -- "$program" data "$case"
    says "$reported" "all are as they should be"
    cat output
    rm -f data
done
