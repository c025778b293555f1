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
    [ $got -eq 2 ] || [ ! -s errors ] || fail "complains: nvmkv $*: $(cat errors)"
}

# fails OUTPUT ARGUMENT...: with status 1 and a message, not just because a key is absent.
fails() {
    says=$1
    shift
    "$nvmkv" "$@" >output 2>errors
    got=$?
    [ $got -eq 1 ] && [ -s errors ] || fail "status $got: nvmkv $*: $(cat errors)"
    [ "$(cat output)" = "$says" ] || fail "nvmkv $*"
}
complains() {
    grep -q -e "$1" errors || fail "does not complain '$1': $(cat errors)"
}

fails "" s.kv get a
[ ! -e s.kv ] || fail "made by a get"
expect 0 "" s.kv put a "the value of a"
expect 0 "the value of a" s.kv get a
expect 1 "" s.kv get b
expect 1 "" s.kv exists b
expect 1 "" s.kv delete b
head -c 70000 /dev/urandom >large
"$nvmkv" s.kv put large <large || fail "put from a pipe"
"$nvmkv" s.kv get large | head -c 70000 | cmp - large || fail "another value came back"
{ # opens the store when what feeds it has closed it
    sleep 0.2
    "$nvmkv" s.kv get a
} | expect 0 "" s.kv put fed
expect 0 "the value of a" s.kv get fed
expect 0 "" s.kv delete large
expect 0 "" s.kv delete fed

printf 'create-pool p\n\nput  b  two  words\nget b\n' | expect 0 "two  words" s.kv
expect 0 "$(printf '0\t2 pairs\t1024 bytes\t\n1\t0 pairs\t0 bytes\tp')" s.kv pools
expect 0 "" --pool p s.kv put c 3
expect 0 "$(printf 'c\t3')" --pool p s.kv list
expect 1 "" s.kv get c
fails "" --pool q s.kv get c
printf 'get a\nget c\nget b\n' | expect 1 "$(printf 'the value of a\ntwo  words')" s.kv
printf 'get a\ngte c\nget b\n' | fails "the value of a" s.kv
complains "standard input, line 2: gte: there is no such command"
printf 'put a\n' | fails "" s.kv
expect 2 "" s.kv get
complains "get: wants KEY"
expect 2 "" s.kv get a b
expect 2 "" new.kv frobnicate
expect 2 "" new.kv put
expect 2 "" --frobnicate new.kv list
[ ! -e new.kv ] || fail "made by a wrong command line"
expect 0 "" s.kv pool-exists p
expect 1 "" s.kv pool-exists q
expect 0 "$(printf '1\t1 pairs\t512 bytes\tp')" s.kv pool-info p
fails "" s.kv pool-info q
complains "s.kv: there is no pool q"

# An option that would not be heeded is refused.
expect 2 "" --pool p s.kv delete-all
complains "delete-all: does not take --pool"
expect 2 "" --pool p s.kv destroy
expect 2 "" --whole s.kv load </dev/null
complains "load: does not take --whole"
expect 2 "" --whole s.kv put a b
printf 'delete-all\n' | fails "" --pool p s.kv
expect 0 "$(printf 'c\t3')" --pool p s.kv list

# Batches, with any bytes in their lines.
printf 'd\t\\x00\\t\ne\\n\t5\n\\\\\t\n' >lines
expect 0 "" s.kv put-batch <lines
printf 'd\na\ne\\n\n\\\\\n' | expect 0 "$(printf 'd\t\\x00\\t\na\tthe value of a\ne\\n\t5\n\\\\\t')" s.kv get-batch
[ "$("$nvmkv" s.kv get d | od -An -tx1)" = " 00 09 0a" ] || fail "another value"
printf 'a\nz\nb\n' | expect 1 "$(printf 'a\tthe value of a\nb\ttwo  words')" s.kv get-batch
printf 'c\n' | expect 0 "$(printf 'c\t3')" --pool p s.kv get-batch
printf 'd\nz\n' | expect 1 "" s.kv delete-batch
printf 'e\\n\n\\\\\n' | expect 0 "" --whole s.kv delete-batch
expect 1 "" s.kv exists d
for bad in 'f' 'f\t1\t2' 'f\t\\q' "$(head -c 129 /dev/zero | tr '\0' k)\t1"; do
    printf "a\tnever\n$bad\n" | fails "" --whole s.kv put-batch
    expect 0 "the value of a" s.kv get a
done
printf 'a\tb\n' | fails "" s.kv get-batch
complains "standard input, line 1: not a KEY"
fails "" s.kv put-batch <.
complains "standard input"
printf 'put-batch\na\tnever\n' | fails "" s.kv
complains "line 1: put-batch: reads standard input"

# A dump is the whole store.
expect 0 "" s.kv create-pool "an empty one"
expect 0 "" copy.kv create
fails "" copy.kv create
"$nvmkv" s.kv dump | expect 0 "" copy.kv load
"$nvmkv" s.kv dump | sort >lines
"$nvmkv" copy.kv dump | sort | cmp -s - lines || fail "a copy dumps something else"
[ "$(wc -l <lines)" = 5 ] || fail "not two pools and three pairs: $(cat lines)"
printf 'p\tx\n' | fails "" copy.kv load
complains "line 1: neither POOL"
"$nvmkv" s.kv dump >/dev/full 2>errors && fail "does not notice a full disk"
complains "cannot write standard output"

two="$(printf 'two\nlines')"
expect 0 "" copy.kv create-pool "$two"
expect 0 "$(printf '3\t0 pairs\t0 bytes\ttwo\\nlines')" copy.kv pool-info "$two"

expect 0 "" s.kv delete-pool p
fails "" s.kv delete-pool p
complains "s.kv: there is no pool p"
expect 0 "" s.kv delete-all
expect 0 "" s.kv list
expect 0 "" s.kv check
i=0
while [ $i -lt 1000 ]; do
    echo "put key$i value$i"
    i=$((i + 1))
done | expect 0 "" --async t.kv
[ "$("$nvmkv" t.kv list | wc -l)" = 1000 ] || fail "not all were stored"
fails "" --key-bits 4 u.kv put a 1
expect 0 "" --key-bits 8 --value-bits 4 u.kv put a 1
fails "" u.kv put a "$(head -c 4097 /dev/zero | tr '\0' x)"
expect 0 1 u.kv get a
expect 0 "" u.kv put '[k]' '["x", --async]' # as they stand
expect 0 '["x", --async]' u.kv get '[k]'
fails "" u.kv put a <.
expect 0 1 u.kv get a
fails "" --key-bits 4294967290 w.kv put a 1
tar c -C "$sources" . 2>/dev/null | expect 0 "" --key-bits 28 --value-bits 20 v.kv put src.tar
"$nvmkv" v.kv get src.tar | tar t | grep -q nvmkv.1 || fail "the archive is damaged"
expect 0 "" u.kv destroy
fails "" u.kv destroy
[ "$(cat errors)" = "nvmkv: u.kv: cannot open: No such file or directory" ] || fail "$(cat errors)"
echo text >plain
fails "" plain destroy
[ -e plain ] || fail "destroyed what is no store"

sed -n '/^```cpp$/,/^```$/{/^```/d;p}' "$sources/README.md" | cmp - "$sources/first.cpp" ||
    fail "the README has another program"
rm -f /dev/shm/fruit.kv
[ "$("$first" | sort | tr '\n' ' ')" = "apple is red cherry is black plum is blue " ] ||
    fail "the first program says something else"
rm -f /dev/shm/fruit.kv
