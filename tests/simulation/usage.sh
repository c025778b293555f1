#!/bin/sh
#
# usage.sh SIMULATE: what makes no sense is refused, with status 2 and a reason, before anything is
# explored.
set -u
simulate=$1
directory=$(mktemp -d /dev/shm/libpm-simulate-usage-XXXXXX)
trap 'rm -rf "$directory"' EXIT
list=$directory/list

# refuses TEXT ARGUMENT...: says TEXT.
refuses() {
    text=$1
    shift
    output=$("$simulate" "$@" 2>&1)
    got=$?
    [ $got -eq 2 ] || { echo "status $got, not 2: simulate $*" && exit 1; }
    case $output in
    *VIOLATION* | *"in all"*) echo "it explores: simulate $*" && exit 1 ;;
    *"$text"*) ;;
    *) echo "does not say '$text' but '$output': simulate $*" && exit 1 ;;
    esac
}

for option in --seed --transactions --containers --async --threads --seeds --nested --depth --minutes; do
    refuses "$option" $option x
    refuses "$option" $option -1
done
refuses "--containers" --containers 0
refuses "--transactions" --transactions 0
refuses "--mode" --mode foo
refuses "--medium" --medium disk
refuses "--plan" --plan foo
refuses "no structure called foo" --structure foo
refuses "no profile called foo" --profile foo
refuses "--containers excludes --threads" --threads 2 --containers 2
refuses "--minutes" --plan soak
refuses "--minutes" --plan quick --minutes 1
refuses "--plan" --plan quick --transactions 3
refuses "--frobnicate" --frobnicate

# Crashes, and whether they are there to come.
for crash in 3 3:nothing 3:some 3:some:5zz -3:kept 3:kept:1 x:kept; do
    refuses "no crash: $crash" --crash $crash
done
events=$("$simulate" --transactions 1 --nested 0 --seeds 0 | sed -n 's/.*: \([0-9]*\) events, .*/\1/p')
"$simulate" --transactions 1 --crash $((events + 1)):kept >/dev/null ||
    { echo "the last of $events events, and the end, cannot be crashed at" && exit 1; }
refuses "there is no event 0 " --transactions 1 --crash 0:kept
refuses "there is no event $((events + 2)) " --transactions 1 --crash $((events + 2)):kept

# Lines of a list are no other matter.
echo "simulate --mode undo --transactions abc" >"$list"
refuses "--transactions" --list "$list"
echo "simulate --mode undo --plan quick" >"$list"
refuses "--plan" --list "$list"
echo "some text" >"$list"
refuses "has nothing for mode redo" --list "$list" --mode redo
