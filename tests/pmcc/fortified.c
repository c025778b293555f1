/* What _FORTIFY_SOURCE makes of functions of libc, whether the compiler would choose it or not. */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "runtime/fortified.h"
#include "text.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROOM 4000

SUBJECT(uses_fortified_memory)
{
    const char *text = text_of(n);
    CALL(__memcpy_chk)(m, text, n, ROOM);
    CALL(__memmove_chk)(m + 1000, text, n, ROOM);
    CALL(__mempcpy_chk)(m + 2000, text, n, ROOM);
    CALL(__memset_chk)(m + 3000, 's', n, ROOM);
    CALL(__explicit_bzero_chk)(m + 4000, n, ROOM);
}

SUBJECT(uses_fortified_strings)
{
    CALL(__strcpy_chk)(m, text_of(n), ROOM);
    CALL(__stpcpy_chk)(m + 1000, text_of(n), ROOM);
    CALL(__strncpy_chk)(m + 2000, text_of(n / 2), n, ROOM);
    CALL(__stpncpy_chk)(m + 3000, text_of(n / 2), n, ROOM);
}

SUBJECT_MORE(uses_fortified_appending)
{
    m[0] = 0;
    CALL(__strcat_chk)(m, text_of(n), ROOM);
    commit();
    CALL(__strncat_chk)(m, text_of(n), 50, ROOM);
}

SUBJECT(uses_fortified_wide)
{
    wchar_t wide[101];
    wmemset(wide, L'w', n);
    wide[n] = 0;
    CALL(__wcscpy_chk)((wchar_t *)m, wide, ROOM);
    CALL(__wmemcpy_chk)((wchar_t *)(m + 2000), wide, n, ROOM);
    CALL(__wcsncpy_chk)((wchar_t *)(m + 6000), wide, n, ROOM);
    CALL(__wmemmove_chk)((wchar_t *)(m + 8000), wide, n, ROOM);
    CALL(__wmemset_chk)((wchar_t *)(m + 4000), L'v', n, ROOM);
}

static void print_wide_list(wchar_t *m, const wchar_t *format, ...)
{
    va_list list;
    va_start(list, format);
    CALL(__vswprintf_chk)(m, 200, 1, ROOM, format, list);
    va_end(list);
}

SUBJECT_MORE(uses_more_fortified_wide)
{
    wchar_t *text = (wchar_t *)m;
    wcscpy(text, L"begin");
    commit();
    CALL(__wcscat_chk)(text, L", and go on for more than a line of memory", ROOM);
    commit();
    CALL(__wcsncat_chk)(text, L", and go on for more than a line of memory", n, ROOM);
    CALL(__wcpcpy_chk)((wchar_t *)(m + 2000), L"end", ROOM);
    CALL(__wcpncpy_chk)((wchar_t *)(m + 4000), text, n, ROOM);
    CALL(__wmempcpy_chk)((wchar_t *)(m + 6000), text, 4, ROOM);
    CALL(__swprintf_chk)((wchar_t *)(m + 8000), 200, 1, ROOM, L"%ld", n);
    print_wide_list((wchar_t *)(m + 10000), L"%ld", n);
}

SUBJECT_MORE(uses_fortified_conversions)
{
    wchar_t wide[101];
    mbstate_t *state = (mbstate_t *)(m + 3000);
    memset(state, 0, sizeof *state);
    require(CALL(__mbstowcs_chk)((wchar_t *)m, text_of(n), 200, ROOM) == (size_t)n);
    require(mbstowcs(wide, text_of(n), 101) == (size_t)n);
    require(CALL(__wcstombs_chk)(m + 1000, wide, 200, ROOM) == (size_t)n);
    require(CALL(__wctomb_chk)(m + 2000, L'x', ROOM) == 1);
    require(CALL(__wcrtomb_chk)(m + 2500, L'x', state, ROOM) == 1);
    require(CALL(__realpath_chk)("/proc/self/..", m + 4000, PATH_MAX) == m + 4000);
}

