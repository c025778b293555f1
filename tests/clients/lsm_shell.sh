#!/usr/bin/env bash
#
# The shell of the LSM store, as lsm.1 describes it.
#
#   lsm_shell.sh LSM
set -euo pipefail

lsm=$1
directory=$(mktemp -d /dev/shm/libpm-lsm-XXXXXX)
trap 'rm -rf "$directory"' EXIT
a=$directory/a b=$directory/b

fail() {
    echo "$1" >&2
    exit 1
}

# status EXPECTED COMMAND...
status() {
    local expected=$1 got=0
    shift
    "$@" >"$directory/out" 2>"$directory/err" || got=$?
    ((got == expected)) || fail "$*: status $got, not $expected: $(cat "$directory/err")"
}

# prints EXPECTED COMMAND...
prints() {
    local expected=$1
    shift
    status 0 "$@"
    [[ $(cat "$directory/out") == "$expected" ]] || fail "$*: printed $(cat "$directory/out")"
}

status 3 "$lsm" "$a" get apple
grep -q "$a" "$directory/err" || fail "the error does not name the directory"
status 2 "$lsm" "$a"
status 2 "$lsm" "$a" sell
status 0 "$lsm" --help
status 0 "$lsm" "$a" put apple red
printf 'a\tb\n\0' | status 0 "$lsm" "$a" put strange
prints red "$lsm" "$a" get apple
status 1 "$lsm" "$a" get pear
printf 'pear\tgreen\nplum\tblue\nnothing\n' | status 0 "$lsm" "$a" batch --whole
prints $'apple\tred\npear\tgreen' "$lsm" "$a" scan a pf
prints $'plum\tblue' "$lsm" "$a" scan pf --limit 1
printf 'fig\tbrown\na\tb\tc\n' | status 3 "$lsm" "$a" batch --whole
grep -q 'line 2' "$directory/err" || fail "the error does not name the line"
status 1 "$lsm" "$a" get fig
status 0 "$lsm" "$a" delete plum
status 1 "$lsm" "$a" get plum

"$lsm" "$a" scan | "$lsm" "$b" batch
cmp <("$lsm" "$a" scan) <("$lsm" "$b" scan) || fail "a copy by lines differs"
for i in {1..5000}; do printf 'key%d\tvalue %d\n' "$i" "$i"; done | "$lsm" "$b" batch
status 0 "$lsm" "$b" compact
prints 'value 4711' "$lsm" "$b" get key4711
status 0 "$lsm" "$b" check
prints $'0 0 0' head -1 <("$lsm" "$b" stats)
status 0 "$lsm" --memtables nosst --container "$directory/pm" "$b" put new memory
prints memory "$lsm" "$b" get new
[[ $("$lsm" "$b" stats | tail -1) == container* ]] || fail "the memtable is not in the container"
status 0 "$lsm" "$b" check
status 0 "$lsm" --memtables dram --fast-directory "$directory/fast" --fast-levels 1 "$b" compact
prints memory "$lsm" "$b" get new
printf 'X' | dd of="$(ls "$b"/*.table)" conv=notrunc status=none
status 3 "$lsm" "$b" check
grep -q 'offset 0: a block of a table is damaged; restore' "$directory/err" || fail "damage is not named"

status 0 "$lsm" --memtables keylsm "$a" put apart "a value that is long enough to lie in a file"
status 0 "$lsm" "$a" compact
status 0 "$lsm" "$a" put apart "another value that is long enough to lie in a file"
status 0 "$lsm" "$a" compact
status 0 "$lsm" "$a" collect
prints 'another value that is long enough to lie in a file' "$lsm" "$a" get apart
[[ $(stat -c %s "$a"/*.values) == 54 ]] || fail "the garbage was not collected"
status 0 "$lsm" "$a" check
