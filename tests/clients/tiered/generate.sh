#!/bin/sh
#
# generate.sh PM_TIER INCLUDE: pm-tier refuses structs that it cannot make durable, and says why. The classes of
# others compile. Bad files and options are refused too.
set -u
pm_tier=$1 include=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
failed=0

# says WORDS...: the last error has all of them.
says() {
    for words; do
        if ! grep -qF -- "$words" errors; then
            echo "$(tail -n 1 thing.hpp): does not say '$words', but:"
            cat errors
            failed=1
        fi
    done
}

# needs NAME USES TEXT: an #include if the text uses one of these, else an empty line. So all texts begin at the
# same line. The standard library takes clang twenty times as long as the text.
needs() {
    echo "$3" | grep -qE "std::($2)\\b" && echo "#include <$1>" || echo
}

# refuses_text TEXT MESSAGE...: a header with this text is an error that has all these words.
refuses_text() {
    {
        printf '#include <tiered/annotate.hpp>\n\n'
        needs array array "$1"
        needs map map "$1"
        needs string 'string|u16string|basic_string' "$1"
        needs vector vector "$1"
        printf 'struct base { int b; };\n%s\n' "$1"
    } >thing.hpp
    shift
    if "$pm_tier" generate thing.hpp -- -I "$include" 2>errors; then
        echo "accepted: $(tail -n 1 thing.hpp)"
        failed=1
    fi
    says "$@"
    [ ! -e thing.durable.hpp ] || { echo "it wrote a header"; rm thing.durable.hpp; failed=1; }
}

# refuses FIELDS MESSAGE...: the same for a struct with these members.
refuses() {
    members=$1
    shift
    refuses_text "struct PM_DURABLE thing $members;" "$@"
}

# generates HEADER...
generates() {
    for header; do
        "$pm_tier" generate "$header" -- -I "$include" 2>errors || { cat errors; failed=1; }
    done
}