SUBJECT_MORE(uses_fortified_conversions_of_parts)
{
    wchar_t wide[101];
    const char *from = text_of(n);
    const wchar_t *wide_from = wide;
    mbstate_t *state = (mbstate_t *)(m + 5000);
    memset(state, 0, sizeof *state);
    require(mbstowcs(wide, text_of(n), 101) == (size_t)n);
    require(CALL(__mbsrtowcs_chk)((wchar_t *)m, &from, 200, state, ROOM) == (size_t)n);
    require(CALL(__wcsrtombs_chk)(m + 1000, &wide_from, 200, state, ROOM) == (size_t)n);
    from = text_of(n);
    wide_from = wide;
    require(CALL(__mbsnrtowcs_chk)((wchar_t *)(m + 2000), &from, n, 200, state, ROOM) == (size_t)n);
    require(CALL(__wcsnrtombs_chk)(m + 3000, &wide_from, n, 200, state, ROOM) == (size_t)n);
    setgroups(2, (gid_t[]){1, 2}); /* if it may */
    require(CALL(__getgroups_chk)(1000, (gid_t *)(m + 8000), ROOM) >= 0);
}

SUBJECT_MORE(uses_more_fortified_files)
{
    int fd = memfd_create("text", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, "one\ntwo\nthree\n", 14) == 14);
    FILE *f = fdopen(fd, "r");
    rewind(f);
    require(CALL(__fgets_unlocked_chk)(m, ROOM, (int)n + 2, f) != NULL);
    require((f = freopen("/proc/self/status", "r", f)) != NULL);
    require(CALL(__fgetws_chk)((wchar_t *)(m + 1000), ROOM, (int)n + 2, f) != NULL);
    require(CALL(__fgetws_unlocked_chk)((wchar_t *)(m + 2000), ROOM, (int)n + 2, f) != NULL);
    fclose(f);
}

SUBJECT_MORE(uses_fortified_files)
{
    int fd = memfd_create("text", MFD_CLOEXEC);
    for (int i = 0; i < 3; i++)
        require(fd >= 0 && write(fd, text_of(n), n) == n);
    require(CALL(__pread_chk)(fd, m, n, 0, ROOM) == n);
    require(CALL(__pread64_chk)(fd, m + 500, n, 0, ROOM) == n);
    require(lseek(fd, 0, SEEK_SET) == 0 && CALL(__read_chk)(fd, m + 1000, n, ROOM) == n);
    FILE *f = fdopen(fd, "r");
    require(fseek(f, 0, SEEK_SET) == 0);
    require(CALL(__fread_chk)(m + 1500, ROOM, 1, n, f) == (size_t)n);
    require(CALL(__fread_unlocked_chk)(m + 2000, ROOM, 1, n, f) == (size_t)n);
    require(n == 0 || CALL(__fgets_chk)(m + 2500, ROOM, (int)n + 1, f));
    fclose(f);
    require(CALL(__getcwd_chk)(m + 4000, 1000, ROOM) != NULL);
    require(CALL(__readlink_chk)("/proc/self/exe", m + 5000, 1000, ROOM) > 0);
    require(CALL(__readlinkat_chk)(AT_FDCWD, "/proc/self/exe", m + 7000, 1000, ROOM) > 0);
    require(CALL(__gethostname_chk)(m + 6000, 200, ROOM) == 0);
}

SUBJECT_MORE(uses_fortified_sockets)
{
    int fds[2];
    require(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0);
    for (int i = 0; i < 2; i++)
        require(send(fds[1], text_of(n), n, 0) == n);
    struct pollfd *asked = (struct pollfd *)m;
    *asked = (struct pollfd){.fd = fds[0], .events = POLLIN};
    commit();
    require(CALL(__poll_chk)(asked, 1, 0, ROOM) == 1);
    asked->revents = 0;
    commit();
    require(CALL(__ppoll_chk)(asked, 1, NULL, NULL, ROOM) == 1);
    require(CALL(__recv_chk)(fds[0], m + 1000, n, ROOM, 0) == n);
    socklen_t *told = (socklen_t *)(m + 3000);
    *told = 0;
    require(CALL(__recvfrom_chk)(fds[0], m + 2000, n, ROOM, 0, (struct sockaddr *)(m + 4000),
                                 told) == n);
    close(fds[0]);
    close(fds[1]);
}
