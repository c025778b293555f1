/*
 * The wrappers of wrapped.def: each announces what the function will write, and then calls the function. The
 * macros at the end make the wrappers from the list. Before the macros stand the announcements that need
 * more than an address and a size. They measure strings, or find the kinds of elements that will be sorted.
 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE /* otherwise its inline functions would replace the real ones */

#include "runtime/isoc23.h"

#include "runtime/announce.h"
#include "runtime/fortified.h"

#include <arpa/inet.h>
#include <iconv.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/filter.h>
#include <math.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <regex.h>
#include <search.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <uchar.h>
#include <unistd.h>
#include <wchar.h>

/* strerror_r() as declared without _GNU_SOURCE. */
int __xpg_strerror_r(int, char *, size_t);

typedef int (*compare_function)(const void *, const void *);
typedef int (*compare_r_function)(const void *, const void *, void *);

#define UNUSED __attribute__((unused))

/* Announce memory that may be written or not. The values found there at commit decide about the kinds. */
static void announce_any(void *p, size_t n)
{
    const uintptr_t step = sizeof(uint64_t), end = (uintptr_t)p + n;
    announce_lines(p, n);
    if (in_arena(p))
        for (uintptr_t at = ((uintptr_t)p + step - 1) & ~(step - 1); at + step <= end; at += step)
            set_kind((const void *)at, KIND_BY_VALUE);
}

static void announce_string(char *p, const char *q)
{
    if (in_arena(p))
        announce(p, strlen(q) + 1);
}

static void announce_append(char *p, const char *q, size_t n)
{
    if (in_arena(p))
        announce(p + strlen(p), strnlen(q, n) + 1);
}

static void announce_wide_append(wchar_t *p, const wchar_t *q, size_t n)
{
    if (in_arena(p))
        announce(p + wcslen(p), (wcsnlen(q, n) + 1) * sizeof *p);
}

static void announce_copy_until(void *p, const void *q, int c, size_t n)
{
    if (!in_arena(p))
        return;
    const char *end = memchr(q, c, n);
    announce_copy(p, q, end ? (size_t)(end - (const char *)q) + 1 : n);
}

/* The function overwrites the end of a token, and stores where the next token begins. */
static void announce_field(char *s, const char *set, char **rest)
{
    announce_pointer(rest);
    if (in_arena(s))
        announce(s + strcspn(s, set), 1);
}

static void announce_token(char *s, const char *set, char **rest)
{
    announce_field(s ? s + strspn(s, set) : s, set, rest);
}

static void announce_wide_token(wchar_t *s, const wchar_t *set, wchar_t **rest)
{
    announce_pointer((char **)rest);
    if (!in_arena(s))
        return;
    wchar_t *token = s + wcsspn(s, set);
    announce(token + wcscspn(token, set), sizeof *token);
}

/* The most bytes that a converted text takes, with room for n characters or bytes. Programs often give a
 * larger n than there is room, if they know that the text fits. */
static size_t wide_bytes(const char *q, size_t n)
{
    size_t length = strnlen(q, n);
    return (length < n ? length + 1 : n) * sizeof(wchar_t);
}

/* `count`: the most characters that are read. */
static size_t narrow_bytes(const wchar_t *q, size_t count, size_t n)
{
    size_t most = (wcsnlen(q, count < n ? count : n) + 1) * MB_CUR_MAX;
    return most < n ? most : n;
}

/* Announce a converted text of `got` characters, with room for n. SIZE_MAX: it could not be converted. */
static void announce_converted(void *p, size_t size, size_t got, size_t n)
{
    if (got != SIZE_MAX)
        announce(p, (got < n ? got + 1 : n) * size);
}

/* The same, if the function stores to *q where it has stopped. That is NULL if the text has got its end. */
static void announce_converted_part(void *p, size_t size, size_t got, const void *q)
{
    if (got != SIZE_MAX)
        announce(p, (q ? got : got + 1) * size);
}

/* The function moves a place in a text, and keeps a state between calls. */
static void announce_progress(char **q, mbstate_t *state)
{
    announce_pointer(q);
    announce_object(state);
}

/* Returns where iconv() will store. It is NULL if iconv() is not asked for a text. */
static char *announce_iconv(char **from, size_t *from_left, char **to, size_t *to_left)
{
    announce_pointer(from);
    announce_object(from_left);
    announce_pointer(to);
    announce_object(to_left);
    char *start = to ? *to : NULL;
    if (start)
        announce_lines(start, *to_left);
    return start;
}

/* Announce a text that ends within n bytes, or was cut off there. */
static void announce_text(const char *p, size_t n)
{
    if (!in_arena(p))
        return;
    size_t length = strnlen(p, n);
    announce(p, length < n ? length + 1 : n);
}

