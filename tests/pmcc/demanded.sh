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

# open [FLAG...]: prints what is wrong. The flags are those of pm_options. Others are in the order of what is done
# first: "plugin" loads a plugin, "other" another one, "close" closes the one loaded last.
cat >open.c <<'END'
#include <dlfcn.h>
#include <errno.h>
#include <libpm.h>
#include <stdio.h>
#include <string.h>
int main(int count, char **arguments)
{
    struct pm_options options = {.size = sizeof options, .flags = PM_CREATE, .tracker = PM_TRACKER_STORES};
    void *plugin = NULL;
    for (int i = 1; i < count; i++)
        if (strcmp(arguments[i], "announced") == 0)
            options.flags |= PM_ANNOUNCED;
        else if (strcmp(arguments[i], "read-only") == 0)
            options.flags = PM_READONLY;
        else if (strcmp(arguments[i], "close") == 0 ? dlclose(plugin) != 0
                 : !(plugin = dlopen(*arguments[i] == 'p' ? "./plugin.so" : "./other.so", RTLD_NOW)))
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

# A plugin that is unloaded stores nothing any more. Each counts once, however many files it is made of.
echo 'void store_more(long *p) { *p = 2; }' >more.c
come_and_go() {
    cp plugin.so other.so
    opens "$1" plugin
    refused "$1" plugin close
    opens "$1" plugin close plugin
    opens "$1" plugin plugin close
    opens "$1" plugin other close
    refused "$1" plugin close other close
}
for how in -O0 -O2 "-O2 -flto" "-O2 -flto=thin" "-O0 -flto" "--discover -O2"; do
    "$pmcc" $how -fPIC -shared part.c more.c -o plugin.so
    come_and_go ./bare
done
"$pmcc" -O2 -fPIC -c part.c -o part.pic.o
gcc -shared part.pic.o -o plugin.so # without libpm
LIBPM=static "$pmcc" -rdynamic open.o -o bare_static -ldl
refused ./bare_static
come_and_go ./bare
come_and_go ./bare_static
opens ./linked plugin close
opens ./library plugin close

# The program itself, however it is compiled.
for how in -O0 -O2 "-O2 -flto" "-O2 -flto=thin" "-O0 -flto"; do
    for way in shared static; do
        LIBPM=$way "$pmcc" $how open.c -o whole -ldl
        opens ./whole
    done
done
"$pmcc" --discover -O2 open.c -o whole -ldl
opens ./whole
