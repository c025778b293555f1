#!/bin/sh
#
# look.sh PM FAMILY CASE: one case of what `pm info`, `pm check` and `pm graph` must say of the
# container that FAMILY makes (family.c).
set -u
pm=$1 family=$2 case=$3
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=expect.sh
. "$here/expect.sh"
directory=$(mktemp -d /dev/shm/libpm-pm-look-XXXXXX)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
"$family" family.pm || exit 1

# edges: how many arrows the graph has.
edges() {
    grep -c -e '->' output
}

case $case in
info)
    expect 0 info family.pm
    says '^base  *0x[0-9a-f]*, movable$' '^pointers  *15$' '^root  *96 bytes at offset [0-9]*$' \
        '^objects  *4 of 1184 bytes' '^  *2 of 32 bytes$' '^  *1 of 96 bytes$' '^  *1 of 1024 bytes$'
    says '^engine  *undo or redo$'
    ! grep -q '^log' output || fail "was closed"
    "$family" log.pm log || exit 1
    expect 0 info log.pm
    says '^engine  *log$' '^pointers  *15$'
    "$family" crashed.pm crashed || exit 1
    expect 0 info crashed.pm
    says '^log  *its last writer did not close it' '^objects  *4 of 1184 bytes'
    "$family" empty.pm empty || exit 1
    expect 0 info empty.pm
    says '^root  *none$' '^pointers  *0$' '^objects  *0 of 0 bytes'
    ;;
code) # of a program that is not loaded here
    "$family" code.pm code || exit 1
    expect 0 check code.pm
    expect 0 info code.pm
    says '^pointers  *15$'
    expect 0 graph code.pm
    [ "$(edges)" -eq 4 ] || fail "not four arrows"
    ;;
check)
    expect 0 check family.pm
    says 'no damage'
    printf 'x' | dd of=family.pm bs=1 conv=notrunc 2>dd.log || fail "dd"
    expect 1 check family.pm
    says 'one copy of the header is damaged'
    truncate -s 70000 family.pm
    expect 2 check family.pm
    says 'family.pm: offset'
    ;;
graph)
    expect 0 graph family.pm
    says '^digraph' 'penwidth=3' 'taillabel="+8"' 'taillabel="+16", headlabel="+24"' \
        'taillabel="+80", headlabel="+96"' \
        '<td>4 of them shown</td><td>4</td><td>1184</td>'
    [ "$(edges)" -eq 4 ] || fail "not four arrows"
    expect 0 graph --objects 2 family.pm # the root, and a child
    says '<td>2 of them shown</td><td>4</td>'
    [ "$(edges)" -eq 2 ] || fail "not two arrows"
    ;;
drawn)
    mkdir bin
    # shellcheck disable=SC2016 # they are dot's
    printf '#!/bin/sh\necho "$@" >dot.log\n' >bin/dot
    chmod +x bin/dot
    PATH=$PWD/bin:$PATH expect 0 graph -o family.dot family.pm
    says 'wrote family.dot and family.svg'
    [ "$(cat dot.log)" = "-Tsvg -ofamily.svg family.dot" ] || fail "dot was given $(cat dot.log)"
    "$pm" graph family.pm | cmp - family.dot || fail "the graph differs from that on the terminal"
    expect 2 graph -o family.svg family.pm
    says 'family.svg would be overwritten'
    [ "$(cat dot.log)" = "-Tsvg -ofamily.svg family.dot" ] || fail "dot was given $(cat dot.log)"
    printf '#!/bin/sh\nexit 1\n' >bin/dot
    PATH=$PWD/bin:$PATH expect 2 graph -o family.dot family.pm
    says 'dot could not draw family.dot'
    cp family.pm family
    ln family.pm other.dot
    for out in family.pm ./family.pm other.dot; do
        expect 2 graph -o $out family.pm
        says "$out is the container itself"
    done
    cmp family family.pm || fail "the container is another"
    mv family family.svg
    expect 2 graph -o family.dot family.svg
    says 'family.svg is the container itself'
    cmp family.svg family.pm || fail "the container is a picture"
    rm family.svg
    PATH=/nowhere expect 0 graph -o family.dot family.pm
    says 'not there to draw it'
    expect 2 graph -o /no/such/directory/family.dot family.pm
    says 'cannot write'
    ;;
map)
    # A word that maps pointers of the root, and whose seal is not right any more; the map is the
    # fifth segment.
    printf 'x' | dd of=family.pm bs=1 seek=268064 conv=notrunc 2>dd.log || fail "dd"
    for command in check info graph; do
        expect 1 $command family.pm
        says 'a word of the pointer map is damaged'
    done
    ;;
full) # nobody gets what they print
    for command in info check graph --help; do
        [ $command = --help ] && file='' || file=family.pm
        # shellcheck disable=SC2086 # no argument, if there is none
        "$pm" $command $file >/dev/full 2>output
        [ $? -eq 2 ] || fail "$command succeeds"
        says '^pm: cannot write'
    done
    ;;
usage)
    for command in info check graph; do
        expect 2 $command
        expect 2 $command nobody.pm
        says '^pm: nobody.pm: .*No such file or directory$'
        expect 0 $command --help
    done
    expect 2 graph --objects many family.pm
    ;;
*)
    fail "no case $case"
    ;;
esac