/* Announce a time of `got` characters, with room for n. 0: it is empty, or n characters did not suffice, and
 * may be anything. */
static void announce_time(const void *p, size_t size, size_t got, size_t n)
{
    if (!in_arena(p) || n == 0)
        return;
    bool is_empty = size == 1 ? !*(const char *)p : !*(const wchar_t *)p;
    announce(p, (got > 0 || is_empty ? got + 1 : n) * size);
}

/* Announce a path. It has room for PATH_MAX. If there is no such file, it holds the part of the path that
 * exists. */
static void announce_path(char *p)
{
    if (in_arena(p))
        announce(p, strnlen(p, PATH_MAX - 1) + 1);
}

/* The kind of words of which some are pointers and others data, as in a union. The values decide. But if
 * data looks like an address, nobody can tell (base/marks.h, P4). */
static uint8_t kind_of_mixed(const char *p, size_t n, size_t size)
{
    for (size_t i = 0; i < n; i++, p += size) {
        void *value;
        memcpy(&value, p, sizeof value);
        if (may_be_address(value) && !(pm__kinds(p, sizeof value) & KIND_MAY_POINT))
            return KIND_PIECED;
    }
    return KIND_BY_VALUE;
}

static uint8_t kind_of_column(const char *p, size_t n, size_t size)
{
    uint64_t kind = KIND_DATA, zero = 0;
    bool is_first = true;
    for (size_t i = 0; i < n; i++) {
        const char *word = p + i * size;
        if (memcmp(word, &zero, sizeof zero) == 0) /* zero fits either kind */
            continue;
        uint64_t other = pm__kinds(word, sizeof zero);
        if (!is_first && other != kind)
            return kind_of_mixed(p, n, size);
        kind = other;
        is_first = false;
    }
    return (uint8_t)kind;
}

/*
 * Elements of an array are about to change places. Each word gets the kind that the same word has in all
 * elements. If the kinds differ, as in a union, the word's value decides.
 */
static void announce_elements(void *array, size_t n, size_t size)
{
    const size_t step = sizeof(uint64_t);
    if (!in_arena(array) || n == 0 || size == 0)
        return;
    if ((uintptr_t)array % step ||
        size % step) { /* no pointers, or pointers that the map cannot hold */
        announce(array, n * size);
        return;
    }
    announce_lines(array, n * size);
    for (size_t at = 0; at < size; at += step) {
        char *column = (char *)array + at;
        uint8_t kind = kind_of_column(column, n, size);
        for (size_t i = 0; i < n; i++)
            set_kind(column + i * size, kind);
    }
}

/* Announces again afterwards, because the comparison may commit. */
EXPORT void pm__qsort(void *p, size_t n, size_t size, compare_function f);
EXPORT void pm__qsort(void *p, size_t n, size_t size, compare_function f)
{
    announce_elements(p, n, size);
    qsort(p, n, size, f);
    announce_elements(p, n, size);
}

EXPORT void pm__qsort_r(void *p, size_t n, size_t size, compare_r_function f, void *x);
EXPORT void pm__qsort_r(void *p, size_t n, size_t size, compare_r_function f, void *x)
{
    announce_elements(p, n, size);
    qsort_r(p, n, size, f, x);
    announce_elements(p, n, size);
}

static void announce_got(void *p, size_t room, ssize_t got)
{
    if (got > 0) /* the length of a message that was cut may be greater than the room */
        announce(p, (size_t)got < room ? (size_t)got : room);
}

static size_t bytes_of(size_t size, size_t n)
{
    size_t bytes;
    return __builtin_mul_overflow(size, n, &bytes) ? SIZE_MAX : bytes;
}

/* The result of an fread() that has read `bytes`. The last item may be there in part only. */
static size_t announce_items(void *p, size_t size, size_t bytes)
{
    announce(p, bytes);
    return size ? bytes / size : 0;
}

/* If a line has neither its newline nor the end of the file, a null character inside ends the text early.
 * So announce the whole room. */
static void announce_line(char *p, int room, FILE *f)
{
    if (!in_arena(p))
        return;
    size_t length = strlen(p);
    bool is_whole = (length && p[length - 1] == '\n') || feof(f);
    announce(p, is_whole ? length + 1 : (size_t)room);
}

/* If lsearch() has found no such element, it has appended one. */
static void announce_appended(const void *key, void *element, size_t *n, size_t size, size_t before)
{
    if (*n == before)
        return;
    announce_object(n);
    announce_copy(element, key, size);
}

