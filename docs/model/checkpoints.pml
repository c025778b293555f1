/*
 * The log engine's checkpoints of the map: images, roots, the word that names a root, and the recovery from
 * it (K1 to K4 of docs/internals/log.md). Of the log there is only what checkpoints need: log.pml has its
 * own rules. README.md says what is abstracted, and how to run it.
 *
 * Two copies of all that is in the file. `c` is the cache, which the death of the process spares. `m` is the
 * medium as the last fence left it. A power failure takes one or the other of each place.
 *
 *   B   a bitmap: whether the object is live. It is unit 0 of the map
 *   O   the object's contents, unit 1
 *
 * A unit has one line. What the map says of it is its entry: a slot of the file, NONE, or LEFT. A record is
 * one slot. It has a piece of B, a piece of O, or both. The contents of a piece are the record's epoch. The
 * cleaner moves a piece without a change. The map sees no difference to a store, so a store stands for both.
 *
 * A chunk has two records, or the images and the root of one checkpoint. The image of unit u is in slot u. A
 * chunk's header is two words: its kind, and the epoch in which it was begun. Each may be durable alone.
 *
 * What a recovery does not count never counts again: generations and seals see to it (L3 to L5). So when the
 * container opens, it is erased here.
 */

#ifndef COMMITS
#define COMMITS 4 /* that may be begun, with the one that is there at the start */
#endif
#ifndef CRASHES
#define CRASHES 1 /* a close is one, too */
#endif
#ifndef CHUNKS
#define CHUNKS 4 /* 3 or 4 */
#endif
#ifndef ROUND_MAX
#define ROUND_MAX 2 /* commits that one fence makes durable, at most */
#endif
#ifndef LOST
#define LOST 0 /* checkpoints that may be abandoned or given up */
#endif
#define ALL_SLOTS (CHUNKS * 2)

#define B 0
#define O 1

#define NOWHERE 7 /* no chunk */

/* What the map says of a unit: a slot, or one of these. */
#define NONE 14
#define LEFT 15 /* no piece counts, and the log may have some */
#define HAS_PLACE(entry) ((entry) < NONE)
#define CHUNK_OF(entry)  ((entry) / 2)

/* A record, or an image of a unit's entry. 0: nothing, or it is torn. */
#define EPOCH(slot)  ((slot) & 7)
#define HAS_B        (1 << 6)
#define HAS_O        (1 << 7)
#define OWNED        (1 << 8) /* the bitmap says that the object is live */
#define RECORD       (1 << 9)
#define IMAGE        (1 << 10)
#define ENTRY(image) ((image) >> 3 & 15)
#define IS_OWNED     ((c_slot[entry[B]] & OWNED) != 0)

/* A root: its epoch, where the records of each chunk end, the chunk of each unit's image, and the map as its
 * sum. The sum does not know what is left. */
#define ENDS(root, ch)        ((root) >> (3 + 2 * (ch)) & 3)
#define WITH_END(ch, slots)   ((slots) << (3 + 2 * (ch)))
#define IMAGE_OF(root, u)     ((root) >> (13 + 3 * (u)) & 7)
#define WITH_IMAGE(u, ch)     ((ch) << (13 + 3 * (u)))
#define SUM(root)             ((root) >> 19 & 255)
#define SUM_OF(b, o)          ((b) | ((o) == LEFT -> NONE : (o)) << 4)

/* A chunk's header. */
#define VOID              0
#define RECORDS           1
#define IMAGES            2
#define HEAD(kind, begun) ((kind) | (begun) << 2)
#define KIND(head)        ((head) & 3)
#define BEGUN(head)       ((head) >> 2)

/* ---- what the crash leaves, and what it does not ---------------------------------------------- */

short c_slot[ALL_SLOTS], m_slot[ALL_SLOTS];
int c_root[CHUNKS], m_root[CHUNKS];
byte c_head[CHUNKS], m_head[CHUNKS];
byte c_base, m_base; /* an epoch that is durable for certain */
byte c_word, m_word; /* the chunk with the root that the state page names, or NOWHERE */

