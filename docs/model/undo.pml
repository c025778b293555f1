/*
 * The undo engine: first stores, hot pages, commit in one round, rollback, claiming of log, recovery.
 * Rules are numbered as in docs/internals/undo.md. README.md says what is abstracted, and how to run it.
 *
 * View and home are one, so there are two copies of everything: `c` is the CPU's cache, which the
 * death of the process spares; `m` is the medium. What is stored may be evicted at once or not
 * before a fence, which is decided where it is stored: so a power failure is no more than c = m.
 *
 *   page 0   always has a live object
 *   page 1   in the segment S, if that is DATA: then BITS says whether it has a live object
 *   TABLE    whose S is: FREE, DATA or LOG
 *   BITS     the bitmap of S, which lies in S; where it lies is an image of page 0 if S is LOG
 *
 * An image and a record are integers; both are checksummed, so torn they are 0. With NOTES one of
 * them may rot in a container whose process died between steps; recovery may then refuse it.
 */

#ifndef COMMITS
#define COMMITS 3 /* that may be begun */
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef STEPS
#define STEPS 3 /* stores, allocations and frees in a transaction */
#endif

#define FREE 0
#define DATA 1
#define LOG  2 /* and 3, for the other half */
#define IS_LOG(word) ((word) >= LOG)
#define JUNK 2 /* in place of the bitmap, when S is log */

/* Items: two pages and two words. */
#define TABLE 2
#define BITS  3
#define ITEMS 4

/* An image: epoch, and the contents of its page. Where it lies says of which. Half h has places
 * 2h and 2h + 1, one a page; place 4 is in S. */
#define PLACES         5
#define IN_S           4
#define IMAGE(e, page) ((e) << 1 | (page))

/* A record: epoch, and of each item whether it is there, and what it has. */
#define EPOCH(record)    ((record) & 31)
#define HAS(record, i)   ((record) >> (5 + 4 * (i)) & 1)
#define VALUE(record, i) ((record) >> (6 + 4 * (i)) & 7)
#define ITEM(i, v)       (1 << (5 + 4 * (i)) | (v) << (6 + 4 * (i)))

/* U6. (The code takes 4.) */
#ifdef MUTANT_BASE_ONE
#define BASE_STEP 1
#else
#define BASE_STEP 2
#endif

#ifdef MUTANT_ONE_HALF
#define HALF(e) 0
#else
#define HALF(e) ((e) % 2)
#endif
#ifdef MUTANT_ONE_RECORD
#define RECORD_OF(e) 0
#else
#define RECORD_OF(e) HALF((e) + 1)
#endif

byte c[ITEMS], m[ITEMS];
byte c_base, m_base;
int c_image[PLACES], m_image[PLACES], c_record[2], m_record[2];
#ifdef NOTES /* U11 */
byte c_noted, m_noted;
int c_noted_images, m_noted_images; /* epoch, and a bit a place */
bool at_rest, rotten;
#endif
bool unfenced[ITEMS]; /* words written back, but by a round without a fence yet */

byte epoch;
bool open[2], listed[2];
byte image_at[2]; /* 1 more than the place of the page's image of this epoch; 0: none, it is fresh */
bool fresh[2];
byte shadow[ITEMS]; /* of the words */

/* The state that was committed last, and the one being committed, if any. */
byte committed, coming;

byte commits, crashes, steps, rollbacks;

/* Of the commit. */
bool flush[2], live, hot;
byte ahead[2]; /* 1 more than the place of the image for the next epoch */
int record;

/* What recovery found. */
byte found;
bool set[ITEMS], relied[2], any, refused;
byte to[ITEMS];

/* Scratch, zero between steps. */
byte i, x, place;
bool ok, holds;
int last, before;

#define IS_LIVE(words) (words[TABLE] == DATA && words[BITS] == 1)
#define STATE(words)   (c[0] + (words[TABLE] != DATA -> 0 : (words[BITS] != 1 -> 2 : 4 + 2 * c[1])))

/* What the medium has matters, and is different in different runs, only while a crash may come. */
#define MAY_CRASH  (crashes < CRASHES)
#define CRASH_HERE if :: MAY_CRASH -> goto crash :: true fi

/* ---- the medium ------------------------------------------------------------------------------- */

/* To the cache, and perhaps further. Bitmap and log of S are in one place. */
inline store(at, value)
{
    c[at] = value;
    if :: at == BITS -> c_image[IN_S] = 0 :: else fi;
    if
    :: true
    :: MAY_CRASH -> m[at] = c[at]; if :: at == BITS -> m_image[IN_S] = 0 :: else fi
    fi
}

