/*
 * The log engine: commit, asynchronous commits, reuse of chunks, recovery. The log is the home: a word's
 * newest piece in it is the word. Rules are numbered as in docs/internals/log.md. README.md says what is
 * abstracted, and how to run it.
 *
 * Two copies of everything: `c` is the cache, which the death of the process spares; `m` is the medium. What
 * is written to the cache may reach the medium at once or not before a fence. That is decided where it is
 * written: so a power failure is no more than c = m.
 *
 *   X   data
 *   B   a bitmap: whether the object is live, and since which commit
 *   O   the object's contents
 *
 * A record is one part or two, and a part is one slot of a chunk. It has pieces: for each word whether it is
 * there, and its value, which is the number of the commit that stored it. It also has the map: where each
 * word's newest piece is after this commit. With PMEM every commit is fenced at once. With ROT a record or a
 * chunk's header may be lost in a container whose process died between commits. Recovery may then refuse it,
 * and must if it would restore anything else. With PLAIN there is only data, and
 * parts are records. With FAIL a record of two parts may fail after the first. With LAX recovery does without
 * three things that the code does and no rule needs: README.md says which. When the bitmap says that the object is
 * free, no piece of its contents counts (L14).
 */

#ifndef COMMITS
#define COMMITS 3 /* that may be begun */
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef CHUNKS
#define CHUNKS 3
#endif
#ifndef SLOTS
#define SLOTS 2 /* in a chunk */
#endif
#ifdef PMEM
#define ROUND_MAX 1
#else
#ifndef ROUND_MAX
#define ROUND_MAX 2 /* commits that one fence makes durable, at most */
#endif
#endif
#define ALL_SLOTS (CHUNKS * SLOTS)

#define X     0
#define B     1
#define O     2
#define WORDS 3

#define NOWHERE 7 /* fits into a map */

/* A part. `fenced`: an epoch that was durable when it was written. A piece is its value and one, or 0. */
#define EPOCH(part)      ((part) & 15)
#define FENCED(part)     ((part) >> 4 & 7)
#define GENERATION(part) ((part) >> 7 & 7)
#define TWO              (1 << 10)
#define SECOND           (1 << 11)
#define HAS(part, w)     (((part) >> (12 + 3 * (w)) & 7) != 0)
#define VALUE(part, w)   (((part) >> (12 + 3 * (w)) & 7) - 1)
#define PIECE(w, v)      (((v) + 1) << (12 + 3 * (w)))
#define MAP(part, w)     ((part) >> (21 + 3 * (w)) & 7)
#define MAPPED(w, s)     ((s) << (21 + 3 * (w)))

/* Parts of a chunk must ascend: by epoch, then by number. */
#define RANK(part) (EPOCH(part) * 2 + ((part) & SECOND -> 1 : 0))

/* A chunk's header, one word: its generation, and how many parts it has for certain. 0: void. */
#define HEAD(generation, end) ((generation) | (end) << 3)
#define HEAD_GENERATION(head) ((head) & 7)
#define END(head)             ((head) >> 3)

/* ---- what the crash leaves, and what it does not ---------------------------------------------- */

int c_slot[ALL_SLOTS], m_slot[ALL_SLOTS];
short c_head[CHUNKS], m_head[CHUNKS];
byte c_base, m_base;               /* the base epoch */
byte c_incarnation, m_incarnation; /* L4: the generation of all that is written now */
#ifdef ROT
byte c_note, m_note; /* the newest epoch that is noted as durable */
#endif

byte epoch, durable;
byte proved, reusable; /* as in struct rounds */
byte generation;       /* the incarnation of who writes */
byte use[CHUNKS];      /* FREE, USED or VOIDED */
byte position[CHUNKS]; /* the next slot */
byte emptied[CHUNKS];  /* the commit that took its last piece */
byte current;          /* the chunk in which the next part goes, or NOWHERE */
byte place[WORDS];     /* the slot of each word's newest piece that counts, or NOWHERE */
bool is_left;            /* the log may have pieces of the object that do not count (W2 in owners.c) */

#define FREE   0
#define USED   1
#define VOIDED 2 /* free after the next fence */

/* The states that a crash may lead to: of the last commit known to be durable, and of all since. */
short states[COMMITS + 2];
byte state_count;

