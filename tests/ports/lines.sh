#!/bin/sh
#
# lines.sh ROOT: docs/lines.md is what scripts/loc writes, and libpm takes fewer lines than libpmemobj on
# every row.
set -eu
cd "$1"
scripts/loc | diff docs/lines.md -
awk -F '|' '
    /^\| .* \/ [0-9]+ \|$/ {
        rows++
        if ($4 + 0 >= $6 + 0 || $5 + 0 >= $6 + 0) {
            print "not fewer:" $0
            failed = 1
        }
    }
    END { exit failed || rows != 4 }' docs/lines.md
