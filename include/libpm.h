/*
 * libpm: ordinary C structures that survive crashes.
 *
 * Open a *container* (one file), hang plain structs and plain pointers off its *root*, and call
 * pm_commit(). All changes since the last commit become durable together, or none does. After any
 * crash the data is exactly as the last commit that returned has left it.
 *
 *     pm_container *c = pm_open("list.pm", &(struct pm_options){
 *         .size = sizeof(struct pm_options), .flags = PM_CREATE, .layout = "list/1"});
 *     struct list *l = pm_getroot(c);
 *     if (!l) { l = pm_calloc(c, 1, sizeof *l); pm_setroot(c, l, 0); }
 *     push(l, pm_malloc(c, sizeof(struct node)));       // your own code, unchanged
 *     pm_commit(c);
 *     pm_close(c);
 *
 * Words. A *transaction* is everything that happens to a container between two commits or rollbacks.
 * A container has one transaction at a time, and the transaction begins by itself. An *object* is the
 * memory that one call of pm_malloc() returned. A *round* is one batch of cache-line write-backs and
 * one store fence.
 *
 * Errors. Functions return 0 or a pointer. A failure is -1 or NULL with errno set. pm_errormsg() then
 * says the failure, the file, the offset, and the remedy. A call that failed has changed nothing. In a
 * child of fork(2) libpm is switched off: any function given a container can fail with ECHILD there.
 *
 * Threads. Different containers are independent, once they are open. On one container allocation is
 * thread-safe, and any number of threads may store at the same time. While a thread is in pm_commit(),
 * pm_rollback() or pm_clear(), no other thread may store to that container. The option
 * `concurrent_stores` lifts this restriction. Commits of containers that are PM_DISCOVER take turns, for
 * they move objects of one heap. Do not call libpm from a signal handler. No function is
 * a cancellation point, and no page fault of a store is. pthread_cancel(3) waits until the call
 * returns, or the fault has been served, even if the thread's cancellation is asynchronous.
 *
 * Caveats.
 *  - If the transaction has not stored to a page yet, read(2) and other system calls that write to
 *    memory fail with EFAULT there. Open the buffer with pm_dirty() first.
 *  - Pointers to the stack, to malloc'ed memory or to another container mean nothing after a restart.
 *    Pointers to functions, string literals and static objects keep their meaning in a container that
 *    is PM_MOVABLE. In such a container libpm also finds the meaningless pointers: see enum
 *    pm_foreign_pointers. In other containers libpm does not know which words are pointers. With
 *    LIBPM_AUDIT=1 in the environment their commits warn of words that may lead out.
 *  - A container is code: whoever can write the file chooses its pointers. See docs/guide/trust.md.
 *  - The pointers in a container mean one address range, and libpm maps the container there. The
 *    range is chosen at random from 64 TiB at creation. It may be taken, for instance if a copy is
 *    opened beside its original, or by chance. (Of ten containers of the default max_size two collide
 *    with a probability of 9 %.) Then only a container that is PM_MOVABLE opens, and libpm translates
 *    its pointers when the program first touches a page.
 *  - A thread that stores to a container must not block SIGSEGV, and no signal handler may mask
 *    SIGSEGV while it stores. Otherwise the kernel ends the process at the first store to a page. In a
 *    container that is `moved` (struct pm_stats) the same is true of the first read of a page. Under the
 *    log engine with `private_max` it is true of SIGBUS, and of each access. There, and in a container that
 *    is `moved`, a signal handler that may interrupt malloc(3) must not access the container: a commit
 *    that allocates memory may hold the lock that the access waits for.
 *  - Without `concurrent_stores` a signal handler must not store to a container whose commit or
 *    rollback the handler may have interrupted.
 *  - In a child of fork(2) a container's memory is not mapped: even reading it is a SIGSEGV.
 *  - libpm owns SIGSEGV and SIGBUS from the first pm_open() on. It passes on the signals that other
 *    memory caused.
 *
 * The idea: LIBPM (Marmol, FIU 2017, chapter 6) and SoftPM (Guerra et al., USENIX ATC 2012).
 */
#ifndef LIBPM_H
#define LIBPM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PM_VERSION_MAJOR 0
#define PM_VERSION_MINOR 1
#define PM_VERSION_PATCH 0

#define PM_EXPORT        __attribute__((visibility("default")))

/** An open container. Owned by the library from pm_open() to pm_close(). */
typedef struct pm_container pm_container;

/* ---------------------------------------------------------------------------------------------
 * Containers
 */

enum pm_flags {
    PM_CREATE = 1 << 0,    /* create the container if there is none */
    PM_EXCLUSIVE = 1 << 1, /* with PM_CREATE: fail with EEXIST if there is one */
    PM_READONLY = 1 << 2,  /* recover in private memory, write nothing; a store is a SIGSEGV */

    /* For undo on an ordinary file (not DAX, not tmpfs): accept that data survives the death of the
     * process but not a power failure. Undo works in place, and the kernel may write a half-changed
     * page back at any time. Without this flag PM_ENGINE_UNDO fails there with ENOTSUP. With the flag
     * PM_ENGINE_AUTO chooses undo there too. The redo engine does not need the flag.
     */
    PM_UNSAFE_POWER = 1 << 3,

