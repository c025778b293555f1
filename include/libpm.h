/*
 * libpm: ordinary C structures that survive crashes.
 *
 * Open a *container* (one file), hang plain structs and plain pointers off its *root*, and call
 * pm_commit(). Everything that changed since the last commit becomes durable at once, or not at
 * all: after any crash the data is exactly that of the last commit that returned.
 *
 *     pm_container *c = pm_open("list.pm", &(struct pm_options){
 *         .size = sizeof(struct pm_options), .flags = PM_CREATE, .layout = "list/1"});
 *     struct list *l = pm_getroot(c);
 *     if (!l) { l = pm_calloc(c, 1, sizeof *l); pm_setroot(c, l, 0); }
 *     push(l, pm_malloc(c, sizeof(struct node)));       // your own code, unchanged
 *     pm_commit(c);
 *     pm_close(c);
 *
 * Words. A *transaction* is all that happens to a container between two commits or rollbacks;
 * there is one per container at a time and it begins by itself. An *object* is what one call of
 * pm_malloc() returned. A *round* is one batch of cache-line write-backs and one store fence.
 *
 * Errors. Functions return 0 or a pointer; a failure is -1 or NULL with errno set, and
 * pm_errormsg() says what failed, on which file, at which offset, and what to do. A call that
 * failed has changed nothing. Any function given a container can fail with ECHILD in a child of
 * fork(2), where libpm is switched off.
 *
 * Threads. Different containers are independent, once they are open. On one container allocation is
 * thread-safe, and any number of threads may store at the same time; but while one thread is in
 * pm_commit(), pm_rollback() or pm_clear() no other thread may store to that container, unless it was
 * opened with `concurrent_stores`. Nothing here may be called from a signal handler, and nothing is a
 * cancellation point: pthread_cancel(3) waits until the call returns, or the page fault of a store has
 * been served, even if the thread's cancellation is asynchronous.
 *
 * Caveats.
 *  - read(2) and other system calls that write to memory fail with EFAULT on a page of a container
 *    that has not been stored to in this transaction; open the buffer with pm_dirty() first.
 *  - Pointers to the stack, to malloc'ed memory or to another container mean nothing after a
 *    restart. Pointers to functions, string literals and static objects do in a container that is
 *    PM_MOVABLE, where libpm finds the others: see enum pm_foreign_pointers. Elsewhere nobody says
 *    which words are pointers: LIBPM_AUDIT=1 in the environment has commits warn of words that may
 *    lead out.
 *  - A container is code: whoever can write the file chooses its pointers. See docs/guide/trust.md.
 *  - A container is mapped at the address range that its pointers mean, chosen at random from 64
 *    TiB at its creation. When that is taken, as for a copy beside its original (or by chance: of
 *    ten containers of the default max_size two collide with a probability of 9 %), only one that
 *    is PM_MOVABLE opens, and makes its pointers right as pages are touched.
 *  - A thread must not block SIGSEGV, nor a handler mask it, while it stores to a container, or
 *    reads one that is `moved` (struct pm_stats): the kernel then ends the process at the first
 *    store to a page, or access. And without `concurrent_stores` a signal handler must not store to
 *    a container whose commit or rollback it may have interrupted.
 *  - In a child of fork(2) a container's memory is not there: even reading it is a SIGSEGV.
 *  - libpm owns SIGSEGV and SIGBUS from the first pm_open() on, and passes on what is not its own.
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
    PM_READONLY = 1 << 2,  /* recover in private memory, write nothing; stores are a SIGSEGV */

    /* Undo on an ordinary file (not DAX, not tmpfs): accept that data survives the death of the
     * process but not a power failure, since the kernel may write a half-changed page back at any
     * time, and undo works in place. Without this flag PM_ENGINE_UNDO is refused there with
     * ENOTSUP; with it, PM_ENGINE_AUTO chooses undo there too. The redo engine has no need of it.
     */
    PM_UNSAFE_POWER = 1 << 3,

    /* The program vouches that every pointer which it stores in the container is in the pointer map
     * (see below); with PM_TRACKER_STORES, code compiled by pmcc puts it there. A container that
     * has only been written by such programs opens elsewhere when its addresses are taken; any
     * other can be opened there only. Opening costs the same for any size: pointers are made right
     * page by page, at the first access to each, and the medium keeps those it has. Commits are
     * the redo engine's then, and a system call that is handed a page which nobody has touched yet
     * fails with EFAULT, also one that only reads there. (A program that opens such a container
     * elsewhere without PM_MOVABLE, to write to it, has it moved as with PM_RELOCATE.) The same is
     * true where it lies at its own addresses, but a program or library does not into which it has
     * pointers (enum pm_module_pointers): so in nearly every run of a position-independent program
     * after the one that stored the first; pm_stats() says so. */
    PM_MOVABLE = 1 << 4,
    /* If it opens elsewhere let these be its addresses from now on, on the medium too: one pass over
     * the memory of its pointers, after which nothing need be done at any access, but for pointers
     * into programs and libraries, as above. Crash-safe; what is interrupted the next pm_open()
     * completes. Needs PM_MOVABLE. */
    PM_RELOCATE = 1 << 5,
    /* Commit moves into the container what it leads to of the program's malloc'ed memory: see
     * "Discovery". Implies PM_MOVABLE and PM_TRACKER_STORES. ENOTSUP if no code is loaded that was
     * compiled by `pmcc --discover`. */
    PM_DISCOVER = 1 << 6,
    /* With PM_DISCOVER: the program vouches that, when a commit moves objects, neither other threads
     * nor functions that were not compiled so hold pointers to them, and no other thread stores to
     * malloc'ed memory meanwhile. Else a commit that has objects to move fails while there are other
     * threads, or while such a function waits for it, such as qsort(3) for a comparison that
     * commits. */
    PM_VOUCHED = 1 << 7,
    /* Open a copy that was made while a program had the container open for writing. Without this flag
     * that is ENOTUNIQ, for a copy that was read while commits went on mixes them. The flag is right
     * for a copy of one moment. Examples are a snapshot by the file system or the volume, the image of
     * a disk after a crash, and a copy made after the writer had died. */
    PM_ACCEPT_COPY = 1 << 10,
    /* Fail with ESTALE when the container is no longer the file at its path. Somebody deleted, renamed
     * or replaced it, or renamed a directory above it. Commits to such a file are lost when the
     * program ends, or the next pm_open() does not find them. Without this flag there is one warning
     * on stderr. pm_open() looks, pm_close(), and pm_commit(), once a second and after the file has
     * grown. The path is resolved at pm_open(): chdir(2) means nothing, nor does a symbolic link that
     * changes. Files without a name are exempt. */
    PM_PATH_ERROR = 1 << 11,
    /* With PM_TRACKER_STORES: the program calls pm_dirty() before every store. No code need be compiled
     * by pmcc then. */
    PM_ANNOUNCED = 1 << 12,
};

