/*
 * Stores of data around pointers that the same transaction has stored. The pointers must stay pointers: a copy that
 * lies elsewhere shows whether they did.
 *
 * Library functions may write less than they have room for. A program may give more room than its field has, if
 * it knows that the text fits. A loop may store to every other word.
 */
#define _GNU_SOURCE
#include <libpm.h>

#undef NDEBUG
#include <arpa/inet.h>
#include <assert.h>
#include <iconv.h>
#include <locale.h>
#include <netdb.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#define ROOM 256

int __xpg_strerror_r(int, char *, size_t);
ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *);

struct field {
    union {
        char text[64];
        wchar_t wide[16];
    };
    struct field *next;
    char rest[ROOM];
};

enum {
    TIME,
    NO_TIME,
    WIDE_TIME,
    TRANSFORMED,
    WIDE_TRANSFORMED,
    HOST,
    MESSAGE,
    EVENTS,
    OPTION,
    CONTROL,
    PART,
    WIDE_PART,
    CONVERTED,
    ERROR,
    NAME,
    SCANNED,
    TEXTS
};

/* Functions that store an address. They have room for a part of a long one, or more room than a short one
 * takes. */
enum { ACCEPT, ACCEPT4, RECVFROM, RECVFROM_CHK, RECVMSG, SOCKNAME, PEERNAME, WAYS };

enum { FIELDS = TEXTS + 2 * WAYS };

enum { PAIRS = 64, REUSED = 8192 / sizeof(long) };

struct root {
    struct field *fields[FIELDS];
    struct {
        void *pointer;
        long number;
    } pairs[PAIRS];
    long *reused;
};

__attribute__((noinline)) static void set_pointers(struct root *root, long pairs)
{
    for (long i = 0; i < pairs; i++)
        root->pairs[i].pointer = root;
}

__attribute__((noinline)) static void clear_numbers(struct root *root, long pairs)
{
    for (long i = 0; i < pairs; i++)
        root->pairs[i].number = 0;
}

static void wait_for_event(struct epoll_event *events, int room)
{
    int ends[2], set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLOUT};
    assert(pipe(ends) == 0 && epoll_ctl(set, EPOLL_CTL_ADD, ends[1], &event) == 0);
    assert(epoll_wait(set, events, room, 0) == 1 && events[0].events == EPOLLOUT);
    close(ends[0]);
    close(ends[1]);
    close(set);
}

static void get_type(char *to, socklen_t room)
{
    int s = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert(getsockopt(s, SOL_SOCKET, SO_TYPE, to, &room) == 0 && room == sizeof(int));
    close(s);
}

static void get_descriptor(char *to, size_t room)
{
    int ends[2];
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    char byte = 'x';
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    assert(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
    memcpy(CMSG_DATA(&control.head), ends, sizeof(int));
    assert(sendmsg(ends[0], &message, 0) == 1);
    message.msg_control = to;
    message.msg_controllen = room;
    assert(recvmsg(ends[1], &message, 0) == 1 && message.msg_controllen == sizeof control);
    close(*(int *)CMSG_DATA((struct cmsghdr *)to));
    close(ends[0]);
    close(ends[1]);
}

/* A socket with a name of so many bytes. */
static int named(int type, socklen_t bytes, struct sockaddr_un *name)
{
    static char count;
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    memset(name->sun_path + 1, 'n', sizeof name->sun_path - 1);
    sprintf(name->sun_path + 1, "%d.%d", ++count, getpid());
    int s = socket(AF_UNIX, type, 0);
    assert(s >= 0 && bind(s, (struct sockaddr *)name, bytes) == 0);
    return s;
}

static void get_address(struct field *f, int way, int is_short, size_t room)
{
    const socklen_t whole = is_short ? 24 : sizeof(struct sockaddr_un),
                    part = is_short ? (socklen_t)room : 32;
    struct sockaddr *to = (struct sockaddr *)f->text;
    struct sockaddr_un name, other;
    int type = way == ACCEPT || way == ACCEPT4 || way == PEERNAME ? SOCK_STREAM : SOCK_DGRAM;
    int from = named(type, whole, &name), at = named(type, whole, &other), peer = -1;
    if (type == SOCK_STREAM)
        assert(listen(at, 1) == 0);
    assert(connect(from, (struct sockaddr *)&other, whole) == 0 && send(from, "x", 1, 0) == 1);
    char byte;
    struct iovec piece = {&byte, 1};
    struct msghdr message = {
        .msg_name = to, .msg_namelen = part, .msg_iov = &piece, .msg_iovlen = 1};
    socklen_t length = part;
    switch (way) {
    case ACCEPT:
        peer = accept(at, to, &length);
        break;
    case ACCEPT4:
        peer = accept4(at, to, &length, 0);
        break;
    case RECVFROM:
        assert(recvfrom(at, &byte, 1, 0, to, &length) == 1);
        break;
    case RECVFROM_CHK:
        assert(__recvfrom_chk(at, &byte, 1, 1, 0, to, &length) == 1);
        break;
    case RECVMSG:
        assert(recvmsg(at, &message, 0) == 1);
        length = message.msg_namelen;
        break;
    case SOCKNAME:
        assert(getsockname(from, to, &length) == 0);
        break;
    case PEERNAME:
        assert(getpeername(from, to, &length) == 0);
        break;
    }
    assert(length == whole && memcmp(f->text, way == PEERNAME ? &other : &name, 24) == 0);
    close(peer);
    close(from);
    close(at);
}

static void convert(char *to, size_t room)
{
    char text[] = "abc", *from = text;
    size_t left = 3;
    iconv_t way = iconv_open("UTF-16LE", "UTF-8");
    assert(iconv(way, &from, &left, &to, &room) == 0 && left == 0 && room == ROOM - 6);
    iconv_close(way);
}

static void get_name(char *to, socklen_t room)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    assert(getnameinfo((struct sockaddr *)&any, sizeof any, to, room, NULL, 0, NI_NUMERICHOST) ==
           0);
}