byte epoch, durable;
byte entry[2]; /* the map */
byte use[CHUNKS];
byte end[CHUNKS]; /* slots with records */

#define FREE   0
#define USED   1 /* has records */
#define HELD   2 /* has images */
#define DEAD   3 /* its last piece was taken by a commit */
#define LATER  4 /* that is durable, but perhaps not what says so */
#define VOIDED 5 /* free after the next fence */

byte phase;             /* as in struct checkpoint, and so are the others */
byte at_epoch;          /* the checkpoint's commit */
byte unit[2];
byte ahead[2];          /* an image in memory: the entry, and one; 0: none */
byte named[2], next[2]; /* the chunk of each unit's image, or NOWHERE */
byte named_root;        /* the chunk with the root */
byte room;              /* the chunk of the images that are being written, or NOWHERE */
int root;               /* to be written */

#define IDLE    0
#define WRITING 1
#define WRITTEN 2
#define NAMED   3

#define CHANGED 0
#define AWAITED 1
#define IMAGED  2
#define SAVED   3

/* The states that a crash may lead to: of the last commit known to be durable, and of all since. */
byte states[ROUND_MAX + 1];
byte commits, crashes, lost;
bool fails; /* the power, and not only the process */

/* What a commit is about to do. */
short record;
byte to; /* the chunk */

/* What recovery found. */
byte valid[CHUNKS], start[CHUNKS], found, loaded, needed;
byte at[2], newest[2], whole[2], whole_found;
bool reads; /* the checkpoint */

/* Scratch, zero between steps. */
byte i, j, u, e;
bool ok;
int slot;

#define CLEAR_SCRATCH i = 0; j = 0; u = 0; e = 0; ok = false; slot = 0

/* Epochs of the pieces that count, and whether the object is live. */
#define STATE(b, o, owned) ((b) | (o) << 3 | (owned) << 6)
#define CONTENTS(u)        (HAS_PLACE(entry[u]) -> EPOCH(c_slot[entry[u]]) : 0)

#define MAY_CRASH (crashes < CRASHES)
#define DIE_HERE  if :: MAY_CRASH -> goto crash :: true fi
#define FAIL_HERE if :: atomic { MAY_CRASH -> fails = true; goto crash } :: true fi

/* ---- the medium ------------------------------------------------------------------------------- */

inline fence_medium()
{
    for (i : 0 .. ALL_SLOTS - 1) { m_slot[i] = c_slot[i] }
    for (i : 0 .. CHUNKS - 1) { m_head[i] = c_head[i]; m_root[i] = c_root[i] }
    m_base = c_base; m_word = c_word; i = 0
}

/* Nobody can read it any more. */
inline erase(ch)
{
    c_slot[ch * 2] = 0; c_slot[ch * 2 + 1] = 0; c_root[ch] = 0;
    m_slot[ch * 2] = 0; m_slot[ch * 2 + 1] = 0; m_root[ch] = 0
}

/* The only place that may be written twice between two fences. */
inline write_word(what)
{
    if :: true :: c_word != m_word && MAY_CRASH -> m_word = c_word fi;
    c_word = what
}

#define IS_READ(ch) (KIND(c_head[ch]) == RECORDS || KIND(c_head[ch]) == IMAGES && (needed >> (ch) & 1))

/* What was written since the last fence is there or not, and what has several lines may be torn. That is
 * decided only now, and only where a recovery will look. A failure between two writes is the same as one
 * after both that loses the second. */
inline lose_word()
{
    if :: true :: c_word != m_word -> c_word = m_word fi;
    c_base = m_base; /* if not, recovery knows no more than the records say */
    needed = 0;
    if
    :: c_word != NOWHERE ->
        if
        :: true
        :: c_root[c_word] != m_root[c_word] -> c_root[c_word] = m_root[c_word]
        :: c_root[c_word] != m_root[c_word] -> c_root[c_word] = 0
        fi;
        needed = 1 << c_word | 1 << IMAGE_OF(c_root[c_word], B) | 1 << IMAGE_OF(c_root[c_word], O)
    :: else
    fi
}