/** How a transaction is made atomic. */
enum pm_engine {
    PM_ENGINE_AUTO = 0, /* redo on an ordinary file or with PM_TRACKER_STORES, else undo */
    PM_ENGINE_UNDO = 1, /* in place, with page pre-images logged at the first store to a page */
    PM_ENGINE_REDO = 2, /* in a private copy; commit logs the cache lines that changed */
};

/** How libpm learns what was stored to. */
enum pm_tracker {
    PM_TRACKER_FAULTS = 0, /* by page faults: any program */
    PM_TRACKER_STORES = 1, /* by marks in code compiled with pmcc; engine redo only, and not with
                              `concurrent_stores`: EINVAL. A store by code that was not compiled so,
                              and that pm_dirty() did not announce, may be lost. ENOTSUP if no
                              code is loaded yet that was compiled so: load it first, as with
                              dlopen(), or see PM_ANNOUNCED. PM_READONLY needs none */
};

/*
 * Pointers that lead out of a PM_MOVABLE container. libpm knows a pointer if it is declared, or if
 * code compiled by pmcc stored it. There are three kinds, and an option for each. No option
 * changes what the others do.
 */

/**
 * Pointers to foreign memory: the stack, malloc'ed memory, another container, a module without a
 * build-id. The next run has something else there, or nothing. A number in a word that code
 * compiled by pmcc stored as a pointer is data, if nothing is mapped at that address.
 */
enum pm_foreign_pointers {
    PM_FOREIGN_ERROR = 0, /* pm_commit() fails with EINVAL, and names object, offset and pointer */
    PM_FOREIGN_WARN,      /* pm_commit() says so on stderr, and goes on as with PM_FOREIGN_IGNORE */
    PM_FOREIGN_IGNORE,    /* the word keeps its value, and becomes data if code compiled by pmcc
                             stored it */
};

/**
 * PM_DISCOVER: pointers to memory of the volatile heap that has been freed. Programs leave such
 * words where they never read again: behind the end of a std::vector, above the top of a stack.
 */
enum pm_freed_pointers {
    PM_FREED_DATA = 0, /* pm_commit() stores a value there which is not NULL, and at which nothing is
                          ever mapped: 2^61 and the pointer's place in the heap. The word is data.
                          pm_stats() counts it as `pointers_freed` */
    PM_FREED_ERROR,    /* pm_commit() fails with EINVAL, and names object, offset and pointer */
};

