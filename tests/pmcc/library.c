/* Functions of libc that write to where their arguments point. */
#define _GNU_SOURCE
#include "subject.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

static char text[128];
static const char *text_of(long n)
{
    memset(text, 'x', n);
    text[n] = 0;
    return text;
}

SUBJECT(uses_strcpy)
{
    strcpy(m + 5, text_of(n));
}
SUBJECT(uses_stpcpy)
{
    *stpcpy(m + 5, text_of(n)) = '!';
}
SUBJECT(uses_strncpy)
{
    strncpy(m + 30, text_of(n / 2), n);
}
SUBJECT_MORE(uses_strcat)
{
    m[0] = 0;
    strcat(m, text_of(n));
    commit();
    strncat(m, text_of(n), 50);
    commit();
    strcat(m, "the end, at last, of a long text: ");
}
SUBJECT(uses_wide)
{
    wchar_t wide[101];
    wmemset(wide, L'w', n);
    wide[n] = 0;
    wcscpy((wchar_t *)m, wide);
    wmemset((wchar_t *)(m + 2000), L'v', n);
}
SUBJECT(uses_memory)
{
    void *(*volatile copy)(void *, const void *, size_t) = memcpy;
    copy(m, text_of(n), n);
    *(char *)mempcpy(m + 1000, text, n) = 'e';
    memccpy(m + 2000, "abcdefghi", 'd', 9);
    explicit_bzero(m + 3000, n);
}
SUBJECT(uses_sprintf)
{
    sprintf(m + 9, "%ld %s", n, text_of(n));
    snprintf(m + 1000, n, "%s and much more than there is room for", text_of(n / 2));
    snprintf(m + 2000, 4000, "%s", text_of(n));
}
SUBJECT_MORE(uses_tokens)
{
    strcpy(m, "one two  three four");
    strcpy(m + 100, "1,2,,3");
    commit();
    for (char *word = strtok(m, " "); word; word = strtok(NULL, " "))
        word[0] = '#';
    commit();
    char **rest = (char **)(m + 1024);
    *rest = m + 100;
    while (strsep(rest, ",")) {
    }
}
SUBJECT(uses_numbers)
{
    strtol("123", (char **)m, 10);
    strtod("1.5e3", (char **)(m + 128));
    frexp((double)n + 0.5, (int *)(m + 256));
    modf((double)n + 0.25, (double *)(m + 384));
}
SUBJECT(uses_scanf)
{
    int volatile got =
        sscanf("12 word 3.5 abcdefgh 77 left over", "%d %s %lf %4c%4c %hhd%n %*s %ms", (int *)m,
               m + 128, (double *)(m + 256), m + 384, m + 512, (signed char *)(m + 640),
               (int *)(m + 768), (char **)(m + 896));
    if (got == 7)
        free(*(char **)(m + 896));
    char line[256];
    snprintf(line, sizeof line, "%s", text_of(n + 1));
    sscanf(line, "%[x]", m + 1024);
    sscanf("5 6", "%2$d %1$d", (int *)(m + 2048), (int *)(m + 2200));
    sscanf("abc", "%3c%d", m + 3000, (int *)(m + 3100));
    sscanf("", "%d", (int *)(m + 3200));
}

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(int));
}
SUBJECT_MORE(uses_qsort)
{
    for (long i = 0; i < n; i++)
        ((int *)m)[i] = (int)(i * 7919 % 101);
    commit();
    qsort(m, n, sizeof(int), compare);
}

SUBJECT_MORE(uses_files)
{
    int fds[2];
    if (pipe(fds))
        abort();
    for (int i = 0; i < 8; i++)
        if (write(fds[1], text_of(n), n) != n)
            abort();
    close(fds[1]);
    if (read(fds[0], m + 10, n) < 0)
        abort();
    struct iovec pieces[2] = {{m + 1000, n}, {m + 2000, n}};
    if (readv(fds[0], pieces, 2) < 0)
        abort();
    commit();
    FILE *f = fdopen(fds[0], "r");
    int read_all = fread(m + 3000, 1, n, f) == (size_t)n && fgets(m + 4000, (int)n + 2, f) &&
                   fscanf(f, "%50s", m + 5000) == 1;
    if (n && !read_all && !feof(f))
        abort();
    fclose(f);
}
SUBJECT_MORE(uses_kernel)
{
    if (!getcwd(m, 1000) || readlink("/proc/self/exe", m + 1000, 1000) < 0 ||
        gethostname(m + 2000, 200) || getrandom(m + 3000, n, 0) != n)
        abort();
    stat("/", (struct stat *)(m + 4000));
    fstat(0, (struct stat *)(m + 4400));
    clock_gettime(CLOCK_MONOTONIC, (struct timespec *)(m + 4800));
    gettimeofday((struct timeval *)(m + 5000), NULL);
    time((time_t *)(m + 5200));
    gmtime_r((time_t *)(m + 5200), (struct tm *)(m + 5400));
}
SUBJECT_MORE(uses_sockets)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, fds))
        abort();
    for (int i = 0; i < 2; i++)
        if (send(fds[1], text_of(n), n, 0) != n)
            abort();
    if (recv(fds[0], m + 100, n, 0) != n)
        abort();
    struct iovec piece = {m + 1000, n};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (recvmsg(fds[0], &message, 0) != n)
        abort();
    close(fds[0]);
    close(fds[1]);
}
SUBJECT_MORE(uses_locks)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)m;
    pthread_mutex_init(lock, NULL);
    commit();
    pthread_mutex_lock(lock);
    commit();
    pthread_mutex_unlock(lock);
}
