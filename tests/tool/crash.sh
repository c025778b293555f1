#!/bin/sh
#
# crash.sh PM EXAMPLES SEVERAL CASE [OPTION...]: one case of what `pm crash` must find, or say. It
# explores with these options.
set -u
pm=$1 examples=$2 several=$3 case=$4
shift 4
limits=$*
directory=$(mktemp -d /dev/shm/libpm-pm-crash-XXXXXX)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
export TMPDIR="$directory"
# Built with ASan, the recorder comes before the runtime, which it brings along itself.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
book=$directory/book.pm
check="'$examples/ledger' --check '$book'"

fail() {
    echo "crash.sh: $*; the output was:" >&2
    cat output >&2
    exit 1
}

# expect STATUS ARGUMENT...: `pm crash ARGUMENT...` exits so.
expect() {
    wanted=$1
    shift
    "$pm" crash "$@" >output 2>&1
    got=$?
    [ $got -eq "$wanted" ] || fail "status $got, not $wanted: pm crash $*"
}

# says TEXT...: the output has each of these.
says() {
    for text; do
        grep -q -e "$text" output || fail "does not say '$text'"
    done
}

# good PROGRAM MODE ARGUMENT...: nothing is found, and something was looked at.
good() {
    program=$1 mode=$2
    shift 2
    rm -f "$book"
    # shellcheck disable=SC2086 # several words
    expect 0 $limits "$@" --check "$check" -- "$examples/$program" "$book" 6 "$mode"
    says "8 commits" "all are as they should be"
    states=$(sed -n 's/^\([0-9]*\) crash states: .*/\1/p' output)
    [ "${states:-0}" -ge 8 ] || fail "only ${states:-0} crash states"
    [ -z "$(ls -d pm-crash-* 2>/dev/null)" ] || fail "left something behind"
}

# bad PROGRAM MODE POSTINGS TEXT: found, and said what the check said. Everywhere, for the moment must
# not be missed.
bad() {
    rm -f "$book"
    expect 1 --seeds 0 --check "$check" -- "$examples/$1" "$book" "$3" "$2"
    says "FAILED at .*, event" "commits had returned; printed last: posted" "the check: exit status 1" \
        "| $4" "repeat with: "
}

# The last command printed, run by itself: it fails alike, without being told of the program.
repeat() {
    command=$(sed -n 's/^  repeat with: //p' output | tail -1)
    said=$(sed -n 's/^    | //p' output | tail -1)
    image=$(sed -n 's/^  what the crash left: //p' output | tail -1)/book.pm
    rm -f "$book"
    "$examples/ledger" "$book" 1 undo >/dev/null || fail "another book"
    sh -c "$command" >output 2>&1
    got=$?
    [ $got -eq 1 ] || fail "status $got, not 1: $command"
    says "^$said\$" "1 crash state: 1 FAILED, at 1 event"
    [ -s "$image" ] || fail "there is no $image"
}

case $case in
good)
    good ledger undo
    good ledger redo
    ;;
media)
    good ledger redo --medium file
    says "on an ordinary file system"
    good ledger undo --medium pmem
    says "on persistent memory"
    expect 2 --medium file -- "$several" --unsafe "$book"
    says "PM_UNSAFE_POWER"
    ;;
stores)
    good ledger_marked stores
    good ledger_marked stores --medium file
    ;;
forgotten_commit)
    bad ledger_forgets undo 4 "the number of postings is 2, should be 3"
    bad ledger_forgets redo 4 "the number of postings is 2, should be 3"
    ;;
unmarked_store)
    bad ledger_unmarked stores 9 "a balance is 0, should be"
    ;;
repeat)
    bad ledger_forgets undo 4 "the number of postings"
    repeat
    ;;
several)
    mkdir containers
    # shellcheck disable=SC2086
    expect 0 $limits --check "'$several' --check containers" -- "$several" "$directory/containers"
    says "3 containers on" "13 commits" "all are as they should be"
    rm containers/*
    # shellcheck disable=SC2086
    expect 0 $limits --medium file --check "'$several' --check containers" -- "$several" containers
    ;;
judged) # by libpm, without a check; and by a check that does not end
    expect 1 -- "$several" --scribble "$book"
    says "libpm: does not accept" "    | .*book.pm"
    rm "$book"
    expect 1 --timeout 1 --events 1 --check "sleep 60" -- "$examples/ledger" "$book" 1
    says "was still running after 1 s" "at the program's end"
    ;;
interrupted) # by the check, so at a known moment
    expect 2 --check "kill -INT \$PPID" -- "$examples/ledger" "$book" 3
    says "interrupted"
    "$examples/ledger" "$book" 1 | grep -qx "posted 4" || fail "the container was not put back"
    ;;
put_back)
    good ledger undo
    [ ! -e "$book.pm-crash-aside" ] || fail "what was set aside still is"
    "$examples/ledger" "$book" 1 | grep -qx "posted 7" || fail "the container was not put back"
    touch "$book.pm-crash-aside"
    expect 2 -- "$examples/ledger" "$book" 1
    says "rename that file back"
    "$examples/ledger" "$book" 1 | grep -qx "posted 9" || fail "the container is not where it was"
    ;;
usage)
    expect 2
    says "which program"
    expect 2 --from "$directory"
    says "no recording"
    expect 2 -- ./nothing
    says "cannot run ./nothing: No such file"
    expect 2 -- true
    says "opened no container"
    expect 2 -- "$examples/rbtree" "$book"
    says "opened no container\|failed by itself"
    expect 2 -- "$examples/ledger"
    says "usage: ledger" "failed by itself, without any crash: exit status 2"
    expect 2 --check ./nothing -- "$examples/ledger" "$book" 1
    says "cannot run the check ./nothing" "not found"
    touch plain
    expect 2 --check ./plain -- "$examples/ledger" "$book" 1
    says "cannot run the check ./plain" "ermission denied"
    expect 2 --events none -- true
    says "events"
    expect 2 --crash 1:nothing -- true
    says "crash wants"
    expect 2 --crash 5000:lost -- "$examples/ledger" "$book" 1
    says "there are only [0-9]* events"
    ;;
*)
    echo "no case $case" >&2
    exit 1
    ;;
esac
