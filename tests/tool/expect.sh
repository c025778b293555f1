# For scripts that run the tool `pm`, which is $pm: what it must do and say. To be sourced, in a
# directory of one's own.

fail() {
    echo "$(basename "$0"): $*; the output was:" >&2
    cat output >&2
    exit 1
}

# expect STATUS ARGUMENT...: `pm ARGUMENT...` exits so.
expect() {
    wanted=$1
    shift
    "$pm" "$@" >output 2>&1
    got=$?
    [ $got -eq "$wanted" ] || fail "status $got, not $wanted: pm $*"
}

# says TEXT...: the output has a line like each of these.
says() {
    for text; do
        grep -q -e "$text" output || fail "does not say '$text'"
    done
}
