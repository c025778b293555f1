/*
 * The log engine: what a rollback, or a commit that fails, leaves in the file. Before the program's record
 * the cleaner may have written records, and pm_put() the contents of early parts (E1 to E3 of early.c). Rules
 * are numbered as in docs/internals/log.md.
 *
 *   transaction ──► stores, values handed over, frees │ steps of the cleaner, chunks made void
 *        ├── commit: the early parts' headers, a part with all else, a fence
 *        ├── commit that fails: it erases what it has written (L12), and the transaction goes on
 *        └── rollback
 *
 *   X      data
 *   M      a bitmap: which values are live
 *   A, B   values. A value is handed over. Or it is an object of zeros, to which nobody stores
 *
 * A chunk has SLOTS parts. The contents of an ordinary part come with its header. Those of an early part are
 * in `body` from the beginning. The commit writes its header, with the checksum of the contents, to `part`.
 *
 * Two copies of everything: `c` is the cache, `m` the medium. A write may reach the medium at once, or not
 * before a fence. All commits are fenced (pmem). Before a chunk becomes void, the base says what is durable,
 * as in log_reclaim(). Recovery erases what it cuts off. log.pml is for generations and seals.
 */

#ifndef TRIES
#define TRIES 3 /* commits and rollbacks */
#endif
#ifndef STEPS
#define STEPS 3 /* of a transaction */
#endif
#ifndef CLEANS
#define CLEANS 1
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef FAILS
#define FAILS 1 /* writes that fail */
#endif
#ifndef CHUNKS
#define CHUNKS 3
#endif
#define SLOTS     2
#define ALL_SLOTS (CHUNKS * SLOTS)
#define NOWHERE   15

#define X     0
#define M     1
#define A     2
#define B     3
#define WORDS 4

/* Streams. */
#define PROGRAM 0
#define CLEANER 1
#define VALUES  2

/* A part's header, and the pieces of an ordinary one. An early part has one piece: it is the sum. */
#define EPOCH(p)    ((p) & 15)
#define NUMBER(p)   ((p) >> 4 & 3)
#define LAST        (1 << 6)
#define EARLY       (1 << 7)
#define HAS(p, w)   (((p) >> (8 + 4 * (w)) & 15) != 0)
#define VALUE(p, w) (((p) >> (8 + 4 * (w)) & 15) - 1)
#define PIECE(w, v) (((v) + 1) << (8 + 4 * (w)))
#define RANK(p)     (EPOCH(p) * 4 + NUMBER(p))

/* The map as a part has it (L13). */
#define MAP(map, w) ((map) >> 4 * (w) & 15)

#define ORDINARY 15 /* in `body`: it belongs to the part */

/* ---- what a crash leaves, and what it does not ------------------------------------------------ */

int c_part[ALL_SLOTS], m_part[ALL_SLOTS];
int c_map[ALL_SLOTS], m_map[ALL_SLOTS];
byte c_body[ALL_SLOTS], m_body[ALL_SLOTS];
bool c_begun[CHUNKS], m_begun[CHUNKS]; /* false: the chunk is void */
byte c_base, m_base;

byte epoch;
byte use[CHUNKS];
byte end[CHUNKS];   /* parts that count */
byte open[3];       /* the chunk of each stream, or NOWHERE */
byte place[WORDS];  /* the slot of each word's piece, or NOWHERE */
bool is_left[WORDS];

#define FREE  0
#define TAKEN 1 /* by an early part */
#define USED  2

/* The last commit; the open transaction; and which words it must log. */
byte home[WORDS], view[WORDS];
bool changes[WORDS];

byte early_count, early_word[2], early_slot[2], early_value[2];

/* L12: the slots of a record that failed, and what it would have made of home. */
byte stale; /* a bit for each slot */
byte attempted[WORDS];
bool is_attempted; /* it may count after a crash */

byte tries, steps, cleans, crashes, fails;

/* The record to be written. */
byte count, where[3];
int part[3], map;

/* What recovery found. */
byte valid[CHUNKS], found, at[WORDS], value[WORDS], rank[WORDS];
bool refuses;

/* Scratch, zero between steps. */
byte i, j, k, u, w;
bool ok;

#define CLEAR_SCRATCH i = 0; j = 0; k = 0; u = 0; w = 0; ok = false