    /* The program vouches that the pointer map (see below) has every pointer that the program stores in
     * the container. With PM_TRACKER_STORES, code compiled by pmcc enters pointers in the map.
     *
     * If only programs that vouched have written a container, it opens at other addresses when its own
     * are taken. Any other container opens at its own addresses only. Opening at other addresses takes
     * the same time for any size: libpm translates the pointers of a page when the program first
     * accesses the page. The pointers on the medium do not change. The engine is then redo, or log. If nobody
     * has touched a page yet, a system call that is handed the page fails with EFAULT, even if the
     * system call only reads. If a program without PM_MOVABLE opens the container elsewhere for writing,
     * pm_open() relocates the container as with PM_RELOCATE.
     *
     * Pages are also translated at their first access if a program or library into which the container
     * has pointers (enum pm_module_pointers) lies at another address. This is the case in nearly every
     * run of a position-independent program, after the run that stored the first of these pointers.
     * pm_stats() reports it as `moved`. */
    PM_MOVABLE = 1 << 4,
    /* If the container opens at other addresses, relocate it: the new addresses become its own, on the
     * medium too. This takes one pass over the memory of its pointers. Afterwards no access has to
     * translate a page, except for pointers into programs and libraries, as above. Crash-safe: if the
     * pass is interrupted, the next pm_open() completes it. With the log engine it needs room in the
     * file for all lines that have pointers. If there is none, pm_open() fails with ENOSPC, and the
     * container keeps its addresses. Needs PM_MOVABLE. */
    PM_RELOCATE = 1 << 5,
    /* If the container leads to malloc'ed memory of the program, pm_commit() moves the memory into the
     * container: see "Discovery". Implies PM_MOVABLE and PM_TRACKER_STORES. ENOTSUP if no code is
     * loaded that was compiled by `pmcc --discover`. */
    PM_DISCOVER = 1 << 6,
    /* With PM_DISCOVER: the program vouches for two things while a commit moves objects. Only this
     * thread, in code compiled by `pmcc --discover`, holds pointers to the objects. No other thread
     * stores to malloc'ed memory. Without this flag a commit that has objects to move fails while there
     * are other threads. It also fails while a function of other code waits for it: for instance
     * qsort(3), if the comparison function commits. */
    PM_VOUCHED = 1 << 7,
    /* Open a copy that was made while a program had the container open for writing. Without this flag
     * pm_open() fails with ENOTUNIQ: if commits went on while the copy was read, the copy mixes them.
     * The flag is right for a copy of one moment, for instance
     *  - a snapshot by the file system or the volume
     *  - the image of a disk after a crash
     *  - a copy made after the writer had died */
    PM_ACCEPT_COPY = 1 << 10,
    /* Fail with ESTALE when the container is no longer the file at its path. Somebody deleted, renamed
     * or replaced it, or renamed a directory above it. Commits to such a file are lost when the
     * program ends, or the next pm_open() does not find them. Without this flag libpm prints one warning
     * on stderr. pm_open() and pm_close() check the path. pm_commit() checks it once a second, and after
     * the file has grown. pm_open() resolves the path once: a later chdir(2) changes nothing, nor does a
     * symbolic link that changes. Files without a name are exempt. */
    PM_PATH_ERROR = 1 << 11,
    /* With PM_TRACKER_STORES: the program calls pm_dirty() before every store. Then no code has to be
     * compiled by pmcc. */
    PM_ANNOUNCED = 1 << 12,
};

/** How a transaction is made atomic. */
enum pm_engine {
    PM_ENGINE_AUTO = 0, /* log if the container was created so; else redo on an ordinary file or with
                           PM_TRACKER_STORES, else undo */
    PM_ENGINE_UNDO = 1, /* in place, with page pre-images logged at the first store to a page */
    PM_ENGINE_REDO = 2, /* in a private copy; commit logs the cache lines that changed */
    PM_ENGINE_LOG = 3,  /* as redo, but the log is the only copy on the medium. Chosen when the container is
                           created, and for ever: ENOTSUP with another engine. Young: see guide/engines.md */
};

/** How libpm learns to which memory the program stored. */
enum pm_tracker {
    PM_TRACKER_FAULTS = 0, /* by page faults: any program */
    PM_TRACKER_STORES = 1, /* by marks in code compiled with pmcc. Excludes the undo engine and
                              `concurrent_stores`: else EINVAL. A store by other code may be lost,
                              unless pm_dirty() announced it. ENOTSUP if no code compiled by pmcc is
                              loaded yet: load it first, for instance by dlopen(), or see PM_ANNOUNCED.
                              PM_READONLY needs no such code */
};

/*
 * Pointers that lead out of a PM_MOVABLE container. libpm knows a pointer if the program declared it,
 * or if code compiled by pmcc stored it. There are three kinds of these pointers, and an option for each
 * kind. No option changes the effect of the others.
 */

/**
 * Pointers to foreign memory: the stack, malloc'ed memory, another container, a module without a
 * build-id. The next run has something else there, or nothing. Code compiled by pmcc may also store a
 * number as a pointer. If nothing is mapped at that address, the word is data.
 */
enum pm_foreign_pointers {
    PM_FOREIGN_ERROR = 0, /* pm_commit() fails with EINVAL, and names object, offset and pointer */
    PM_FOREIGN_WARN,      /* pm_commit() warns on stderr, and goes on as with PM_FOREIGN_IGNORE */
    PM_FOREIGN_IGNORE,    /* the word keeps its value. If code compiled by pmcc stored it, the word
                             becomes data */
};

/**
 * PM_DISCOVER: pointers to freed memory of the volatile heap. Programs leave these words in places that
 * they never read again: behind the end of a std::vector, above the top of a stack.
 */
enum pm_freed_pointers {
    PM_FREED_DATA = 0, /* pm_commit() stores another value there: 2^61 plus the pointer's place in the
                          heap. The value is not NULL, and nothing is ever mapped at it. The word
                          becomes data. pm_stats() counts it as `pointers_freed` */
    PM_FREED_ERROR,    /* pm_commit() fails with EINVAL, and names object, offset and pointer */
};

/**
 * Pointers into modules. A module is the program or one of its libraries. Such pointers lead to
 * functions, string literals, static objects, and the tables of C++ classes with virtual functions.
 *
 * The container notes the module by its build-id (ld --build-id, the default of most compilers). The
 * very same build must be loaded before pm_open(). Wherever the module lies in a run, libpm translates
 * the pointers into it like the pointers into the container. A container can have pointers into 30
 * modules.
 *
 * libc has several versions of functions such as strlen and strcmp, and chooses one by processor
 * (IFUNC). The address of strlen is the address of the version for this processor. On another processor
 * this version is not strlen's address, or does not run. Store a function of your own that calls strlen.
 */
