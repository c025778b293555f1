#!/bin/sh
#
# metradb_crash.sh PM HISTORY [OPTION...]: METRADB crashes at every event of a put, a replacement, a
# batch and a deletion, on both media; `pm crash` explores with these options.
set -u
pm=$1 history=$2
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../tool/expect.sh
. "$here/../tool/expect.sh"
shift 2
directory=$(mktemp -d /dev/shm/libpm-metradb-XXXXXX)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
export TMPDIR="$directory"
file=$directory/db.pm

for medium in pmem file; do
    rm -f "$file"
    expect 0 crash --medium $medium "$@" --check "'$history' --check '$file'" -- "$history" "$file" 8
    says "9 commits" "all are as they should be"
done