# compiles HEADER...: a program that includes them in this order.
compiles() {
    printf '#include "%s"\n' "$@" >program.cpp
    ${CXX:-c++} -std=c++20 -fsyntax-only -Wall -Wextra -Werror -I . -I "$include" -I "$include/../include" program.cpp 2>errors ||
        { echo "does not compile: $*"; cat errors; failed=1; }
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
refuses '{ std::u16string x; }' 'field `x`' 'possible are'
refuses '{ std::basic_string<char8_t> x; }' 'field `x`' 'possible are'
refuses '{ }' 'thing.hpp:8' 'no field'
refuses '{ unknown x; }' 'unknown' 'behind --'

refuses '{ int missing = ; }' 'thing.hpp:8' 'mend it'
refuses '{ volatile int age; }' 'field `age`' 'remove volatile'
refuses '{ const int ages[3]; }' 'field `ages`' 'remove const'
refuses '{ std::array<volatile int, 3> ages; }' 'field `ages`' 'remove volatile'
refuses '{ struct { int x; } place; }' 'field `place`' 'possible are'
refuses '{ tiered::handle<struct other> next; }' 'field `next`' 'not defined' 'include its header'

# Would be lost without a word.
refuses '{ int id; union { int i; float f; }; }' 'thing.hpp:8: `thing`' 'without a name' 'write its fields'
refuses '{ int id; struct { int i; float f; }; }' 'thing.hpp:8: `thing`' 'without a name' 'write its fields'
refuses '{ int age = 5; }' 'field `age`' 'initialiser' 'zeros' 'remove it'
refuses '{ int id, age{5}; }' 'field `age`' 'initialiser'
refuses '{ int ages[3] = {1, 2, 3}; }' 'field `ages`' 'initialiser'
refuses '{ std::string name = "Ada"; }' 'field `name`' 'initialiser'
refuses '{ int age; virtual int get(); }' 'thing.hpp:8: `thing`' 'virtual function' 'remove `virtual`'
refuses '{ int age; virtual ~thing(); }' 'thing.hpp:8: `thing`' 'virtual function'

# PM_DURABLE in places where it cannot be.
refuses '{ int age; struct PM_DURABLE inner { int x; }; inner x; }' 'thing.hpp:8: `inner`' 'move it out, to a namespace'
refuses_text 'struct outer { struct PM_DURABLE inner { int x; }; };' 'thing.hpp:8: `inner`' 'move it out'
refuses_text 'template <class T> struct outer { struct PM_DURABLE inner { int x; }; };' '`inner`' 'move it out'
refuses_text 'template <class T> struct PM_DURABLE box { T x; }; struct PM_DURABLE thing { box<int> x; };' \
    'thing.hpp:8: `box`' 'write the struct out'
refuses_text 'template <class T> struct box; template <> struct PM_DURABLE box<int> { int x; };' \
    'thing.hpp:8: `box`' 'write the struct out'
refuses_text 'template <class T> struct box; template <class T> struct PM_DURABLE box<T *> { T x; };' \
    'thing.hpp:8: `box`' 'write the struct out'
refuses_text 'union PM_DURABLE thing { int i; float f; };' 'thing.hpp:8: `thing`' 'union' 'write a struct'
refuses_text 'namespace { struct PM_DURABLE thing { int i; }; }' 'thing.hpp:8: `thing`' 'give it a name'
refuses_text 'namespace a { struct PM_DURABLE durable { int i; }; }' 'thing.hpp:8: `durable`' 'rename it'

# Names that the generated class needs, and enums that it cannot name.
refuses '{ int thing; }' 'field `thing`' "type's name" 'rename it'
refuses '{ int durable_id; }' 'field `durable_id`' 'rename it'
refuses '{ int record_; }' 'field `record_`' 'rename it'
refuses '{ int thing_record; }' 'field `thing_record`' 'rename it'
refuses '{ int x; int set_x; }' 'field `set_x`' 'the setter of `x`' 'rename it'
refuses_text 'struct PM_DURABLE set_x { int x; };' 'field `x`' "type's name" 'rename it'
refuses_text 'namespace a { struct PM_DURABLE q { int x; }; struct PM_DURABLE q_record { int x; }; }' \
    'thing.hpp:8: `q_record`' 'the record of `q`' 'rename one'
refuses '{ enum { small, large } size; }' 'field `size`' 'enum without a name'
refuses_text 'namespace { enum colour {}; } struct PM_DURABLE thing { std::vector<colour> eyes; };' 'field `eyes`' 'without a name'
refuses_text 'class PM_DURABLE thing { enum colour {}; colour eyes[2]; };' 'field `eyes`' 'private enum `thing::colour`' 'make it public'
refuses_text 'class out { struct in { enum colour {}; }; public: using colour = in::colour; }; struct PM_DURABLE thing { out::colour x; };' \
    'field `x`' 'private enum' 'make it public'

if "$pm_tier" generate none.hpp 2>errors || ! grep -q none.hpp errors; then
    echo "no error for a missing header"
    failed=1
fi

# All of this is possible.
cat >odd.hpp <<'end'
#include <tiered/annotate.hpp>
#include <array>
#include <string>
#include <vector>
namespace a {
struct tiered { int x; };
struct std {};
namespace a { struct a {}; }
enum class colour : short { red };
struct PM_DURABLE object { PM_TIER("pm") int x; };
struct PM_DURABLE q {
    enum class size { small };
    static constexpr int limit = 3;
    static int count;
    int twice() const { return 2 * x; }
    PM_TIER("pm") int x;
    int q_counts, q_schema, object, value, durable, set, std, tiered, name, unset_x;
    PM_TIER("pm") colour eyes[limit];
    PM_TIER("pm") size shirt;
    ::std::vector<colour> colours;
    ::std::array<size, 3> sizes;
    PM_TIER("pm") long double exact;
    long double exact_too;
    PM_TIER("pm") char8_t letter;
    char8_t letter_too;
    ::std::vector<char8_t> letters;
    ::std::array<long double, 2> numbers;
    __int128 wide;
    ::std::string text;
    ::a::object inner;
    ::tiered::handle<q> next;
};
}
end
generates odd.hpp
compiles odd.durable.hpp
for words in '"eyes", "a::colour[3] : short"' '"shirt", "a::q::size : int"' '"sizes", "std::array<a::q::size, 3> : int"' \
    '"colours", "std::vector<a::colour> : short"' '"x", "int"'; do
    grep -qF "$words" odd.durable.hpp || { echo "the schema has no $words"; failed=1; }
done

# Headers that include one another: with handles both ways, and with an embedded object one way. The latter's
# header needs the other one at its end.
for guard in '#pragma once' '#ifndef NAME
#define NAME'; do
    end=$(case $guard in '#ifndef'*) echo '#endif' ;; esac)
    # header NAME TEXT
    header() {
        printf '%s\n#include <tiered/annotate.hpp>\n%s\n%s\n' "$(echo "$guard" | sed "s/NAME/$1_HPP/")" "$2" "$end" >"$1.hpp"
    }
    header left 'struct right;
#include "right.hpp"
struct PM_DURABLE left { tiered::handle<right> other; };'
    header right 'struct left;
