/*
 * The redo engine: commit, group commit, carrying home, reuse and claiming of log, recovery.
 * Rules are numbered as in docs/internals/redo.md. README.md says what is abstracted, and how to run it.
 *
 * Three copies of everything: `h` is home as the library sees it, which a crash forgets; `c` is the
 * cache (of the CPU, or the kernel's pages of the file), which the death of the process spares; `m`
 * is the medium. What is written to the cache may reach the medium at once or not before a fence,
 * which is decided where it is written: so a power failure is no more than c = m.
 *
 *   LINE   a line with two objects: bit 0 the first, bit 1 the second, which is always live
 *   BITS   whether the first is live
 *   TABLE  whose the segment S is: FREE, DATA or LOG
 *   BODY   what is in S: an object's contents; JUNK if that is log. Its first bytes are S's first
 *          unit of log
 *
 * On a file BODY is a page and fresh as a whole; with PMEM every commit is fenced at once and home
 * is the cache. A record is one part or two, a part is one unit of log, and a unit is an integer. With
 * NOTES, which are of PMEM, a unit may rot in a container whose process died between transactions;
 * recovery may then refuse it.
 */

#ifndef COMMITS
#define COMMITS 3 /* that may be begun */
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef SEGMENTS
#define SEGMENTS 3 /* of the log, the last of which is S when it is log */
#endif
#ifndef CAPACITY
#define CAPACITY 1 /* units in a segment */
#endif
#define UNITS (SEGMENTS * CAPACITY)
#define S     (SEGMENTS - 1)

#define LINE  0
#define BITS  1
#define TABLE 2
#define BODY  3
#define ITEMS 4

#define FREE 0
#define DATA 1
#define LOG  2
#define JUNK 2

/* How an item is in a record. */
#define ABSENT 0
#define LOGGED 1
#define FRESH  2

/* A part: epoch, fenced, two parts?, second?, and of each item how it is there and its value. */
#define EPOCH(part)     ((part) & 31)
#define FENCED(part)    ((part) >> 5 & 31)
#define TWO             (1 << 10)
#define SECOND          (1 << 11)
#define HOW(part, i)    ((part) >> (12 + 4 * (i)) & 3)
#define VALUE(part, i)  ((part) >> (14 + 4 * (i)) & 3)
#define ITEM(i, how, v) ((how) << (12 + 4 * (i)) | (v) << (14 + 4 * (i)))

/* Records in a round at most. R13: the base is above all that a round can have left. */
#ifdef PMEM
#define ROUND_MAX 1
#else
#define ROUND_MAX 2
#endif
#ifdef MUTANT_BASE_ONE
#define BASE_STEP 1
#else
#define BASE_STEP ROUND_MAX
#endif

/* ---- what the crash leaves, and what it does not ---------------------------------------------- */

byte c[ITEMS], m[ITEMS];
byte c_base, m_base;
int c_log[UNITS], m_log[UNITS];
#ifdef NOTES
byte c_noted, m_noted; /* R15 */
bool at_rest;          /* left between transactions */
bool rotten;
#endif

byte h[ITEMS];
byte since[ITEMS], changed[ITEMS]; /* 0: not queued */
byte epoch, durable;
byte proved;       /* the newest record on the log says that this epoch is durable, or the base does */
byte home;         /* log of epochs up to it is void */
byte newest_fresh; /* epoch of the newest record with fresh ranges */
byte segment, end; /* where the next part goes */
byte newest[SEGMENTS];

/* The states that a crash may lead to: of the last commit known to be durable, and of all since. */
byte states[COMMITS + 2], state_count;

byte commits, crashes, failures;

/* What a commit is about to do. */
byte n[ITEMS], how[ITEMS], parts, needed;
int part;

/* What recovery found. */
byte to[ITEMS], found, certain, last;
bool set[ITEMS], any, relied;

/* Scratch, zero between steps. */
byte i, j, u, e, v, floor;
bool ok, owned[ITEMS], valid[UNITS];
int record;

#define CLEAR_SCRATCH i = 0; j = 0; u = 0; e = 0; v = 0; floor = 0; ok = false; record = 0

