#!/bin/sh
#
# random.sh PORT VOLATILE RANDOM: the port answers some thousand random commands, each of which it
# commits, as the volatile program does. RANDOM is an awk script that makes them; LIBPM_SEED repeats
# them.
set -eu
port=$1 volatile=$2 random=$3
seed=${LIBPM_SEED:-$(date +%N)}
directory=$(mktemp -d /dev/shm/libpm-ports-XXXXXX)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
echo "repeat with LIBPM_SEED=$seed"
awk -v seed="$seed" -v lines=5000 -f "$random" >commands
"$volatile" <commands >expected
"$port" <commands >answers
cmp expected answers