/* Images that no root needs are like no images. */
#define MAY_LOSE_HEAD(ch) (c_head[ch] != m_head[ch] && \
    (KIND(c_head[ch]) == RECORDS || KIND(m_head[ch]) == RECORDS || (needed >> (ch) & 1)))
#define BEGUN_DIFFERS(ch) (BEGUN(c_head[ch]) != BEGUN(m_head[ch]))

inline lose_head(ch)
{
    if
    :: MAY_LOSE_HEAD(ch) ->
        if
        :: true
        :: c_head[ch] = m_head[ch]
        :: BEGUN_DIFFERS(ch) -> c_head[ch] = HEAD(KIND(c_head[ch]), BEGUN(m_head[ch]))
        :: BEGUN_DIFFERS(ch) -> c_head[ch] = HEAD(KIND(m_head[ch]), BEGUN(c_head[ch]))
        fi
    :: else
    fi
}

inline lose_slot(s)
{
    if
    :: true
    :: c_slot[s] != m_slot[s] && IS_READ(s / 2) -> c_slot[s] = m_slot[s]
    :: c_slot[s] != m_slot[s] && IS_READ(s / 2) && m_slot[s] != 0 -> c_slot[s] = 0
    fi
}

/* ---- checkpoints ------------------------------------------------------------------------------ */

/* K1: a unit is about to change. */
inline touch(un)
{
    if
    :: unit[un] == AWAITED ->
#ifndef MUTANT_IMAGE_LATE
        next[un] = NOWHERE;
        if :: entry[un] != NONE -> ahead[un] = entry[un] + 1 :: else fi;
#endif
        unit[un] = CHANGED
#ifdef MUTANT_IMAGE_KEPT
    :: unit[un] == SAVED
#endif
    :: else -> unit[un] = CHANGED
    fi
}

/* A checkpoint of the last commit. `moves`: images that would do are written again, to free their chunk. */
inline begin(moves)
{
    d_step {
        at_epoch = epoch - 1;
        root = at_epoch | SUM_OF(entry[B], entry[O]) << 19;
#ifndef MUTANT_ENDS_LATE
        for (i : 0 .. CHUNKS - 1) { root = root | WITH_END(i, end[i]) }
#endif
        for (i : 0 .. 1) {
            next[i] = named[i];
            if :: unit[i] == CHANGED || moves -> unit[i] = AWAITED :: else fi
        }
        i = 0;
        phase = WRITING;
        printf("checkpoint of %d\n", at_epoch)
    }
}

#define HAS_TO_WRITE(un) (ahead[un] != 0 || unit[un] == AWAITED)

inline take_room()
{
    if
    :: room == NOWHERE ->
        i = 0;
        do
        :: use[i] == FREE -> break
        :: else -> i++
        od;
        c_head[i] = HEAD(IMAGES, 0); /* nobody asks when it was begun */
        use[i] = HELD;
        room = i; i = 0
    :: else
    fi
}

inline write_image(un)
{
    d_step {
        e = (ahead[un] != 0 -> ahead[un] - 1 : entry[un]);
        if
        :: e == NONE -> next[un] = NOWHERE
        :: else ->
            take_room();
            c_slot[room * 2 + un] = IMAGE | at_epoch | e << 3;
            next[un] = room
        fi;
        printf("image of unit %d: %d\n", un, e);
        if :: ahead[un] == 0 -> unit[un] = IMAGED :: else fi;
        ahead[un] = 0; e = 0
    }
}

/* K3 */
#ifdef MUTANT_BEGUN_KEPT
#define VOID_HEAD(ch) HEAD(VOID, BEGUN(c_head[ch]))
#else
#define VOID_HEAD(ch) HEAD(VOID, 0)
#endif

