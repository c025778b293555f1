# shellcheck shell=bash
#
# What the scripts beside this file share. Source it; it defines functions, and `started`.

# step TEXT: say what comes next, with the seconds since the script began.
step() {
    printf '\n[%3d s] %s\n' "$SECONDS" "$1"
}

# die TEXT: give up with a message.
die() {
    printf '%s: %s\n' "${0##*/}" "$1" >&2
    exit 1
}

# start LOG COMMAND...: run a command beside what follows, its output in a file; one at a time. It has a
# process group of its own, which ends when the script does, for which it takes the script's EXIT trap.
started=
start() {
    local log=$1
    shift
    set -m
    "$@" >"$log" 2>&1 &
    started=$!
    set +m
    trap '[[ ! $started ]] || kill -- "-$started" 2>/dev/null || true' EXIT
}

# finish: wait for what was started, and have its status.
finish() {
    local status=0
    wait "$started" || status=$?
    started=
    return "$status"
}

# need_packages PACKAGE...: install the Debian packages that are missing. As root, or with sudo.
# Touches neither the network nor sudo when all are there.
need_packages() {
    local package missing=() as_root=()
    for package in "$@"; do
        [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
            missing+=("$package")
    done
    ((${#missing[@]})) || return 0

    if ((EUID != 0)); then
        command -v sudo >/dev/null || die "run me as root or install sudo; missing: ${missing[*]}"
        as_root=(sudo)
    fi
    as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0
        -o DPkg::Lock::Timeout=120)
    step "installing ${missing[*]}"
    # The package lists may be absent or too old to name files the mirror still has.
    local log
    log=$(mktemp)
    if ! "${as_root[@]}" install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1; then
        if ! { "${as_root[@]}" update &&
            "${as_root[@]}" install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
            cat "$log" >&2
            rm -f "$log"
            die "could not install ${missing[*]}"
        fi
    fi
    rm -f "$log"
}
