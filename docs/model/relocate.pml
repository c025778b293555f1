/*
 * A move of a container's pointers to other addresses (src/pointer/relocate.c), which needs no log:
 * openings that begin one, that go on with one, and that do both. The rules are numbered as there.
 * README.md says what is abstracted, and how to run it.
 *
 * Three copies of everything: `h` is home as the library sees it; `c` is the cache (of the CPU, or
 * the kernel's pages of the file), which the death of the process spares; `m` is the medium. What
 * is written to the cache may reach the medium at once or not before a fence, which is decided
 * word by word where it is written: so a power failure is no more than c = m. With PMEM home is the
 * cache.
 *
 * Nothing is counted, so there is no bound: openings and crashes go on until no state is new.
 */

/* A container at base b has the addresses b to b + SIZE - 1. Nobody points to the first, where the
 * header is, but to b + SIZE, the end, somebody does. Where one ends another begins. */
#define SIZE 2
#ifdef MUTANT_OVERLAP /* V1 */
#define PLACE(n) (1 + (n))
#else
#define PLACE(n) (1 + SIZE * (n))
#endif

#if defined(MUTANT_END_LEFT)
#define LEADS_TO(word, b) ((word) >= (b) && (word) < (b) + SIZE)
#elif defined(MUTANT_HEADER_TOO)
#define LEADS_TO(word, b) ((word) >= (b) && (word) <= (b) + SIZE)
#else
#define LEADS_TO(word, b) ((word) > (b) && (word) <= (b) + SIZE)
#endif

/* Two lines of two words of data, all mapped but the last; and the line of the state page. */
#define UNMAPPED 3
#define WORDS    4
#define BASE     4
#define TARGET   5
#define MOVABLE  6
#define ITEMS    7
#define LINE(i)  ((i) < WORDS -> (i) / 2 : 2)
#define LINES    3

#define NOW  1
#define ONCE 2

#ifdef PMEM
#define h c
#else
byte h[ITEMS];
#endif
byte c[ITEMS], m[ITEMS];
bool written_back[LINES]; /* in this round; on a file: queued */

byte offset[WORDS]; /* what the word means; 0: NULL, wherever the container is */
bool bare;          /* the unmapped word is a pointer, else a number that looks like one */
byte number;

byte meant, place, to;

/* Scratch, zero between steps. */
byte i;

#define CRASH_HERE if :: goto crash :: true fi

/* ---- the medium ------------------------------------------------------------------------------- */

inline write(at, value)
{
    c[at] = value; /* whose expression may name it: once */
    if
    :: m[at] = c[at]; printf("item %d is %d, durable\n", at, c[at])
    :: printf("item %d is %d\n", at, c[at])
    fi
}

/* A store to home. */
inline store(at, value)
{
#ifdef PMEM
    write(at, value)
#else
    h[at] = value
#endif
}

inline fence()
{
    d_step {
        for (i : 0 .. ITEMS - 1) {
#ifdef PMEM
            if :: written_back[LINE(i)] -> m[i] = c[i] :: else fi
#else
            m[i] = c[i]
#endif
        }
        for (i : 0 .. LINES - 1) { written_back[i] = false }
        i = 0
    }
}

/* What was written back is durable. */
inline settle()
{
#ifndef PMEM
    do
    :: atomic { i < WORDS && written_back[LINE(i)] -> write(i, h[i]) }; CRASH_HERE; i++
    :: i < WORDS && !written_back[LINE(i)] -> i++
    :: i == WORDS -> break
    od;
    i = 0;
#endif
    fence()
}

/* Store a word of the state page, and its round. */
inline begin_publish(at, value)
{
    atomic {
#ifndef PMEM
        h[at] = value;
#endif
        write(at, value);
        written_back[LINE(at)] = true
    };
    CRASH_HERE
}

inline publish(at, value)
{
    begin_publish(at, value);
    fence();
    CRASH_HERE
}

/* ---- a move ----------------------------------------------------------------------------------- */

inline move_word(at)
{
    if
    :: LEADS_TO(h[at], h[BASE]) -> store(at, h[at] - h[BASE] + to); written_back[LINE(at)] = true
    :: else ->
#ifndef MUTANT_MOVED_LEFT
        written_back[LINE(at)] = true
#endif
    fi
}

#ifdef MUTANT_UNMAPPED_TOO
#define MAPPED(at) true
#else
#define MAPPED(at) ((at) != UNMAPPED)
#endif