/* In the code the next commit does so. */
inline make_void(ch)
{
    printf("chunk %d is void\n", ch);
    c_head[ch] = VOID_HEAD(ch);
    use[ch] = VOIDED; end[ch] = 0
}

/* Nobody needs the images of other chunks. */
inline leave_chunks(b, o, r)
{
    for (i : 0 .. CHUNKS - 1) {
        if :: use[i] == HELD && i != (b) && i != (o) && i != (r) -> make_void(i) :: else fi
    }
    i = 0
}

inline write_root()
{
    d_step {
        take_room();
#ifdef MUTANT_ENDS_LATE
        for (i : 0 .. CHUNKS - 1) { root = root | WITH_END(i, end[i]) }
        i = 0;
#endif
        c_root[room] = root | WITH_IMAGE(B, next[B]) | WITH_IMAGE(O, next[O]);
        root = 0;
        phase = WRITTEN;
        printf("root in chunk %d\n", room);
#ifdef MUTANT_IMAGES_LEFT
        leave_chunks(next[B], next[O], room);
#endif
#ifdef MUTANT_NAMED_EARLY
        name()
#endif
    }
}

inline forget_checkpoint()
{
    phase = IDLE; at_epoch = 0; root = 0; room = NOWHERE;
    for (i : 0 .. 1) { ahead[i] = 0; next[i] = NOWHERE }
    i = 0
}

/* Nobody will read what was written of it. */
inline abandon()
{
    d_step {
        for (i : 0 .. 1) { if :: unit[i] == AWAITED || unit[i] == IMAGED -> unit[i] = CHANGED :: else fi }
        if :: room != NOWHERE -> erase(room) :: else fi;
        forget_checkpoint();
        leave_chunks(named[B], named[O], named_root);
        printf("abandoned\n")
    }
}

inline name()
{
    c_word = room;
    phase = NAMED;
    printf("named\n");
#ifdef MUTANT_RETIRED_EARLY
    retire()
#endif
}

/* K4: the checkpoint is named, durably. */
inline retire()
{
    for (i : 0 .. 1) {
        named[i] = next[i];
        if :: unit[i] == IMAGED -> unit[i] = SAVED :: else fi
    }
    named_root = room;
    forget_checkpoint();
    leave_chunks(named[B], named[O], named_root)
}

inline give_up()
{
    d_step {
        for (i : 0 .. 1) { named[i] = NOWHERE; unit[i] = CHANGED }
        named_root = NOWHERE;
        forget_checkpoint();
        leave_chunks(NOWHERE, NOWHERE, NOWHERE);
        printf("given up\n")
    }
}

/* After a power failure. */
inline forget_unread()
{
    for (i : 0 .. CHUNKS - 1) {
        if
        :: !IS_READ(i) -> erase(i); c_head[i] = (KIND(c_head[i]) == IMAGES -> VOID : c_head[i])
        :: else
        fi
    }
    needed = 0; i = 0
}

/* ---- fences, and what they allow -------------------------------------------------------------- */

#define HAS_IMAGES(ch) (c_root[ch] != 0 || ((c_slot[(ch) * 2] | c_slot[(ch) * 2 + 1]) & IMAGE))

/* All commits so far are durable. In the code the next record says so, or the base; here the base does, from
 * the next fence on. A checkpoint goes on at once, in the code at the next commit. */
inline fence()
{
    d_step {
        fence_medium();
        c_base = epoch - 1;
        for (i : 0 .. CHUNKS - 1) {
            if
            :: use[i] == DEAD -> use[i] = LATER /* L8 */
            :: use[i] == LATER -> make_void(i)  /* L9 */
            :: use[i] == VOIDED -> /* L10 */
                use[i] = FREE;
                if :: HAS_IMAGES(i) -> erase(i) :: else fi
            :: else
            fi
        }
        states[0] = states[epoch - 1 - durable];
        for (i : 1 .. ROUND_MAX) { states[i] = 0 }
        i = 0;
        durable = epoch - 1;
        printf("fence: durable up to %d\n", durable);
        if
        :: phase == NAMED -> retire()
        :: phase == WRITTEN -> name() /* K2 */
        :: else
        fi
    }
}