#define STATE(x)                                                                                     \
    ((x[LINE] & 2) + (x[BITS] -> 4 + (x[LINE] & 1) : 0) + (x[TABLE] == DATA -> 8 + 16 * x[BODY] : 0))

/* What the medium has matters, and is different in different runs, only while a crash may come. */
#define MAY_CRASH  (crashes < CRASHES)
#define CRASH_HERE if :: MAY_CRASH -> goto crash :: true fi

/* ---- the medium ------------------------------------------------------------------------------- */

/* To the cache, and perhaps further. Contents and log of S are in one place. */
inline write_item(x, value)
{
    if
    :: c[x] = value; if :: x == BODY -> c_log[S * CAPACITY] = 0 :: else fi
    :: MAY_CRASH -> c[x] = value; m[x] = value;
       if :: x == BODY -> c_log[S * CAPACITY] = 0; m_log[S * CAPACITY] = 0 :: else fi
    fi
}

/* A unit is several lines or sectors, so it may also be torn. */
inline write_unit(at, value)
{
    u = at;
    record = value;
    if :: u / CAPACITY == S -> c[BODY] = JUNK :: else fi;
    c_log[u] = record;
    if
    :: true
    :: MAY_CRASH -> m_log[u] = record; if :: u / CAPACITY == S -> m[BODY] = JUNK :: else fi
    :: MAY_CRASH -> m_log[u] = 0; if :: u / CAPACITY == S -> m[BODY] = JUNK :: else fi
    fi;
    u = 0;
    record = 0
}

/* Everything that was written is on the medium. */
inline fence_medium()
{
    for (i : 0 .. ITEMS - 1) { m[i] = c[i] }
    for (i : 0 .. UNITS - 1) { m_log[i] = c_log[i] }
    m_base = c_base; i = 0
}

#ifdef NOTES
/* Never waited for. */
inline note()
{
    c_noted = epoch;
    if :: MAY_CRASH -> m_noted = epoch :: true fi
}

/* A unit of the log, once. */
inline rot()
{
    rotten = true;
    if
    :: u = 0
    :: u = 1
#if UNITS > 2
    :: u = 2
#endif
    fi;
    c_log[u] = 0; m_log[u] = 0;
    printf("UNIT %d ROTS\n", u);
    u = 0
}
#endif

#ifdef PMEM
#define NO_MORE
#else
#define NO_MORE && drained
#endif

/* ---- commit ----------------------------------------------------------------------------------- */

/* lead() in redo.c: all that was committed is durable. `above`: epochs that were certain before. */
inline fence()
{
    d_step {
#ifndef MUTANT_NO_FENCE
        fence_medium();
#endif
        durable = epoch - 1;
        printf("durable up to %d\n", durable);
        floor = epoch - 1;
        for (i : 0 .. ITEMS - 1) {
            if :: since[i] != 0 && since[i] <= floor -> floor = since[i] - 1 :: else fi
        }
#ifdef MUTANT_HOME_UNPROVED /* R12 */
        home = floor;
#else
        home = (floor < proved -> floor : proved);
#endif
        states[0] = states[state_count - 1];
        for (i : 1 .. COMMITS + 1) { states[i] = 0 }
        state_count = 1;
        CLEAR_SCRATCH
    }
}

/* queue_write() of one page: all of it must be durable in the log. */
inline carry(x)
{
    printf("item %d is carried home\n", x);
    since[x] = 0; changed[x] = 0;
    if
    :: x == BODY && h[x] == JUNK /* it is log now, and written as such */
    :: else -> write_item(x, h[x])
    fi;
#ifdef MUTANT_SECTOR_TORN /* R6 */
    if :: MAY_CRASH && x == LINE -> m[BITS] = 1 - m[BITS] :: true fi
#endif
}

#define IN_LOG(s) ((s) != S || n[TABLE] == LOG)
#ifdef MUTANT_REUSE_EARLY
#define VOID(s) (IN_LOG(s) && (s) != segment && newest[s] <= durable)
#else
#define VOID(s) (IN_LOG(s) && (s) != segment && newest[s] <= home)
#endif

inline count_void() /* in v */
{
    d_step {
        v = 0;
        for (i : 0 .. SEGMENTS - 1) { if :: VOID(i) -> v++ :: else fi }
        i = 0
    }
}