byte commits, crashes;
bool rotten;
#ifdef FAIL
bool failed;
byte stale, before; /* L12: the slot of a part that a failed write has left; `current` before it */
#endif

/* What a commit is about to do. */
byte n[WORDS];
bool changes[WORDS];
byte parts;
int part[2];
byte where[2];

/* What recovery found. */
byte valid[CHUNKS], found, certain, incarnation;
byte newest[WORDS], value[WORDS], at[WORDS];
bool refuses;

/* Scratch, zero between steps. */
byte i, j, k, u, e, w;
bool ok;
int record;

#define CLEAR_SCRATCH i = 0; j = 0; k = 0; u = 0; e = 0; w = 0; ok = false; record = 0

#define NOW(w)         (place[w] == NOWHERE -> 0 : VALUE(c_slot[place[w]], w))
#define STATE(x, b, o) ((x) | (b) << 3 | ((b) != 0 -> (o) : 0) << 6)

/* What the medium has matters, and is different in different runs, only while a crash may come. */
#define MAY_CRASH  (crashes < CRASHES)
#define CRASH_HERE if :: MAY_CRASH -> goto crash :: true fi

/* ---- the medium ------------------------------------------------------------------------------- */

/* A record is several lines or sectors, so it may also be torn. */
inline write_slot(s, what)
{
    c_slot[s] = what;
    if
    :: true
    :: MAY_CRASH -> m_slot[s] = c_slot[s]
    :: MAY_CRASH -> m_slot[s] = 0
    fi
}

inline write_head(ch, what)
{
    c_head[ch] = what;
    if :: MAY_CRASH -> m_head[ch] = c_head[ch] :: true fi
}

inline write_base(what)
{
    c_base = what;
    if :: MAY_CRASH -> m_base = c_base :: true fi
}

inline write_incarnation(what)
{
    c_incarnation = what;
    if :: MAY_CRASH -> m_incarnation = c_incarnation :: true fi
}

inline fence_medium()
{
    for (i : 0 .. ALL_SLOTS - 1) { m_slot[i] = c_slot[i] }
    for (i : 0 .. CHUNKS - 1) { m_head[i] = c_head[i] }
    m_base = c_base; m_incarnation = c_incarnation; i = 0
}

/* ---- fences, and what they allow -------------------------------------------------------------- */

inline fenced() /* all that was written is durable */
{
    for (i : 0 .. CHUNKS - 1) {
        if :: use[i] == VOIDED -> use[i] = FREE; position[i] = 0 :: else fi /* L10 */
    }
    i = 0
}

/* All commits so far are durable. */
inline fence()
{
    d_step {
#ifndef MUTANT_NO_FENCE
        fence_medium();
#endif
        fenced();
        durable = epoch - 1;
        reusable = proved;
        printf("fence: durable up to %d\n", durable);
        states[0] = states[state_count - 1];
        for (i : 1 .. COMMITS + 1) { states[i] = 0 }
        state_count = 1;
        i = 0
    }
}

/* Up to which epoch chunks are not needed: a record that is durable calls it durable (L9). */
#if defined(MUTANT_REUSE_UNNOTED)
#define NEEDLESS durable
#elif defined(MUTANT_NOTE_UNFENCED)
#define NEEDLESS proved
#else
#define NEEDLESS reusable
#endif

/* L8, L9: whether the chunk may be void; in ok. A part has a piece that is live after its commit. So no epoch
 * in the chunk is above the one that emptied it. */
inline may_be_void(ch)
{
    ok = (use[ch] == USED && ch != current && place[X] / SLOTS != ch && place[B] / SLOTS != ch &&
          place[O] / SLOTS != ch);
#ifdef MUTANT_REUSE_UNFENCED
    for (i : 0 .. SLOTS - 1) {
        ok = ok && (i >= position[ch] || EPOCH(c_slot[ch * SLOTS + i]) <= NEEDLESS)
    }
    i = 0
#else
    ok = ok && emptied[ch] <= NEEDLESS
#endif
}

inline make_void(ch)
{
    printf("chunk %d is void\n", ch);
    write_head(ch, 0);
    emptied[ch] = 0;
#ifdef MUTANT_VOID_UNFENCED
    use[ch] = FREE; position[ch] = 0
#else
    use[ch] = VOIDED
#endif
}