enum pm_module_pointers {
    PM_MODULES_KEEP = 0,   /* if the build is not loaded, pm_open() fails with ENOEXEC. The message names
                              object, module and byte. It names the symbol if the first pointer into
                              the module led there and the module exports it (link with -rdynamic) */
    PM_MODULES_MISSING_OK, /* pm_open() opens all the same. The program must not follow a pointer into a
                              module that is not loaded, but can replace it */
    PM_MODULES_REFUSE,     /* for files that the program does not trust, see docs/guide/trust.md:
                              pm_open() fails with EPERM if the container has a pointer into a module.
                              The search takes time linear in the container's pointers. pm_commit()
                              fails with EINVAL if such a pointer was stored */
};

#define PM_LAYOUT_MAX 127 /* bytes of a layout string, without the final NUL */

/**
 * Options of pm_open(). Zero means the default for every field but `size`. `size` tells libpm with
 * which version of this header the program was compiled.
 */
struct pm_options {
    size_t size;             /* sizeof(struct pm_options); EINVAL if libpm knows no struct of this size */
    unsigned flags;          /* enum pm_flags */
    enum pm_engine engine;   /* PM_ENGINE_AUTO; undo and redo may take turns */
    enum pm_tracker tracker; /* PM_TRACKER_FAULTS */
    enum pm_foreign_pointers foreign_pointers; /* PM_FOREIGN_ERROR */
    enum pm_freed_pointers freed_pointers;     /* PM_FREED_DATA */
    enum pm_module_pointers module_pointers;   /* PM_MODULES_KEEP */
    const char *layout;     /* names the structs inside, for instance "myapp/2"; at most
                               PM_LAYOUT_MAX bytes. Recorded at creation; a later open with another
                               string fails with EMEDIUMTYPE; NULL opens any */
    bool concurrent_stores; /* threads may store while another commits; see pm_commit(). EINVAL with
                               PM_TRACKER_STORES: a mark and its store must be in one transaction */
    mode_t mode;            /* of a new file, before the umask; default 0666 */
    bool check_owner;       /* fail with EPERM if the file does not belong to the effective user, or if
                               group or others may write to it (also by an ACL) */
    uint64_t holes_max;     /* bytes of holes that pm_open() may fill in a sparse file, when it opens
                               the file for writing; EFBIG if there are more. Default 1 GiB;
                               UINT64_MAX: all */
    uint64_t private_max;   /* redo: bytes of memory for private pages, more or less; default 256 MiB.
                               Pages that the open transaction has changed stay even beyond. Log: the
                               same, and half of it is for what the last commit has, which otherwise is
                               in memory as a whole. Then a system call fails with EFAULT for memory that
                               nobody has touched lately, also if it only reads. The log's map is in
                               this half, too. Commits that store at random to more than twice this much
                               log ten times as much. Metadata comes on top */
    uint64_t checkpoint_bytes; /* log: after so many bytes of log a checkpoint of the map is written, and at
                               each clean close. pm_open() then reads the map, and only the log behind it;
                               with `private_max` no more of the map than it needs.
                               What it does not read it does not check; pm_check() does. Default: no
                               checkpoints; with `private_max` 64 MiB, or more if checkpoints would be more
                               than about an eighth of what is written. Ignored by other engines, and in
                               a container that an older libpm has made */
    unsigned live_percent;  /* log: how much of the file should be live, 10 to 90 percent. Default 50: the
                               file becomes about twice as long as its contents. With more a file of
                               many chunks stays shorter, but commits write more: the cleaner has more to
                               move. See docs/guide/cleaner.md. Other engines only check the range */
    /* The remaining fields are used at creation only, and recorded in the container. */
    uint64_t max_size;     /* bytes of address space to reserve, and the most the file may grow to;
                              default 64 GiB, at most 4 TiB; at least the metadata (8 bytes a
                              segment) and three segments. Log and data share it. Under the log engine
                              it bounds the addresses only. The file may have 8 times as much there: at
                              least 64 MiB, at most 128 GiB. All containers that a process has open may
                              have about 15 TiB together, under the log engine about 13 */
    uint64_t initial_size; /* bytes that the new file has at once, rounded up to segments; at most max_size;
                              default: just metadata and log. An allocation that needs no larger file
                              does not wait for the file system. pm_compact() gives back what is unused.
                              Under log the file becomes shorter by itself when contents have become
                              less, but not shorter than this, if you say it at each opening */
    uint64_t segment_size; /* bytes; a power of two, 64 KiB to 1 GiB; default 1 MiB. Each size of
                              objects takes at least one segment: for small containers choose less */
    uint32_t granularity;  /* object sizes round up to a multiple of it; a power of two, 16 to 4096
                              bytes; default 16 */
};

/**
 * Open, or with PM_CREATE create, the container at `path`. If the last program that wrote the container
 * died, pm_open() first restores the state of its last commit. The cost is proportional to the log, not
 * to the container. Under the log engine the log is the container, and each opening reads it. If `options`
 * is NULL, open an existing container with the defaults.
 *
 * Creation is atomic: a crash leaves no file or a valid, empty container.
 *
 * One process at a time may have a container open for writing, once. While none writes, any number may
 * have it open read-only. (The locks are OFD locks; over NFS they work as far as NFS supports them.)
 *
 * Returns the container, or NULL with errno
 *
 *     EINVAL        an option is out of its range
 *     ENOENT        no such file (and no PM_CREATE), or no such directory
 *     EEXIST        PM_EXCLUSIVE, and the file is there
 *     EBUSY         open elsewhere, in this process or another
 *     EADDRINUSE    its address range is taken in this process, and it is not PM_MOVABLE
 *     EBADMSG       not a container, truncated, or damaged
 *     ENOTSUP       of another format version or page size; or undo on an ordinary file without
 *                   PM_UNSAFE_POWER
 *     EMEDIUMTYPE   of another layout
 *     ESTALE        no longer at its path, see PM_PATH_ERROR
 *     ENOTUNIQ      a copy that was made while the container was open, see PM_ACCEPT_COPY
 *     ENOEXEC       a pointer leads into a program or library of which that build is not loaded
 *     EPERM         `check_owner` or PM_MODULES_REFUSE refuses the file
 *     EFBIG         a sparse file has more holes than `holes_max`
 *     and ENOSPC, ENOMEM, EACCES, EROFS and others from open(2), mmap(2), fallocate(2)
 *
 * Thread-safe: containers are opened one after another. pm_open() blocks no longer than recovery takes.
 * It does not wait for a container that is open elsewhere.
 */
