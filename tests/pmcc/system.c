/* Functions of libc that write to where their arguments point: files and the kernel. */
#define _GNU_SOURCE
#include "text.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/filter.h>
#include <netdb.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

SUBJECT_MORE(uses_pipes)
{
    int *fds = (int *)m;
    require(pipe(fds) == 0);
    for (int i = 0; i < 8; i++)
        require(write(fds[1], text_of(n), n) == n);
    close(fds[1]);
    require(read(fds[0], m + 10, n) == n);
    struct iovec pieces[2] = {{m + 1000, n}, {m + 2000, n}};
    require(readv(fds[0], pieces, 2) == 2 * n);
    commit();
    FILE *f = fdopen(fds[0], "r");
    require(fread(m + 3000, 1, n, f) == (size_t)n);
    require(fread_unlocked(m + 3500, 1, n, f) == (size_t)n);
    require(n == 0 || fgets(m + 4000, (int)n + 2, f));
    require(n == 0 || fgets_unlocked(m + 4500, (int)n + 2, f));
    fclose(f);
    require(pipe2((int *)(m + 5000), O_CLOEXEC) == 0);
    close(((int *)(m + 5000))[0]);
    close(((int *)(m + 5000))[1]);
}

SUBJECT_MORE(uses_files)
{
    int fd = memfd_create("text", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, text_of(n), n) == n);
    require(pread(fd, m, n, 0) == n);
    require(pread64(fd, m + 1000, n, 0) == n);
    struct iovec piece = {m + 2000, n};
    require(preadv(fd, &piece, 1, 0) == n);
    piece.iov_base = m + 2400;
    require(preadv64(fd, &piece, 1, 0) == n);
    piece.iov_base = m + 8000;
    require(preadv2(fd, &piece, 1, 0, 0) == n);
    piece.iov_base = m + 8400;
    require(preadv64v2(fd, &piece, 1, 0, 0) == n);
    require(fstat(fd, (struct stat *)(m + 3000)) == 0);
    require(fstat64(fd, (struct stat64 *)(m + 3200)) == 0);
    close(fd);
    require(stat("/", (struct stat *)(m + 3400)) == 0);
    require(stat64("/", (struct stat64 *)(m + 3600)) == 0);
    require(lstat("/", (struct stat *)(m + 3800)) == 0);
    require(lstat64("/", (struct stat64 *)(m + 4000)) == 0);
    require(fstatat(AT_FDCWD, "/", (struct stat *)(m + 4200), 0) == 0);
    require(fstatat64(AT_FDCWD, "/", (struct stat64 *)(m + 4400), 0) == 0);
    require(getcwd(m + 5000, 1000) != NULL);
    require(readlink("/proc/self/exe", m + 6000, 1000) > 0);
    require(readlinkat(AT_FDCWD, "/proc/self/exe", m + 7000, 1000) > 0);
}

SUBJECT_MORE(uses_wide_files)
{
    int fd = memfd_create("text", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, "a line\nanother\n", 15) == 15);
    FILE *f = fdopen(fd, "r");
    rewind(f);
    require(fgetws((wchar_t *)m, 20, f) != NULL);
    require(fgetws_unlocked((wchar_t *)(m + n * 8), 20, f) != NULL);
    fclose(f);
}

SUBJECT_MORE(uses_file_systems)
{
    require(statfs("/", (struct statfs *)m) == 0);
    require(statfs64("/", (struct statfs64 *)(m + 500)) == 0);
    int fd = open("/", O_RDONLY | O_DIRECTORY);
    require(fstatfs(fd, (struct statfs *)(m + 1000)) == 0);
    require(fstatfs64(fd, (struct statfs64 *)(m + 1500)) == 0);
    close(fd);
    require(statx(AT_FDCWD, "/", 0, STATX_ALL, (struct statx *)(m + 2000)) == 0);
}