#include "left.hpp"
struct PM_DURABLE right { tiered::handle<left> other; int x; };'
    header whole '#include "part.hpp"
struct PM_DURABLE whole { part first; tiered::handle<whole> next; };'
    header part 'struct whole;
struct PM_DURABLE part { tiered::handle<whole> of; int x; };
#include "whole.hpp"'
    generates left.hpp right.hpp whole.hpp part.hpp
    for name in left right whole part; do # each includes the other
        compiles "$name.durable.hpp"
    done
done

# A header elsewhere: its directory must be one of -I, for the compiler as for clang.
mkdir -p sub
printf '#pragma once\n#include <tiered/annotate.hpp>\n#include "below.hpp"\nstruct PM_DURABLE deep { int x; below y; };\n' >sub/deep.hpp
printf '#pragma once\n#include <tiered/annotate.hpp>\nstruct PM_DURABLE below { int x; };\n' >sub/below.hpp
generates sub/deep.hpp sub/below.hpp
CPATH=sub compiles deep.durable.hpp

# A record that no block has room for.
{
    echo '#include <tiered/annotate.hpp>'
    echo 'struct PM_DURABLE small { PM_TIER("pm") double x[32]; };'
    echo 'struct PM_DURABLE large {'
    seq -f 'small s%g;' 1023
    echo 'PM_TIER("pm") double x[24]; };'
} >large.hpp
generates large.hpp
compiles large.durable.hpp
sed -i 's/double x\[24\]/double x[25]/' large.hpp
generates large.hpp
echo '#include "large.durable.hpp"' >program.cpp
${CXX:-c++} -std=c++20 -fsyntax-only -I . -I "$include" -I "$include/../include" program.cpp 2>errors && failed=1
says 'the record of large is longer than a block' 'write handles'

# Placements. A field that is placed in "pm" keeps its slot, and may leave for the disk.
cat >thing.hpp <<'end'
#include <tiered/annotate.hpp>
#include <string>
namespace a {
struct PM_DURABLE thing {
    int age;
    double size;
    PM_TIER("pm") char letter;
    PM_TIER("disk") int tagged;
    std::string name;
    tiered::handle<thing> next;
};
}
end
# places PLACEMENT MESSAGE...: this file is an error.
places() {
    echo "$1" >placement.json
    shift
    if "$pm_tier" generate thing.hpp --placement placement.json -- -I "$include" 2>errors; then
        echo "accepted: $(cat placement.json)"
        failed=1
    fi
    says 'placement.json: ' "$@"
}
anew='make it anew with `pm-tier place`'
places '{"a::thing": {"weight": "pm"}}' 'the field a::thing.weight, which the header has not' "$anew"
places '{"a::thing": {"tagged": "pm"}}' 'a::thing.tagged, whose PM_TIER decides' "$anew"
places '{"a::thing": {"next": "pm"}}' 'a::thing.next, which has no tier' "$anew"
places '{"a::thing": {"age": "tape"}}' 'unknown tier "tape" for a::thing.age' 'dram, pm, disk' "$anew"
places '{"a::thing": {"age": 3}}' 'unknown tier 3 for a::thing.age' "$anew"
places '{"a::thing": 3}' 'no object of fields for the type a::thing' "$anew"
places '{"a::thong": {}}' 'the type a::thong, which the header has not' "$anew"
places '[]' 'is not an object' "$anew"
places '{"a::thing":' 'is not JSON at byte' "$anew"
places '' 'is not JSON' "$anew"
echo '{"a::thing": {"age": "disk", "size": "pm"}}' >placement.json
"$pm_tier" generate thing.hpp --placement placement.json -- -I "$include" || failed=1
for words in 'age", "int", offsetof(::a::durable::thing_record, age), true, {"disk"}' \
    'size", "double", offsetof(::a::durable::thing_record, size), true, {"pm", "disk"}'; do
    grep -qF "$words" thing.durable.hpp || { echo "the placement has no effect: no $words"; failed=1; }
done