PM_EXPORT pm_container *pm_open(const char *path, const struct pm_options *options);

/**
 * Close a container; uncommitted changes are rolled back. Every pointer into it becomes invalid.
 * No other thread may be using it. If `c` is NULL, pm_close() returns 0. It takes two rounds, so that
 * the next open need not recover. Errors:
 *
 *     EIO      the medium failed. The container is closed, and the next open will recover. The same
 *              holds for other errors of the medium
 *     ESTALE   as PM_PATH_ERROR says. The container is closed
 *     EBUSY    pm_copy() is copying the container. It stays open
 */
PM_EXPORT int pm_close(pm_container *c);

/**
 * Free every object and set the root to NULL, as part of the open transaction: pm_commit() makes this
 * durable, pm_rollback() brings everything back. Linear in the number of segments. Even with
 * `concurrent_stores` no thread may store to an object that is freed.
 */
PM_EXPORT int pm_clear(pm_container *c);

/**
 * Delete the container at `path`, durably. If `path` is a symbolic link, the link stays. EBUSY if it is
 * open anywhere. EBADMSG if the file is no container; then nothing is deleted. EIO if the medium failed to
 * note the deletion: the file is gone, but a power failure may bring it back. Other errors as unlink(2).
 */
PM_EXPORT int pm_delete(const char *path);

/* ---------------------------------------------------------------------------------------------
 * Memory
 *
 * Everything that these calls do belongs to the open transaction: pm_rollback(), or a crash before the
 * next pm_commit(), undoes it. Nothing leaks. None of them flushes or fences; they may grow the file.
 * All are thread-safe.
 */

/**
 * Allocate `size` bytes in the container, aligned to 16, uninitialised; 0 is taken as 1. NULL with
 * ENOSPC if the container's maximum size or the file system is exhausted. About 20 ns, plus the
 * page faults of the stores that follow.
 */
PM_EXPORT void *pm_malloc(pm_container *c, size_t size);

/** As pm_malloc(count * size), zeroed. ENOSPC also if the product overflows. */
PM_EXPORT void *pm_calloc(pm_container *c, size_t count, size_t size);

/**
 * As pm_malloc(), aligned to `alignment`: a power of two up to the segment size, else EINVAL. Above
 * 4096 each object takes whole segments.
 */
PM_EXPORT void *pm_aligned_alloc(pm_container *c, size_t alignment, size_t size);

/**
 * Resize an object of any open container. Its address may change. Its first bytes, the lesser of both
 * sizes, do not change. If the object was the root, it stays the root. EINVAL if `ptr` is NULL,
 * foreign, interior or freed. ENOSPC as pm_malloc(); then the object is as before. A size of 0 is
 * taken as 1.
 */
PM_EXPORT void *pm_realloc(void *ptr, size_t size);

/**
 * Free an object of any open container. Its memory is not reused before the next commit: a rollback
 * brings the object back with its contents. If `ptr` is NULL, pm_free() returns 0. EINVAL, with
 * nothing done, if `ptr` is in no open container, is not the start of an object, or is free already.
 * Freeing the root removes the root.
 */
PM_EXPORT int pm_free(void *ptr);

/** Usable bytes at `ptr`, at least as many as were asked for; 0 with EINVAL in the cases of pm_free(). */
PM_EXPORT size_t pm_usable_size(const void *ptr);

/** Whether `ptr` points into the container's address range. If `c` is NULL: into the range of any open
 * container. Wait-free. */
PM_EXPORT bool pm_contains(const pm_container *c, const void *ptr);

/**
 * Allocate an object of `bytes` bytes, and hand its contents over: as pm_malloc(), and then pm_write(). From
 * 256 bytes on the object is aligned to 64. If `data` is NULL, the contents are not set. Then several calls
 * of pm_write() may set them piece by piece, as from a stream. Errors as those two.
 */
PM_EXPORT void *pm_put(pm_container *c, const void *data, size_t bytes);

/**
 * Copy bytes into an object, as pm_dirty() and memcpy() do. Under PM_ENGINE_LOG the bytes of an object that
 * this transaction has allocated need no private page, no marks, and no comparison at commit. Of 64 KiB and
 * more, whole pages of 4096 are written to the file at once, and are nowhere else. They count after the
 * commit, as all else. They go through memory if `segment_size` is below 256 KiB, or if the container lies
 * elsewhere than its pointers say. docs/guide/engines.md says what time it takes. A value that comes in
 * pieces is best cut at multiples of 64. The bytes are data: the pointer map stays as it is. EINVAL if the
 * range is in no open container, or not in one object. If memory or disk is exhausted, the call fails as
 * pm_dirty() does; then a part of the bytes may have been copied. Thread-safe, as stores to different
 * objects are. Linear in the bytes.
 */
PM_EXPORT int pm_write(void *to, const void *from, size_t bytes);