/* ---- commit ----------------------------------------------------------------------------------- */

inline forget_transaction()
{
    d_step {
        for (i : 0 .. WORDS - 1) { n[i] = 0; changes[i] = false }
        i = 0; parts = 0; part[0] = 0; part[1] = 0; where[0] = 0; where[1] = 0
    }
}

#define CAN_TAKE(ch) (use[ch] == FREE || use[ch] == USED && position[ch] < SLOTS)

inline count_room() /* in k */
{
    d_step {
        for (i : 0 .. CHUNKS - 1) { if :: use[i] != VOIDED -> k = k + SLOTS - position[i] :: else fi }
        i = 0
    }
}

/* A slot for a part; the header of a chunk that is taken is written. */
inline take_slot(p)
{
    if
    :: current == NOWHERE ->
        if
        :: CAN_TAKE(0) -> current = 0
        :: CAN_TAKE(1) -> current = 1
#if CHUNKS > 2
        :: CAN_TAKE(2) -> current = 2
#endif
#if CHUNKS > 3
        :: CAN_TAKE(3) -> current = 3
#endif
        fi;
        if
        :: use[current] == FREE ->
            write_head(current, HEAD(generation, 0));
            use[current] = USED
        :: else
        fi
    :: else
    fi;
    where[p] = current * SLOTS + position[current];
    position[current]++;
    if :: position[current] == SLOTS -> current = NOWHERE :: else fi
}

#ifdef FAIL
/* A chunk that was taken for a part is free again. Its header may stay as it is. */
inline give_back(p)
{
    position[where[p] / SLOTS]--;
    if :: position[where[p] / SLOTS] == 0 -> use[where[p] / SLOTS] = FREE :: else fi
}
#endif

inline write_part(p)
{
    part[p] = part[p] | generation << 7;
    printf("slot %d: part %d of record %d, fenced %d\n", where[p], p + 1, EPOCH(part[p]), FENCED(part[p]));
    write_slot(where[p], part[p])
}

inline move_word(x, to)
{
    if :: place[x] != NOWHERE -> emptied[place[x] / SLOTS] = epoch :: else fi;
    place[x] = to
}

#define LIVE(ch) (place[X] / SLOTS == (ch) || place[B] / SLOTS == (ch) || place[O] / SLOTS == (ch))

/* L14: the object is free after this commit. */
#define DROPS (n[B] == 0)

/* The map: where each word is from now on. */
inline install()
{
    proved = FENCED(part[0]);
    for (w : 0 .. WORDS - 1) {
        if
        :: HAS(part[0], w) -> move_word(w, where[0])
        :: !HAS(part[0], w) && HAS(part[1], w) -> move_word(w, where[1])
        :: else
        fi
    }
    if
    :: HAS(part[0], O) || HAS(part[1], O) -> is_left = false
    :: DROPS && place[O] != NOWHERE -> move_word(O, NOWHERE); is_left = true
    :: else
    fi;
    for (i : 0 .. CHUNKS - 1) { if :: LIVE(i) -> emptied[i] = 0 :: else fi } /* nobody asks */
    w = 0; i = 0
}

/* L13: the map as it will be is in all parts of the record. */
inline tell_map()
{
    for (w : 0 .. WORDS - 1) {
        e = (HAS(part[0], w) -> where[0] : (HAS(part[1], w) -> where[1] : place[w]));
        e = (w == O && DROPS -> NOWHERE : e);
        part[0] = part[0] | MAPPED(w, e);
        if :: parts == 2 -> part[1] = part[1] | MAPPED(w, e) :: else fi
    }
    w = 0; e = 0
}

/* ---- recovery --------------------------------------------------------------------------------- */