/**
 * Pointers into modules, which are the program and its libraries: to functions, string literals,
 * static objects, and tables of C++ classes with virtual functions.
 *
 * The container notes the module by its build-id (ld --build-id, which compilers ask for by
 * default). The very same build must be loaded before pm_open(). Wherever the module lies in a run,
 * libpm makes the pointers right as it does those into the container. A container can have pointers
 * into 30 modules. Of functions that libc chooses by processor (IFUNC: strlen, strcmp) the address
 * is that of the one for this processor. On another processor it differs from strlen there, or does
 * not run. Store a function of your own that calls it.
 */
enum pm_module_pointers {
    PM_MODULES_KEEP = 0,   /* if the build is not loaded, pm_open() fails with ENOEXEC. It names
                              object, module and byte, and the symbol if the first pointer into the
                              module led there and the module exports it (link with -rdynamic) */
    PM_MODULES_MISSING_OK, /* pm_open() opens all the same. A pointer into a module that is not
                              loaded must not be followed, but can be replaced */
    PM_MODULES_REFUSE,     /* for files that the program does not trust, see docs/guide/trust.md:
                              pm_open() fails with EPERM if the container has such a pointer, in
                              time linear in its pointers; pm_commit() fails with EINVAL if one was
                              stored */
};

#define PM_LAYOUT_MAX 127 /* bytes of a layout string, without the final NUL */

/**
 * What pm_open() needs to know. Zero means the default for every field but `size`, which tells a
 * program compiled with another header.
 */
struct pm_options {
    size_t size;             /* sizeof(struct pm_options); EINVAL if it is not a size we know */
    unsigned flags;          /* enum pm_flags */
    enum pm_engine engine;   /* PM_ENGINE_AUTO; a container may be opened with either in turn */
    enum pm_tracker tracker; /* PM_TRACKER_FAULTS */
    enum pm_foreign_pointers foreign_pointers; /* PM_FOREIGN_ERROR */
    enum pm_freed_pointers freed_pointers;     /* PM_FREED_DATA */
    enum pm_module_pointers module_pointers;   /* PM_MODULES_KEEP */
    const char *layout;     /* names the structs inside, for instance "myapp/2"; at most
                               PM_LAYOUT_MAX bytes. Recorded at creation; a later open with another
                               string fails with EMEDIUMTYPE; NULL opens any */
    bool concurrent_stores; /* threads may store while another commits; see pm_commit(). EINVAL
                               with PM_TRACKER_STORES, where a mark and its store must be of one
                               transaction */
    mode_t mode;            /* of a new file, before the umask; default 0666 */
    bool check_owner;       /* refuse a file, with EPERM, that is not the effective user's, or that
                               group or others may write to (also by an ACL) */
    uint64_t holes_max;     /* bytes of holes that pm_open() may fill, in a sparse file that it opens
                               for writing; EFBIG if there are more. Default 1 GiB; UINT64_MAX: all */
    uint64_t private_max;   /* redo: bytes of memory for private pages, more or less; default 256
                               MiB. What the open transaction has changed is kept even beyond */
    /* The rest is used at creation only and recorded in the container. */
    uint64_t max_size;     /* bytes of address space to reserve, and the most the file may grow to;
                              default 64 GiB, at most 4 TiB; at least the metadata (8 bytes a
                              segment) and three segments. The log shares it with the data. All
                              that a process has open may have about 15 TiB together */
    uint64_t segment_size; /* bytes; a power of two, 64 KiB to 1 GiB; default 1 MiB. Each size of
                              objects takes one at least: choose less for small containers */
    uint32_t granularity;  /* object sizes round up to a multiple of it; a power of two, 16 to 4096
                              bytes; default 16 */
};

