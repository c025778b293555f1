#!/bin/sh
# complete.sh LIBRARY CALLS: whatever LIBRARY calls and does not define is in CALLS, calls.def, and so
# is made to fail, or stands here, because it cannot fail or nothing depends on it.
set -eu
library=$1 calls=$2

harmless='
    # Look at and change memory.
    bcmp bsearch memchr memcmp memcpy memmove memset qsort qsort_r sigaddset sigdelset sigfillset
    sigorset snprintf strcmp strcpy strerror strerrordesc_np strlen strncpy strrchr vsnprintf dirname free
    # Fail only when called wrongly: with a clock, mutex, mask or state that is none.
    clock_gettime geteuid getpid getrlimit pthread_cond_broadcast pthread_cond_destroy pthread_cond_wait pthread_mutex_destroy
    pthread_mutex_init pthread_mutex_lock pthread_mutex_unlock pthread_once pthread_setcancelstate pthread_setcanceltype pthread_sigmask strtol strtoul
    sched_yield secure_getenv sysconf
    # The last words of a process, and those of the audit: there is nobody else to tell.
    abort fprintf raise stderr write writev
    # Written back and fenced; and that a mapping is no pmem is an answer.
    pmem_drain pmem_flush pmem_is_pmem pmem_memcpy
    # Say what is loaded or mapped, or that nothing is known.
    dl_iterate_phdr dladdr mincore
    # Where a stack ends, what unwinds a function, how long an object is; or that nothing is known.
    _Unwind_Find_FDE malloc_usable_size pthread_attr_destroy pthread_attr_getstack pthread_getattr_np
    pthread_self
    # What the kernel says of threads: where it does not, another may run.
    __isoc23_sscanf __isoc99_sscanf closedir nanosleep opendir read readdir
    # When the library is loaded: a process that has no memory then does not start.
    pthread_atfork
    # Without these there is no volatile heap, and allocating from it fails.
    pthread_key_create pthread_setspecific
    # A copy is made of all bytes where blocks cannot be shared; and does not replace a file that comes.
    ioctl lstat
    # What memory the audit warns of: where nobody says, it says less.
    fclose fopen getline syscall
    # getline(3), in optimised builds.
    __getdelim
    # Where holes are that a failed filling leaves: those that nobody finds keep their blocks.
    lseek
    # Looks up an area.
    sigsegv_dispatch sigsegv_init
    XXH3_64bits_digest XXH3_64bits_dispatch XXH3_64bits_reset XXH3_64bits_update_dispatch XXH3_64bits_withSeed_dispatch
    __cpu_model
    # Of the compiler and the C library themselves.
    _GLOBAL_OFFSET_TABLE_ __assert_fail __errno_location __libc_current_sigrtmin
    __libc_single_threaded __popcountdi2 __udivti3
    __stack_chk_fail __tls_get_addr
'

# The wrappers of libc.c, scan.c, text.c, heap_libc.c and thread.c call what the program asked for and hand on how it ended.
# The syscall(2) of lock.c is futex(2), after which both sides look again. Sanitizers bring calls of
# their own.
called=$(nm -A -u "$library" | grep -Ev ':(libc|scan|text|heap_libc|thread)\.c\.o:|:lock\.c\.o: .* syscall$' | awk '{ print $NF }' |
    grep -Ev '^__(asan|ubsan|tsan|sanitizer|gcov|llvm|lsan)_' | sort -u)
defined=$(nm --defined-only "$library" | awk 'NF == 3 { print $3 }')
known=$(
    sed -n 's/^CALL[A-Z_]*(\([a-z0-9_]*\),.*/\1/p' "$calls"
    echo "$harmless" | sed 's/ *#.*//' | tr -s ' ' '\n'
)
unknown=$(printf '%s\n' "$called" | grep -Fvx "$defined" | grep -Fvx "$known" || true)
[ -z "$unknown" ] || {
    echo "libpm calls what $calls does not know:" $unknown >&2
    exit 1
}