static void close_temporary(int fd, const char *path)
{
    require(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
}

SUBJECT_MORE(uses_temporary_files)
{
    for (int i = 0; i < 5; i++)
        strcpy(m + 500 * i, "/tmp/pmcc_test_XXXXXX");
    commit();
    close_temporary(mkstemp(m), m);
    close_temporary(mkstemp64(m + 500), m + 500);
    close_temporary(mkostemp(m + 1000, O_CLOEXEC), m + 1000);
    close_temporary(mkostemp64(m + 1500, O_CLOEXEC), m + 1500);
    require(mkdtemp(m + 2000) && rmdir(m + 2000) == 0);
}

SUBJECT_MORE(uses_paths)
{
    char *volatile path = realpath("/proc/self/..", m);
    require(path == m);
    path = realpath("/proc/self/../no such file", m + PATH_MAX);
    require(!path);
    FILE *f = fopen("/proc/self/exe", "r");
    require(fgetpos(f, (fpos_t *)(m + 2 * PATH_MAX)) == 0);
    require(fgetpos64(f, (fpos64_t *)(m + 2 * PATH_MAX + 200)) == 0);
    fclose(f);
}

SUBJECT_MORE(uses_limits)
{
    setgroups(2, (gid_t[]){1, 2}); /* if it may */
    require(uname((struct utsname *)m) == 0);
    require(sysinfo((struct sysinfo *)(m + 1000)) == 0);
    require(getrusage(RUSAGE_SELF, (struct rusage *)(m + 2000)) == 0);
    require(getrlimit(RLIMIT_NOFILE, (struct rlimit *)(m + 3000)) == 0);
    require(getrlimit64(RLIMIT_NOFILE, (struct rlimit64 *)(m + 4000)) == 0);
    require(prlimit(0, RLIMIT_NOFILE, NULL, (struct rlimit *)(m + 5000)) == 0);
    require(prlimit64(0, RLIMIT_NOFILE, NULL, (struct rlimit64 *)(m + 6000)) == 0);
    require(getgroups(1000, (gid_t *)(m + 7000)) >= 0);
}

static pid_t child(void)
{
    pid_t id = fork();
    require(id >= 0);
    if (id == 0)
        _exit(3);
    return id;
}

SUBJECT_MORE(uses_children)
{
    pid_t id = child();
    require(waitpid(id, (int *)m, 0) == id);
    id = child();
    require(wait((int *)(m + 200)) == id);
    id = child();
    require(waitid(P_PID, (id_t)id, (siginfo_t *)(m + 400), WEXITED) == 0);
}

SUBJECT_MORE(uses_kernel)
{
    require(gethostname(m, 200) == 0);
    require(getrandom(m + 1000, n, 0) == n);
    require(getentropy(m + 2000, n) == 0);
}

static void send_text(int fd, long n)
{
    require(send(fd, text_of(n), n, 0) == n);
}

SUBJECT_MORE(uses_sockets)
{
    int fds[2];
    require(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0);
    send_text(fds[1], n);
    require(recv(fds[0], m + 100, n, 0) == n);
    send_text(fds[1], n);
    struct iovec piece = {m + 1000, n};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    require(recvmsg(fds[0], &message, 0) == n);
    close(fds[0]);
    close(fds[1]);
}

/* With the address of whoever is there, and its length. */
SUBJECT_MORE(uses_addresses)
{
    int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t length = sizeof name, *told = (socklen_t *)(m + 1000);
    require(bind(server, (struct sockaddr *)&name, offsetof(struct sockaddr_un, sun_path)) == 0);
    require(bind(client, (struct sockaddr *)&name, offsetof(struct sockaddr_un, sun_path)) == 0);
    require(getsockname(server, (struct sockaddr *)&name, &length) == 0 && listen(server, 1) == 0);
    require(connect(client, (struct sockaddr *)&name, length) == 0);
    *told = sizeof name;
    commit();
    int peer = accept(server, (struct sockaddr *)m, told);
    require(peer >= 0 && *told > sizeof(sa_family_t));
    *told = sizeof name;
    commit();
    require(getsockname(server, (struct sockaddr *)(m + 2000), told) == 0);
    *told = sizeof name;
    commit();
    require(getpeername(peer, (struct sockaddr *)(m + 3000), told) == 0);
    *told = sizeof(int);
    commit();
    require(getsockopt(peer, SOL_SOCKET, SO_TYPE, m + 4000, told) == 0);
    close(peer);
    close(client);
    client = socket(AF_UNIX, SOCK_STREAM, 0);
    length = offsetof(struct sockaddr_un, sun_path);
    require(bind(client, (struct sockaddr *)&name, length) == 0);
    length = sizeof name;
    require(getsockname(server, (struct sockaddr *)&name, &length) == 0);
    require(connect(client, (struct sockaddr *)&name, length) == 0);
    *told = sizeof name;
    commit();
    peer = accept4(server, (struct sockaddr *)(m + 5000), told, SOCK_CLOEXEC);
    require(peer >= 0);
    close(peer);
    close(server);
    close(client);
}

/* The length of a filter is a number of instructions. */
SUBJECT_MORE(uses_filters)
{
    enum { INSTRUCTIONS = 40 };
    struct sock_filter filter[INSTRUCTIONS];
    for (int i = 0; i < INSTRUCTIONS; i++)
        filter[i] = (struct sock_filter)BPF_STMT(BPF_RET, (unsigned)n + i);
    struct sock_fprog program = {INSTRUCTIONS, filter};
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    require(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0);
    socklen_t *told = (socklen_t *)(m + 1000);
    *told = INSTRUCTIONS;
    commit();
    require(getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, m, told) == 0 && *told == INSTRUCTIONS);
    close(fd);
}