/**
 * Open, or with PM_CREATE create, the container at `path`. If the last program that wrote it died,
 * the state of its last commit is restored first, at a cost proportional to the log, not to the
 * container. `options` may be NULL: open an existing container with the defaults.
 *
 * Creation is atomic: a crash leaves no file or a valid, empty container.
 *
 * One process at a time may have a container open for writing, once; any number may have it open
 * read-only while none writes (OFD locks; over NFS as far as that supports them).
 *
 * Returns the container, or NULL with errno
 *   EINVAL        an option is out of its range
 *   ENOENT        no such file (and no PM_CREATE), or no such directory
 *   EEXIST        PM_EXCLUSIVE, and the file is there
 *   EBUSY         open elsewhere, in this process or another
 *   EADDRINUSE    its address range is taken in this process, and it is not PM_MOVABLE
 *   EBADMSG       not a container, truncated, or damaged
 *   ENOTSUP       of another format version or page size; or undo on an ordinary file without
 *                 PM_UNSAFE_POWER
 *   EMEDIUMTYPE   of another layout
 *   ESTALE        no longer at its path, see PM_PATH_ERROR
 *   ENOTUNIQ      a copy that was made while the container was open, see PM_ACCEPT_COPY
 *   ENOEXEC       a pointer leads into a program or library of which that build is not loaded
 *   EPERM         `check_owner` or PM_MODULES_REFUSE refuses the file
 *   EFBIG         a sparse file has more holes than `holes_max`
 *   ENOSPC, ENOMEM, EACCES, EROFS and others from open(2), mmap(2), fallocate(2)
 *
 * Thread-safe: containers are opened one after another. Blocks no longer than recovery takes, and does
 * not wait for a container that is open elsewhere.
 */
PM_EXPORT pm_container *pm_open(const char *path, const struct pm_options *options);

/**
 * Close a container; uncommitted changes are rolled back. Every pointer into it becomes invalid.
 * No other thread may be using it. NULL is 0. Two rounds, so that the next open need not recover.
 * -1 when the medium failed (EIO), or what it says; it is closed all the same, and the next open
 * will recover. -1 with ESTALE as PM_PATH_ERROR says; it is closed. -1 with EBUSY while pm_copy() copies it: it stays open.
 */
PM_EXPORT int pm_close(pm_container *c);

/**
 * Free every object and set the root to NULL, as part of the open transaction: pm_commit() makes it
 * durable, pm_rollback() brings all back. Linear in the number of segments.
 */
PM_EXPORT int pm_clear(pm_container *c);

/**
 * Delete the container at `path`, durably. EBUSY if it is open anywhere, EBADMSG if it is no
 * container (then nothing is deleted), or as unlink(2). EIO if the medium failed to note it: the
 * file is gone, but a power failure may bring it back.
 */
PM_EXPORT int pm_delete(const char *path);

/* ---------------------------------------------------------------------------------------------
 * Memory
 *
 * What these calls do belongs to the open transaction: pm_rollback(), or a crash before the next
 * pm_commit(), undoes it. Nothing leaks. None of them flushes or fences; they may grow the file.
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
 * Resize an object of whatever container it is in; its address may change, its first bytes (the
 * lesser of both sizes) do not, and if it was the root it still is. EINVAL if `ptr` is NULL,
 * foreign, interior or freed; ENOSPC as pm_malloc(), and then the object is as before. A size of 0
 * is taken as 1.
 */
PM_EXPORT void *pm_realloc(void *ptr, size_t size);

/**
 * Free an object of whatever container it is in. Its memory is not reused before the next commit,
 * so a rollback has it back, contents included. NULL is 0. EINVAL, and nothing done, if `ptr` is in
 * no open container, is not the start of an object, or is free already. Freeing the root removes
 * it.
 */
PM_EXPORT int pm_free(void *ptr);

/** Bytes that may be used at `ptr`, at least what was asked for; 0 and EINVAL as pm_free(). */
PM_EXPORT size_t pm_usable_size(const void *ptr);

/** Whether `ptr` points into the container's address range; NULL: of any open container. Wait-free.
 */
PM_EXPORT bool pm_contains(const pm_container *c, const void *ptr);

/**
 * Make sure that the open transaction, until its commit, can store to `bytes` bytes' worth of
 * further pages (rounded up to whole pages of 4096) and commit them without needing space from the
 * file system. Because: a store cannot return ENOSPC. Under undo, without a reservation, a store
 * whose page cannot be logged, since the disk is full or the container at its max_size, ends the
 * process with a message; the last commit stands. pm_malloc() is not covered: it reports ENOSPC by
 * itself.
 */
PM_EXPORT int pm_reserve(pm_container *c, size_t bytes);

/* ---------------------------------------------------------------------------------------------
 * Transactions
 */