#define MAY_CRASH  (crashes < CRASHES)
#define CRASH_HERE if :: MAY_CRASH -> goto crash :: true fi

#define OWNED(m, w) ((w) < A || ((m) & ((w) == A -> 1 : 2)))
#define BIT(w)      ((w) == A -> 1 : 2)
#define IS_EARLY(w) (early_count > 0 && early_word[0] == (w) || early_count > 1 && early_word[1] == (w))
#define LIVE(ch) \
    (place[X] / SLOTS == (ch) || place[M] / SLOTS == (ch) || place[A] / SLOTS == (ch) || \
     place[B] / SLOTS == (ch))

/* ---- the medium ------------------------------------------------------------------------------- */

/* Ordinary contents come with the header. The write may be torn. */
inline write_part(s, what, says)
{
    c_part[s] = what;
    c_map[s] = says;
    if :: what & EARLY :: else -> c_body[s] = ORDINARY fi;
    if
    :: true
    :: MAY_CRASH -> m_part[s] = c_part[s]; m_map[s] = c_map[s];
       if :: what & EARLY :: else -> m_body[s] = ORDINARY fi
    :: MAY_CRASH -> m_part[s] = 0; m_map[s] = 0
    fi
}

inline write_body(s, what)
{
    c_body[s] = what;
    if :: true :: MAY_CRASH -> m_body[s] = c_body[s] fi
}

inline write_begun(ch, what)
{
    c_begun[ch] = what;
    if :: MAY_CRASH -> m_begun[ch] = c_begun[ch] :: true fi
}

inline write_base(what)
{
    c_base = what;
    if :: MAY_CRASH -> m_base = c_base :: true fi
}

inline fence()
{
    d_step {
        for (i : 0 .. ALL_SLOTS - 1) {
            m_part[i] = c_part[i]; m_map[i] = c_map[i]; m_body[i] = c_body[i]
        }
        for (i : 0 .. CHUNKS - 1) { m_begun[i] = c_begun[i] }
        m_base = c_base; i = 0
    }
}

/* ---- chunks ----------------------------------------------------------------------------------- */

/* A free chunk in u, or NOWHERE. */
inline find_free()
{
    u = NOWHERE;
    for (i : 0 .. CHUNKS - 1) { if :: use[i] == FREE && u == NOWHERE -> u = i :: else fi }
    i = 0
}

/* The next slot of a stream in u, or NOWHERE. A chunk that is taken is used only when the record counts. */
inline find_slot(stream)
{
    if
    :: open[stream] != NOWHERE && end[open[stream]] < SLOTS ->
        u = open[stream] * SLOTS + end[open[stream]]
    :: else -> find_free(); u = (u == NOWHERE -> NOWHERE : u * SLOTS)
    fi
}

/* E1: where the next early part goes, in u, or NOWHERE. */
inline find_early()
{
    if
    :: early_count == 0 -> find_slot(VALUES)
#ifdef MUTANT_SAME_PLACE
    :: early_count > 0 -> u = early_slot[0]
#else
    :: early_count > 0 && early_slot[0] % SLOTS < SLOTS - 1 -> u = early_slot[0] + 1
    :: else -> find_free(); u = (u == NOWHERE -> NOWHERE : u * SLOTS)
#endif
    fi
}

/* E1: the chunk may lose its pieces, or become void. */
#ifdef MUTANT_EARLY_VICTIM
#define HAS_EARLY(ch) false
#else
#define HAS_EARLY(ch) (early_count > 0 && open[VALUES] == (ch))
#endif

#define MAY_BE_VOID(ch) (use[ch] == USED && !LIVE(ch) && !HAS_EARLY(ch))

inline leave(ch)
{
    for (i : 0 .. 2) { if :: open[i] == ch -> open[i] = NOWHERE :: else fi }
    i = 0
}

/* ---- records ---------------------------------------------------------------------------------- */

inline add_part(s, what)
{
    part[count] = what | epoch | count << 4;
    where[count] = s;
    count++
}