/* Each chunk from its start (L3). */
inline read_chunks()
{
    certain = c_base;
#ifndef MUTANT_GENERATION_LARGEST
    incarnation = c_incarnation;
#endif
    for (j : 0 .. CHUNKS - 1) {
        if :: HEAD_GENERATION(c_head[j]) > incarnation -> incarnation = HEAD_GENERATION(c_head[j]) :: else fi;
        ok = (c_head[j] != 0);
        valid[j] = 0;
        u = 0;
        for (i : 0 .. SLOTS - 1) {
            record = c_slot[j * SLOTS + i];
            ok = ok && record != 0;
#ifndef MUTANT_NO_GENERATION
            ok = ok && (i < END(c_head[j]) || GENERATION(record) == HEAD_GENERATION(c_head[j]));
#endif
#ifndef LAX
            ok = ok && RANK(record) > u;
#endif
            if
            :: ok ->
                valid[j]++;
                u = RANK(record);
                if :: FENCED(record) > certain -> certain = FENCED(record) :: else fi
            :: else
            fi
        }
#ifndef LAX
        if :: c_head[j] != 0 && valid[j] < END(c_head[j]) -> refuses = true :: else fi
#endif
    }
    CLEAR_SCRATCH
}

/* Whether the record of epoch e is whole; in ok. */
inline find_record()
{
    k = 0; /* bit 0: the first part; bit 1: the second; bit 2: there are two */
    for (j : 0 .. CHUNKS - 1) {
        for (i : 0 .. SLOTS - 1) {
            record = c_slot[j * SLOTS + i];
            if
            :: i < valid[j] && EPOCH(record) == e ->
                k = k | (record & SECOND -> 2 : 1) | (record & TWO -> 4 : 0)
            :: else
            fi
        }
    }
    ok = (k == 1 || k == 7)
}

/* L2: up to `certain` there may be gaps; above it only an unbroken run of whole records counts. */
inline find_end()
{
    found = certain;
#ifdef MUTANT_GAP
    for (e : 1 .. 15) { find_record(); if :: ok && e > found -> found = e :: else fi }
#else
    do
    :: true ->
        e = found + 1;
        find_record();
        if :: ok -> found++ :: else -> break fi
    od;
#endif
    /* What is cut off never counts again, with all that lies behind it. */
    for (j : 0 .. CHUNKS - 1) {
        ok = true;
        for (i : 0 .. SLOTS - 1) {
            if
            :: i < valid[j] && ok && EPOCH(c_slot[j * SLOTS + i]) > found -> ok = false; valid[j] = i
            :: else
            fi
        }
    }
    CLEAR_SCRATCH
}


/* The newest piece of each word wins. */
inline find_words()
{
    for (w : 0 .. WORDS - 1) { at[w] = NOWHERE; newest[w] = 0; value[w] = 0 }
    for (j : 0 .. CHUNKS - 1) {
        for (i : 0 .. SLOTS - 1) {
            record = c_slot[j * SLOTS + i];
            for (w : 0 .. WORDS - 1) {
                if
                :: i < valid[j] && HAS(record, w) && EPOCH(record) > newest[w] ->
                    newest[w] = EPOCH(record);
                    value[w] = VALUE(record, w);
                    at[w] = j * SLOTS + i
                :: else
                fi
            }
        }
    }
#ifndef MUTANT_NOT_DROPPED
    if
    :: value[B] == 0 && at[O] != NOWHERE ->
        at[O] = NOWHERE; value[O] = 0; newest[O] = 0;
#ifndef MUTANT_NOT_LEFT
        is_left = true
#endif
    :: else
    fi;
#endif
    CLEAR_SCRATCH
}

/* L13: the newest record says what the map must be. A new container has none. */
inline compare_map()
{
#ifndef MUTANT_NO_MAP
    for (j : 0 .. CHUNKS - 1) {
        for (i : 0 .. SLOTS - 1) {
            record = c_slot[j * SLOTS + i];
            if
            :: i < valid[j] && EPOCH(record) == found ->
                ok = true;
                for (w : 0 .. WORDS - 1) { refuses = refuses || MAP(record, w) != at[w] }
            :: else
            fi
        }
    }
    refuses = refuses || found > 0 && !ok;
#endif
#if defined(ROT) && !defined(MUTANT_NOT_NOTED)
    refuses = refuses || found < c_note;
#endif
    CLEAR_SCRATCH
}

inline check()
{
    ok = false;
    for (i : 0 .. COMMITS + 1) {
        if :: i < state_count && states[i] == STATE(value[X], value[B], value[O]) -> ok = true :: else fi;
    }
    printf("recovered: epoch %d, certain %d, x %d b %d o %d\n", found, certain, value[X], value[B], value[O]);
    assert(ok);
    CLEAR_SCRATCH
}

