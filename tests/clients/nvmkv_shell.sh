#!/bin/sh
#
# nvmkv_shell.sh NVMKV FIRST SOURCES: the shell of NVMKV as a user and a pipe have it, and the first
# program of its README.
set -u
nvmkv=$1 first=$2 sources=$3
directory=$(mktemp -d /dev/shm/libpm-nvmkv-XXXXXX)
trap 'rm -rf "$directory"' EXIT
trap 'exit 1' TERM # from a failure behind a pipe, in a shell of its own
cd "$directory" || exit 1

fail() {
    echo "$*; the output was:" >&2
    cat output >&2
    kill $$
    exit 1
}

# expect STATUS OUTPUT ARGUMENT...: `nvmkv ARGUMENT...` ends so, and has said that and no more.
expect() {
    wanted=$1 says=$2
    shift 2
    "$nvmkv" "$@" >output 2>errors
    got=$?
    [ $got -eq "$wanted" ] || fail "status $got, not $wanted: nvmkv $*: $(cat errors)"
    [ "$(cat output)" = "$says" ] || fail "nvmkv $*"
    [ $got -ne 2 ] || [ -s errors ] || fail "no message: nvmkv $*"
}

expect 2 "" s.kv get a
[ ! -e s.kv ] || fail "made by a get"
expect 0 "" s.kv put a "the value of a"
expect 0 "the value of a" s.kv get a
expect 1 "" s.kv get b
expect 1 "" s.kv exists b
expect 1 "" s.kv delete b
head -c 70000 /dev/urandom >large
"$nvmkv" s.kv put large <large || fail "put from a pipe"
"$nvmkv" s.kv get large | head -c 70000 | cmp - large || fail "another value came back"
expect 0 "" s.kv delete large

printf 'create-pool p\n\nput  b  two  words\nget b\n' | expect 0 "two  words" s.kv
expect 0 "$(printf '0\t2 pairs\t1024 bytes\t\n1\t0 pairs\t0 bytes\tp')" s.kv pools
expect 0 "" --pool p s.kv put c 3
expect 0 "$(printf 'c\t3')" --pool p s.kv list
expect 1 "" s.kv get c
expect 2 "" --pool q s.kv get c
printf 'get a\nget c\nget b\n' | expect 1 "$(printf 'the value of a\ntwo  words')" s.kv
printf 'get a\ngte c\nget b\n' | expect 2 "the value of a" s.kv
grep -q "line 2: gte: there is no such command" errors || fail "$(cat errors)"
printf 'put a\n' | expect 2 "" s.kv
expect 2 "" s.kv get
expect 2 "" s.kv get a b
expect 0 "" s.kv delete-pool p
expect 2 "" s.kv delete-pool p
expect 0 "" s.kv delete-all
expect 0 "" s.kv list
expect 0 "" s.kv check
i=0
while [ $i -lt 1000 ]; do
    echo "put key$i value$i"
    i=$((i + 1))
done | expect 0 "" --async t.kv
[ "$("$nvmkv" t.kv list | wc -l)" = 1000 ] || fail "not all were stored"
expect 2 "" --key-bits 4 u.kv put a 1
expect 0 "" --key-bits 8 --value-bits 4 u.kv put a 1
expect 2 "" u.kv put a "$(head -c 4097 /dev/zero | tr '\0' x)"
expect 0 1 u.kv get a
expect 0 "" u.kv put '[k]' '["x", --async]' # as they stand
expect 0 '["x", --async]' u.kv get '[k]'
expect 2 "" u.kv put a <.
expect 0 1 u.kv get a
expect 2 "" --key-bits 4294967290 w.kv put a 1
expect 0 "" u.kv destroy
expect 2 "" u.kv destroy
echo text >plain
expect 2 "" plain destroy
[ -e plain ] || fail "destroyed what is no store"

sed -n '/^```cpp$/,/^```$/{/^```/d;p}' "$sources/README.md" | cmp - "$sources/first.cpp" ||
    fail "the README has another program"
rm -f /dev/shm/fruit.kv
[ "$("$first" | sort | tr '\n' ' ')" = "apple is red cherry is black plum is blue " ] ||
    fail "the first program says something else"
rm -f /dev/shm/fruit.kv