/* Where the words will be. */
inline tell_map(bitmap)
{
    part[count - 1] = part[count - 1] | LAST;
    map = 0;
    for (w : 0 .. WORDS - 1) {
        u = place[w];
        for (i : 0 .. count - 1) { if :: HAS(part[i], w) -> u = where[i] :: else fi }
#ifndef MUTANT_FREED_COUNTS
        u = (OWNED(bitmap, w) -> u : NOWHERE);
#else
        u = (OWNED(bitmap, w) || IS_EARLY(w) -> u : NOWHERE);
#endif
        map = map | u << 4 * w
    }
    w = 0; i = 0; u = 0
}

/* The record counts. */
inline install(stream)
{
    for (i : 0 .. count - 1) {
        u = where[i] / SLOTS;
        use[u] = USED;
        end[u] = where[i] % SLOTS + 1;
        open[((part[i] & EARLY) -> VALUES : stream)] = u
    }
    for (w : 0 .. WORDS - 1) {
        if
        :: place[w] != NOWHERE && MAP(map, w) == NOWHERE -> is_left[w] = true
        :: MAP(map, w) != NOWHERE -> is_left[w] = false
        :: else
        fi;
        place[w] = MAP(map, w)
    }
    i = 0; u = 0; w = 0
}

inline forget_record()
{
    for (i : 0 .. 2) { part[i] = 0; where[i] = 0 }
    i = 0; count = 0; map = 0
}

inline forget_early()
{
    for (i : 0 .. CHUNKS - 1) { if :: use[i] == TAKEN -> use[i] = FREE :: else fi }
    for (i : 0 .. 1) { early_word[i] = 0; early_slot[i] = 0; early_value[i] = 0 }
    i = 0; early_count = 0
}

inline forget_attempt()
{
    for (i : 0 .. WORDS - 1) { attempted[i] = 0 }
    i = 0; is_attempted = false
}

/* The transaction has ended. */
inline begin_transaction()
{
    for (i : 0 .. WORDS - 1) { view[i] = home[i]; changes[i] = false }
    i = 0; steps = 0;
    forget_early()
}

/* The write of part k fails. It may be whole nevertheless: what is missing may be zero. */
inline fail()
{
    printf("part %d cannot be written\n", k + 1);
    fails++;
#ifndef MUTANT_STALE_KEPT
    for (i : 0 .. k) { stale = stale | 1 << where[i] }
#endif
    i = 0
}

/* L12: erase what a record has left that failed. */
inline erase_stale()
{
    do
    :: atomic { k < ALL_SLOTS ->
           if
           :: stale & 1 << k ->
               if :: c_part[k] & EARLY :: else -> c_body[k] = 0; fi;
               c_part[k] = 0; c_map[k] = 0;
               if
               :: MAY_CRASH -> m_part[k] = 0; m_map[k] = 0; m_body[k] = c_body[k]
               :: true
               fi
           :: else
           fi;
           k++ }
       CRASH_HERE
    :: atomic { k == ALL_SLOTS -> k = 0; break }
    od;
#ifndef MUTANT_ERASE_UNFENCED
    fence();
#endif
    skip;
    d_step { stale = 0; forget_attempt() }
}

#define ERASE_STALE if :: stale -> erase_stale() :: !stale fi

/* ---- recovery --------------------------------------------------------------------------------- */

#ifdef MUTANT_HEADER_ALONE
#define IS_WHOLE(s) (c_part[s] != 0)
#else
#define SUM(p)      ((p) >> (HAS(p, A) -> 8 + 4 * A : 8 + 4 * B)) /* and one */
#define IS_WHOLE(s) (c_part[s] != 0 && ((c_part[s] & EARLY) -> SUM(c_part[s]) == c_body[s] + 1 : \
                                                               c_body[s] == ORDINARY))
#endif

inline read_chunks()
{
    for (j : 0 .. CHUNKS - 1) {
        ok = c_begun[j];
        valid[j] = 0;
        u = 0;
        for (i : 0 .. SLOTS - 1) {
            ok = ok && IS_WHOLE(j * SLOTS + i) && RANK(c_part[j * SLOTS + i]) > u;
            if :: ok -> valid[j]++; u = RANK(c_part[j * SLOTS + i]) :: else fi
        }
    }
    CLEAR_SCRATCH
}

