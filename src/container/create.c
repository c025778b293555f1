/*
 * Creation: all or nothing. The file is made without a name (O_TMPFILE), filled, forced to the
 * medium, and only then linked to its path, by a call that does not replace. So a crash leaves no
 * file, or a whole one, and no litter. File systems without O_TMPFILE get a temporary name beside
 * the path and rename, and so do processes without /proc, which linking needs; there a crash may
 * leave that file, which nobody ever opens.
 */
#define _GNU_SOURCE
#include "container/create.h"

#include "base/error.h"
#include "container/descriptor.h"
#include "container/file_lock.h"
#include "container/header.h"
#include "container/place.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define SELF_TEXT 64

/* A path to an open file, which may have no other. There is none without /proc. */
static const char *name_of(int fd, char text[SELF_TEXT])
{
    snprintf(text, SELF_TEXT, "/proc/self/fd/%d", fd);
    return text;
}

int directory_open(const char *path)
{
    char copy[PATH_MAX];
    assert(strlen(path) < sizeof copy); /* or the kernel would not have opened the file */
    strcpy(copy, path);
    const char *directory = dirname(copy);
    int fd = TEMP_FAILURE_RETRY(open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0)
        return pm__fail_system(errno, "%s: cannot open the directory %s", path, directory);
    return fd;
}

int directory_sync(const char *path, int fd)
{
    int error = file_sync(fd);
    close(fd);
    if (error != 0 && error != -EINVAL) /* some file systems have nothing to sync */
        return pm__fail_system(-error, "%s: cannot sync its directory", path);
    return 0;
}

static int fill_header(struct format_header *h, const char *path,
                       const struct container_options *options)
{
    *h = (struct format_header){.segment_size = options->segment_size,
                                .max_size = options->max_size,
                                .granularity = options->granularity};
    if (TEMP_FAILURE_RETRY(getrandom(h->id, sizeof h->id, 0)) != sizeof h->id)
        return pm__fail_system(errno, "%s: no random bytes for its id", path);
    h->meta_segments = (uint32_t)format_meta_segments(h->segment_size, h->max_size);
    if (options->layout)
        strncpy(h->layout, options->layout, sizeof h->layout - 1);
    header_seal(h);
    return 0;
}

int header_write(int fd, const struct format_header *header, uint64_t offset)
{
    return file_write(fd, header, sizeof *header, offset);
}

static int fill_state(struct format_state *state, const char *path, const struct format_header *h,
                      bool movable)
{
    uint64_t base = arena_choose(h->max_size, h->id[0]);
    if (base == 0)
        return place_none(path, h->max_size);
    struct sums sums = {0, 0};
    for (uint32_t i = 0; i < h->meta_segments; i++)
        sums.fixed += sums_table_term(h->id[0] ^ h->id[1], FORMAT_TABLE + i * sizeof(uint64_t),
                                      segment_word(SEGMENT_META, 0));
    *state = (struct format_state){.base_epoch = seal(1),
                                   .base = seal(base),
                                   .movable = seal(movable ? MOVABLE_NOW : MOVABLE_NEVER),
                                   .sums = {sums_word(sums)}};
    return 0;
}

/* An empty container: metadata segments, and one segment for each half of the log. */
static int fill_file(int fd, const struct format_header *h, const struct format_state *state)
{
    uint32_t used = h->meta_segments + 2;
    struct format_guard guard = {state->base_epoch, state->base, state->movable};
    int error = file_allocate(fd, 0, used * h->segment_size);
    if (error == 0)
        error = header_write(fd, h, FORMAT_HEADER_A);
    if (error == 0)
        error = header_write(fd, h, FORMAT_HEADER_B);
    if (error == 0)
        error = file_write(fd, state, sizeof *state, FORMAT_STATE);
    if (error == 0)
        error = file_write(fd, &guard, sizeof guard, FORMAT_GUARD);
    for (uint32_t i = 0; i < used && error == 0; i++) {
        uint64_t word = i < h->meta_segments ? segment_word(SEGMENT_META, 0)
                                             : segment_log_word(i - h->meta_segments, 0);
        error = file_write(fd, &word, sizeof word, FORMAT_TABLE + i * sizeof word);
    }
    return error == 0 ? file_sync(fd) : error;
}