/**
 * Reserve room for the open transaction, until its commit. `bytes` is rounded up to whole pages of 4096.
 * The transaction can then store to this many further pages and commit, without needing space from the
 * file system. With PM_TRACKER_STORES you may count cache lines instead: 64 bytes for each.
 *
 * Why: a store cannot return ENOSPC. Under undo a store fails if its page cannot be logged, because the
 * disk is full or the container is at its max_size. Without a reservation such a store ends the process
 * with a message, and the last commit stands. pm_malloc() needs no reservation: it reports ENOSPC by
 * itself. Under log, only commits need space. Reserve it before a transaction that you cannot roll back. The
 * file then has room for a record of all that the transaction has changed so far, and of `bytes` more. To
 * allocate needs no space there, but what is allocated later is recorded, too, in lines of 64 bytes: count
 * 128 bytes for an object of up to 64, and 64 more than its bytes for a larger one. A value of pm_put() or
 * pm_write() counts once more where the transaction stores to it afterwards.
 */
PM_EXPORT int pm_reserve(pm_container *c, size_t bytes);

/* ---------------------------------------------------------------------------------------------
 * Transactions
 */

/**
 * Make everything that changed in `c` since the last commit durable, atomically, and begin the next
 * transaction. Once pm_commit() has returned 0, no crash undoes the commit (see PM_UNSAFE_POWER).
 *
 * Takes one round; none if nothing changed. Linear in the pages to which the program stored, or with
 * PM_TRACKER_STORES in the cache lines. On an ordinary file the round is one fdatasync(2).
 *
 *     ENOSPC   the log cannot grow: the transaction stays open, to be retried or rolled back
 *     EINVAL   PM_FOREIGN_ERROR, PM_FREED_ERROR or PM_MODULES_REFUSE: a pointer was stored that leads
 *              where the option forbids; pm_errormsg() names it. The transaction stays open, and can
 *              be mended
 *     EAGAIN   concurrent_stores: threads store such pointers faster than a commit can check them
 *     EFAULT   PM_TRACKER_STORES: a store was found that no mark announced; pm_errormsg() names it.
 *              Nothing is lost: the transaction stays open, and the next commit includes it
 *     EIO      the medium failed: the container is read-only from then on. Close and open it again: the
 *              transaction may then have been committed
 *     EPERM    another SIGSEGV handler has replaced ours, and ours cannot be put back
 *     ESTALE   PM_PATH_ERROR: it is no longer the file at its path; nothing has been committed
 *     ENOTRECOVERABLE
 *              pm_rollback(), pm_clear() or pm_compact() failed before, and could not restore the last
 *              commit. Call pm_rollback() again, or close and open the container
 *     EROFS    a read-only container
 *
 * With `concurrent_stores` other threads may store meanwhile. A store during the commit waits, and
 * belongs to the next transaction. No page then stays writable across commits, so that small commits
 * cost more.
 */
PM_EXPORT int pm_commit(pm_container *c);

/** A commit that may not be durable yet; a value, nothing to free. */
typedef struct pm_ticket {
    pm_container *container; /* NULL: the commit failed */
    uint64_t epoch;
} pm_ticket;

/**
 * As pm_commit(), but do not wait for the medium. On an ordinary file several commits then share one
 * fdatasync(2) (group commit). Commits become durable in their order. After a crash the state is that
 * of the last commit waited for, or of a later one. On pmem, and with the undo engine, the commit is
 * durable when this returns, because a fence is enough. If the commit fails, the ticket's container is
 * NULL, with errno and message as pm_commit().
 */
PM_EXPORT pm_ticket pm_commit_async(pm_container *c);

/**
 * Wait until a commit is durable. Any number of threads may wait at once. They need no lock of the
 * program's: one fdatasync(2) serves all threads that were waiting when it began. If the medium takes
 * 0.1 ms or less for one fdatasync(2), they wait awake, for 0.2 ms at most. EINVAL for a ticket of a
 * failed commit, and but for undo for a ticket that belongs to no commit. EIO if the medium failed; the
 * container is read-only from then on. The container must still be open.
 */
PM_EXPORT int pm_wait(pm_ticket ticket);

/**
 * Undo everything since the last commit. Pointers to objects allocated since then become invalid. If the
 * kernel does not let libpm open or close a page, pm_rollback() fails, and the page may not be restored
 * yet. It also fails if a commit failed before, and the disk does not let libpm erase what is left of it.
 * Then pm_commit() fails until another call has succeeded. pm_close() forgets the transaction, too.
 * Linear in the pages to which the program stored, and in the segments. The next allocation of a size
 * looks for room anew, past every full slab.
 *
 * With `concurrent_stores` other threads may store meanwhile. Such a store is undone, or it waits until the
 * rollback is over and belongs to the next transaction. Of one thread's stores the earlier ones are undone.
 * The thread must not store to an object that the rollback takes back.
 */
PM_EXPORT int pm_rollback(pm_container *c);

/**
 * Announce stores to [ptr, ptr + len). pm_dirty() opens the pages now (undo logs them, in one round for
 * all). Until the next commit the stores then cost no signal, and system calls may write there. Plain
 * stores never need it, with one exception under PM_TRACKER_STORES: code that was not compiled with
 * pmcc calls it before each store in each transaction. EINVAL if the range is not inside one
 * container's data, ENOSPC if it cannot be logged. Thread-safe.
 */
PM_EXPORT int pm_dirty(const void *ptr, size_t len);

/* ---------------------------------------------------------------------------------------------
 * Root
 */

/**
 * Make the object at `ptr` the one from which a later run finds all others. `size` is its size in
 * bytes; 0 means what the allocator knows. NULL removes the root. Part of the open transaction.
 * EINVAL if `ptr` is not the start of an object of `c`, or `size` exceeds it. Thread-safe.
 */
PM_EXPORT int pm_setroot(pm_container *c, void *ptr, size_t size);

/** The root, or NULL. Owned by the container. Thread-safe. */
PM_EXPORT void *pm_getroot(pm_container *c);