inline forget_recovery()
{
    for (i : 0 .. WORDS - 1) { at[i] = 0; newest[i] = 0; value[i] = 0 }
    for (i : 0 .. CHUNKS - 1) { valid[i] = 0 }
    i = 0; found = 0; certain = 0; incarnation = 0; refuses = false
}

inline open_container()
{
    for (i : 0 .. COMMITS + 1) { states[i] = 0 }
    states[0] = STATE(value[X], value[B], value[O]); state_count = 1;
    for (i : 0 .. WORDS - 1) { place[i] = at[i] }
    for (i : 0 .. CHUNKS - 1) {
        position[i] = valid[i];
        use[i] = (valid[i] > 0 -> USED : FREE)
        /* Behind what is valid nothing counts any more, and a void chunk has nothing. */
    }
    epoch = found + 1; durable = found; proved = found; reusable = found; current = NOWHERE;
    generation = incarnation;
    CLEAR_SCRATCH
}

/* ---- the container's life --------------------------------------------------------------------- */

#define forget_mask() mask = 0
#define VOIDED_ANY (use[0] == VOIDED || use[1] == VOIDED || use[CHUNKS / 2] == VOIDED || use[CHUNKS - 1] == VOIDED)

/* The chunks that may be void: in `mask`. */
inline find_void()
{
    for (k : 0 .. CHUNKS - 1) {
        may_be_void(k);
        if :: ok -> mask = mask | 1 << k :: else fi
    }
    k = 0; ok = false
}

#ifdef ROT
/* L13: what is durable is noted. Never waited for. */
inline note(what)
{
    c_note = what;
    if :: MAY_CRASH -> m_note = c_note :: true fi
}

/* A record of those that this run may still read, or a chunk's header, is lost. */
inline rot()
{
    rotten = true;
    do
    :: u < ALL_SLOTS - 1 -> u++
    :: use[u / SLOTS] == USED && u % SLOTS < position[u / SLOTS] && c_slot[u] != 0 -> break
    :: u == ALL_SLOTS - 1 -> u = NOWHERE; break
    od;
    if
    :: u != NOWHERE -> printf("SLOT %d ROTS\n", u); c_slot[u] = 0; m_slot[u] = 0
    :: u != NOWHERE -> printf("CHUNK %d IS LOST\n", u / SLOTS); c_head[u / SLOTS] = 0; m_head[u / SLOTS] = 0
    :: else
    fi;
    u = 0
}
#else
#define note(what) skip
#endif

/* The process dies within a record. */
inline write_half(p)
{
    printf("slot %d: half a part\n", where[p]);
    c_slot[where[p]] = 0;
    if :: true :: m_slot[where[p]] = 0 fi
}

#ifdef MUTANT_SAME_GENERATION
#define SEALED_AS(ch) HEAD_GENERATION(c_head[ch])
#else
#define SEALED_AS(ch) incarnation
#endif

#ifdef MUTANT_BASE_JUMP
#define CERTAIN_THEN (found + 2)
#else
#define CERTAIN_THEN found
#endif