inline write_image(at, value)
{
    c_image[at] = value;
    if :: at == IN_S -> c[BITS] = JUNK; unfenced[BITS] = false :: else fi;
    if
    :: true
    :: MAY_CRASH -> m_image[at] = value; if :: at == IN_S -> m[BITS] = JUNK :: else fi
    :: MAY_CRASH -> m_image[at] = 0; if :: at == IN_S -> m[BITS] = JUNK :: else fi
    fi
}

/* The round ends: what was copied past the cache, words of the last commit, pages to be flushed. */
inline fence()
{
    d_step {
        for (i : 0 .. 3) { m_image[i] = c_image[i] }
        if :: c[BITS] == JUNK || unfenced[BITS] -> m[BITS] = c[BITS]; m_image[IN_S] = c_image[IN_S] :: else fi;
        if :: unfenced[TABLE] -> m[TABLE] = c[TABLE] :: else fi;
        for (i : 0 .. 1) {
            m_record[i] = c_record[i];
            if :: flush[i] -> m[i] = c[i] :: else fi;
            flush[i] = false
        }
        unfenced[TABLE] = false; unfenced[BITS] = false; i = 0
    }
}

/* What was fenced; never waited for. */
#if defined(NOTES) && !defined(MUTANT_NOT_NOTED)
inline note_record()
{
    atomic { c_noted = epoch; if :: MAY_CRASH -> m_noted = epoch :: true fi }
}
#else
#define note_record()
#endif

#if defined(NOTES) && !defined(MUTANT_IMAGES_NOT_NOTED)
inline note_images()
{
    atomic {
        c_noted_images = epoch << PLACES;
        for (i : 0 .. 1) {
            if :: image_at[i] != 0 -> c_noted_images = c_noted_images | 1 << (image_at[i] - 1) :: else fi
        }
        i = 0;
        if :: MAY_CRASH -> m_noted_images = c_noted_images :: true fi
    }
}
#else
#define note_images()
#endif

#ifdef NOTES
/* A record or an image, once. */
inline rot()
{
    rotten = true;
    printf("THE LOG ROTS\n");
    if
    :: c_record[0] != 0 -> c_record[0] = 0; m_record[0] = 0
    :: c_record[1] != 0 -> c_record[1] = 0; m_record[1] = 0
    :: c_image[0] != 0 -> c_image[0] = 0; m_image[0] = 0
    :: c_image[1] != 0 -> c_image[1] = 0; m_image[1] = 0
    :: c_image[2] != 0 -> c_image[2] = 0; m_image[2] = 0
    :: c_image[3] != 0 -> c_image[3] = 0; m_image[3] = 0
    :: c_image[IN_S] != 0 -> c_image[IN_S] = 0; m_image[IN_S] = 0
    :: else
    fi
}
#endif

/* ---- the log ---------------------------------------------------------------------------------- */

/* A place for the image of a page at the start of epoch e: in `place`. Claims S, or not. */
inline choose_place(e, page)
{
    if
    :: place = 2 * HALF(e) + page
    :: page == 0 && c[TABLE] == LOG + HALF(e) && shadow[TABLE] == LOG + HALF(e) -> place = IN_S
    :: page == 0 && c[TABLE] == FREE && shadow[TABLE] == FREE ->
        store(TABLE, LOG + HALF(e));
        shadow[TABLE] = LOG + HALF(e); unfenced[TABLE] = true;
        place = IN_S
    fi
}

#ifdef MUTANT_FAULT_UNFENCED
#define FAULT_FENCE
#else
#define FAULT_FENCE fence()
#endif

/* A store that changes a page, and what it takes. */
inline store_to(page)
{
    steps++;
    if
    :: !open[page] && fresh[page] -> open[page] = true
    :: !open[page] && !fresh[page] ->
        choose_place(epoch, page);
        CRASH_HERE;
        atomic {
            write_image(place, IMAGE(epoch, c[page]));
            image_at[page] = place + 1; listed[page] = true;
            place = 0
        }
#ifdef MUTANT_IMAGES_NOTED_EARLY
        note_images();
#endif
        CRASH_HERE;
        FAULT_FENCE;
        note_images();
        open[page] = true
    :: open[page]
    fi;
    atomic { store(page, 1 - c[page]) }
}

/* What a transaction's end leaves of a page. */
inline close(page)
{
    open[page] = false; listed[page] = false; image_at[page] = 0
}

/* ---- recovery --------------------------------------------------------------------------------- */

