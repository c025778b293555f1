#!/bin/sh
#
# crash.sh PM EXAMPLES PROGRAMS CASE [OPTION...]: one case of what `pm crash` must find, or say. It
# explores with these options. PROGRAMS: the directory of those that are made for it.
set -u
pm=$1 examples=$2 programs=$3 case=$4 several=$3/several
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=expect.sh
. "$here/expect.sh"
shift 4
limits=$*
[ -z "${LIBPM_LONG:-}" ] || limits=
directory=$(mktemp -d /dev/shm/libpm-pm-crash-XXXXXX)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
export TMPDIR="$directory"
# Built with ASan, the recorder comes before the runtime, which it brings along itself.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
book=$directory/book.pm
check="'$examples/ledger' --check '$book'"

# good PROGRAM MODE ARGUMENT...: nothing is found, and something was looked at.
good() {
    program=$1 mode=$2
    shift 2
    rm -f "$book"
    # shellcheck disable=SC2086 # several words
    expect 0 crash $limits "$@" --check "$check" -- "$examples/$program" "$book" 6 "$mode"
    says "8 commits" "all are as they should be"
    states=$(sed -n 's/^\([0-9]*\) crash states: .*/\1/p' output)
    [ "${states:-0}" -ge 8 ] || fail "only ${states:-0} crash states"
    [ -z "$(ls -d pm-crash-* 2>/dev/null)" ] || fail "left something behind"
}

# code PROGRAM MODE [OPTION...]: the container leads into PROGRAM, which the tool has not loaded. A check by
# PROGRAM itself, at other addresses, follows these pointers.
code() {
    program=$programs/$1 mode=$2
    shift 2
    rm -f "$book"
    # shellcheck disable=SC2086
    expect 0 crash $limits "$@" -- "$program" "$book" "$mode"
    says "3 commits" "all are as they should be"
}

# bad PROGRAM MODE POSTINGS TEXT: found, and said what the check said. Everywhere, for the moment must
# not be missed.
bad() {
    rm -f "$book"
    expect 1 crash --seeds 0 --check "$check" -- "$examples/$1" "$book" "$3" "$2"
    says "FAILED at .*, event" "commits had returned; printed last: posted" "the check: exit status 1" \
        "| $4" "repeat with: "
}

# again PROGRAM [MODE]: it goes on with a book that has postings already, and nothing is found.
again() {
    program=$1
    shift
    # shellcheck disable=SC2086
    expect 0 crash $limits --check "$check" -- "$examples/$program" "$book" 6 "$@"
    says "7 commits" "all are as they should be"
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
    again ledger
    good ledger redo
    good ledger log
    again ledger log
    ;;
media)
    good ledger log --medium file
    good ledger redo --medium file
    says "on an ordinary file system"
    good ledger undo --medium pmem
    says "on persistent memory"
    expect 2 crash --medium file -- "$several" --unsafe "$book"
    says "PM_UNSAFE_POWER"
    ;;
code) # nobody knows where the pointers are of one that is `fixed`
    code shapes fixed
    for medium in pmem file; do
        code shapes faults --medium $medium --check "'$programs/shapes' --check '$book'"
    done
    ;;
marked_code)
    for medium in pmem file; do
        code shapes_marked stores --medium $medium --check "'$programs/shapes_marked' --check '$book'"
    done
    ;;
stores)
    good ledger_marked stores
    good ledger_marked stores --medium file
    good ledger_marked log.stores
    good ledger_marked log.stores --medium file
    ;;
forgotten_commit)
    bad ledger_forgets undo 4 "the number of postings is 2, should be 3"
    bad ledger_forgets redo 4 "the number of postings is 2, should be 3"
    bad ledger_forgets log 4 "the number of postings is 2, should be 3"
    ;;
unmarked_store)
    bad ledger_unmarked stores 9 "a balance is 0, should be"
    ;;
