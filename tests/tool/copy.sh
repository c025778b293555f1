#!/bin/sh
#
# copy.sh PM FAMILY CASE: one case of what `pm copy` must do with the container that FAMILY makes
# (family.c).
set -u
pm=$1 family=$2 case=$3
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=expect.sh
. "$here/expect.sh"
directory=$(mktemp -d /dev/shm/libpm-pm-copy-XXXXXX)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1

# whole FILE: closed, with what FAMILY puts in.
whole() {
    expect 0 check "$1"
    expect 0 info "$1"
    says '^objects  *4 of 1184 bytes' '^pointers  *15$'
    ! grep -q '^log' output || fail "was not closed"
}

# only FILE...: no other file is here, but for the output.
only() {
    for file in *; do
        case " $* output " in
        *" $file "*) ;;
        *) fail "$file is here" ;;
        esac
    done
}

# interrupt SIGNAL: send it to a copy of large.pm that has begun. Sets `status`.
interrupt() {
    "$pm" copy large.pm copy.pm >output 2>&1 &
    # The copy has no name yet. A process that has ended has no link `exe`.
    until find /proc/$!/fd -lname "$directory/* (deleted)" 2>/dev/null | grep -q .; do
        [ -e /proc/$!/exe ] || break
    done
    kill -s "$1" $!
    wait $!
    status=$?
}

case $case in
closed)
    "$family" family.pm || exit 1
    expect 0 copy family.pm copy.pm
    [ ! -s output ] || fail "it talks where there is no terminal"
    whole copy.pm
    cp copy.pm before.pm
    for there in copy.pm family.pm; do
        expect 2 copy family.pm $there
        says "^pm: $there: exists already"
    done
    cmp copy.pm before.pm || fail "the copy is another"
    "$family" code.pm code || exit 1 # of a program that is not loaded here
    expect 0 copy code.pm code2.pm
    expect 0 check code2.pm
    ;;
crashed)
    "$family" family.pm crashed || exit 1
    cp family.pm before.pm
    expect 0 copy family.pm copy.pm
    cmp family.pm before.pm || fail "the original is another"
    whole copy.pm
    ;;
open)
    mkfifo input said
    "$family" family.pm open <input >said &
    exec 3>input 4<said
    read -r line <&4
    [ "$line" = open ] || fail "the program says $line"
    expect 2 copy family.pm copy.pm
    says '^pm: family.pm: a program has it open for writing; let that program copy it by pm_copy()'
    [ ! -e copy.pm ] || fail "there is a copy"
    cp family.pm hot.pm
    exec 3>&-
    wait
    expect 0 copy family.pm copy.pm
    whole copy.pm
    for command in 'copy hot.pm cold.pm' 'check hot.pm' 'info hot.pm'; do
        # shellcheck disable=SC2086 # several words
        expect 2 $command
        says '^pm: hot.pm: a copy that was made while a program had the container open'
    done
    [ ! -e cold.pm ] || fail "there is a copy"
    ;;
snapshot)
    "$family" family.pm crashed || exit 1
    cp family.pm snapshot.pm
    expect 2 copy snapshot.pm copy.pm
    says 'pm copy --snapshot'
    expect 0 copy --snapshot snapshot.pm copy.pm
    whole copy.pm
    ;;
full)
    "$family" family.pm || exit 1
    # The limit stands for the disk; SIGXFSZ is ignored, as where it is the disk.
    (
        trap '' XFSZ
        ulimit -f 100
        "$pm" copy family.pm copy.pm >output 2>&1
        [ $? -eq 2 ]
    ) || fail "it succeeds"
    says '^pm: family.pm: cannot copy it to copy.pm: File too large; raise ulimit -f'
    only family.pm
    expect 2 copy family.pm no/such/directory/copy.pm
    says '^pm: family.pm: cannot copy it to no/such/directory/copy.pm: No such file'
    ;;
interrupted)
    "$family" large.pm large || exit 1
    for signal in TERM INT HUP; do
        # On a busy machine the copy may end before the signal arrives. Then try again.
        for _ in 1 2 3 4 5; do
            rm -f copy.pm
            interrupt $signal
            [ $status -eq 0 ] || break
        done
        [ $status -eq 2 ] || fail "status $status after SIG$signal"
        says '^pm: large.pm: copying it to copy.pm was stopped.*; nothing is left of the copy'
        only large.pm
    done
    expect 0 check large.pm
    ;;
usage)
    expect 2 copy
    expect 2 copy family.pm
    expect 2 copy nobody.pm copy.pm
    says '^pm: nobody.pm: .*No such file or directory$'
    expect 0 copy --help
    says '--snapshot'
    only
    ;;
*)
    fail "no case $case"
    ;;
esac