/**
 * Make everything that changed in `c` since the last commit durable, atomically, and begin the next
 * transaction. When it has returned 0 no crash undoes it (see PM_UNSAFE_POWER).
 *
 * One round; none when nothing changed. Linear in the pages stored to, or with PM_TRACKER_STORES in
 * the cache lines. On an ordinary file the round is one fdatasync(2).
 *
 *   ENOSPC   the log cannot grow: the transaction stays open, to be retried or rolled back
 *   EINVAL   PM_FOREIGN_ERROR, PM_FREED_ERROR or PM_MODULES_REFUSE: a pointer was stored that leads
 *            where the option forbids; pm_errormsg() names it. The transaction stays open, and can
 *            be mended
 *   EFAULT   PM_TRACKER_STORES: a store was found that no mark announced; pm_errormsg() names it.
 *            Nothing is lost: the transaction stays open, and the next commit includes it
 *   EIO      the medium failed: the container is read-only from then on. Close and open it again
 *   EPERM    another SIGSEGV handler has replaced ours, and ours cannot be put back
 *   ESTALE   PM_PATH_ERROR: it is no longer the file at its path; nothing has been committed
 *   EROFS    a read-only container
 *
 * With `concurrent_stores` other threads may store meanwhile: such a store waits and belongs to the
 * next transaction. No page then stays writable across commits, so that small commits cost more.
 */
PM_EXPORT int pm_commit(pm_container *c);

/** A commit that may not be durable yet; a value, nothing to free. */
typedef struct pm_ticket {
    pm_container *container; /* NULL: the commit failed */
    uint64_t epoch;
} pm_ticket;

/**
 * As pm_commit(), but do not wait for the medium: on an ordinary file several commits then share
 * one fdatasync(2) (group commit). Commits become durable in their order: after a crash the state
 * is that of some commit at or after the last one waited for. Where a fence is all that it takes
 * (pmem, or the undo engine) the commit is durable when this returns. On failure the ticket's
 * container is NULL, with errno and message as pm_commit().
 */
PM_EXPORT pm_ticket pm_commit_async(pm_container *c);

/**
 * Wait until a commit is durable. Any number of threads may wait at once, and need no lock of the
 * program's: one fdatasync(2) serves all that were waiting when it began. On a medium that takes no
 * longer than 0.1 ms for one they wait awake, 0.2 ms at most. EINVAL for a ticket of a
 * failed commit, and under redo for one of no commit; EIO when the medium failed, and the container is
 * read-only from then on. The container must still be open.
 */
PM_EXPORT int pm_wait(pm_ticket ticket);

/**
 * Undo everything since the last commit. Pointers to objects allocated since then become invalid.
 * Linear in the pages stored to and in the segments; the next allocation of a size looks for room
 * anew, past every full slab.
 */
PM_EXPORT int pm_rollback(pm_container *c);

/**
 * Announce stores to [ptr, ptr + len): opens the pages now (undo logs them, in one round for all),
 * so that the stores cost no signal and system calls may write there until the next commit. Never
 * required for plain stores; with PM_TRACKER_STORES it is, before each store in each transaction,
 * by code that was not compiled with pmcc. EINVAL if the range is not inside one container's data,
 * ENOSPC if it cannot be logged. Thread-safe.
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
 * The *pointer map* says which words of a container hold pointers. A container whose pointers are
 * all in it can be moved to other addresses; a word that is not in it is never touched. What these
 * calls do belongs to the open transaction, as allocation does. Under PM_TRACKER_STORES, in a
 * container that is PM_MOVABLE, commit also maps what code compiled by pmcc has stored as a
 * pointer, and unmaps what it has overwritten with something else, declared or not. Freeing an
 * object unmaps its pointers, pm_realloc() carries them along. Thread-safe.
 */

/** Adjacent pointers of a struct. */
struct pm_field {
    size_t offset; /* bytes from the start of the struct; a multiple of 8 */
    size_t count;
};

/** Where a struct has pointers; made by PM_TYPE(). */
struct pm_type {
    size_t size;   /* bytes of the struct */
    size_t fields; /* entries of `field` */
    const struct pm_field *field;
};

/**
 * The type descriptor, a `const struct pm_type *`, of a struct and up to 16 of its fields: pointers
 * to anything, arrays of pointers of up to three dimensions, and such fields of nested structs:
 *
 *     struct node { long key; struct { struct node *next; } link; struct node *child[4]; };
 *     n = pm_malloc_typed(c, PM_TYPE(struct node, link.next, child), 1);
 *
 * A field that is not a pointer is an error at compile time. In a function of C the descriptor
 * lives as long as its block, else as long as the program.
 */
#define PM_TYPE(type, ...) PM__TYPE(type, __VA_ARGS__)

/**
 * Allocate `count` adjacent structs, zeroed, with all their pointers mapped. Errors as
 * pm_calloc(), and EINVAL for a descriptor that contradicts itself. Linear in the pointers.
 */
PM_EXPORT void *pm_malloc_typed(pm_container *c, const struct pm_type *type, size_t count);