/* ---------------------------------------------------------------------------------------------
 * Pointers
 *
 * The *pointer map* says which words of a container hold pointers. If the map has all pointers of a
 * container, the container can be moved to other addresses. libpm never touches a word that is not in
 * the map. The effect of these calls belongs to the open transaction, like an allocation. Freeing an
 * object unmaps its pointers; pm_realloc() carries them along. Thread-safe.
 *
 * Under PM_TRACKER_STORES, in a container that is PM_MOVABLE, pm_commit() changes the map too. It maps
 * each word in which code compiled by pmcc has stored a pointer. It unmaps each word, declared or not,
 * in which such code has stored something else.
 */

/** Adjacent pointers of a struct. */
struct pm_field {
    size_t offset; /* bytes from the start of the struct; a multiple of 8 */
    size_t count;
};

/** The offsets of a struct's pointers; made by PM_TYPE(). */
struct pm_type {
    size_t size;   /* bytes of the struct */
    size_t fields; /* entries of `field` */
    const struct pm_field *field;
};

/**
 * The type descriptor, a `const struct pm_type *`, of a struct and up to 16 of its fields. A field can
 * be a pointer to anything, an array of pointers of up to three dimensions, or such a field of a nested
 * struct:
 *
 *     struct node { long key; struct { struct node *next; } link; struct node *child[4]; };
 *     n = pm_malloc_typed(c, PM_TYPE(struct node, link.next, child), 1);
 *
 * A field that is not a pointer is an error at compile time. In a function of C the descriptor
 * lives as long as its block; elsewhere as long as the program.
 */
#define PM_TYPE(type, ...) PM__TYPE(type, __VA_ARGS__)

/**
 * Allocate `count` adjacent structs, zeroed, with all their pointers mapped. Errors as pm_calloc();
 * also EINVAL if the descriptor contradicts itself. Linear in the pointers.
 */
PM_EXPORT void *pm_malloc_typed(pm_container *c, const struct pm_type *type, size_t count);

/**
 * Map the pointer at `field`, or `count` adjacent pointers from `first` on. EINVAL if the words are not
 * in one object, or not aligned to 8. ENOSPC if there is no room for the map. One segment of map serves
 * 56 segments of data.
 */
PM_EXPORT int pm_mark_pointer(void *field);
PM_EXPORT int pm_mark_pointers(void *first, size_t count);

/** Declare that the words in [ptr, ptr + bytes) hold no pointers any more. EINVAL if the range is not
 * all in one container, nor all in memory of code compiled by `pmcc --discover`. Linear in the bytes /
 * 448. */
PM_EXPORT int pm_mark_data(void *ptr, size_t bytes);

/* ---------------------------------------------------------------------------------------------
 * Discovery
 *
 * A program that was written without libpm keeps its data with four changes:
 *  1. compile it with `pmcc --discover`
 *  2. open a container with PM_DISCOVER
 *  3. set the root to the object from which all others can be reached
 *  4. commit
 *
 * malloc(), calloc(), strdup(), new and their kin then allocate from a *volatile heap* of libpm's. At
 * each commit, all objects of the heap that the container leads to move into the container. libpm
 * redirects every pointer to them: in the container, on the heap, in variables, and on the stack of
 * the calling thread. The program frees them with free() and resizes them with realloc(), as before.
 *
 * The commit fails with EINVAL if one of the objects cannot move, because a pointer leads to the stack
 * or to memory from elsewhere. It fails with ENOSPC if the container is full. In both cases it names the
 * pointer, and nothing has changed. For pointers to freed memory see enum pm_freed_pointers.
 *
 * Discovery does not see
 *  - what code compiled by other compilers stores into the heap or into variables
 *  - a pointer that is hidden in an integer or in a file
 *  - the stacks of coroutines
 * See docs/pmcc.md.
 *
 * The idea: SoftPM (Guerra et al., USENIX ATC 2012, section 3.3); LIBPM (Marmol 2017, listing 6.1).
 */

/**
 * Exclude the pointer at `field`: commits do not follow it, until pm_include(). `field` is 8 bytes in a
 * container that is PM_DISCOVER, or on the volatile heap. Use it for a pointer to something that cannot
 * be moved. In a container that is opened again, the field is NULL.
 *
 * A commit stores NULL in the excluded fields of its container while it writes, and their values
 * afterwards. So no other thread may read or store to such a field during a commit. pm_include() waits for
 * the commit.
 *
 * The field stays excluded when its object moves, and until its object is freed. pm_rollback() puts the
 * exclusion back where it was, even if the object has been freed or detached since, unless another
 * container has committed the detached object meanwhile. It sets the field to its value at the last
 * commit. A field in a container that was excluded since then stays excluded.
 *
 * EINVAL if `field` is in neither place or not aligned to 8; for pm_include() also if it is not
 * excluded. ENOMEM. Each call is linear in the excluded fields, and so is each commit. Thread-safe.
 */
PM_EXPORT int pm_exclude(void *field);
PM_EXPORT int pm_include(void *field);

/**
 * The reverse of discovery: move the object that begins at `ptr` to the volatile heap. `ptr` must be in
 * a container that is PM_DISCOVER. All objects that the container reaches only through this object move
 * too. The open transaction frees them in the container. All pointers to them are redirected. Returns
 * the object's new address, to be freed with free().
 *
 * First take the object out of its structure. If the root or anything else in the container still leads
 * to it, pm_detach() fails with EINVAL, and the message names the pointer. (A pointer to the place where
 * one object ends and another begins counts as a pointer to the other.) Other errors are ENOMEM,
 * EBADMSG if pm_check() finds damage, and the errors of a commit that moves objects. After a failure
 * nothing has changed.
 *
 * pm_rollback() brings the objects in the container back. It leaves the objects on the heap, and
 * pointers outside the container, as they are. Linear in the container, the heap, the variables and the
 * stack. No other thread may use the container meanwhile.
 */
PM_EXPORT void *pm_detach(void *ptr);

