/*
 * A copy of a file that somebody writes mixes old pages with new ones, and no checksum notices. So a
 * writer marks its file as open, with the file's inode number and birth time. A copy has the mark too,
 * but is another file. pm_open() refuses it.
 *
 * Recovery of the original must never be refused, so the comparison uses only values that last:
 *
 *   device        not compared: its number changes between boots
 *   inode number  lasts on the file systems of is_lasting(). FUSE, NFS, SMB and overlayfs may give a
 *                 file another number after a restart or a remount
 *   birth time    lasts wherever there is one; some file systems and old kernels have none, and some
 *                 servers let it be changed
 *
 * If both the mark and the file are of a lasting file system, both values must be the same. Elsewhere the
 * file is refused only if both values are known and both differ.
 *
 * The mark is one word, so that no crash leaves half of it. It has hashes of 27 bits each.
 */
#define _GNU_SOURCE
#include "container/identity.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif
#define ZFS_SUPER_MAGIC      0x2FC12FC1
#define BCACHEFS_SUPER_MAGIC 0xCA451A4E

/* Never 0, because 0 says that nothing is known. */
static uint64_t hash(uint64_t value)
{
    return 1 + value * UINT64_C(0x9E3779B97F4A7C15) % ((UINT64_C(1) << MARK_HASH_BITS) - 1);
}

static bool is_lasting(int fd)
{
    struct statfs fs;
    if (TEMP_FAILURE_RETRY(fstatfs(fd, &fs)) != 0)
        return false;
    switch ((uint32_t)fs.f_type) {
    case EXT4_SUPER_MAGIC: /* and ext2, ext3 */
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case ZFS_SUPER_MAGIC:
    case BCACHEFS_SUPER_MAGIC:
    case TMPFS_MAGIC:
        return true;
    default:
        return false;
    }
}

static bool is_copy(uint64_t mark, uint64_t file)
{
    uint64_t birth = mark_birth(mark), own = mark_birth(file);
    bool other_inode = mark_inode(mark) != mark_inode(file);
    bool other_birth = birth != 0 && own != 0 && birth != own;
    bool lasting = mark & file & MARK_LASTING;
    return lasting ? other_inode || other_birth : other_inode && other_birth;
}

int identity_check(struct container *c, bool accept_copy)
{
    struct statx st;
    uint64_t mark = 0;
    if (TEMP_FAILURE_RETRY(statx(c->fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &st)) != 0)
        return pm__fail_system(errno, "%s: cannot read its status", c->path);
    if (TEMP_FAILURE_RETRY(pread(c->fd, &mark, sizeof mark, (off_t)FORMAT_MARK)) < 0)
        return pm__fail_system_at(c->path, FORMAT_MARK, errno, "cannot read the state page");
    uint64_t birth = (uint64_t)st.stx_btime.tv_sec * 1000000000u + st.stx_btime.tv_nsec;
    bool born = st.stx_mask & STATX_BTIME && birth != 0;
    c->mark_open = mark_open(is_lasting(c->fd), born ? hash(birth) : 0, hash(st.stx_ino));
    /* Recovery refuses a word that is damaged. */
    bool copy = mark_is_valid(mark) && mark & MARK_OPEN && is_copy(mark, c->mark_open);
    /* If an accepted copy cannot be opened, it must be accepted again. Any other container is closed
     * then, and may be copied. */
    c->mark_failed = copy ? mark : MARK_CLOSED;
    if (accept_copy || !copy)
        return 0;
    return pm__fail(
        ENOTUNIQ,
        "%s: a copy that was made while a program had the container open for writing, so it may mix "
        "two commits; use a copy by pm_copy() or `pm copy`, or, if this is a snapshot or an image "
        "of one moment, accept it with PM_ACCEPT_COPY, or `pm copy --snapshot`",
        c->path);
}
