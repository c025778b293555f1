#!/usr/bin/env bash
#
# kill.sh PORT VOLATILE RANDOM LOOK [MAKE]: kill the port at random moments, and start it again. It goes on
# with the commands that were not done. What it has then is what the volatile program has after the
# same commands: all that were answered, and at most one more. When all are done it begins anew.
#
# RANDOM is an awk script that makes commands. LOOK is commands that tell all there is. The program MAKE
# makes an empty container for the port; without MAKE the port makes its own.
#
# LIBPM_SEED repeats the commands; LIBPM_KILLS sets the kills.
set -euo pipefail
port=$1 volatile=$2 random=$3 look=$4 make=${5:-}
container=$(basename "$port").pm
kills=${LIBPM_KILLS:-30} seed=${LIBPM_SEED:-$RANDOM}
lines=50000
directory=$(mktemp -d /dev/shm/libpm-ports-XXXXXX)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
echo "repeat with LIBPM_SEED=$seed LIBPM_KILLS=$kills"

die() {
    echo "kill.sh: $*" >&2
    exit 1
}

awk -v seed="$seed" -v lines=$lines -f "$random" >commands

# Where the answers to each command end: an unknown command after each tells.
sed 's/$/\n?/' commands | "$volatile" | LC_ALL=C awk '
    /^error: .*\?$/ { print bytes; next }
    { bytes += length($0) + 1 }' >ends
mapfile -t -O 1 ends <ends
ends[0]=0
((${#ends[@]} == lines + 1)) || die "there are answers to ${#ends[@]} commands"
"$volatile" <commands >answers

# expected COUNT: what the volatile program has after so many commands.
expected() {
    { head -n "$1" commands && printf '%s\n' "$look"; } | "$volatile" | tail -c +$((ends[$1] + 1))
}

: >errors
finished=0 before=0 hits=0
for ((kill = 0; kill < kills; kill++)); do
    if ((finished == lines)); then
        rm -f ./*.pm
        finished=0 before=0
    fi
    [[ ! $make || -e $container ]] || "$make" "$container"
    : >said # the kill may come before the program has begun
    tail -n +$((finished + 1)) commands | "$port" >said 2>errors &
    pid=$!
    sleep "0.0$(printf %02d $((RANDOM % 40 + 5)))"
    kill -KILL $pid 2>/dev/null || true
    status=0
    { wait $pid || status=$?; } 2>/dev/null
    [[ ! -s errors ]] || die "it complains: $(<errors)"
    ((status != 137)) || hits=$((hits + 1))
    bytes=$(stat -c %s said)
    cmp -n "$bytes" <(tail -c +$((ends[finished] + 1)) answers) said || die "other answers"
    while ((finished < lines && ends[finished + 1] - ends[before] <= bytes)); do
        finished=$((finished + 1))
    done
    printf '%s\n' "$look" | "$port" >found
    if ! expected $finished | cmp -s - found; then
        finished=$((finished + 1))
        expected $finished | diff - found || die "neither what $((finished - 1)) commands left, nor one more"
    fi
    before=$finished
done
echo "$hits kills"
((8 * hits >= kills)) || die "nearly all kills came too late"
