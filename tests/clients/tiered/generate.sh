#!/bin/sh
#
# generate.sh PM_TIER INCLUDE: what pm-tier says to structs that it cannot make durable.
set -u
pm_tier=$1 include=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
failed=0

# refuses FIELDS MESSAGE...: a struct with these members is an error that has all these words.
refuses() {
    printf '#include <tiered/annotate.hpp>\n#include <array>\n#include <cstdint>\n#include <map>\n#include <string>\n#include <vector>\nstruct base { int b; };\nstruct PM_DURABLE thing %s;\n' "$1" >thing.hpp
    shift
    if "$pm_tier" generate thing.hpp -- -I "$include" 2>errors; then
        echo "accepted: $(tail -n 1 thing.hpp)"
        failed=1
    fi
    for words; do
        if ! grep -qF -- "$words" errors; then
            echo "$(tail -n 1 thing.hpp): does not say '$words', but:"
            cat errors
            failed=1
        fi
    done
    [ ! -e thing.durable.hpp ] || { echo "it wrote a header"; failed=1; }
}

refuses '{ int &age; }' 'thing.hpp:8: field `age`' 'reference' 'tiered::handle'
refuses '{ int *age; }' 'thing.hpp:8: field `age`' 'pointer' 'tiered::handle'
refuses '{ int age : 3; }' 'field `age`' 'bit field' 'type of its own'
refuses ': base { int age; }' 'thing.hpp:8' 'base class'
refuses '{ PM_TIER("tape") int age; }' 'field `age`' '"tape" is unknown' '--tier'
refuses '{ PM_TIER(pm) int age; }' 'field `age`' 'strings'
refuses '{ PM_TIER("pm", "pm") int age; }' 'field `age`' 'twice'
refuses '{ PM_TIER("pm") PM_TIER("disk") int age; }' 'field `age`' 'two tags'
refuses '{ std::map<int, int> ages; }' 'field `ages`' 'std::map' 'possible are'
refuses '{ std::vector<bool> bits; }' 'field `bits`' 'uint8_t'
refuses '{ std::vector<std::string> names; }' 'field `names`' 'possible are'
refuses '{ std::array<int *, 3> ages; }' 'field `ages`' 'possible are'
refuses '{ const int age; }' 'field `age`' 'const'
refuses '{ base inner; }' 'field `inner`' 'PM_DURABLE'
refuses '{ tiered::handle<base> inner; }' 'field `inner`' 'PM_DURABLE'
refuses '{ PM_TIER("disk") tiered::handle<thing> next; }' 'field `next`' 'handle' 'remove the tag'
refuses '{ int thing_; long double x; }' 'field `x`' 'possible are'
refuses '{ }' 'thing.hpp:8' 'no field'
refuses '{ unknown x; }' 'unknown' 'behind --'

if "$pm_tier" generate none.hpp 2>errors || ! grep -q none.hpp errors; then
    echo "no error for a missing header"
    failed=1
fi

# And a placement.
printf '#include <tiered/annotate.hpp>\nnamespace a { struct PM_DURABLE thing { int age; double size; }; }\n' >thing.hpp
echo '{"a::thing": {"weight": "pm"}}' >placement.json
if "$pm_tier" generate thing.hpp --placement placement.json -- -I "$include" 2>errors || ! grep -q 'a::thing.weight' errors; then
    echo "a placement of a field that is not there: $(cat errors)"
    failed=1
fi
echo '{"a::thing": {"age": "disk"}}' >placement.json
"$pm_tier" generate thing.hpp --placement placement.json -- -I "$include" || failed=1
grep -q '"age", "int", offsetof(thing_record, age), true, {"disk"}' thing.durable.hpp ||
    { echo "the placement has no effect"; failed=1; }
exit $failed