/* ---- commit ----------------------------------------------------------------------------------- */

#define HAS_SLOT(ch) (use[ch] == USED && end[ch] < 2)
#define LIVE(ch) (CHUNK_OF(entry[B]) == (ch) || HAS_PLACE(entry[O]) && CHUNK_OF(entry[O]) == (ch))

/* L14: the object is free after the commit. */
#define DROPS ((record & HAS_B) && !(record & OWNED) && HAS_PLACE(entry[O]))

inline write_record()
{
    d_step {
        if :: record & HAS_B -> touch(B) :: else fi;
        if :: (record & HAS_O) || DROPS -> touch(O) :: else fi;
        i = to * 2 + end[to];
        c_slot[i] = RECORD | record | epoch;
        if
        :: record & HAS_O -> entry[O] = i
        :: !(record & HAS_O) && DROPS -> entry[O] = LEFT
        :: else
        fi;
        if :: record & HAS_B -> entry[B] = i :: else fi;
        end[to]++;
        for (j : 0 .. CHUNKS - 1) { if :: use[j] == USED && !LIVE(j) -> use[j] = DEAD :: else fi }
        states[epoch - durable] = STATE(CONTENTS(B), CONTENTS(O), IS_OWNED);
        printf("commit %d in slot %d: b %d o %d live %d\n", epoch, i, (record & HAS_B) != 0,
               (record & HAS_O) != 0, IS_OWNED);
        epoch++;
        record = 0; to = 0;
        CLEAR_SCRATCH
    }
}

/* ---- recovery --------------------------------------------------------------------------------- */

/* Entries of the checkpoint; whether it is whole: in ok. */
inline load()
{
    slot = c_root[c_word];
    ok = (KIND(c_head[c_word]) == IMAGES && slot != 0);
    loaded = EPOCH(slot);
    needed = 1 << c_word;
    for (u : 0 .. 1) {
        j = IMAGE_OF(slot, u);
        at[u] = NONE;
        if
        :: ok && j != NOWHERE ->
            needed = needed | 1 << j;
            ok = (KIND(c_head[j]) == IMAGES && (c_slot[j * 2 + u] & IMAGE) &&
                  EPOCH(c_slot[j * 2 + u]) <= loaded);
            at[u] = ENTRY(c_slot[j * 2 + u])
        :: else
        fi
    }
    ok = ok && SUM_OF(at[B], at[O]) == SUM(slot);
#ifdef MUTANT_LEFT_FORGOTTEN
    if :: at[O] == LEFT -> at[O] = NONE :: else fi;
#endif
    for (j : 0 .. CHUNKS - 1) {
#ifdef MUTANT_ENDS_ONLY
        start[j] = ENDS(slot, j)
#else
        if
        :: BEGUN(c_head[j]) != 0 && BEGUN(c_head[j]) <= loaded -> start[j] = ENDS(slot, j)
        :: else
        fi
#endif
    }
    u = 0; j = 0; slot = 0
}

/* K3: what the map of the checkpoint knows is of an earlier life of the chunk. */
#ifdef MUTANT_EARLIER_LIFE
#define IS_NEW(record) true
#else
#define IS_NEW(record) (EPOCH(record) > loaded)
#endif

