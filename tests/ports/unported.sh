#!/bin/sh
#
# unported.sh README SOURCE TO: writes to TO what the source was before its port, by the diff that the
# README shows; and makes sure that this is all there is between the two.
set -eu
readme=$1 source=$2 to=$3
shown=$to.diff
sed -n '/^```diff$/,/^```$/{/^```/d;p}' "$readme" >"$shown"
patch --quiet --reverse --output "$to" "$source" "$shown"
diff -U1 --label volatile --label persistent "$to" "$source" >"$shown.real" || [ $? -eq 1 ]
diff "$shown" "$shown.real" || {
    echo "unported.sh: $readme shows another diff" >&2
    rm "$to"
    exit 1
}
! grep -i 'libpm\|pm_' "$to" || {
    echo "unported.sh: $to knows libpm" >&2
    rm "$to"
    exit 1
}
