#!/bin/sh
#
# crash.sh PM PORT VOLATILE TRANSCRIPT LINES LOOK [OPTION...]: the port is crashed by `pm crash` at the
# moments that the options choose, on persistent memory and on a file, while it does the first lines of
# a transcript. What it has then is what the volatile program has after as many commands as there were
# commits, or one more. If LIBPM_LONG is set, it is crashed at every moment.
set -u
pm=$1 port=$2 volatile=$3 transcript=$4 lines=$5 look=$6
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../tool/expect.sh
. "$here/../tool/expect.sh"
shift 6
[ -z "${LIBPM_LONG:-}" ] || set -- --seeds 1
directory=$(mktemp -d /dev/shm/libpm-ports-XXXXXX)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
export TMPDIR="$directory"

printf '%s\n' "$look" >look
sed -n 's/^> *//p' "$transcript" | head -n "$lines" >commands
for count in $(seq 0 "$lines"); do
    head -n "$count" commands >before
    bytes=$("$volatile" <before | wc -c)
    cat before look | "$volatile" | tail -c +$((bytes + 1)) >"expected.$count"
done
cp "expected.$lines" "expected.$((lines + 1))"
cat >check <<END
'$port' <'$directory/look' >'$directory/found' || exit 1
cmp '$directory/expected.'\$LIBPM_CRASH_COMMITS '$directory/found' && exit 0
cmp '$directory/expected.'\$((LIBPM_CRASH_COMMITS + 1)) '$directory/found'
END

for medium in pmem file; do
    expect 0 crash "$@" --medium $medium --check "sh '$directory/check'" -- "$port" <commands
    says "$lines commits" "all are as they should be"
    cat output
    rm -f ./*.pm
done
