#!/usr/bin/env bash
#
# The fuzzer calls every public function: each that libpm.h exports is called by calls.cpp or
# visit.cpp, and each pm_...() called there is one of libpm.h.
#
#   calls.sh HEADER SOURCE...
set -euo pipefail
export LC_ALL=C

header=$1
shift
declared=$(sed -nE 's/^PM_EXPORT .*[ *](pm_[a-z_]+)\(.*/\1/p' "$header" | sort -u)
called=$(sed -E 's://.*$::' "$@" | grep -oE '\bpm_[a-z][a-z_]*\(' | tr -d '(' | sort -u)
[[ $(wc -l <<<"$declared") == $(grep -c ^PM_EXPORT "$header") ]] ||
    { echo "$header declares a function in more than one line, or twice" >&2; exit 1; }

forgotten=$(comm -23 <(echo "$declared") <(echo "$called"))
unknown=$(comm -13 <(echo "$declared") <(echo "$called"))
[[ -z $forgotten ]] || echo "the fuzzer never calls: $forgotten; let tests/hostile/calls.cpp do it" >&2
[[ -z $unknown ]] || echo "$header does not declare: $unknown" >&2
[[ -z $forgotten$unknown ]]