/**
 * Map the pointer at `field`, or `count` adjacent ones from `first` on. The words must be of one
 * object and aligned to 8, else EINVAL; ENOSPC if there is no room for the map, of which a segment
 * serves 56 of data.
 */
PM_EXPORT int pm_mark_pointer(void *field);
PM_EXPORT int pm_mark_pointers(void *first, size_t count);

/** Say that the words in [ptr, ptr + bytes) hold no pointers any more. EINVAL if that is not all in
 * one container, or in memory of code compiled by `pmcc --discover`. Linear in the bytes / 448. */
PM_EXPORT int pm_mark_data(void *ptr, size_t bytes);

/* ---------------------------------------------------------------------------------------------
 * Discovery
 *
 * A program that was written without libpm keeps its data by four lines: compile it with `pmcc
 * --discover`, open a container with PM_DISCOVER, set the root to the object that all others hang off,
 * and commit. What the program has from malloc(), calloc(), strdup(), new and their kin it has from
 * a *volatile heap* of libpm's. At each commit all objects of that heap to which the container leads
 * move into it; every pointer to them, in the container, on the heap, in variables, on the stack of
 * the calling thread, leads to where they are then. They are freed with free(), resized with
 * realloc(), as before.
 *
 * If that cannot be done with all of them, since one leads to the stack or to memory from elsewhere,
 * or since the container is full, the commit fails with EINVAL or ENOSPC, names the pointer, and
 * nothing has changed. What becomes of pointers to freed memory says enum pm_freed_pointers.
 *
 * What code compiled by other compilers stores into the heap or into variables is not seen, nor what
 * an integer or a file hides of a pointer, nor the stacks of coroutines. See docs/pmcc.md.
 *
 * The idea: SoftPM (Guerra et al., USENIX ATC 2012, section 3.3); LIBPM (Marmol 2017, listing 6.1).
 */

/**
 * Commits do not follow the pointer at `field`, which is 8 bytes in a container that is PM_DISCOVER,
 * or on the volatile heap, until pm_include(): the program may keep there what cannot be moved, and
 * a container that is opened again has NULL there. The field stays excluded as its object moves, and
 * until that is freed. A rollback has it where it was, be it freed or detached since, and sets it to
 * what it was at the last commit. EINVAL if it is in neither or not aligned to 8, ENOMEM.
 * pm_include() also if it is not excluded. Linear in the fields that are excluded, as is each commit.
 * Thread-safe.
 */
PM_EXPORT int pm_exclude(void *field);
PM_EXPORT int pm_include(void *field);

/**
 * The reverse of discovery: the object that begins at `ptr`, in a container that is PM_DISCOVER, and
 * all that the container leads to only by way of it, are objects of the volatile heap from now on,
 * and free in the container, with the open transaction. All pointers to them are redirected. Returns
 * the object's new address, to be freed with free(). Take it out of the structure that it is in
 * first: while anything else in the container, or the root, leads to it that is EINVAL, and a
 * message names the pointer. (A pointer to where one object ends and another begins counts as one to
 * the other.) Other errors as a commit's that moves objects, and ENOMEM; nothing has
 * changed then. pm_rollback() brings the objects in the container back, but leaves those on the heap
 * and pointers outside the container as they are. Linear in the container, the heap, the variables
 * and the stack. No other thread may use the container meanwhile.
 */
PM_EXPORT void *pm_detach(void *ptr);

/**
 * What the calling thread allocates by malloc() and its kin, in code compiled by `pmcc --discover`,
 * is from `c` from now on, so that nothing need be moved; NULL: from the volatile heap again. Until
 * `c` is closed by this thread; another must not close it. EROFS if it is read-only. Constant.
 */
PM_EXPORT int pm_set_current(pm_container *c);

/* ---------------------------------------------------------------------------------------------
 * Compaction
 */

/** How much room a container takes for what it holds. */
struct pm_space {
    uint64_t object_bytes; /* of objects; of each what pm_usable_size() says */
    uint64_t data_bytes;   /* of the segments that hold objects */
    uint64_t file_bytes;   /* of the file */
    double fragmentation;  /* 1 - object_bytes / data_bytes: the share of these segments that no
                              object uses; 0 if there are none */
};

/** What pm_compact() has done. */
struct pm_compacted {
    size_t size; /* in: sizeof(struct pm_compacted); the call fills no more than that */

    uint64_t objects_moved;
    uint64_t bytes_moved;         /* of these objects */
    uint64_t pointers_redirected; /* the root among them */
    uint64_t segments_freed;      /* that held objects, and do no more */
    uint64_t commits;             /* transactions that moved objects */
    struct pm_space before, after;
};