SUBJECT_MORE(uses_addresses_of_messages)
{
    int receiver = socket(AF_UNIX, SOCK_DGRAM, 0), sender = socket(AF_UNIX, SOCK_DGRAM, 0);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t length = sizeof name, *told = (socklen_t *)(m + 1000);
    require(bind(receiver, (struct sockaddr *)&name, offsetof(struct sockaddr_un, sun_path)) == 0);
    require(bind(sender, (struct sockaddr *)&name, offsetof(struct sockaddr_un, sun_path)) == 0);
    require(getsockname(receiver, (struct sockaddr *)&name, &length) == 0);
    require(sendto(sender, text_of(n), n, 0, (struct sockaddr *)&name, length) == n);
    *told = sizeof name;
    commit();
    require(recvfrom(receiver, m + 2000, n, 0, (struct sockaddr *)m, told) == n);
    require(*told > sizeof(sa_family_t));
    close(receiver);
    close(sender);
}

SUBJECT_MORE(uses_texts_of_addresses)
{
    require(socketpair(AF_UNIX, SOCK_STREAM, 0, (int *)m) == 0);
    close(((int *)m)[0]);
    close(((int *)m)[1]);
    require(inet_aton("1.2.3.4", (struct in_addr *)(m + 200)) == 1);
    require(inet_pton(AF_INET, "1.2.3.4", m + 400) == 1);
    require(inet_pton(AF_INET6, "fe80::1:2:3:4:5", m + 600) == 1);
    commit();
    require(inet_ntop(AF_INET, m + 400, m + 800, 100) == m + 800);
}

SUBJECT_MORE(uses_names_of_addresses)
{
    struct addrinfo **list = (struct addrinfo **)m, asked = {.ai_flags = AI_NUMERICHOST};
    require(getaddrinfo("127.0.0.1", NULL, &asked, list) == 0);
    require(getnameinfo((*list)->ai_addr, (*list)->ai_addrlen, m + 1000, 100, m + 2000, 100,
                        NI_NUMERICHOST | NI_NUMERICSERV) == 0);
    freeaddrinfo(*list);
}

SUBJECT_MORE(uses_select)
{
    int fds[2];
    require(pipe(fds) == 0);
    fd_set *sets = (fd_set *)m;
    struct timeval *patience = (struct timeval *)(m + 1000);
    *patience = (struct timeval){.tv_usec = 10};
    for (int i = 0; i < 3; i++) {
        FD_ZERO(&sets[i]);
        FD_SET(fds[0], &sets[i]);
    }
    commit();
    require(select(fds[0] + 1, &sets[0], NULL, &sets[1], patience) == 0);
    commit();
    struct timespec now = {0};
    require(pselect(fds[0] + 1, &sets[2], NULL, NULL, &now, NULL) == 0);
    close(fds[0]);
    close(fds[1]);
}

SUBJECT_MORE(uses_poll)
{
    int fds[2], set = epoll_create1(0);
    require(pipe(fds) == 0 && set >= 0);
    struct pollfd *asked = (struct pollfd *)m;
    *asked = (struct pollfd){.fd = fds[1], .events = POLLOUT};
    commit();
    require(poll(asked, 1, 0) == 1 && asked->revents == POLLOUT);
    asked->revents = 0;
    commit();
    require(ppoll(asked, 1, NULL, NULL) == 1 && asked->revents == POLLOUT);
    struct epoll_event event = {.events = EPOLLOUT};
    require(epoll_ctl(set, EPOLL_CTL_ADD, fds[1], &event) == 0);
    require(epoll_wait(set, (struct epoll_event *)(m + 1000), 1, 0) == 1);
    close(set);
    close(fds[0]);
    close(fds[1]);
}