/* Segments that the record needs besides what is left of the current one. */
inline count_needed()
{
    needed = (parts > CAPACITY - end -> (parts - (CAPACITY - end) + CAPACITY - 1) / CAPACITY : 0)
}

/* One part, in the current segment or any void one. */
inline write_part(value)
{
    atomic {
        if
        :: end == CAPACITY ->
            if
            :: VOID(0) -> segment = 0
            :: VOID(1) -> segment = 1
#if SEGMENTS > 2
            :: VOID(2) -> segment = 2
#endif
            fi;
            end = 0
        :: else
        fi;
        write_unit(segment * CAPACITY + end, value);
        newest[segment] = epoch;
        printf("segment %d unit %d: part %d of record %d, fenced %d\n", segment, end, ((value) & SECOND -> 2 : 1), epoch, FENCED((value)));
        end++
    }
}

inline forget_transaction()
{
    d_step {
        for (i : 0 .. ITEMS - 1) { n[i] = 0; how[i] = ABSENT }
        i = 0; v = 0; parts = 0; needed = 0; part = 0; drained = false; neighbour = false; s0 = 0; e0 = 0
    }
}

/* ---- recovery --------------------------------------------------------------------------------- */

/* The record of epoch e, if it is whole: its first part, else 0. */
inline find_record()
{
    record = 0;
    for (u : 0 .. UNITS - 1) {
        if
        :: valid[u] && EPOCH(c_log[u]) == e && !(c_log[u] & SECOND) ->
            ok = !(c_log[u] & TWO);
            for (v : 0 .. UNITS - 1) {
                if
#ifdef MUTANT_UNCHAINED
                :: valid[v] && EPOCH(c_log[v]) == e && c_log[v] & SECOND -> ok = true
#else
                :: valid[v] && c_log[v] == (c_log[u] | SECOND) -> ok = true
#endif
                :: else
                fi
            }
            if :: ok -> record = c_log[u] :: else fi
        :: else
        fi
    }
    ok = false; u = 0; v = 0
}

inline read_log()
{
    /* Each segment from its start. */
    found = c_base;
    for (j : 0 .. SEGMENTS - 1) {
        ok = (j != S || c[TABLE] == LOG);
        e = 0;
        for (i : 0 .. CAPACITY - 1) {
            u = j * CAPACITY + i;
            ok = ok && c_log[u] != 0 && EPOCH(c_log[u]) > c_base && EPOCH(c_log[u]) >= e;
            valid[u] = ok;
            if
            :: ok ->
                any = true;
                e = EPOCH(c_log[u]);
                if :: e > last -> last = e :: else fi;
                if :: FENCED(c_log[u]) > found -> found = FENCED(c_log[u]) :: else fi
            :: else
            fi
        }
    }
    certain = found;
    /* R2. */
    do
    :: true ->
        e = found + 1;
        find_record();
        if
        :: record == 0 -> break
#ifndef MUTANT_NO_SUM
        :: record != 0 && HOW(record, BODY) == FRESH && VALUE(record, BODY) != c[BODY] -> break
#endif
        :: else ->
            found++;
            if :: HOW(record, BODY) == FRESH -> break :: else fi /* R11: what follows calls it certain */
        fi
    od;
    CLEAR_SCRATCH
}

/* Whether an item of the record is to be written. */
inline take(x)
{
#ifdef MUTANT_OLDEST_FIRST
    if :: HOW(record, x) == LOGGED -> set[x] = true; to[x] = VALUE(record, x) :: else fi
#else
    if
    :: HOW(record, x) != ABSENT && !owned[x] ->
        owned[x] = true;
        set[x] = (HOW(record, x) == LOGGED);
        to[x] = VALUE(record, x)
    :: else
    fi
#endif
}

#define TABLE_THEN (set[TABLE] -> to[TABLE] : c[TABLE])

inline take_table()
{
#ifndef MUTANT_LOG_TAKEN
    if
    :: HOW(record, TABLE) == LOGGED && VALUE(record, TABLE) == FREE && c[TABLE] == LOG ->
#ifndef MUTANT_LOG_HIDES_NOTHING
        owned[TABLE] = true
#endif
    :: else -> take(TABLE)
    fi
#else
    take(TABLE)
#endif
}