/** Told of an object that has moved: where it began, where it begins now, and its usable bytes. */
typedef void pm_moved(void *context, void *from, void *to, size_t bytes);

/**
 * Move objects together, so that they fill as few segments as possible at the beginning of the
 * file; redirect every pointer to them, and the root; give segments that are empty then back to the
 * container, and the end of the file to the file system. For a container that has been larger.
 *
 * All pointers into the container must be in its pointer map, so it must be PM_MOVABLE. What of
 * these led to an object, into it, or just past its end, does so afterwards. All others, such as
 * **pointers that the program keeps outside** (in variables, on the heap, in other containers, as
 * keys of hash tables), are invalid then. Get them anew from pm_getroot(), or have them follow:
 * `moved`, unless NULL, is called with `context` for each object that has moved, when that is
 * durable. A pointer p with from <= p <= from + bytes should be p - from + to from then on. An
 * object may move more than once; the calls come in order. `moved` must not call libpm for this
 * container, nor read at `from`.
 *
 * The call commits: first the open transaction, as pm_commit() does, then its own, each with some
 * of the moves. To the program these change nothing but addresses. So a crash meanwhile leaves some
 * objects moved and all else as it was, and so does a failure; another call goes on. pm_rollback()
 * undoes none of it. The log takes about an eighth of the file, or 16 MiB, if there is room for it,
 * else what there is room for. Nothing else takes any, so a full container can be compacted.
 *
 * No other thread may use the container, or pointers into it, until this returns. Linear in the
 * objects and their bytes, and for each of its transactions, a dozen or as many as the log makes
 * of it, in all mapped pointers.
 *
 * `result`, NULL or with its `size` set, tells what has been done, also by a call that fails with
 * ENOSPC, ENOMEM or EIO when its own transactions have begun.
 *
 *   EINVAL   `c` is NULL, or the size of `result` is 0 or none that we know
 *   ENOTSUP  the container is not PM_MOVABLE: nobody knows where all of its pointers are
 *   EBADMSG  damaged, as pm_check() says, so nothing was moved. (Pointers may lead anywhere)
 *   ENOSPC   the log has no room to move even a single object
 *   ENOMEM   no memory for tables, or the kernel does not unmap the end of the file
 *   and others as pm_commit()
 */
PM_EXPORT int pm_compact(pm_container *c, pm_moved *moved, void *context,
                         struct pm_compacted *result);

/* ---------------------------------------------------------------------------------------------
 * Copies
 */

/** Told how many of `total` bytes have been copied; both may grow. Not 0: stop. */
typedef int pm_progress(void *context, uint64_t done, uint64_t total);