/* Each chunk from its start. What counts, from there on, is valid. */
inline walk()
{
    found = (c_base > loaded -> c_base : loaded);
    for (j : 0 .. CHUNKS - 1) {
        ok = (KIND(c_head[j]) == RECORDS);
        valid[j] = (ok -> start[j] : 0);
        u = 0;
        for (i : 0 .. 1) {
            slot = c_slot[j * 2 + i];
            ok = ok && (i < start[j] || (slot & RECORD) && EPOCH(slot) > u);
            if
            :: ok && i >= start[j] ->
                valid[j] = i + 1;
                u = EPOCH(slot)
            :: else
            fi
        }
    }
    /* L2 */
    do
    :: true ->
        ok = false;
        for (i : 0 .. ALL_SLOTS - 1) {
            ok = ok || i % 2 >= start[i / 2] && i % 2 < valid[i / 2] && EPOCH(c_slot[i]) == found + 1
        }
        if :: ok -> found++ :: else -> break fi
    od;
    for (i : 0 .. ALL_SLOTS - 1) {
        if
        :: i % 2 >= start[i / 2] && i % 2 < valid[i / 2] && EPOCH(c_slot[i]) > found -> valid[i / 2] = i % 2
        :: else
        fi
    }
    CLEAR_SCRATCH
}

/* The newest piece wins; that of the checkpoint is older than all. */
inline find_entries()
{
    newest[B] = 0; newest[O] = 0;
    for (i : 0 .. ALL_SLOTS - 1) {
        slot = c_slot[i];
        if
        :: i % 2 >= start[i / 2] && i % 2 < valid[i / 2] && IS_NEW(slot) ->
            ok = true;
            if :: (slot & HAS_B) && EPOCH(slot) > newest[B] -> newest[B] = EPOCH(slot); at[B] = i :: else fi;
            if :: (slot & HAS_O) && EPOCH(slot) > newest[O] -> newest[O] = EPOCH(slot); at[O] = i :: else fi
        :: else
        fi
    }
    if
    :: ok && HAS_PLACE(at[B]) && !(c_slot[at[B]] & OWNED) && HAS_PLACE(at[O]) -> at[O] = LEFT
    :: else
    fi;
    newest[B] = 0; newest[O] = 0;
    CLEAR_SCRATCH
}

inline forget_recovery()
{
    for (i : 0 .. 1) { at[i] = 0 }
    for (i : 0 .. CHUNKS - 1) { valid[i] = 0; start[i] = 0 }
    i = 0; found = 0; loaded = 0; needed = 0
}

/* What the log says without a checkpoint. */
inline recover_whole()
{
    forget_recovery();
    at[B] = NONE; at[O] = NONE;
    walk();
    find_entries()
}

#define FOUND(un)   (HAS_PLACE(at[un]) -> EPOCH(c_slot[at[un]]) : 0)
#define FOUND_OWNED ((c_slot[at[B]] & OWNED) != 0)

/* The claims: the log by itself leads to a state that the crash may lead to. No crash damages a checkpoint.
 * With it recovery finds what it finds without, and perhaps more that is left. With NOTICED a checkpoint may
 * be damaged: then recovery reads the whole log, as the code does. */
inline check()
{
    recover_whole();
    printf("recovered: epoch %d, b %d o %d\n", found, at[B], at[O]);
    assert(found >= durable && found < epoch && HAS_PLACE(at[B]));
    assert(states[found - durable] == STATE(FOUND(B), FOUND(O), FOUND_OWNED));
    if
    :: c_word != NOWHERE ->
        whole_found = found; whole[B] = at[B]; whole[O] = at[O];
        forget_recovery();
        load();
        printf("checkpoint of epoch %d: b %d o %d\n", loaded, at[B], at[O]);
#ifdef NOTICED
        if :: ok -> walk(); find_entries() :: else -> reads = false; recover_whole() fi;
#else
        assert(ok);
        walk();
        find_entries();
#endif
        printf("with it: epoch %d, b %d o %d\n", found, at[B], at[O]);
        assert(found == whole_found && at[B] == whole[B]);
        assert(at[O] == whole[O] || at[O] == LEFT && whole[O] == NONE);
        whole_found = 0; whole[B] = 0; whole[O] = 0;
        if :: !reads -> recover_whole() :: else fi
    :: else
    fi
}