inline move()
{
#if defined(MUTANT_TARGET_IN_ROUND)
    begin_publish(TARGET, to);
#elif defined(MUTANT_TARGET_ONCE)
    if :: h[TARGET] != to -> publish(TARGET, to) :: h[TARGET] == to fi;
#else
    publish(TARGET, to);
#endif
    do
    :: atomic { i < WORDS && MAPPED(i) -> move_word(i) }; CRASH_HERE; i++
    :: i < WORDS && !MAPPED(i) -> i++
    :: i == WORDS -> break
    od;
    i = 0;
#ifndef MUTANT_BASE_IN_ROUND
    settle();
    CRASH_HERE;
#endif
#ifdef MUTANT_CLEAR_IN_ROUND
    begin_publish(BASE, to);
#else
    publish(BASE, to);
#endif
    publish(TARGET, 0);
    to = 0
}

/* What is visible and what is durable: each mapped word moved once, the other not at all. */
#define WORD(at) \
    ((at) == UNMAPPED -> (bare -> h[BASE] + 1 : number) : (offset[at] -> h[BASE] + offset[at] : 0))

inline check()
{
    printf("open at %d: %d %d, %d %d\n", place, h[0], h[1], h[2], h[3]);
    d_step {
        assert(h[BASE] == place && h[TARGET] == 0);
        assert(m[BASE] == place && (m[TARGET] == 0 || m[TARGET] == place));
        for (i : 0 .. WORDS - 1) { assert(h[i] == WORD(i) && m[i] == h[i]) }
        i = 0
    }
}

/* ---- the container's life --------------------------------------------------------------------- */

active proctype container()
{
    /* A pointer to something, one to the end, and anything. */
    atomic {
        offset[0] = 1; offset[1] = SIZE;
        if :: offset[2] = 0 :: offset[2] = 1 :: offset[2] = SIZE fi;
        if :: number = PLACE(0) + 1 :: number = PLACE(1) + 1 :: number = PLACE(2) + 1 fi;
        d_step {
            c[BASE] = PLACE(0); c[MOVABLE] = NOW;
            for (i : 0 .. UNMAPPED - 1) { c[i] = (offset[i] -> PLACE(0) + offset[i] : 0) }
            c[UNMAPPED] = number;
            for (i : 0 .. ITEMS - 1) { m[i] = c[i] }
            i = 0
        }
    }

opening:
    atomic {
        /* Others may be there; then it opens elsewhere, or not at all. */
        meant = (c[TARGET] -> c[TARGET] : c[BASE]);
#ifndef PMEM
        d_step { for (i : 0 .. ITEMS - 1) { h[i] = c[i] } i = 0 };
#endif
        if
        :: place = meant
        :: h[MOVABLE] == NOW && meant != PLACE(0) -> place = PLACE(0)
        :: h[MOVABLE] == NOW && meant != PLACE(1) -> place = PLACE(1)
        :: h[MOVABLE] == NOW && meant != PLACE(2) -> place = PLACE(2)
        fi;
        meant = 0
    }
    do
#ifdef MUTANT_NOT_COMPLETED
    :: h[BASE] != place || h[TARGET] != 0 -> to = place; move()
    :: h[BASE] == place && h[TARGET] == 0 -> break
#else
    :: h[TARGET] != 0 -> to = h[TARGET]; move()
    :: h[TARGET] == 0 && h[BASE] != place -> to = place; move()
    :: h[TARGET] == 0 && h[BASE] == place -> break
#endif
    od;
    check();

    /* The program, if it does not vouch for its pointers. */
    if
#ifdef MUTANT_ONCE_UNDURABLE
    :: h[MOVABLE] == NOW -> publish(MOVABLE, ONCE)
    :: h[MOVABLE] == ONCE
#else
    :: publish(MOVABLE, ONCE)
#endif
    :: goto crash
    fi;
    d_step { /* a commit */
        bare = true;
        h[UNMAPPED] = WORD(UNMAPPED); c[UNMAPPED] = h[UNMAPPED]; m[UNMAPPED] = h[UNMAPPED]
    }

crash: /* or the container is closed */
    atomic {
        place = 0; to = 0;
        d_step { for (i : 0 .. LINES - 1) { written_back[i] = false } i = 0 };
        if
        :: d_step { true -> /* the power fails */
               printf("POWER FAILURE\n");
               for (i : 0 .. ITEMS - 1) { c[i] = m[i] }
               i = 0 }
        :: printf("PROCESS DIES\n")
        fi
    }
    goto opening
}
