#!/bin/sh
#
# demanded.sh DIRECTORY-OF-PMCC DIRECTORY-OF-LIBPM INCLUDE: the tracker "stores" needs code that pmcc has compiled,
# wherever that is, or a program that says that it announces its stores.
set -eu
pmcc=$1/pmcc library=$2 include=$3
directory=$(mktemp -d -p /dev/shm)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

fail() {
    echo "$*" >&2
    exit 1
}

# open [FLAG...]: prints what is wrong. The flags are those of pm_options; "plugin" loads a plugin first.
cat >open.c <<'END'
#include <dlfcn.h>
#include <errno.h>
#include <libpm.h>
#include <stdio.h>
#include <string.h>
int main(int count, char **arguments)
{
    struct pm_options options = {.size = sizeof options, .flags = PM_CREATE, .tracker = PM_TRACKER_STORES};
    for (int i = 1; i < count; i++)
        if (strcmp(arguments[i], "announced") == 0)
            options.flags |= PM_ANNOUNCED;
        else if (strcmp(arguments[i], "read-only") == 0)
            options.flags = PM_READONLY;
        else if (!dlopen("./plugin.so", RTLD_NOW))
            return printf("%s\n", dlerror()), 2;
    pm_container *c = pm_open("c.pm", &options);
    if (!c)
        return printf("%s%s\n", errno == ENOTSUP ? "ENOTSUP: " : "", pm_errormsg()), 1;
    return pm_close(c);
}
END
echo 'void store(long *p) { *p = 1; }' >part.c

refused() {
    if message=$("$@"); then
        fail "$* may store without a mark"
    fi
    case $message in
    "ENOTSUP: c.pm: PM_TRACKER_STORES needs code compiled by pmcc"*) ;;
    *) fail "$*: $message" ;;
    esac
}
opens() {
    "$@" || fail "$* does not open"
}

cc="gcc -Wall -Wextra -Werror -I$include"
ld="-L$library -Wl,-rpath,$library -lpm -ldl"
$cc open.c -o bare $ld
refused ./bare
[ ! -e c.pm ] || fail "a call that failed has made a file"
opens ./bare announced
opens ./bare read-only
refused ./bare

# Part of the program, a library, a plugin.
"$pmcc" -O2 -c part.c -o part.o
$cc -c open.c -o open.o
$cc open.o part.o -o linked $ld
opens ./linked
LIBPM=static "$pmcc" open.o part.o -o static -ldl
opens ./static
"$pmcc" -O2 -fPIC -shared part.c -o libpart.so
$cc open.c -o library -Wl,--no-as-needed -L. -lpart -Wl,-rpath,"$directory" $ld
opens ./library
cp libpart.so plugin.so
refused ./bare
opens ./bare plugin

# The program itself, however it is compiled.
for how in -O0 -O2 "-O2 -flto" "-O2 -flto=thin" "-O0 -flto"; do
    for way in shared static; do
        LIBPM=$way "$pmcc" $how open.c -o whole -ldl
        opens ./whole
    done
done
"$pmcc" --discover -O2 open.c -o whole -ldl
opens ./whole