/* What nobody reads any more is erased. */
inline erase_rest()
{
    for (i : 0 .. CHUNKS - 1) {
        for (j : 0 .. 1) {
            if
            :: KIND(c_head[i]) == RECORDS && j < valid[i]
            :: KIND(c_head[i]) == IMAGES && IMAGE_OF(c_root[named_root], j) == i
            :: else -> c_slot[i * 2 + j] = 0
            fi
        }
        if :: i != named_root -> c_root[i] = 0 :: else fi
    }
    i = 0; j = 0
}

/* The states of chunks, and of units: those that have changed since the checkpoint await another image. */
inline open_container()
{
    d_step {
        named_root = (reads -> c_word : NOWHERE);
        erase_rest();
        fence_medium();
        epoch = found + 1; durable = found;
        entry[B] = at[B]; entry[O] = at[O];
        states[0] = STATE(CONTENTS(B), CONTENTS(O), IS_OWNED);
        for (i : 0 .. CHUNKS - 1) {
            end[i] = valid[i];
            use[i] = (KIND(c_head[i]) == IMAGES -> HELD :
                      (KIND(c_head[i]) == VOID -> FREE : (LIVE(i) -> USED : LATER)))
        }
        forget_checkpoint();
        named[B] = NOWHERE; named[O] = NOWHERE;
        if
        :: named_root != NOWHERE ->
            load();
            for (i : 0 .. 1) {
                named[i] = IMAGE_OF(c_root[named_root], i);
                unit[i] = (at[i] == entry[i] -> SAVED : CHANGED)
            }
        :: else
        fi;
        printf("open\n");
        forget_recovery();
        CLEAR_SCRATCH;
        reads = false
    }
}

inline forget_memory()
{
    for (i : 0 .. 1) { entry[i] = 0; unit[i] = 0; ahead[i] = 0; named[i] = 0; next[i] = 0 }
    for (i : 0 .. CHUNKS - 1) { use[i] = 0; end[i] = 0 }
    record = 0; to = 0; phase = 0; at_epoch = 0; named_root = 0; room = 0; root = 0; reads = false
}

/* The run ends here. All that end are one state. */
inline forget_file()
{
    for (i : 0 .. CHUNKS - 1) { c_head[i] = 0; erase(i) }
    c_base = 0; c_word = 0;
    fence_medium();
    forget_recovery();
    for (i : 0 .. ROUND_MAX) { states[i] = 0 }
    i = 0; epoch = 0; durable = 0; commits = 0; lost = 0; reads = false
}

/* ---- the container's life --------------------------------------------------------------------- */

#define ANY_USE(what) (use[0] == what || use[1] == what || use[2] == what || use[CHUNKS - 1] == what)
#define MAY_WRITE     (phase == WRITING && (room != NOWHERE || ANY_USE(FREE)))
#define IS_CHANGED    (unit[B] == CHANGED || unit[O] == CHANGED)
#define IS_SAVED      (unit[B] == SAVED || unit[O] == SAVED)

/* A fence changes something. */
#define MAY_FENCE \
    (durable < epoch - 1 || phase == WRITTEN || phase == NAMED || ANY_USE(VOIDED) || ANY_USE(LATER))