/**
 * Let malloc() and its kin allocate from `c` in the calling thread, so that no commit has to move the
 * objects. This concerns code compiled by `pmcc --discover`. NULL: from the volatile heap again. It ends
 * when the thread closes `c`; no other thread may close `c`. EROFS if `c` is read-only. Constant time.
 */
PM_EXPORT int pm_set_current(pm_container *c);

/* ---------------------------------------------------------------------------------------------
 * Compaction
 */

/** How much room a container takes for its objects. */
struct pm_space {
    uint64_t object_bytes; /* usable bytes of all objects, as pm_usable_size() counts them */
    uint64_t data_bytes;   /* bytes of the segments that hold objects */
    uint64_t file_bytes;   /* bytes of the file */
    double fragmentation;  /* 1 - object_bytes / data_bytes: the share of these segments that no
                              object uses; 0 if there are none */
};

/** Results of pm_compact(). */
struct pm_compacted {
    size_t size; /* in: sizeof(struct pm_compacted); the call fills no more than that */

    uint64_t objects_moved;
    uint64_t bytes_moved;         /* of these objects */
    uint64_t pointers_redirected; /* the root among them */
    uint64_t segments_freed;      /* segments that held objects before, and hold none now */
    uint64_t commits;             /* transactions that moved objects */
    struct pm_space before, after;
};

/** Called for an object that has moved from `from` to `to`; `bytes` is its usable size. */
typedef void pm_moved(void *context, void *from, void *to, size_t bytes);

/**
 * Compact a container, for instance one that has been larger:
 *  - move objects together, so that they fill as few segments as possible at the beginning of the file
 *  - redirect every pointer to them, and the root
 *  - give empty segments back to the container, and the end of the file to the file system
 *
 * All pointers into the container must be in its pointer map, so the container must be PM_MOVABLE.
 * A mapped pointer to an object, into an object, or just past its end is redirected. All other pointers
 * are invalid then. Examples are **pointers that the program keeps outside**: in variables, on
 * the heap, in other containers, as keys of hash tables. Get them anew from pm_getroot(), or adjust them
 * in `moved`.
 *
 * `moved`, unless NULL, is called with `context` for each object that has moved, once the move is
 * durable. A pointer p with from <= p <= from + bytes should be p - from + to from then on. An object
 * may move more than once; the calls come in order. `moved` must not call libpm for this container, nor
 * read at `from`.
 *
 * pm_compact() first commits the open transaction, as pm_commit() does. Then it commits transactions of
 * its own, each with some of the moves. For the program they change nothing but addresses. After a crash
 * or a failure some objects have moved, and everything else is as it was. Another call goes on.
 * pm_rollback() undoes none of it.
 *
 * The log takes about an eighth of the file, and at least 16 MiB. If the container has less room, the log
 * takes the room there is. Nothing else takes room, so a full container can be compacted. Under the log
 * engine the moves are logged. At the end the file becomes shorter, unless that gains less than an eighth.
 * For this contents are written once more, chunk by chunk, into room that the log has in reserve.
 *
 * No other thread may use the container, or pointers into it, until this returns. The time is linear in
 * the objects and their bytes. Each transaction also takes time linear in all mapped pointers. There
 * are a dozen transactions, or as many as the log makes necessary.
 *
 * `result` is NULL, or has its `size` set and receives the results. It is also filled if the call fails
 * with ENOSPC, ENOMEM or EIO after its own transactions have begun.
 *
 *     EINVAL   `c` is NULL, or the size of `result` is 0 or unknown to libpm
 *     ENOTSUP  the container is not PM_MOVABLE: nobody knows where all of its pointers are
 *     EBADMSG  damaged, as pm_check() says. Nothing was moved. (Pointers may lead anywhere)
 *     ENOSPC   the log has no room to move even a single object
 *     ENOMEM   no memory for tables, or the kernel does not unmap the end of the file
 *     and others as pm_commit()
 */
PM_EXPORT int pm_compact(pm_container *c, pm_moved *moved, void *context,
                         struct pm_compacted *result);

/* ---------------------------------------------------------------------------------------------
 * Copies
 */

/** Called when `done` of `total` bytes have been copied; both may grow. Return 0 to go on; any other
 * value stops the copy. */
typedef int pm_progress(void *context, uint64_t done, uint64_t total);

/**
 * Copy the last commit of `c` to a new file at `path`. The copy is a complete container, closed, and
 * durable when this returns. Meanwhile the program may go on, in other threads or in `progress`: it may
 * allocate, store, commit and roll back. The copy has one commit whole, and nothing of the open
 * transaction. This commit is the last before the copying ends; it may be a commit of pm_commit_async()
 * that nobody has waited for. `c` may be read-only. Never copy the file of an open container by other
 * means: see PM_ACCEPT_COPY.
 *
 * The file appears at `path` when it is complete, and replaces none. After a failure, or a crash,
 * nothing is left of it. (On a file system without O_TMPFILE a crash may leave PATH.new-*.) The file
 * has the original's permissions, but for the umask.
 *
 * `progress`, unless NULL, is called with `context` after each MiB or so. It may use `c`, but not close,
 * compact or copy it. If it commits much at each call, a pass over the changes follows without calls, so
 * that the copying ends.
 *
 * Linear in the container, without free space, whatever is committed meanwhile: it copies all pages
 * once, and then makes at most seven passes over the changes. Under undo and redo it copies no log,
 * and under the log engine all of it, except chunks that are free. There is one pause, in which
 * commits and first stores to a page wait. In the pause pm_copy() copies pages in memory, for about 1
 * us each. These are the pages that commits changed during the last pass over the changes, mostly 256
 * at most. If other threads change pages as fast as pm_copy() copies them, there are as many as they
 * changed during the seventh pass. Under undo there are also the pages to which the open transaction
 * has stored. Beside a thread that commits without end the pause was 0.1 ms with 10 pages a commit,
 * and 0.9 ms with 1000 (docs/reliability.md). Commits to the same disk also wait for the disk.
 *
 *     EINVAL     `c` or `path` is NULL
 *     EEXIST     there is a file at `path`
 *     EBUSY      another copy of `c` is being made. Meanwhile pm_close() and pm_compact() fail with
 *                EBUSY too
 *     ECANCELED  `progress` asked for it
 *     and ENOSPC, ENOMEM, EIO, EACCES and others from open(2), fallocate(2), write(2), fsync(2), linkat(2)
 *
 * Thread-safe.
 */