/* L2: above the base only an unbroken run of whole records counts. */
inline find_end()
{
    found = c_base;
    do
    :: true ->
        k = 0; u = 0; /* which parts are there, and which there must be */
        for (j : 0 .. CHUNKS - 1) {
            for (i : 0 .. SLOTS - 1) {
                if
                :: i < valid[j] && EPOCH(c_part[j * SLOTS + i]) == found + 1 ->
                    k = k | 1 << NUMBER(c_part[j * SLOTS + i]);
                    if
                    :: c_part[j * SLOTS + i] & LAST -> u = (2 << NUMBER(c_part[j * SLOTS + i])) - 1
                    :: else
                    fi
                :: else
                fi
            }
        }
        if :: u != 0 && k == u -> found++ :: else -> break fi
    od;
    for (j : 0 .. CHUNKS - 1) {
        for (i : 0 .. SLOTS - 1) {
            if
            :: i < valid[j] && EPOCH(c_part[j * SLOTS + i]) > found -> valid[j] = i
            :: else
            fi
        }
    }
    CLEAR_SCRATCH
}

#define CONTENTS(s, w) ((c_part[s] & EARLY) -> c_body[s] : VALUE(c_part[s], w))

inline find_words()
{
    for (w : 0 .. WORDS - 1) {
        at[w] = NOWHERE; value[w] = 0; rank[w] = 0;
        for (j : 0 .. ALL_SLOTS - 1) {
            if
            :: j % SLOTS < valid[j / SLOTS] && HAS(c_part[j], w) && RANK(c_part[j]) > rank[w] ->
                rank[w] = RANK(c_part[j]);
                value[w] = CONTENTS(j, w);
                at[w] = j
            :: else
            fi
        }
        if
        :: !OWNED(value[M], w) -> /* L14 */
            is_left[w] = (at[w] != NOWHERE);
            at[w] = NOWHERE; value[w] = 0
        :: else
        fi
    }
    CLEAR_SCRATCH
}

/* L13 */
inline compare_map()
{
    for (j : 0 .. ALL_SLOTS - 1) {
        if
        :: j % SLOTS < valid[j / SLOTS] && EPOCH(c_part[j]) == found ->
            ok = true;
            for (w : 0 .. WORDS - 1) { refuses = refuses || MAP(c_map[j], w) != at[w] }
        :: else
        fi
    }
    refuses = refuses || found > 0 && !ok;
    CLEAR_SCRATCH
}

#define IS(x, m, a, b) (value[X] == x && value[M] == m && value[A] == a && value[B] == b)

inline check()
{
    printf("recovered: epoch %d, x %d m %d a %d b %d\n", found, value[X], value[M], value[A], value[B]);
    if :: refuses -> printf("REFUSED\n") :: else fi;
    assert(!refuses);
    assert(IS(home[X], home[M], home[A], home[B]) ||
           is_attempted && IS(attempted[X], attempted[M], attempted[A], attempted[B]))
}

inline open_container()
{
    for (i : 0 .. WORDS - 1) {
        home[i] = value[i]; place[i] = at[i];
        value[i] = 0; at[i] = 0; rank[i] = 0
    }
    for (i : 0 .. CHUNKS - 1) {
        end[i] = valid[i];
        use[i] = (valid[i] > 0 -> USED : FREE);
        c_begun[i] = (valid[i] > 0);
        for (j : 0 .. SLOTS - 1) {
            if
            :: j >= valid[i] ->
                c_part[i * SLOTS + j] = 0; c_map[i * SLOTS + j] = 0; c_body[i * SLOTS + j] = 0
            :: else
            fi
        }
        valid[i] = 0
    }
    for (i : 0 .. 2) { open[i] = NOWHERE }
    c_base = found; epoch = found + 1; found = 0; stale = 0;
    forget_attempt();
    begin_transaction();
    CLEAR_SCRATCH
}

/* ---- the container's life --------------------------------------------------------------------- */

#define STORED (2 * tries + 2) /* what this transaction hands over; and one more: what it stores */

inline hand_over(x)
{
    u = NOWHERE;
    find_early();
    if
    :: u == NOWHERE -> steps = STEPS
    :: else ->
        printf("value %d is handed over: slot %d\n", x, u);
        if :: use[u / SLOTS] == FREE -> use[u / SLOTS] = TAKEN :: else fi;
        view[M] = view[M] | BIT(x); changes[M] = true;
        view[x] = STORED;
#ifndef MUTANT_NOT_LEFT
        is_left[x] = true; /* E3 */
#endif
        early_word[early_count] = x; early_slot[early_count] = u; early_value[early_count] = STORED;
        early_count++;
        write_body(u, STORED)
    fi;
    u = 0
}