active proctype container()
{
    d_step {
        /* Commit 1 has stored to both units. */
        c_slot[0] = RECORD | HAS_B | HAS_O | OWNED | 1;
        c_head[0] = HEAD(RECORDS, 1);
        c_base = 1; c_word = NOWHERE;
        fence_medium();
        commits = 1; epoch = 2; durable = 1;
        use[0] = USED; end[0] = 1;
        states[0] = STATE(1, 1, 1);
        named_root = NOWHERE; named[B] = NOWHERE; named[O] = NOWHERE;
        forget_checkpoint()
    }

running:
    atomic {
        if
        :: commits < COMMITS && epoch - 1 - durable < ROUND_MAX ->
            if /* the bitmap is one for more objects */
            :: !IS_OWNED -> record = HAS_B
            :: IS_OWNED -> record = HAS_O
            :: IS_OWNED -> record = HAS_B | HAS_O | OWNED
            :: IS_OWNED -> record = HAS_B
            :: !IS_OWNED -> record = HAS_B | HAS_O | OWNED
            :: !IS_OWNED && entry[O] == NONE -> record = HAS_B | OWNED
            fi;
            if
            :: HAS_SLOT(0) -> to = 0
            :: HAS_SLOT(1) -> to = 1
            :: HAS_SLOT(2) -> to = 2
#if CHUNKS > 3
            :: HAS_SLOT(3) -> to = 3
#endif
            :: ANY_USE(FREE) ->
                do
                :: use[to] == FREE -> break
                :: else -> to++
                od
            :: else -> record = 0; goto running
            fi;
            commits++;
            if
            :: use[to] == FREE ->
                c_head[to] = HEAD(RECORDS, epoch);
                use[to] = USED;
                DIE_HERE
            :: else
            fi;
            write_record();
            goto running
        :: MAY_FENCE -> fence(); goto running
        :: phase == IDLE && IS_CHANGED -> begin(false); goto running
        :: phase == IDLE && IS_CHANGED && IS_SAVED -> begin(true); goto running
        :: MAY_WRITE && HAS_TO_WRITE(B) -> write_image(B); goto running
        :: MAY_WRITE && !HAS_TO_WRITE(B) && HAS_TO_WRITE(O) -> write_image(O); goto running
        :: MAY_WRITE && !HAS_TO_WRITE(B) && !HAS_TO_WRITE(O) -> write_root(); goto running
        :: phase == WRITING && lost < LOST -> lost++; abandon(); goto running
        :: lost < LOST && (c_word != NOWHERE || phase != IDLE) -> lost++; goto giving_up
        :: MAY_CRASH -> goto crash
        :: MAY_CRASH -> fails = true; goto crash
        fi
    }

giving_up:
#ifndef MUTANT_GIVEN_UP_NAMED
    atomic { write_word(NOWHERE) };
    DIE_HERE;
#ifndef MUTANT_GIVEN_UP_UNFENCED
    FAIL_HERE;
    d_step { fence_medium() };
#endif
#endif
    give_up();
    goto running;

crash:
    atomic {
        if
        :: fails ->
            printf("POWER FAILURE\n");
            lose_word();
            for (j : 0 .. CHUNKS - 1) { lose_head(j) }
            for (j : 0 .. ALL_SLOTS - 1) { lose_slot(j) }
            j = 0;
            d_step { fails = false; forget_unread(); fence_medium() }
        :: !fails -> printf("PROCESS DIES\n")
        fi;
        d_step { crashes++; forget_memory(); CLEAR_SCRATCH; forget_recovery() }
        if
        :: reads = true
        :: MAY_CRASH && c_word != NOWHERE
        fi;
        d_step { check() }
        if
        :: MAY_CRASH
        :: !MAY_CRASH -> d_step { forget_file() }; goto done
        fi
    }
#ifndef MUTANT_OPENED_NAMED
    if :: !reads -> atomic { write_word(NOWHERE) } :: reads fi;
    DIE_HERE;
#endif
    /* L7: what was read is durable. So is the word that names what was read (K4). */
    FAIL_HERE;
#ifdef MUTANT_WORD_UNDURABLE
    d_step { e = m_word; fence_medium(); m_word = e; e = 0 };
#else
    d_step { fence_medium() };
#endif
    /* L5: what counts is sealed, and all else void. */
    d_step {
        for (i : 0 .. CHUNKS - 1) {
            if
            :: KIND(c_head[i]) == RECORDS && valid[i] > 0
            :: KIND(c_head[i]) == IMAGES && (needed >> i & 1)
#ifdef MUTANT_BEGUN_LEFT
            :: KIND(c_head[i]) == VOID
#endif
            :: else -> c_head[i] = 0
            fi
        }
        i = 0;
        c_base = found
    }
    DIE_HERE;
    FAIL_HERE;
    open_container();
    goto running;

done:
    skip
}