# What place reads.
tier() { printf '{"name": "%s", "read_ns": %s, "write_ns": 1, "read_ns_per_byte": 1, "write_ns_per_byte": 1}' "$1" "$2"; }
field() { printf '{"name": "%s", "reads": %s, "writes": 1, "read_bytes": 40, "written_bytes": 20}' "$1" "$2"; }
tiers="[$(tier dram 1), $(tier pm 10), $(tier disk 100)]"
profile="[{\"type\": \"a::thing\", \"fields\": [$(field age 1), $(field size 1), $(field letter 1), $(field tagged 1), $(field name 2)]}]"
header=thing.hpp
echo "$tiers" >tiers.json
echo "$profile" >profile.json
place() {
    "$pm_tier" place "$header" --tiers tiers.json --profile profile.json "$@" -- -I "$include" >output 2>errors
}
# refuses_place MESSAGE OPTION...: and prints nothing else.
refuses_place() {
    message=$1
    shift
    if place "$@" || [ -s output ]; then
        echo "place $*: accepted, or printed:"
        cat output
        failed=1
    fi
    says "$message"
}
# refuses_file NAME TEXT MESSAGE...: instead of NAME.json.
refuses_file() {
    name=$1
    mv "$name.json" right
    echo "$2" >"$name.json"
    shift 2
    refuses_place "$name.json: "
    says "$@"
    mv right "$name.json"
}
measure='make it anew with `pm-tier measure`' again='run the program again, compiled with -DTIERED_PROFILE'
refuses_file tiers '[]' 'is not an array of tiers' "$measure"
refuses_file tiers '{}' 'is not an array of tiers' "$measure"
refuses_file tiers '[3]' 'tier 0 has no "name"' "$measure"
refuses_file tiers '[{"name": "pm"}]' 'tier "pm" has no "read_ns"' "$measure"
refuses_file tiers "[$(tier pm -1)]" 'tier "pm" has no "read_ns", or not as a number from 0 on' "$measure"
refuses_file tiers "[$(tier pm 1e999)]" 'too large' "$measure"
refuses_file tiers "[$(tier pm '"3"')]" '"read_ns"' "$measure"
refuses_file tiers "[$(tier pm '3, "loss_probability": 2')]" '"loss_probability", or not as a number from 0 to 1' "$measure"
refuses_file tiers "[$(tier pm 3), $(tier pm 3)]" 'the tier "pm" twice' "$measure"
refuses_file tiers '[' 'is not JSON at byte' "$measure"
refuses_file profile '{}' 'is not an array of types' "$again"
refuses_file profile '[{"fields": []}]' 'a type has no "type"' "$again"
refuses_file profile '[{"type": "a::thing"}]' 'a::thing has no "fields"' "$again"
refuses_file profile '[{"type": "a::thing", "fields": [{}]}]' 'a field of a::thing has no "name"' "$again"
refuses_file profile '[{"type": "a::thing", "fields": [{"name": "age"}]}]' 'a::thing.age has no "reads"' "$again"
refuses_file profile "[{\"type\": \"a::thing\", \"fields\": [$(field age -3)]}]" 'a::thing.age has no "reads", or not as a number from 0 on' "$again"
refuses_file profile '[]' 'has no counts of a::thing.age' "$again"
refuses_place '--capacity tape=3: `tape` is unknown; write one of dram, pm, disk' --capacity tape=3
refuses_place '--loss tape=1: `tape` is unknown; write one of dram, pm, disk' --loss tape=1
refuses_place '--recomputation a::thing.weight=1: `a::thing.weight` is unknown; write one of a::thing.age' --recomputation a::thing.weight=1
sed '/std::string/d; /<string>/d' thing.hpp >plain.hpp # which takes less time
header=plain.hpp
for number in nan inf -1 1e999 x '' 3x; do
    for option in '--capacity pm' '--loss pm' '--recomputation a::thing.age'; do
        # shellcheck disable=SC2086
        refuses_place "$option=$number: is not NAME=NUMBER; write a number from 0" $option=$number
    done
done
refuses_place '--loss pm=1.1: is not NAME=NUMBER; write a number from 0 to 1' --loss pm=1.1
for number in nan inf 0 -1; do
    refuses_place '--objects ' --objects=$number
done
header=thing.hpp

# What place tells of memory: age, size, name and tagged have slots of 16 bytes, letter and next lie in the record.
# The values of age and size fit in their slots. A name has 20 bytes, and takes 32 in pm.
place --objects 10 --loss dram=1 || { cat errors; failed=1; }
grep -qx 'records: 800 bytes of pm, 80 for each object' output && grep -qx 'pm: 1120 bytes' output || { cat output; failed=1; }
place --objects 10 --loss dram=1 --capacity pm=1119 || { cat errors; failed=1; }
grep -qx 'pm: 800 bytes of 1119' output || { cat output; failed=1; }
refuses_place 'records alone take 800 bytes of pm: pm is short by 800 bytes' --objects 10 --capacity pm=0
generates thing.hpp
printf '#include "thing.durable.hpp"\nstatic_assert(sizeof(a::durable::thing_record) == 80);\n' >size.hpp
compiles size.hpp
exit $failed