/* The contents that an image of epoch e has for a page, in `x`; 2 if there is none. */
inline find_image(e, page)
{
    x = 2;
    place = 2 * HALF(e) + page;
    if
    :: c_image[place] >> 1 == e && c_image[place] != 0 -> x = c_image[place] & 1
    :: else ->
        if
        :: page == 0 && c[TABLE] == LOG + HALF(e) && c_image[IN_S] >> 1 == e && c_image[IN_S] != 0 ->
            x = c_image[IN_S] & 1
        :: else
        fi
    fi;
    place = 0
}

/* What a record says of the words, but for what the last record overrules. */
inline take_words(r)
{
    ok = r == last || !HAS(last, TABLE);
    if
    :: HAS(r, TABLE) && ok ->
        if
#ifndef MUTANT_LOG_TAKEN
        :: VALUE(r, TABLE) == FREE && IS_LOG(c[TABLE]) /* U10 */
#endif
        :: else -> set[TABLE] = true; to[TABLE] = VALUE(r, TABLE)
        fi
    :: else
    fi;
#ifdef MUTANT_BITMAP_ANYWHERE
    ok = true;
#endif
    if :: HAS(r, BITS) && ok -> set[BITS] = true; to[BITS] = VALUE(r, BITS) :: else fi
}

/* U11: an image of epoch e that was fenced and is not there. */
inline look_for_noted(e)
{
    for (place : 0 .. PLACES - 1) {
        if
        :: c_noted_images >> PLACES == e && c_noted_images >> place & 1 &&
           (c_image[place] >> 1 != e || place == IN_S && c[TABLE] != LOG + HALF(e)) -> refused = true
        :: else
        fi
    }
    place = 0
}

inline read_log()
{
    last = 0; before = 0;
    for (i : 0 .. 1) {
        if
        :: EPOCH(c_record[i]) > c_base && EPOCH(c_record[i]) > EPOCH(last) ->
            before = last; last = c_record[i]
        :: EPOCH(c_record[i]) > c_base && EPOCH(c_record[i]) < EPOCH(last) -> before = c_record[i]
        :: else
        fi
    }
    found = (last != 0 -> EPOCH(last) : c_base);
    /* U3. */
    holds = true;
    for (i : 0 .. 1) {
        if
        :: HAS(last, i) ->
            find_image(found + 1, i);
#ifdef MUTANT_HOLDS_BY_HOME
            x = 2;
#endif
            if :: c[i] != VALUE(last, i) && x != VALUE(last, i) -> holds = false :: else fi
        :: else
        fi
    }
#ifdef MUTANT_NO_SUM
    holds = true;
#endif
#ifdef NOTES
    look_for_noted(found + 1);
    if :: !holds -> look_for_noted(found) :: else fi;
    if :: (holds -> found : found - 1) < c_noted -> refused = true :: else fi;
    if :: !holds && found - 1 > c_base && before == 0 -> refused = true :: else fi;
#else
    if :: !holds && found - 1 > c_base -> assert(before != 0) :: else fi;
#endif
    if :: before != 0 -> assert(EPOCH(before) + 1 == found) :: else fi;
    /* U4. */
    for (i : 0 .. 1) {
        if :: holds -> find_image(found + 1, i) :: else -> find_image(found, i) fi;
        if :: x != 2 -> set[i] = true; to[i] = x :: else fi;
        relied[i] = HAS(last, i) || HAS(before, i)
    }
    any = last != 0 || set[0] || set[1];
    if :: !holds -> last = 0 :: else fi;
#ifndef MUTANT_ONLY_LAST_WORDS
    take_words(before);
#endif
    take_words(last);
    i = 0; x = 0; ok = false; holds = false; last = 0; before = 0
}

/* U5. */
inline make_durable()
{
    d_step {
        unfenced[TABLE] = true;
        flush[0] = relied[0]; flush[1] = relied[1]
    };
    fence()
}

inline settle()
{
    flush[0] = set[0]; flush[1] = set[1];
    unfenced[TABLE] = set[TABLE]; unfenced[BITS] = set[BITS]
}

inline forget_recovery()
{
    for (i : 0 .. ITEMS - 1) { set[i] = false; to[i] = 0 }
    i = 0; found = 0; any = false; refused = false; relied[0] = false; relied[1] = false
}