PM_EXPORT int pm_copy(pm_container *c, const char *path, pm_progress *progress, void *context);

/* ---------------------------------------------------------------------------------------------
 * Looking inside
 */

/** Counters since pm_open(), unless said otherwise. */
struct pm_stats {
    size_t size; /* in: sizeof(struct pm_stats); the call fills no more than that */

    uint64_t epoch;     /* number of the open transaction; grows with each commit: by one, or by a few more
                           in pm_compact(), and when the log engine cleans */
    uint64_t commits;   /* commits that changed something */
    uint64_t rollbacks;

    uint64_t rounds;        /* batches of write-backs, by faults and commits together */
    uint64_t fences;        /* store fences executed, or fdatasync(2) calls; undo on a file: 0 */
    uint64_t lines_flushed; /* lines of 64 bytes written back or carried home, without the lines of
                               bytes_logged; on a file a page counts as 64 */
    uint64_t bytes_logged;  /* written to the log: pre-images, descriptors, records; and the bytes
                               counted in bytes_fresh */
    uint64_t faults;        /* stores caught by page protection */
    uint64_t pages_logged;  /* pre-images taken at a first store or by pm_dirty() */
    uint64_t pages_ahead;   /* pre-images taken by a commit, of pages that stay writable */
    uint64_t pages_evicted; /* pages closed early, or given back: the kernel's map limit, or private_max */
    uint64_t lines_logged;  /* redo: cache lines whose new contents are in records */
    uint64_t bytes_fresh;   /* redo: written straight home, because nothing committed was there */
    uint64_t pages_private; /* redo: pages of which this process may have a copy now */
    uint64_t pages_open;    /* logged for the open transaction, whether by it or ahead */

    uint64_t file_bytes;    /* size of the file now */
    uint64_t segments_data; /* segments that hold objects now */
    uint64_t segments_log;  /* segments of the log now */
    uint64_t segments_map;  /* segments of the pointer map now */
    uint64_t segments_free; /* segments of the file free now */

    uint64_t recovery_ns;     /* time pm_open() spent on recovery; 0 after a clean close */
    uint64_t pointers_moved;  /* pointers translated since the container's addresses were taken: by
                                 pm_open(), or as pages were touched */
    uint64_t pointers_freed;  /* led to freed memory and became data, see PM_FREED_DATA */
    uint64_t touches;         /* accesses caught to translate pages of a container that lies elsewhere */
    uint64_t recovered_pages; /* that recovery restored: from pre-images, or in redo's log */
    uint64_t recovery_bytes;  /* log: bytes of records that pm_open() read, perhaps from a checkpoint on */
    bool recovered;           /* the last writer had not closed the container */
    bool power_safe;          /* commits survive power failure on this medium */
    bool movable;             /* may be moved to other addresses, see PM_MOVABLE */
    bool moved;               /* pages are translated at their first access, see PM_MOVABLE */
    const void *base;         /* address of the container in memory */
    const char *medium;       /* "pmem" or "file"; static */
    const char *engine;       /* "undo", "redo" or "log"; static */
    const char *tracker;      /* "faults" or "stores"; static */
};

/** Fill `stats`. The caller has set its `size`; EINVAL if `size` is 0. Linear in the segments. */
PM_EXPORT int pm_stats(pm_container *c, struct pm_stats *stats);

/**
 * Return the first object behind `previous`, in order of address. If `previous` is NULL, return the
 * very first object. Return NULL when there are no more. Fills `*size`, unless NULL, with the object's
 * usable bytes. For statistics, and for programs that look for objects they forgot to free:
 *
 *     size_t size;
 *     for (void *p = NULL; (p = pm_next_object(c, p, &size)) != NULL;) ...
 *
 * Objects may come and go meanwhile; `previous` may have been freed. Owned by the container. NULL with
 * EINVAL if `previous` is not in `c`; errno is otherwise untouched. Thread-safe. Linear in the slots
 * and segments that it passes, so a walk of all is linear in the container.
 */
PM_EXPORT void *pm_next_object(pm_container *c, const void *previous, size_t *size);

/**
 * Return the address of the first mapped pointer in [from, end), see pm_mark_pointer(); NULL if there
 * is none. EINVAL if the range is not all in one container; errno is otherwise untouched. Thread-safe.
 * Linear in the bytes / 448.
 */
PM_EXPORT void **pm_next_pointer(const void *from, const void *end);

/**
 * Check everything on the medium that can be checked: both headers, the segment table, bitmaps, pointer
 * map, log and root. Check that the volatile tables agree with them, and where each mapped pointer
 * leads. A mapped pointer must lead into the container, or into a module that a commit has noted. Values
 * below 4096 (as NULL) and above -4096 (as MAP_FAILED) also pass. If code compiled by pmcc has stored to
 * a word since the last commit, the check judges the word as the next commit will.
 *
 * EBADMSG; pm_errormsg() says the first offence. Linear in the bitmaps and the pointers, and with the log
 * engine in the file, for each record is read. Holds the allocator's lock meanwhile.
 */
PM_EXPORT int pm_check(pm_container *c);

/** Message of the last call that failed in this thread; "" if none has. Owned by the thread. */
PM_EXPORT const char *pm_errormsg(void);

/** "MAJOR.MINOR.PATCH" of the library linked, to compare with PM_VERSION_*. Static. */
PM_EXPORT const char *pm_version(void);

#ifdef __cplusplus
}
#endif

#include "libpm_type.h"
#endif
