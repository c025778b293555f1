#!/bin/sh
#
# metradb_shell.sh METRADB FIRST: the command line: what it prints, its exit status, what it refuses;
# and the first program of the README.
set -u
metradb=$1 first=$2
readme=$(cd "$(dirname "$0")/../../examples/metradb" && pwd)/README.md
directory=$(mktemp -d /dev/shm/libpm-metradb-XXXXXX)
trap 'rm -rf "$directory"' EXIT
trap 'exit 1' TERM # from a failure behind a pipe, in a shell of its own
cd "$directory" || exit 1

fail() {
    echo "metradb_shell.sh: $*; the output was:" >&2
    cat output errors >&2
    kill $$
    exit 1
}

# expect STATUS ARGUMENT...: `metradb ARGUMENT...` exits so; its standard input is ours.
expect() {
    wanted=$1
    shift
    "$metradb" "$@" >output 2>errors
    got=$?
    [ $got -eq "$wanted" ] || fail "status $got, not $wanted: metradb $*"
    [ "$wanted" -eq 2 ] || [ ! -s errors ] || fail "complains: metradb $*"
}

# fails ARGUMENT...: with status 1 and a message, not just because a key is absent.
fails() {
    "$metradb" "$@" >output 2>errors
    got=$?
    [ $got -eq 1 ] && [ -s errors ] || fail "status $got: metradb $*"
}

# prints TEXT: that and nothing else; complains TEXT: on standard error, among other things.
prints() {
    [ "$(cat output && echo .)" = "$1." ] || fail "not '$1'"
}
complains() {
    grep -q -e "$1" errors || fail "does not complain '$1'"
}
line='
'

# A first program.
fails db get k
complains "db: .*No such file"
expect 0 db create 1 10
fails db create 1 10
complains "is there already"
expect 0 db put k v
expect 0 db get k
prints v
expect 0 db put k -x # is a value here
expect 0 db get k
prints "-x"
expect 1 db get z
prints ""
expect 1 db delete z
expect 0 db count
prints "1$line"
expect 0 db info
prints "key length: 1${line}buckets: 10${line}pairs: 1$line"
expect 0 db delete k
expect 0 db list
prints ""

# In pipes, all bytes.
printf 'a\000\377\n\t\\' >bytes
expect 0 db put b <bytes
expect 0 db get b
cmp -s bytes output || fail "other bytes"
expect 0 db list
prints "b	a\\x00\\xff\\n\\t\\\\$line"
cp output lines
expect 0 -x db list
prints "62	6100ff0a095c$line"
expect 0 --hex db get 62
prints "6100ff0a095c$line"
expect 0 -x db put 6C 00FF
expect 0 -x db get 6c
prints "00ff$line"
expect 0 -x db put 65 ""
expect 0 db get e
prints ""
expect 0 copy create 1 1
expect 0 copy import <lines
expect 0 copy get b
cmp -s bytes output || fail "import changed bytes"
"$metradb" db list | "$metradb" copy import || fail "a pipe"
expect 0 copy count
prints "3$line"

# Put opens the container when what feeds it has closed it.
{
    sleep 0.2
    "$metradb" db get b
} | expect 0 db put f
expect 0 db get f
cmp -s bytes output || fail "other bytes from the same container"
expect 0 db delete f

# One transaction: all lines or none.
printf 'put\tc\tnew\ndelete\tb\nput\td\t\\x64' | expect 0 copy batch
expect 0 copy get c
prints new
expect 1 copy get b
expect 0 copy get d
prints d
for bad in 'put\tbb\tx' 'put\tb' 'delete' 'delete\tb\tx' 'drop\tb' 'put\tb\t\\q' 'put\tb\t\\x6' ''; do
    printf "put\tc\tnever\n$bad\n" >input
    fails copy batch <input
    complains "standard input, line 2: .*copy was not changed"
    expect 0 copy get c
    prints new
done
printf 'b\tx\ty\n' | fails copy import
complains "line 1: not KEY, a tab, VALUE"
printf '6\t66\n' | fails -x copy import
printf 'c\n\\x62\nd\n' | expect 1 copy get-many
prints "c	new${line}d	d$line"
printf '63\n64\n' | expect 0 -x copy get-many
prints "63	6e6577${line}64	64$line"
expect 0 copy get-many </dev/null
printf 'c\ncc\nd\n' | fails copy get-many
complains "standard input, line 2: copy: a key of 2 bytes"
printf 'c\td\n' | fails copy get-many
complains "line 1: not a KEY"
expect 0 copy check
prints "copy: 4 pairs: whole$line"

# What is refused.
expect 2
complains "usage: "
expect 2 db
expect 2 db frobnicate
expect 2 db get
expect 2 db get k k
expect 2 -z db list
complains "usage: "
fails db get kk
complains "a key of 2 bytes; here all keys have 1"
expect 2 -x db get 6g
complains "6g: not hexadecimal"
fails new create 0 10
complains "1 to 1024"
fails new create 1025 10
fails new create 8 0
complains "at least 1 bucket"
expect 2 new create -8 10
complains "not a number"
expect 0 --help
grep -q "usage: " output || fail "no help"
[ ! -e new ] || fail "made a container all the same"
echo "no container" >text
fails text list
fails text remove
[ -e text ] || fail "removed what is none"
"$metradb" db list >/dev/full 2>errors && fail "does not notice a full disk"
complains "standard output"

expect 0 db remove
[ ! -e db ] || fail "did not remove it"

# The first program, which the README shows as it is.
sed -n '/^```c$/,/^```$/{/^```/d;p}' "$readme" | cmp -s - "${readme%README.md}first.c" ||
    fail "the README has another first program"
"$first" users 7 Ada || fail "first 7 Ada"
"$first" users 7 >output || fail "first 7"
prints "Ada$line"
"$first" users 8 >output || fail "first 8"
prints ""
expect 0 -x users list
prints "0700000000000000	416461$line"