inline take_rest()
{
    take(LINE);
    take(BITS);
    take(BODY);
    if :: TABLE_THEN == LOG -> set[BODY] = false :: else fi
}

/* The epochs of the run, newest first (R3). */
inline first_epoch()
{
#ifdef MUTANT_OLDEST_FIRST
    e = found;
    do
    :: e > c_base -> find_record(); if :: record == 0 -> break :: else -> e-- fi
    :: else -> break
    od;
    e++
#else
    e = found
#endif
}

inline next_epoch()
{
#ifdef MUTANT_OLDEST_FIRST
    e++
#else
    e--
#endif
}

#define IN_RUN (e > c_base && e <= found)
#ifdef MUTANT_BEYOND_GAP
#define AT_GAP false
#else
#define AT_GAP (record == 0)
#endif

inline plan_replay()
{
#ifndef MUTANT_TABLE_IN_TURN
    first_epoch();
    do
    :: IN_RUN -> find_record(); if :: AT_GAP -> break :: else -> take_table(); next_epoch() fi
    :: else -> break
    od;
#endif
    first_epoch();
    do
    :: IN_RUN ->
        find_record();
        if
        :: AT_GAP -> break
        :: else ->
#ifdef MUTANT_TABLE_IN_TURN
            take_table();
#endif
            if :: HOW(record, BODY) == FRESH && !owned[BODY] && e > certain -> relied = true :: else fi;
            take_rest();
            next_epoch()
        fi
    :: else -> break
    od;
    if :: last > found -> found = last :: else fi;
    for (i : 0 .. ITEMS - 1) { owned[i] = false }
    for (i : 0 .. UNITS - 1) { valid[i] = false }
    last = 0;
    CLEAR_SCRATCH
}

/* R5. On a file fdatasync(2) takes all; on pmem what is written back. */
inline make_durable()
{
#ifdef PMEM
    m[TABLE] = c[TABLE];
    for (i : 0 .. UNITS - 1) { m_log[i] = c_log[i] }
    if :: relied || c[BODY] == JUNK -> m[BODY] = c[BODY] :: else fi;
    i = 0
#else
    fence_medium()
#endif
}

inline settle()
{
#ifdef PMEM
    for (i : 0 .. ITEMS - 1) { if :: set[i] -> m[i] = c[i] :: else fi }
    if :: set[BODY] -> m_log[S * CAPACITY] = c_log[S * CAPACITY] :: else fi;
    i = 0
#else
    fence_medium()
#endif
}

inline forget_recovery()
{
    for (i : 0 .. ITEMS - 1) { set[i] = false; to[i] = 0 }
    i = 0; any = false; relied = false; found = 0; certain = 0
}

/* What recovery restored is a state that it may restore; the container opens with it. */
inline check_and_open()
{
    ok = false;
    for (i : 0 .. COMMITS + 1) {
        if :: i < state_count && states[i] == STATE(c) -> ok = true :: else fi;
    }
    printf("recovered: line %d bits %d table %d body %d, base %d\n", c[LINE], c[BITS], c[TABLE], c[BODY], c_base);
    assert(ok);
    for (i : 0 .. COMMITS + 1) { states[i] = 0 }
    states[0] = STATE(c); state_count = 1;
    for (i : 0 .. ITEMS - 1) { h[i] = c[i] }
    /* What is void for ever is the same as nothing. */
    for (i : 0 .. UNITS - 1) {
        if :: EPOCH(c_log[i]) <= c_base -> c_log[i] = 0 :: else fi;
        if :: EPOCH(m_log[i]) <= c_base -> m_log[i] = 0 :: else fi
    }
    epoch = c_base + 1; durable = c_base; proved = c_base; home = c_base;
    CLEAR_SCRATCH
}

/* ---- the container's life --------------------------------------------------------------------- */