/* random_r() stores to an array, and to pointers into it. The word before the array has its type. */
static void announce_random(struct random_data *p)
{
    announce_pointer((char **)&p->fptr);
    announce_pointer((char **)&p->rptr);
    announce_pointer((char **)&p->state);
    announce_pointer((char **)&p->end_ptr);
    announce_object(&p->rand_type);
    announce_object(&p->rand_deg);
    announce_object(&p->rand_sep);
    size_t words = p->rand_deg > 1 ? (size_t)p->rand_deg : 1;
    if (p->state)
        announce(p->state - 1, (words + 1) * sizeof *p->state);
}

static void announce_vector_lines(const struct iovec *v, int n)
{
    for (int i = 0; i < n; i++)
        announce_lines(v[i].iov_base, v[i].iov_len);
}

static void announce_vector(const struct iovec *v, int n, ssize_t got)
{
    for (int i = 0; i < n && got > 0; got -= (ssize_t)v[i++].iov_len)
        announce_got(v[i].iov_base, v[i].iov_len, got);
}

/*
 * Lengths that go both ways. Before the call `*length` is the room. After it, `*length` is the length of the
 * whole answer, although the kernel stores only what there is room for. So the caller keeps the room.
 * A length has units of `unit` bytes.
 */
static size_t announce_room(void *p, socklen_t *length, size_t unit)
{
    announce_object(length);
    size_t room = p && length && *length <= INT_MAX ? *length * unit : 0;
    announce_lines(p, room);
    return room;
}

/* A call that failed has stored no answer. */
static void announce_answer(void *p, size_t room, socklen_t *length, size_t unit, int64_t result)
{
    if (result < 0)
        return;
    announce_object(length);
    if (room)
        announce_got(p, room, (ssize_t)(*length * unit));
}

/* The length of a packet filter is a number of instructions. The length of other options is in bytes. */
static size_t option_unit(int level, int name)
{
    return level == SOL_SOCKET && name == SO_GET_FILTER ? sizeof(struct sock_filter) : 1;
}

/* The kernel stores as many bits as the call asks for, in whole words. */
static void announce_sets(int n, fd_set *r, fd_set *w, fd_set *e)
{
    size_t bytes = n > 0 ? ((size_t)n + 63) / 64 * sizeof(uint64_t) : 0;
    announce(r, bytes);
    announce(w, bytes);
    announce(e, bytes);
}

/* Returns the message as it is before the call, with its rooms. */
static struct msghdr announce_message_room(struct msghdr *m)
{
    announce_object(&m->msg_namelen);
    announce_object(&m->msg_controllen);
    announce_object(&m->msg_flags);
    announce_lines(m->msg_name, m->msg_name ? m->msg_namelen : 0);
    announce_lines(m->msg_control, m->msg_control ? m->msg_controllen : 0);
    announce_vector_lines(m->msg_iov, (int)m->msg_iovlen);
    return *m;
}

static void announce_message(struct msghdr *m, const struct msghdr *room, ssize_t got)
{
    if (got < 0)
        return;
    announce_object(&m->msg_namelen);
    announce_object(&m->msg_controllen);
    announce_object(&m->msg_flags);
    announce_got(m->msg_name, room->msg_namelen, m->msg_namelen);
    announce_got(m->msg_control, room->msg_controllen, (ssize_t)m->msg_controllen);
    announce_vector(m->msg_iov, (int)m->msg_iovlen, got);
}

/* Announce what a thread has stored to an object that it no longer owns (wrapped.def, "Locks"). */
#define announce_left(p) announce_lines(p, sizeof *(p))

#define WRAP(result, name, parameters, arguments, type, announcement)                              \
    EXPORT result pm__##name parameters;                                                           \
    EXPORT result pm__##name parameters                                                            \
    {                                                                                              \
        announcement;                                                                              \
        return name arguments;                                                                     \
    }
#define WRAP_WAITING(result, name, parameters, arguments, type, announcement)                      \
    EXPORT result pm__##name parameters;                                                           \
    EXPORT result pm__##name parameters                                                            \
    {                                                                                              \
        announcement;                                                                              \
        result wrapped_result = name arguments;                                                    \
        announcement;                                                                              \
        return wrapped_result;                                                                     \
    }
#define WRAP_FILLING(result, name, parameters, arguments, type, before, after)                     \
    EXPORT result pm__##name parameters;                                                           \
    EXPORT result pm__##name parameters                                                            \
    {                                                                                              \
        before;                                                                                    \
        result got = name arguments;                                                               \
        after;                                                                                     \
        return got;                                                                                \
    }
#define ANNOUNCE(name, parameters, type, announcement)                                             \
    EXPORT void pm__##name parameters;                                                             \
    EXPORT void pm__##name parameters                                                              \
    {                                                                                              \
        announcement;                                                                              \
    }
#define WRAP_BY_HAND(name, type)
#include "runtime/wrapped.def"