repeat)
    bad ledger_forgets undo 4 "the number of postings"
    repeat
    ;;
values)
    for medium in pmem file; do
        rm -f "$book"
        # shellcheck disable=SC2086
        expect 0 crash $limits --medium $medium --check "'$programs/values' --check '$book'" -- \
            "$programs/values" "$book"
        says "all are as they should be"
    done
    ;;
several)
    mkdir containers
    # shellcheck disable=SC2086
    expect 0 crash $limits --check "'$several' --check containers" -- "$several" "$directory/containers"
    says "3 containers on" "13 commits" "all are as they should be"
    rm containers/*
    expect 1 crash --events 2 --check false -- "$several" containers
    says "^  [0-9]* commits\? of $directory/containers/a, [0-9]* commits\? of $directory/containers/b had returned"
    rm containers/*
    # shellcheck disable=SC2086
    expect 0 crash $limits --medium file --check "'$several' --check containers" -- "$several" containers
    ;;
shrunk) # a crash leaves a smaller file than the one before: nothing of that lies behind its end
    size="\$(cat \$LIBPM_CRASH_OUTPUT)"
    expect 0 crash --events 50 --seeds 1 --check "[ -z $size ] || [ $size = \$(stat -c %s '$book') ]" -- \
        "$several" --shrink "$book"
    says "1 container on" "all are as they should be"
    ;;
judged) # by libpm, without a check; and by a check that does not end
    expect 1 crash -- "$several" --scribble "$book"
    says "libpm: does not accept" "    | .*book.pm"
    rm "$book"
    expect 1 crash -- "$several" --lead-out "$book" # it opens, and pm_check() does not accept it
    says "libpm: does not accept"
    rm -f "$book"
    expect 1 crash --timeout 1 --events 1 --check "sleep 60" -- "$examples/ledger" "$book" 1
    says "was still running after 1 s" "at the program's end"
    # The same bytes may be right after one commit, and wrong after two. So the check sees them twice, also if
    # the program prints nothing.
    rm "$book"
    ask="echo \"\$(cksum <'$book') \$LIBPM_CRASH_COMMITS\" >>'$directory/asked'"
    expect 0 crash --check "$ask" -- sh -c "'$examples/ledger' '$book' 2 >silence"
    [ -n "$(sort -u asked | cut -d' ' -f1,2 | uniq -d)" ] || fail "no bytes were judged after another commit"
    # Also, they may be right until the program prints something, and wrong afterwards.
    rm "$book"
    expect 1 crash --check "! grep -q finished \$LIBPM_CRASH_OUTPUT" -- \
        sh -c "'$examples/ledger' '$book' 1; echo finished"
    says "printed last: finished"
    ;;
interrupted) # by the check, so at a known moment
    expect 2 crash --check "kill -INT \$PPID" -- "$examples/ledger" "$book" 3
    says "interrupted"
    "$examples/ledger" "$book" 1 | grep -qx "posted 4" || fail "the container was not put back"
    ;;
killed) # by no check, but by kill -9 while the program runs, which then ends too
    mkfifo held
    "$pm" crash -- sh -c 'exec sleep 60 3>held' >output 2>&1 &
    exec 3<held
    kill -9 $!
    timeout 10 cat <&3 || fail "the program outlives pm crash"
    ;;
left_running) # by the program: it dies when the program has ended
    mkfifo held
    "$pm" crash --events 1 -- \
        sh -c "exec 4>held; sleep 60 & exec '$examples/ledger' '$book' 1 4>&-" >output 2>&1 &
    exec 3<held
    wait $! || fail "the run failed"
    timeout 10 cat <&3 || fail "a process that the program has left outlives pm crash"
    ;;
removed) # by the program, without pm_delete(): at its end there is no container to check
    expect 0 crash --events 20 --seeds 1 --check "! grep -q removed \$LIBPM_CRASH_OUTPUT || [ ! -e '$book' ]" -- \
        sh -c "'$examples/ledger' '$book' 1; rm '$book'; echo removed"
    says "all are as they should be"
    ;;
unrecorded) # another process stores to the container meanwhile, and the recorder does not see it
    # shellcheck disable=SC2086
    for medium in pmem file; do
        rm -f "$book"
        expect 0 crash $limits --medium $medium --check "$check" -- sh -c "'$examples/ledger' '$book' 1 redo &&
            env -u LD_PRELOAD '$examples/ledger' '$book' 1 redo && '$examples/ledger' '$book' 1 redo"
        says "all are as they should be"
    done
    ;;
at_once) # processes that open a container each
    expect 0 crash --events 20 --seeds 1 -- sh -c "for i in 1 2 3 4; do '$examples/ledger' '$book'\$i 2 & done; wait"
    says "4 containers on" "all are as they should be"
    ;;
kept) # a container that cannot be set aside, and one that could be
    mkdir first second
    "$examples/ledger" first/a.pm 1 >silence
    chmod a-w first
    if [ "$(id -u)" -eq 0 ]; then
        printf '#!/bin/sh\nexec setpriv --bounding-set -dac_override "%s" "$@"\n' "$pm" >pm
        chmod +x pm
        pm=./pm
    fi
    expect 2 crash -- sh -c "'$examples/ledger' first/a.pm 1; '$examples/ledger' second/b.pm 1"
    says "cannot set aside .*first/a.pm"
    chmod u+w first
    "$examples/ledger" first/a.pm 1 | grep -qx "posted 3" || fail "the first container is not as it was"
    "$examples/ledger" second/b.pm 1 | grep -qx "posted 2" || fail "the second container is not as it was"
    ;;
put_back)
    good ledger undo
    [ ! -e "$book.pm-crash-aside" ] || fail "what was set aside still is"
    "$examples/ledger" "$book" 1 | grep -qx "posted 7" || fail "the container was not put back"
    touch "$book.pm-crash-aside"
    expect 2 crash -- "$examples/ledger" "$book" 1
    says "rename that file back"
    "$examples/ledger" "$book" 1 | grep -qx "posted 9" || fail "the container is not where it was"
    ;;
usage)
    expect 2 crash
    says "which program"
    expect 2 crash --from "$directory"
    says "no recording"
    expect 2 crash -- ./nothing
    says "cannot run ./nothing: No such file"
    expect 2 crash -- true
    says "opened no container"
    expect 2 crash -- "$examples/rbtree" "$book"
    says "opened no container\|failed by itself"
    expect 2 crash -- "$examples/ledger"
    says "usage: ledger" "failed by itself, without any crash: exit status 2"
    expect 2 crash --check ./nothing -- "$examples/ledger" "$book" 1
    says "cannot run the check ./nothing" "not found"
    touch plain
    expect 2 crash --check ./plain -- "$examples/ledger" "$book" 1
    says "cannot run the check ./plain" "ermission denied"
    expect 2 crash --check "exit 127" -- "$examples/ledger" "$book" 1
    says "cannot run the check exit 127, or something in it: exit status 127\$"
    expect 2 crash -- sh -c "{ sleep 1; '$examples/ledger' '$book' 1; } &"
    says "run it in the foreground"
    for events in none all 0 -1; do
        expect 2 crash --events $events -- true
        says "events: Value $events not in range"
    done
    expect 2 crash --seeds -1 -- true
    says "seeds: Value -1 not in range"
    for crash in 1:nothing 1 1:some 1:some:5zz -1:kept 1:kept:2; do
        expect 2 crash --crash $crash -- true
        says "crash wants .*, not $crash\$"
    done
    expect 2 crash --crash 5000:lost -- "$examples/ledger" "$book" 1
    says "there are only [0-9]* events"
    ;;
*)
    echo "no case $case" >&2
    exit 1
    ;;
esac