active proctype container()
{
    byte s0, e0;
    bool drained;
    bool neighbour; /* the commit changes another word of the page that BODY is in */
    if
    :: true
    :: h[TABLE] = DATA; h[BODY] = 1
    :: h[TABLE] = LOG; h[BODY] = JUNK
    fi;
    d_step {
        h[BITS] = 1;
        for (i : 0 .. ITEMS - 1) { c[i] = h[i]; m[i] = h[i] }
        epoch = 1;
        states[0] = STATE(h); state_count = 1;
        i = 0
    }

running:
    do
    :: commits < COMMITS -> break
#ifndef PMEM
    :: atomic { durable < epoch - 1 -> fence() } /* pm_wait() */
#ifdef MUTANT_CARRY_EARLY
#define MAY_CARRY(x) (since[x] != 0)
#else
#define MAY_CARRY(x) (since[x] != 0 && changed[x] <= durable)
#endif
    :: atomic { MAY_CARRY(LINE) -> carry(LINE) }
    :: atomic { MAY_CARRY(BITS) -> carry(BITS) }
    :: atomic { MAY_CARRY(TABLE) -> carry(TABLE) }
    :: atomic { MAY_CARRY(BODY) -> carry(BODY) }
#endif
    :: MAY_CRASH ->
#ifdef NOTES
       at_rest = true;
#endif
       goto crash
    od;

    atomic {
        /* What the transaction changes. */
        atomic {
            commits++;
            for (i : 0 .. ITEMS - 1) { n[i] = h[i] }
            i = 0;
            if
            :: n[LINE] = n[LINE] ^ 2; how[LINE] = LOGGED
#ifdef SLOTS
            :: h[BITS] == 1 -> n[BITS] = 0; how[BITS] = LOGGED
            :: h[BITS] == 0 ->
                n[BITS] = 1; n[LINE] = n[LINE] ^ 2; how[BITS] = LOGGED;
                if :: true :: n[LINE] = n[LINE] ^ 1 fi;
#ifdef MUTANT_FRESH_SHARED
                how[LINE] = FRESH
#else
                how[LINE] = LOGGED
#endif
#endif
            :: h[TABLE] == FREE -> /* a large object, and something that points to it */
                n[TABLE] = DATA; how[TABLE] = LOGGED; how[BODY] = FRESH;
                n[LINE] = n[LINE] ^ 2; how[LINE] = LOGGED;
                if :: n[BODY] = 0 :: n[BODY] = 1 fi;
#ifdef MUTANT_FRESH_EQUAL
                if :: n[BODY] == h[BODY] -> how[BODY] = ABSENT :: else fi
#endif
            :: h[TABLE] == FREE -> /* a slab: its bitmap is cleared at once */
#ifdef PMEM
                h[BODY] = 0; write_item(BODY, 0);
#else
#ifndef MUTANT_CLEAR_UNDURABLE
                if :: since[BODY] != 0 && durable < epoch - 1 -> fence() :: else fi;
#endif
                h[BODY] = 0;
#endif
                if
                :: n[TABLE] = DATA; how[TABLE] = LOGGED; n[BODY] = 1; how[BODY] = LOGGED
                :: forget_transaction(); goto running /* rolled back */
                fi
            :: h[TABLE] == DATA -> n[BODY] = 1 - n[BODY]; how[BODY] = LOGGED
            :: h[TABLE] == DATA -> n[TABLE] = FREE; how[TABLE] = LOGGED
#ifndef PMEM
            :: h[TABLE] == DATA -> n[LINE] = n[LINE] ^ 2; how[LINE] = LOGGED; neighbour = true
#endif
#ifdef MUTANT_FRESH_FREED /* and taken again */
            :: h[TABLE] == DATA -> n[BODY] = 1 - n[BODY]; n[LINE] = n[LINE] ^ 2;
                how[BODY] = FRESH; how[LINE] = LOGGED
#endif
#ifdef MUTANT_FRESH_DEAD /* taken and freed */
            :: h[TABLE] == FREE -> n[BODY] = 1 - n[BODY]; n[LINE] = n[LINE] ^ 2;
                how[BODY] = FRESH; how[LINE] = LOGGED
#endif
            fi;
            if :: parts = 1 :: parts = 2 fi;
            count_needed()
        }

        /* redo_log_reserve() */
        count_void();
        do
        :: v >= needed -> break
        :: v < needed && h[TABLE] == FREE && n[TABLE] == FREE ->
#ifndef MUTANT_CLAIM_UNDURABLE
            if :: durable < epoch - 1 -> fence() :: else fi;
#endif
            atomic {
                h[TABLE] = LOG; n[TABLE] = LOG; newest[S] = 0;
                write_item(TABLE, LOG)
            }
#ifndef PMEM
            CRASH_HERE;
            atomic { /* zeros */
                h[BODY] = JUNK; c[BODY] = JUNK;
                if :: m[BODY] = JUNK :: true fi;
                for (u : S * CAPACITY .. UNITS - 1) {
                    c_log[u] = 0;
                    if :: m_log[u] = 0 :: true fi
                }
                u = 0
            }
#endif
            CRASH_HERE;
            count_void()
#ifndef PMEM
        :: v < needed && !drained ->
            drained = true;
            if :: durable < epoch - 1 -> fence() :: else fi;
            do
            :: since[j] != 0 -> atomic { carry(j) }; CRASH_HERE
            :: since[j] == 0 && j < ITEMS - 1 -> j++
            :: since[j] == 0 && j == ITEMS - 1 -> j = 0; break
            od;
            fence();
#ifndef MUTANT_HOME_UNPROVED
            atomic { c_base = epoch - 1; if :: m_base = c_base :: true fi };
            CRASH_HERE;
            proved = epoch - 1;
            fence();
#ifndef MUTANT_BASE_AMID
            end = 0; /* else a walk of the segment would end at what the base made void */
            count_needed();
#endif
#endif
            count_void()
#endif
        :: v < needed && (h[TABLE] != FREE || n[TABLE] != FREE) NO_MORE ->
            forget_transaction(); goto running /* no space */
        od;
        v = 0;

#ifndef PMEM
#ifdef MUTANT_FRESH_UNDURABLE
#define ROUND_BEFORE_FRESH false
#else
#define ROUND_BEFORE_FRESH (how[BODY] == FRESH && durable < epoch - 1) /* R9 */
#endif
#ifdef MUTANT_FRESH_FOLLOWED
#define ROUND_AFTER_FRESH false
#else
#define ROUND_AFTER_FRESH (newest_fresh > durable) /* R11 */
#endif
        if
        :: ROUND_BEFORE_FRESH || ROUND_AFTER_FRESH || epoch - 1 - durable >= ROUND_MAX -> fence()
        :: else
        fi;
#endif

        /* redo_log_shrink() */
        count_void();
        if
        :: h[TABLE] == LOG && VOID(S) && v > needed -> n[TABLE] = FREE; how[TABLE] = LOGGED
        :: true
        fi;
        v = 0;

        /* The round. */
        atomic {
            states[state_count] = STATE(n); state_count++;
            part = epoch | durable << 5 | (parts == 2 -> TWO : 0);
            for (i : 0 .. ITEMS - 1) {
                part = part | ITEM(i, how[i], (how[i] == ABSENT -> 0 : n[i]))
            }
            i = 0;
            printf("commit %d: line %d(%d) bits %d(%d) table %d(%d) body %d(%d)\n", epoch, n[LINE], how[LINE], n[BITS], how[BITS], n[TABLE], how[TABLE], n[BODY], how[BODY]);
            s0 = segment; e0 = end
        }
        if
        :: atomic { how[BODY] == FRESH -> h[BODY] = n[BODY]; write_item(BODY, n[BODY]) }
        :: atomic { how[LINE] == FRESH -> h[LINE] = n[LINE]; write_item(LINE, n[LINE]) }
        :: how[BODY] != FRESH && how[LINE] != FRESH
        fi;
        CRASH_HERE;
        write_part(part);
        if
        :: parts == 2 ->
            CRASH_HERE;
            if
            :: write_part(part | SECOND)
#ifndef PMEM
            :: d_step { failures == 0 -> /* and the next record goes to the same place */
                   failures++;
                   for (i : 0 .. SEGMENTS - 1) {
                       if :: i != s0 && newest[i] == epoch -> newest[i] = 0 :: else fi
                   }
                   segment = s0; end = e0;
                   state_count--; states[state_count] = 0
               };
               forget_transaction(); goto running
#endif
            fi
        :: else
        fi;
        CRASH_HERE;
#ifdef PMEM
#if defined(NOTES) && defined(MUTANT_NOTED_EARLY)
        atomic { note() };
        CRASH_HERE;
#endif
        d_step {
#ifndef MUTANT_NO_FENCE
            fence_medium();
#endif
            home = epoch - 1; durable = epoch;
            states[0] = states[1]; states[1] = 0; state_count = 1
        }
#if defined(NOTES) && !defined(MUTANT_NOTED_EARLY) && !defined(MUTANT_NOT_NOTED)
        atomic { note() };
#endif
#else
        proved = FENCED(part);
#endif

        /* Home. */
        d_step {
            if :: how[BODY] == FRESH -> newest_fresh = epoch :: else fi;
            for (i : 0 .. ITEMS - 1) {
                if
                :: how[i] == LOGGED || i == BODY && neighbour ->
                    h[i] = n[i];
#ifndef PMEM
                    if :: since[i] == 0 -> since[i] = epoch :: else fi;
                    changed[i] = epoch
#endif
                :: else
                fi
            }
            i = 0
        }
#ifdef PMEM
        do
        :: j < ITEMS ->
            if :: atomic { how[j] == LOGGED -> write_item(j, n[j]) } :: how[j] != LOGGED fi;
            j++;
            CRASH_HERE
        :: j == ITEMS -> j = 0; break
        od;
#endif
        epoch++;
        forget_transaction()
    }
    goto running;

crash:
    atomic {
        forget_transaction();
        d_step {
            crashes++;
            forget_recovery();
            for (i : 0 .. ITEMS - 1) { h[i] = 0; since[i] = 0; changed[i] = 0 }
            for (i : 0 .. SEGMENTS - 1) { newest[i] = 0 }
            epoch = 0; durable = 0; proved = 0; home = 0; newest_fresh = 0; segment = 0; end = 0;
            CLEAR_SCRATCH
        }
        if
        :: d_step { true -> /* the power fails */
               printf("POWER FAILURE\n");
               for (i : 0 .. ITEMS - 1) { c[i] = m[i] }
               for (i : 0 .. UNITS - 1) { c_log[i] = m_log[i] }
#ifdef NOTES
               c_noted = m_noted;
#endif
               c_base = m_base; i = 0 }
        :: printf("PROCESS DIES\n")
#ifdef NOTES
        :: at_rest && !rotten -> printf("PROCESS DIES\n"); rot()
#endif
        fi
    }
    atomic {

    d_step { read_log() };
#ifdef NOTES
    at_rest = false;
    if
    :: found < c_noted -> printf("refused\n"); assert(rotten); goto done
    :: found >= c_noted
    fi;
#endif
    d_step { plan_replay() }
    if
    :: any ->
#ifndef MUTANT_RELY_UNDURABLE
        d_step { make_durable() };
        CRASH_HERE;
#endif
        /* The table first. */
        if
        :: set[TABLE] -> atomic { write_item(TABLE, to[TABLE]) }; CRASH_HERE
        :: !set[TABLE]
        fi;
        do
        :: j < ITEMS ->
            if
            :: j != TABLE && set[j] -> atomic { write_item(j, to[j]) }; CRASH_HERE
            :: j == TABLE || !set[j]
            fi;
            j++
        :: j == ITEMS -> break
        od;
        j = 0;
#ifndef MUTANT_BASE_IN_ROUND
        d_step { settle() };
        CRASH_HERE
#endif
    :: !any
    fi;
#ifdef MUTANT_NO_BASE
    epoch = found + 1;
    d_step { check_and_open() };
    epoch = found + 1; durable = found; proved = found; home = found;
#else
    atomic { c_base = found + BASE_STEP; if :: MAY_CRASH -> m_base = c_base :: true fi };
    CRASH_HERE;
    d_step {
#ifdef MUTANT_BASE_IN_ROUND
        settle();
#endif
        m_base = c_base;
#ifdef NOTES
        m_noted = c_noted;
#endif
        check_and_open()
    };
#endif
    d_step { forget_recovery() }
    }
    if :: MAY_CRASH -> goto running :: else fi;

done:
    skip
}