/*
 * Go on with the file as it is known by its second name. File systems in user space often make that
 * another file to the kernel, with locks, pages and a length of its own: who opened it by its name
 * would not meet our lock, and see other contents. -EEXIST if somebody has done so already.
 */
static int open_by_name(int *fd, const char *path)
{
    int named = descriptor_of_its_own(TEMP_FAILURE_RETRY(open(path, O_RDWR | O_CLOEXEC)));
    if (named < 0) /* of a mode that nobody may open for writing: so nobody will */
        return errno == EACCES ? 0 : -errno;
    file_unlock(*fd);
    close(*fd);
    *fd = named;
    if (file_lock(named, path, false) != 0)
        return errno == EBUSY ? -EEXIST : -errno;
    return file_is_at(named, path) ? 0 : -EEXIST;
}

/* By a second name, where files cannot be renamed so that nothing is replaced: NFS, ZFS before 2.2, and
 * many file systems in user space. */
static int rename_new(int *fd, const char *temporary, const char *path)
{
    if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return 0;
    if ((errno != EINVAL && errno != ENOSYS) || linkat(AT_FDCWD, temporary, AT_FDCWD, path, 0) != 0)
        return -errno;
    int error = open_by_name(fd, path);
    if (error == 0)
        unlink(temporary);
    else if (error != -EEXIST)
        unlink(path);
    return error;
}

/* Name the finished file. -EEXIST if the path is there already. */
static int publish(int *fd, const char *temporary, const char *path)
{
    if (temporary[0])
        return rename_new(fd, temporary, path);
    char self[SELF_TEXT];
    return linkat(AT_FDCWD, name_of(*fd, self), AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 ? 0
                                                                                        : -errno;
}

/* A new file beside `path`: nameless, with `temporary` set to "", or with that name. */
static int open_new(const char *path, mode_t mode, char temporary[PATH_MAX])
{
    temporary[0] = 0;
    char directory[PATH_MAX];
    if (strlen(path) + sizeof ".new-0123456789abcdef" > sizeof directory) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(directory, path);
    int fd = TEMP_FAILURE_RETRY(open(dirname(directory), O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
    if (fd >= 0) {
        char self[SELF_TEXT];
        struct stat st;
        if (stat(name_of(fd, self), &st) == 0)
            return fd;
        close(fd);
    } else if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT) {
        return fd;
    }
    uint64_t random;
    if (TEMP_FAILURE_RETRY(getrandom(&random, sizeof random, 0)) != sizeof random)
        return -1;
    snprintf(temporary, PATH_MAX, "%s.new-%016llx", path, (unsigned long long)random);
    return TEMP_FAILURE_RETRY(open(temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode));
}

static int fill_and_publish(int *fd, const struct format_header *header,
                            const struct format_state *state, const char *temporary,
                            const char *path)
{
    int error = fill_file(*fd, header, state);
    if (error == 0 && file_lock(*fd, path, false) != 0)
        return -1;
    if (error == 0)
        error = publish(fd, temporary, path);
    return error == 0 ? 0 : pm__fail_system(-error, "%s: cannot create", path);
}

int container_create(const char *path, const struct container_options *options)
{
    struct format_header header;
    struct format_state state;
    if (fill_header(&header, path, options) != 0 ||
        fill_state(&state, path, &header, options->movable) != 0)
        return -1;
    char temporary[PATH_MAX];
    int fd = descriptor_of_its_own(open_new(path, options->mode, temporary));
    if (fd < 0)
        return pm__fail_system(errno, "%s: cannot create", path);
    const char *name = temporary;
    if (fill_and_publish(&fd, &header, &state, temporary, path) == 0) {
        int directory = directory_open(path);
        if (directory >= 0 && directory_sync(path, directory) == 0)
            return fd;
        name = path; /* nobody else can have opened it: it is locked */
    }
    int error = errno;
    if (name[0])
        unlink(name);
    close(fd);
    errno = error;
    return -1;
}