/**
 * Copy the last commit of `c` to a new file at `path`: a complete container, closed, and durable when
 * this returns. The program goes on meanwhile, in other threads or in `progress`: it may allocate,
 * store, commit and roll back. The copy has one commit whole, and nothing of the open transaction. It
 * is the last commit before the copying ends, perhaps one of pm_commit_async() that nobody has waited
 * for. `c` may be read-only. Never copy the file of an open container by other means: see
 * PM_ACCEPT_COPY.
 *
 * The file appears at `path` when it is complete, and replaces none. After a failure, or a crash,
 * nothing is left of it. (On a file system without O_TMPFILE a crash may leave PATH.new-*.) The file
 * has the original's permissions, but for the umask.
 *
 * `progress`, unless NULL, is called with `context` after each MiB or so. It may use `c`, but not close,
 * compact or copy it.
 *
 * Linear in the container, without free space and log. There is one pause, in which commits wait, and
 * first stores to a page. It copies pages in memory, for about 1 us each. These are the pages that
 * commits changed during the last pass over the changes, mostly 256 at most. Under undo there are also
 * the pages to which the open transaction has stored. Beside a thread that commits without end the
 * pause was 0.1 ms with 10 pages a commit, and 0.9 ms with 1000 (docs/reliability.md). Commits to the
 * same disk also wait for the disk.
 *
 *   EINVAL     `c` or `path` is NULL
 *   EEXIST     there is a file at `path`
 *   EBUSY      another copy of `c` is being made. pm_close() and pm_compact() fail so meanwhile
 *   ECANCELED  `progress` asked for it
 *   ENOSPC, ENOMEM, EIO, EACCES and others from open(2), fallocate(2), write(2), fsync(2), linkat(2)
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

    uint64_t epoch;     /* number of the open transaction; grows by one with each commit, and by a
                           few more in pm_compact() */
    uint64_t commits;   /* that changed something */
    uint64_t rollbacks; /* */

    uint64_t rounds;        /* batches of write-backs, by faults and commits together */
    uint64_t fences;        /* store fences executed, or fdatasync(2) calls; undo on a file: 0 */
    uint64_t lines_flushed; /* lines of 64 bytes written back or carried home, but for those of
                               bytes_logged; on a file, in pages of 64 */
    uint64_t bytes_logged;  /* written to the log: pre-images, descriptors, records; and what is
                               counted in bytes_fresh */
    uint64_t faults;        /* stores caught by page protection */
    uint64_t pages_logged;  /* pre-images taken at a first store or by pm_dirty() */
    uint64_t pages_ahead;   /* pre-images taken by a commit, of pages that stay writable */
    uint64_t pages_evicted; /* pages closed early: the kernel's map limit, or private_max */
    uint64_t lines_logged;  /* redo: cache lines whose new contents records had */
    uint64_t bytes_fresh;   /* redo: written straight home, for nothing committed was there */
    uint64_t pages_private; /* redo: pages of which this process may have a copy now */
    uint64_t pages_open;    /* logged for the open transaction, whether by it or ahead */

    uint64_t file_bytes;    /* size of the file now */
    uint64_t segments_data; /* segments that hold objects now */
    uint64_t segments_log;  /* segments of the log now */
    uint64_t segments_map;  /* segments of the pointer map now */
    uint64_t segments_free; /* segments of the file free now */

    uint64_t recovery_ns;     /* time pm_open() spent on recovery; 0 after a clean close */
    uint64_t pointers_moved;  /* since the container's addresses were taken: by pm_open(), or as
                                 pages were touched */
    uint64_t pointers_freed;  /* led to freed memory and became data, see PM_FREED_DATA */
    uint64_t touches;         /* accesses caught to make pages of a container that lies elsewhere */
    uint64_t recovered_pages; /* pre-images that recovery copied back */
    bool recovered;           /* the last writer had not closed the container */
    bool power_safe;          /* commits survive power failure on this medium */
    bool movable;             /* may be moved to other addresses, see PM_MOVABLE */
    bool moved;               /* pages are made at the first access to each, see PM_MOVABLE */
    const void *base;         /* where it lies in memory */
    const char *medium;       /* "pmem" or "file"; static */
    const char *engine;       /* "undo" or "redo"; static */
    const char *tracker;      /* "faults" or "stores"; static */
};

/** Fill `stats`, whose `size` the caller has set; EINVAL if that is 0. Linear in the segments. */
PM_EXPORT int pm_stats(pm_container *c, struct pm_stats *stats);

/**
 * The first object behind the one at `previous`, or the very first if that is NULL; NULL when there
 * are no more. In order of address. Fills `*size`, unless NULL, with its usable bytes. For
 * statistics, and for programs that look for what they forgot to free:
 *
 *     size_t size;
 *     for (void *p = NULL; (p = pm_next_object(c, p, &size)) != NULL;) ...
 *
 * Objects may come and go meanwhile; `previous` need not be one any more. Owned by the container.
 * NULL with EINVAL if `previous` is not in `c`; errno is otherwise untouched. Thread-safe. Linear in
 * the slots and segments that it passes, so a walk of all is linear in the container.
 */
PM_EXPORT void *pm_next_object(pm_container *c, const void *previous, size_t *size);

/**
 * Where the first mapped pointer in [from, end) is, see pm_mark_pointer(); NULL if there is none.
 * EINVAL if that is not all in one container; errno is otherwise untouched. Thread-safe. Linear in
 * the bytes / 448.
 */
PM_EXPORT void **pm_next_pointer(const void *from, const void *end);

/**
 * Check everything on the medium that can be checked: both headers, the segment table, bitmaps,
 * pointer map, log, root, that the volatile tables agree, and where each mapped pointer leads. It must
 * lead into the container, or into a module that a commit has noted; or it is NULL or the like of it:
 * below 4096, or above -4096 as MAP_FAILED. Linear in the bitmaps and the pointers. EBADMSG with the first offence in pm_errormsg(). Holds the
 * allocator's lock meanwhile. Words to which code compiled by pmcc has stored since the last commit
 * count as what the next one will make of them.
 */
PM_EXPORT int pm_check(pm_container *c);

/** What the last call that failed in this thread has to say; "" if none has. Owned by the thread.
 */
PM_EXPORT const char *pm_errormsg(void);

/** "MAJOR.MINOR.PATCH" of the library linked, to compare with PM_VERSION_*. Static. */
PM_EXPORT const char *pm_version(void);

#ifdef __cplusplus
}
#endif

#include "libpm_type.h"
#endif