inline check_and_open()
{
    printf("recovered: pages %d %d table %d bits %d, base %d\n", c[0], c[1], c[TABLE], c[BITS], c_base);
    assert(STATE(c) == committed || STATE(c) == coming);
    committed = STATE(c); coming = committed;
    /* What is void for ever is the same as nothing. */
    for (i : 0 .. PLACES - 1) {
        if :: c_image[i] >> 1 <= c_base -> c_image[i] = 0 :: else fi;
        if :: m_image[i] >> 1 <= c_base -> m_image[i] = 0 :: else fi
    }
    for (i : 0 .. 1) {
        if :: EPOCH(c_record[i]) <= c_base -> c_record[i] = 0 :: else fi;
        if :: EPOCH(m_record[i]) <= c_base -> m_record[i] = 0 :: else fi
    }
    for (i : 0 .. ITEMS - 1) { shadow[i] = (i >= TABLE -> c[i] : 0) }
    fresh[1] = !IS_LIVE(c);
    i = 0
}

/* ---- the container's life --------------------------------------------------------------------- */

active proctype container()
{
    if
    :: true
    :: c[TABLE] = DATA; c[BITS] = 1
    fi;
    d_step {
        m[TABLE] = c[TABLE]; m[BITS] = c[BITS];
        shadow[TABLE] = c[TABLE]; shadow[BITS] = c[BITS];
        fresh[1] = !IS_LIVE(c);
        epoch = 1;
        committed = STATE(c); coming = committed
    }

running:
    if
    :: commits < COMMITS
    :: commits == COMMITS -> goto crash
    fi;
    do
    :: atomic { steps < STEPS -> store_to(0); CRASH_HERE }
    :: atomic { steps < STEPS && IS_LIVE(shadow) -> store_to(1); CRASH_HERE }
    :: atomic { steps < STEPS && c[TABLE] == FREE && shadow[TABLE] == FREE -> /* a new slab */
           steps++;
           shadow[TABLE] = DATA; shadow[BITS] = 1;
           close(1);
           fresh[1] = true;
           store(BITS, 0)
       }
    :: atomic { steps < STEPS && shadow[TABLE] == DATA && shadow[BITS] == 0 -> steps++; shadow[BITS] = 1 }
    :: atomic { steps < STEPS && c[TABLE] == DATA && IS_LIVE(shadow) && c[BITS] == 1 ->
           steps++;
           shadow[BITS] = 0;
#ifdef MUTANT_FRESH_BY_SHADOW
           fresh[1] = true;
#endif
           if
           :: true
           :: shadow[TABLE] = FREE /* the slab is given back */
           fi
       }
    :: rollbacks == 0 -> goto rollback
    :: break /* commit */
    :: MAY_CRASH ->
#ifdef NOTES
       at_rest = true;
#endif
       goto crash
    od;

    atomic {
        /* The round: images of the next epoch, or write-backs. */
        commits++;
        d_step {
            steps = 0;
            live = IS_LIVE(shadow);
            coming = STATE(shadow);
            record = epoch;
            if
            :: live && fresh[1] -> listed[1] = true
            :: !live -> listed[1] = false; image_at[1] = 0
            :: else
            fi;
            fresh[1] = !live
        }
        if /* segments_shrink_log() */
        :: IS_LOG(c[TABLE]) && c[TABLE] == LOG + HALF(epoch + 1) -> shadow[TABLE] = FREE
        :: true
        fi;
        do
        :: x < 2 && listed[x] ->
            atomic {
                ok = image_at[x] == 0 || (c_image[image_at[x] - 1] & 1) != c[x]; /* changed */
#ifdef MUTANT_LIST_CHANGED
                if :: ok -> record = record | ITEM(x, c[x]) :: else fi;
#else
                record = record | ITEM(x, c[x]);
#endif
                if
                :: open[x] -> /* it stays hot */
#ifdef MUTANT_HOT_UNPROVED
                    ahead[x] = image_at[x]
#else
                    choose_place(epoch + 1, x);
                    write_image(place, IMAGE(epoch + 1, c[x]));
                    ahead[x] = place + 1;
                    place = 0
#endif
                :: true ->
#ifdef MUTANT_FLUSH_CHANGED
                    flush[x] = ok
#else
                    flush[x] = true
#endif
                fi;
                ok = false
            }
            CRASH_HERE;
            x++
        :: x < 2 && !listed[x] ->
#ifdef MUTANT_LIST_DEAD
            if :: x == 1 && open[1] && !live -> record = record | ITEM(1, c[1]); flush[1] = true :: else fi;
#endif
            x++
        :: x == 2 -> break
        od;
        x = 0;
        atomic {
            if :: shadow[TABLE] != c[TABLE] -> record = record | ITEM(TABLE, shadow[TABLE]) :: else fi;
            if
            :: shadow[TABLE] == DATA && (shadow[BITS] != c[BITS] || c[TABLE] == FREE) ->
                record = record | ITEM(BITS, shadow[BITS])
            :: else
            fi;
            printf("commit %d: page 0 %d, page 1 %d (listed %d), table %d, bits %d\n", epoch, c[0], c[1],
                   listed[1], shadow[TABLE], shadow[BITS]);
            c_record[RECORD_OF(epoch)] = record;
            if
            :: true
            :: m_record[RECORD_OF(epoch)] = record
            :: m_record[RECORD_OF(epoch)] = 0
            fi
        }
#ifdef MUTANT_NOTED_EARLY
        note_record();
#endif
        CRASH_HERE;
#ifdef MUTANT_COMMIT_UNFENCED
        flush[0] = false; flush[1] = false;
#else
        fence();
#endif
        note_record();
        committed = coming;

        /* Words go home; pages stay open or are closed. */
        if
        :: HAS(record, TABLE) -> atomic { store(TABLE, shadow[TABLE]); unfenced[TABLE] = true }; CRASH_HERE
        :: !HAS(record, TABLE)
        fi;
        if
        :: HAS(record, BITS) -> atomic { store(BITS, shadow[BITS]); unfenced[BITS] = true }; CRASH_HERE
        :: !HAS(record, BITS)
        fi;
        d_step {
            for (i : 0 .. 1) {
                listed[i] = ahead[i] != 0;
                open[i] = ahead[i] != 0 || i == 1 && open[1] && fresh[1];
                image_at[i] = ahead[i];
                ahead[i] = 0
            }
            if :: shadow[TABLE] != DATA -> shadow[BITS] = c[BITS]; close(1) :: else fi;
            record = 0; live = false; i = 0;
            epoch++
        }
        note_images()
    }
    goto running;

rollback:
    atomic {
        rollbacks++;
        do
        :: x < 2 && image_at[x] != 0 -> atomic { store(x, c_image[image_at[x] - 1] & 1) }; x++
        :: x < 2 && image_at[x] == 0 -> close(x); x++
        :: x == 2 -> break
        od;
        x = 0;
        d_step {
            steps = 0;
#ifdef MUTANT_ROLLBACK_FORGETS
            close(0); close(1);
#endif
            shadow[TABLE] = c[TABLE]; shadow[BITS] = c[BITS];
            fresh[1] = !IS_LIVE(c)
        }
    }
    goto running;

crash:
    atomic {
        crashes++;
        d_step {
            close(0); close(1);
            for (i : 0 .. 1) { flush[i] = false; ahead[i] = 0; fresh[i] = false }
            for (i : 0 .. ITEMS - 1) { unfenced[i] = false; shadow[i] = 0 }
            epoch = 0; steps = 0; record = 0; live = false; x = 0; place = 0;
            forget_recovery()
        }
        if
        :: d_step { true -> /* the power fails */
               printf("POWER FAILURE\n");
               for (i : 0 .. ITEMS - 1) { c[i] = m[i] }
               for (i : 0 .. PLACES - 1) { c_image[i] = m_image[i] }
               c_record[0] = m_record[0]; c_record[1] = m_record[1];
#ifdef NOTES
               c_noted = m_noted; c_noted_images = m_noted_images;
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
    :: refused -> printf("refused\n"); assert(rotten); goto done
    :: !refused
    fi;
#endif
    if
    :: any ->
#ifndef MUTANT_RELY_UNDURABLE
        make_durable();
        CRASH_HERE;
#endif
        do
        :: x < ITEMS && set[x] -> atomic { store(x, to[x]) }; CRASH_HERE; x++
        :: x < ITEMS && !set[x] -> x++
        :: x == ITEMS -> break
        od;
        x = 0;
#ifndef MUTANT_BASE_IN_ROUND
        d_step { settle() };
        fence();
        CRASH_HERE
#endif
    :: !any
    fi;
#ifdef MUTANT_NO_BASE
    epoch = found + 1;
#else
#ifdef NOTES
    atomic { c_noted_images = 0; if :: MAY_CRASH -> m_noted_images = 0 :: true fi };
#endif
    atomic { c_base = found + BASE_STEP; if :: MAY_CRASH -> m_base = c_base :: true fi };
    CRASH_HERE;
#ifdef MUTANT_BASE_IN_ROUND
    d_step { settle() };
    fence();
#endif
    m_base = c_base;
#ifndef MUTANT_CLAIM_UNDURABLE
    if :: IS_LOG(c[TABLE]) -> m[TABLE] = c[TABLE] :: else fi; /* by the same fence */
#endif
#ifdef NOTES
    m_noted = c_noted; m_noted_images = c_noted_images;
#endif
    epoch = c_base + 1;
#endif
    d_step { forget_recovery(); check_and_open() }
    }
    if :: MAY_CRASH -> goto running :: else fi;

done:
    skip
}
