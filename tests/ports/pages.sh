#!/bin/sh
#
# pages.sh ROOT: docs/lines.md is what scripts/loc writes, and libpm takes fewer lines than libpmemobj on
# every row; the guide shows the port of the task list as its README does.
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

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
for readme in docs/guide/port.md examples/ports/queue/README.md; do
    sed -n '/^```diff$/,/^```$/{/^```/d;/^---/d;/^+++/d;p}' $readme >"$directory/$(echo $readme | tr / .)"
done
[ -s "$directory/docs.guide.port.md" ]
diff "$directory/docs.guide.port.md" "$directory/examples.ports.queue.README.md"