active proctype container()
{
    byte mask;
    bool at_rest;

    d_step {
        c_incarnation = 1; m_incarnation = 1; generation = 1;
#ifdef FAIL
        stale = NOWHERE; before = NOWHERE;
#endif
        epoch = 1; current = NOWHERE; state_count = 1;
        for (i : 0 .. WORDS - 1) { place[i] = NOWHERE }
        i = 0;
#ifdef FREED /* commit 1 has stored to all words, and commit 2 has freed the object */
        c_slot[0] = 1 | generation << 7 | PIECE(X, 1) | PIECE(B, 1) | PIECE(O, 1) |
                    MAPPED(X, 0) | MAPPED(B, 0) | MAPPED(O, 0);
        c_slot[SLOTS] = 2 | 1 << 4 | generation << 7 | PIECE(B, 0) |
                        MAPPED(X, 0) | MAPPED(B, SLOTS) | MAPPED(O, 0);
        c_head[0] = HEAD(generation, 0); use[0] = USED; position[0] = 1;
        c_head[1] = HEAD(generation, 0); use[1] = USED; position[1] = 1;
        place[X] = 0; place[B] = SLOTS; place[O] = 0;
        commits = 2; epoch = 3; durable = 2; proved = 1; reusable = 1;
        states[0] = STATE(1, 0, 0);
#ifdef ROT
        c_note = 2; m_note = 2;
#endif
        fence_medium()
#endif
    }

running:
    atomic {
        d_step { find_void() };
        if
        :: commits < COMMITS -> forget_mask()
        :: durable < epoch - 1 || VOIDED_ANY -> forget_mask(); fence(); note(durable); goto running
        :: mask & 1 -> forget_mask(); make_void(0); goto running
        :: mask & 2 -> forget_mask(); make_void(1); goto running
#if CHUNKS > 2
        :: mask & 4 -> forget_mask(); make_void(2); goto running
#endif
#if CHUNKS > 3
        :: mask & 8 -> forget_mask(); make_void(3); goto running
#endif
        :: MAY_CRASH -> forget_mask(); at_rest = true; goto crash
        fi
    }

    /* What the transaction changes. */
    atomic {
        commits++;
        for (i : 0 .. WORDS - 1) { n[i] = NOW(i) }
        i = 0;
        if
        :: n[X] = commits; changes[X] = true
#ifndef PLAIN
        :: n[B] == 0 -> /* L14: memory that is taken is logged, if old pieces of it may be there */
            n[B] = commits; changes[B] = true;
            if :: n[O] = 0 :: n[O] = commits fi;
#ifdef MUTANT_NO_CLEAR
            changes[O] = (n[O] != 0)
#else
            changes[O] = (n[O] != 0 || is_left)
#endif
        :: n[B] != 0 -> n[O] = commits; changes[O] = true
        :: n[B] != 0 -> n[B] = 0; changes[B] = true
#endif
        fi;
        if
        :: true
        :: !changes[X] -> n[X] = commits; changes[X] = true
        fi;
        parts = 1;
        if
        :: true
        :: changes[X] && (changes[B] || changes[O]) || changes[B] && changes[O] -> parts = 2
        fi
    }


    /* L12: room for all parts is there before the first byte is written. */
    atomic {
        count_room();
        if
        :: k < parts -> k = 0; forget_transaction(); goto running
        :: k >= parts
        fi;
        k = 0
    }
#ifndef PMEM
    if :: epoch - 1 - durable >= ROUND_MAX -> fence(); atomic { note(durable) } :: else fi;
#endif
    atomic {
        d_step {
            part[0] = epoch | (parts == 2 -> TWO : 0);
#ifdef MUTANT_FENCED_OWN
            part[0] = part[0] | epoch << 4;
#else
            part[0] = part[0] | durable << 4;
#endif
            part[1] = (parts == 2 -> part[0] | SECOND : 0);
            for (w : 0 .. WORDS - 1) {
                if
                :: changes[w] && parts == 2 && ok -> part[1] = part[1] | PIECE(w, n[w])
                :: changes[w] && !(parts == 2 && ok) -> part[0] = part[0] | PIECE(w, n[w]); ok = true
                :: else
                fi
            }
            w = 0; ok = false;
            states[state_count] = STATE(n[X], n[B], n[O]); state_count++;
            printf("commit %d: x %d b %d o %d\n", epoch, n[X], n[B], n[O])
        };
#ifdef FAIL
        before = current;
#endif
#ifdef STREAMS /* the cleaner's records go to other chunks */
        if :: current = NOWHERE :: true fi;
#endif
        take_slot(0);
        if
        :: parts == 2 -> take_slot(1)
        :: else
        fi;
        d_step { tell_map() }
    }
    CRASH_HERE;
#ifdef FAIL
    if
    :: stale != NOWHERE ->
#ifndef MUTANT_NOT_ERASED
        atomic { write_slot(stale, 0) };
        CRASH_HERE;
#ifndef MUTANT_ERASE_UNFENCED
        d_step { fence_medium() };
        CRASH_HERE;
#endif
#endif
        stale = NOWHERE
    :: else
    fi;
#endif
    atomic { write_part(0) };
    if :: atomic { MAY_CRASH -> write_half(0); goto crash } :: true fi;
#ifdef FAIL
    if
    :: d_step { parts == 2 && !failed ->
           printf("the second part cannot be written\n");
           failed = true; stale = where[0];
           give_back(1); give_back(0); current = before;
           state_count--; states[state_count] = 0 };
       forget_transaction(); goto running
    :: true
    fi;
#endif
    if
    :: parts == 2 ->
        CRASH_HERE;
        atomic { write_part(1) };
        if :: atomic { MAY_CRASH -> write_half(1); goto crash } :: true fi
    :: else
    fi;
    CRASH_HERE;
    atomic {
#ifdef PMEM
#if defined(ROT) && defined(MUTANT_NOTED_EARLY)
        note(epoch);
        CRASH_HERE;
#endif
        d_step {
#ifndef MUTANT_NO_FENCE
            fence_medium();
#endif
            fenced(); /* L1 */
            reusable = FENCED(part[0]);
            durable = epoch;
            states[0] = states[1]; states[1] = 0; state_count = 1
        };
        note(durable);
#endif
        d_step { install(); epoch++ };
#ifdef FAIL
        before = NOWHERE;
#endif
        forget_transaction()
    }
    goto running;

crash:
    atomic {
        forget_transaction();
        d_step {
            crashes++;
            forget_recovery();
            for (i : 0 .. WORDS - 1) { place[i] = 0 }
            for (i : 0 .. CHUNKS - 1) { emptied[i] = 0 }
            is_left = false; epoch = 0; durable = 0; proved = 0; reusable = 0; generation = 0; current = 0;
#ifdef FAIL
            stale = NOWHERE; before = NOWHERE;
#endif
            CLEAR_SCRATCH
        }
        if
        :: d_step { true -> /* the power fails */
               printf("POWER FAILURE\n");
               for (i : 0 .. ALL_SLOTS - 1) { c_slot[i] = m_slot[i] }
               for (i : 0 .. CHUNKS - 1) { c_head[i] = m_head[i] }
#ifdef ROT
               c_note = m_note;
#endif
               c_base = m_base; c_incarnation = m_incarnation; i = 0 }
        :: printf("PROCESS DIES\n")
#ifdef ROT
        :: at_rest && !rotten -> printf("PROCESS DIES\n"); rot()
#endif
        fi;
        d_step {
            at_rest = false;
            for (i : 0 .. CHUNKS - 1) { position[i] = 0; use[i] = 0 }
            i = 0
        }
    }
    atomic {
        d_step {
            read_chunks();
            if :: !refuses -> find_end(); find_words(); compare_map() :: else fi
        };
        if
        :: refuses -> printf("refused\n"); assert(rotten); goto done
        :: !refuses -> d_step { check() }
        fi
    }
    if :: MAY_CRASH :: !MAY_CRASH -> goto done fi;
    /* L4, L7: the next incarnation, and all that was read, are durable. */
#ifndef MUTANT_SAME_INCARNATION
    d_step { incarnation++ };
#endif
#ifndef LAX
    atomic { write_incarnation(incarnation) };
    CRASH_HERE;
#endif
#ifndef MUTANT_RELY_UNDURABLE
    d_step { fence_medium() };
    CRASH_HERE;
#endif
#ifdef LAX
    atomic { write_incarnation(incarnation) };
    CRASH_HERE;
#endif
    /* L5: what is valid is sealed, and everything behind it void. */
#ifndef MUTANT_NO_SEAL
    do
    :: atomic { j < CHUNKS ->
           if
           :: c_head[j] == 0
           :: c_head[j] != 0 && valid[j] == 0 -> write_head(j, 0)
           :: c_head[j] != 0 && valid[j] != 0 -> write_head(j, HEAD(SEALED_AS(j), valid[j]))
           fi;
           j++ }
       CRASH_HERE
    :: j == CHUNKS -> break
    od;
    j = 0;
#endif
#ifndef MUTANT_NO_BASE
    atomic { write_base(CERTAIN_THEN) };
    CRASH_HERE;
#endif
#ifndef MUTANT_SEAL_UNFENCED
    d_step { fence_medium() };
#endif
    d_step { open_container(); forget_recovery() }
    goto running;

done:
    skip
}