active proctype container()
{
    d_step {
        epoch = 1;
        for (i : 0 .. WORDS - 1) { place[i] = NOWHERE }
        for (i : 0 .. 2) { open[i] = NOWHERE }
        i = 0
    }

running:
    if
    :: atomic { steps < STEPS && tries < TRIES ->
           steps++;
           if
           :: !changes[X] -> view[X] = STORED; changes[X] = true
           :: view[M] & 1 -> view[A] = STORED + 1; changes[A] = true
           :: view[M] & 1 -> view[M] = view[M] & 2; view[A] = 0; changes[A] = false; changes[M] = true
           :: view[M] & 2 -> view[M] = view[M] & 1; view[B] = 0; changes[B] = false; changes[M] = true
           :: !(view[M] & 1) && !(home[M] & 1) -> /* an object of zeros */
               printf("object %d is zero\n", A);
               view[M] = view[M] | 1; changes[M] = true; changes[A] = is_left[A]
#ifdef MUTANT_EARLY_OVER_STALE
           :: !(view[M] & 1) && !(home[M] & 1) && !IS_EARLY(A) -> hand_over(A)
           :: !(view[M] & 2) && !(home[M] & 2) && !IS_EARLY(B) -> hand_over(B)
#else
           :: !stale && !(view[M] & 1) && !(home[M] & 1) && !IS_EARLY(A) -> hand_over(A) /* E2 */
           :: !stale && !(view[M] & 2) && !(home[M] & 2) && !IS_EARLY(B) -> hand_over(B)
#endif
           :: else -> steps = STEPS
           fi
       }
       goto running
    :: atomic { cleans < CLEANS && tries < TRIES -> cleans++ } goto clean
    :: d_step { MAY_BE_VOID(0) -> j = 0 } goto reclaim
    :: d_step { MAY_BE_VOID(1) -> j = 1 } goto reclaim
    :: d_step { MAY_BE_VOID(2) -> j = 2 } goto reclaim
#if CHUNKS > 3
    :: d_step { MAY_BE_VOID(3) -> j = 3 } goto reclaim
#endif
    :: atomic { open[VALUES] != NOWHERE &&
#ifndef MUTANT_EARLY_CHUNK_LEFT
           early_count == 0 && /* E1 */
#endif
           true -> open[VALUES] = NOWHERE } goto running
    :: atomic { tries < TRIES && (steps > 0 || stale) -> tries++ } goto rollback
    :: atomic { tries < TRIES && steps > 0 -> tries++ } goto commit
    :: stale -> erase_stale(); goto running
    :: MAY_CRASH -> goto crash
    :: tries == TRIES && !MAY_CRASH -> goto done
    fi;

    /* A step of the cleaner: one word of any chunk. */
clean:
    ERASE_STALE;
    atomic {
        if
        :: w = X
        :: w = M
        :: w = A
        :: w = B
        fi;
        if
        :: place[w] == NOWHERE || HAS_EARLY(place[w] / SLOTS) -> w = 0; goto running
        :: else -> k = place[w] / SLOTS; leave(k); k = 0
        fi;
#ifdef MUTANT_FILLED
        find_slot(VALUES);
#else
        find_slot(CLEANER);
#endif
        if :: u == NOWHERE -> u = 0; w = 0; goto running :: else fi;
        d_step {
            k = u; i = w;
#ifdef MUTANT_CLEANER_READS_VIEW
            add_part(k, PIECE(i, view[i]));
#else
            add_part(k, PIECE(i, home[i]));
#endif
            CLEAR_SCRATCH;
            tell_map(home[M]);
            printf("the cleaner, epoch %d: slot %d\n", epoch, where[0])
        };
        if :: where[0] % SLOTS == 0 -> write_begun(where[0] / SLOTS, true) :: else fi
    }
    CRASH_HERE;
    atomic { write_part(where[0], part[0], map) };
    if
    :: d_step { fails < FAILS -> fail(); forget_record() } goto running
    :: true
    fi;
    atomic {
        d_step {
            install(CLEANER);
            forget_record();
#ifndef MUTANT_EPOCH_SHARED
            epoch++;
#endif
        };
        goto running
    }

    /* Chunk j becomes void, and free. The base says that what emptied it is durable. */
reclaim:
    fence();
    atomic { write_base(epoch - 1) };
    CRASH_HERE;
    fence();
    atomic { leave(j); write_begun(j, false) };
    CRASH_HERE;
    fence();
    d_step { printf("chunk %d is void\n", j); use[j] = FREE; end[j] = 0; j = 0 };
    goto running;

rollback:
#ifndef MUTANT_ROLLBACK_STALE
    ERASE_STALE;
#endif
    skip;
    d_step {
        printf("rollback\n");
        forget_attempt();
#ifdef MUTANT_EPOCH_BACK
        epoch = c_base + 1;
#endif
        begin_transaction()
    };
    goto running;

commit:
    ERASE_STALE;
    atomic {
#ifndef MUTANT_FREED_ALONE
        if
        :: !changes[X] && !changes[A] && !changes[B] && view[M] == home[M] ->
            d_step { printf("nothing to commit\n"); begin_transaction() };
            goto running
        :: else
        fi;
#endif
        d_step {
#ifndef MUTANT_EARLY_LAST
            for (w : 0 .. 1) {
                if
#ifdef MUTANT_HEADER_SKIPPED
                :: w < early_count && OWNED(view[M], early_word[w]) ->
#else
                :: w < early_count ->
#endif
                    add_part(early_slot[w], EARLY | PIECE(early_word[w], early_value[w]))
                :: else
                fi
            }
#endif
            w = 0;
            j = 0; /* the pieces of the other part */
            ok = false;
            map = 0;
            for (w : 0 .. WORDS - 1) {
                if
                :: changes[w] && (w != M || view[M] != home[M]) -> map = map | PIECE(w, view[w]); ok = true
                :: else
                fi
            }
            w = 0;
            u = 0;
            if :: ok -> find_slot(PROGRAM) :: else fi
        };
        if
        :: ok && u == NOWHERE || !ok && count == 0 -> /* no room */
            CLEAR_SCRATCH; forget_record(); goto running
        :: else
        fi;
        d_step {
            k = u;
            if :: ok -> add_part(k, map) :: else fi;
#ifdef MUTANT_EARLY_LAST
            for (w : 0 .. 1) {
                if
                :: w < early_count -> add_part(early_slot[w], EARLY | PIECE(early_word[w], early_value[w]))
                :: else
                fi
            }
#endif
            CLEAR_SCRATCH;
            tell_map(view[M]);
            for (i : 0 .. WORDS - 1) { attempted[i] = view[i] }
            i = 0; is_attempted = true;
            printf("commit %d: x %d m %d a %d b %d\n", epoch, view[X], view[M], view[A], view[B])
        }
    }
    do
    :: k < count ->
        CRASH_HERE;
        atomic {
            if :: where[k] % SLOTS == 0 -> write_begun(where[k] / SLOTS, true) :: else fi;
            printf("part %d: slot %d\n", k + 1, where[k]);
            write_part(where[k], part[k], map)
        };
        if
        :: atomic { fails < FAILS -> d_step { fail(); forget_record(); k = 0 } goto running }
        :: true
        fi;
        k++
    :: else -> k = 0; break
    od;
    CRASH_HERE;
    fence();
    d_step {
        install(PROGRAM);
        for (i : 0 .. WORDS - 1) { home[i] = view[i] }
        i = 0;
        forget_record();
        forget_attempt();
        begin_transaction();
        epoch++
    };
    goto running;

crash:
    atomic {
        d_step {
            crashes++;
            forget_record();
            CLEAR_SCRATCH
        };
        if
        :: d_step { true ->
               printf("POWER FAILURE\n");
               for (i : 0 .. ALL_SLOTS - 1) {
                   c_part[i] = m_part[i]; c_map[i] = m_map[i]; c_body[i] = m_body[i]
               }
               for (i : 0 .. CHUNKS - 1) { c_begun[i] = m_begun[i] }
               c_base = m_base; i = 0 }
        :: printf("PROCESS DIES\n")
        fi;
        d_step { read_chunks(); find_end(); find_words(); compare_map(); check() };
        if :: MAY_CRASH :: else -> goto done fi;
        d_step { open_container() };
        fence()
    }
    goto running;

done:
    skip
}