static void fill(struct field *f, int which, size_t room)
{
    const char *from = "abc";
    const wchar_t *wide_from = L"abc";
    time_t now = 0;
    struct tm *t = gmtime(&now);
    switch (which) {
    case TIME:
        assert(strftime(f->text, room, "%Y", t) == 4);
        break;
    case NO_TIME:
        assert(strftime(f->text, room, "", t) == 0);
        break;
    case WIDE_TIME:
        assert(wcsftime(f->wide, room / sizeof(wchar_t), L"%Y", t) == 4);
        break;
    case TRANSFORMED:
        assert(strxfrm(f->text, "abc", room) == 3);
        break;
    case WIDE_TRANSFORMED:
        assert(wcsxfrm(f->wide, L"abc", room / sizeof(wchar_t)) == 3);
        break;
    case HOST:
        assert(gethostname(f->text, room) == 0);
        break;
    case MESSAGE:
        assert(__xpg_strerror_r(1, f->text, room) == 0);
        break;
    case EVENTS:
        wait_for_event((struct epoll_event *)f->text, (int)(room / sizeof(struct epoll_event)));
        break;
    case OPTION:
        get_type(f->text, (socklen_t)room);
        break;
    case CONTROL:
        get_descriptor(f->text, room);
        break;
    case PART:
        assert(mbsnrtowcs(f->wide, &from, 3, room / sizeof(wchar_t), NULL) == 3 && from);
        break;
    case WIDE_PART:
        assert(wcsrtombs(f->text, &wide_from, room, NULL) == 3 && !wide_from);
        break;
    case CONVERTED:
        convert(f->text, room);
        break;
    case ERROR:
        assert(regerror(REG_ESPACE, NULL, f->text, room) < sizeof f->text);
        break;
    case NAME:
        get_name(f->text, (socklen_t)room);
        break;
    case SCANNED: /* 57 bytes; there might be 306 */
        assert(swscanf(L"\u20ac\u20ac\u20acaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                       L"%51c", f->text) == 1);
        break;
    default:
        get_address(f, (which - TEXTS) % WAYS, which - TEXTS >= WAYS, room);
    }
}

/* An object of pointers, copied page by page, is freed, and data takes its memory. What nobody has stored there
 * since is no pointer. */
static void reuse(pm_container *c, struct root *root)
{
    void **from = pm_malloc(c, REUSED * sizeof *from);
    for (int i = 0; i < REUSED; i++)
        from[i] = root;
    assert(pm_commit(c) == 0);
    void **pointers = pm_malloc(c, REUSED * sizeof *pointers);
    volatile size_t bytes = REUSED * sizeof *pointers;
    memcpy(pointers, from, bytes);
    assert(pm_commit(c) == 0 && pm_free(pointers) == 0 && pm_commit(c) == 0);
    root->reused = pm_malloc(c, bytes);
    assert((void *)root->reused == (void *)pointers);
    for (int i = 0; i < REUSED; i += 8)
        root->reused[i] = 5;
}

int main(void)
{
    assert(setlocale(LC_CTYPE, "C.UTF-8") != NULL);
    char path[] = "/dev/shm/libpm-filled-XXXXXX", copy[sizeof path + 5];
    int fd = mkstemp(path);
    assert(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
    snprintf(copy, sizeof copy, "%s.copy", path);
    struct pm_options options = {.size = sizeof options,
                                 .flags = PM_CREATE | PM_MOVABLE,
                                 .tracker = PM_TRACKER_STORES,
                                 .max_size = 64 << 20};
    pm_container *c = pm_open(path, &options);
    assert(c);
    struct root *root = pm_calloc(c, 1, sizeof *root);
    assert(pm_setroot(c, root, 0) == 0);
    volatile size_t room = ROOM;
    for (int i = 0; i < FIELDS; i++) {
        struct field *f = root->fields[i] = pm_calloc(c, 1, sizeof *f);
        f->next = pm_calloc(c, 1, sizeof *f);
        fill(f, i, room);
    }
    volatile long pairs = PAIRS;
    set_pointers(root, pairs);
    clear_numbers(root, pairs);
    reuse(c, root);
    const long *reused = root->reused;
    assert(pm_commit(c) == 0 && pm_copy(c, copy, NULL, NULL) == 0);
    pm_container *d = pm_open(copy, &options);
    assert(d);
    root = pm_getroot(d);
    for (int i = 0; i < FIELDS; i++)
        if (!pm_contains(d, root->fields[i]->next)) {
            fprintf(stderr, "the pointer behind field %d is none any more\n", i);
            return 1;
        }
    for (int i = 0; i < PAIRS; i++)
        assert(root->pairs[i].pointer == root);
    for (int i = 0; i < REUSED; i++)
        assert(root->reused[i] == reused[i]);
    pm_close(d);
    pm_close(c);
    unlink(path);
    unlink(copy);
}
