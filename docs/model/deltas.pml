/*
 * The log engine's deltas (L16 of docs/internals/log.md): one line of two words, and where its pieces are. All
 * else is as the other rules have it, which log.pml is for. A commit counts at once, and a chunk has one record.
 * It is filled again at any time after it has no piece that counts, or later: so old pieces may be left.
 *
 * A word's value is the commit that stored it. A record has both words, or a delta.
 */

#ifndef COMMITS
#define COMMITS 5 /* the cleaner's too */
#endif
#ifndef CHUNKS
#define CHUNKS 4
#endif

#define NOWHERE CHUNKS
#define WHOLE   4 /* in `what` of a record; else it is which words the delta has */

typedef record {
    byte epoch; /* 0: void */
    byte what;
    byte value[2];
};

record chunk[CHUNKS];
byte live[CHUNKS]; /* pieces that count */
byte word[2];      /* the line, after the last commit */
byte epoch = 1;
byte base = NOWHERE, delta = NOWHERE; /* the chunks of its pieces */

inline leave(c)
{
    if
    :: c != NOWHERE -> live[c]--
    :: else
    fi
}

/* Log the line as a whole, or a delta of the words in `mask`. */
inline log_whole(c, first, second)
{
    chunk[c].epoch = epoch;
    chunk[c].what = WHOLE;
    chunk[c].value[0] = first;
    chunk[c].value[1] = second;
    live[c] = 1;
    leave(base);
    leave(delta);
    base = c;
    delta = NOWHERE
}

inline log_delta(c, mask)
{
    chunk[c].epoch = epoch;
    chunk[c].what = mask;
    chunk[c].value[0] = word[0];
    chunk[c].value[1] = word[1];
    live[c] = 1;
#ifdef MUTANT_LEAVE_WHOLE
    leave(base);
    base = NOWHERE;
#endif
    leave(delta);
    delta = c
}

/* What recovery finds: the newest whole line, and the newest delta behind it. */
inline recover()
{
    byte i, whole, newest, found[2];
    whole = NOWHERE;
    newest = NOWHERE;
    for (i : 0 .. CHUNKS - 1) {
        if
        :: chunk[i].epoch > 0 && chunk[i].what == WHOLE &&
           (whole == NOWHERE || chunk[i].epoch > chunk[whole].epoch) -> whole = i
        :: else
        fi
    }
    for (i : 0 .. CHUNKS - 1) {
        if
        :: chunk[i].epoch > 0 && chunk[i].what != WHOLE &&
#ifndef MUTANT_OLD_DELTA
           (whole == NOWHERE || chunk[i].epoch > chunk[whole].epoch) &&
#endif
           (newest == NOWHERE || chunk[i].epoch > chunk[newest].epoch) -> newest = i
        :: else
        fi
    }
    found[0] = (whole == NOWHERE -> 0 : chunk[whole].value[0]);
    found[1] = (whole == NOWHERE -> 0 : chunk[whole].value[1]);
    if
    :: newest != NOWHERE && (chunk[newest].what & 1) -> found[0] = chunk[newest].value[0]
    :: else
    fi;
    if
    :: newest != NOWHERE && (chunk[newest].what & 2) -> found[1] = chunk[newest].value[1]
    :: else
    fi;
    assert(found[0] == word[0] && found[1] == word[1]);
    i = 0; whole = 0; newest = 0; found[0] = 0; found[1] = 0 /* not a part of the state */
}

active proctype engine()
{
    byte to, changed, mask, older[2];
    do
    :: epoch <= COMMITS ->
        atomic {
            /* A chunk without a piece that counts. */
            select(to : 0 .. CHUNKS - 1);
            if
            :: live[to] == 0
            :: else -> goto next
            fi;
            if
            :: /* a program's commit */
                select(changed : 1 .. 3);
                if
                :: changed & 1 -> word[0] = epoch
                :: else
                fi;
                if
                :: changed & 2 -> word[1] = epoch
                :: else
                fi;
                mask = changed;
#ifndef MUTANT_ONLY_CHANGED
                if
                :: delta != NOWHERE -> mask = mask | chunk[delta].what
                :: else
                fi;
#endif
                if
                :: log_whole(to, word[0], word[1])
                :: base != NOWHERE -> log_delta(to, mask)
                fi
            :: base != NOWHERE -> /* the cleaner, of the whole line */
                older[0] = chunk[base].value[0];
                older[1] = chunk[base].value[1];
#ifndef MUTANT_CLEAN_ALONE
                older[0] = word[0];
                older[1] = word[1];
#endif
                log_whole(to, older[0], older[1])
            :: delta != NOWHERE -> /* and of the delta */
                mask = chunk[delta].what;
                log_delta(to, mask)
            fi;
            epoch++;
next:       to = 0; changed = 0; mask = 0; older[0] = 0; older[1] = 0
        }
    :: atomic { /* a chunk becomes void */
            select(to : 0 .. CHUNKS - 1);
            if
            :: live[to] == 0 ->
                chunk[to].epoch = 0;
                chunk[to].what = 0;
                chunk[to].value[0] = 0;
                chunk[to].value[1] = 0
            :: else
            fi;
            to = 0
        }
    :: d_step { recover() }
    :: epoch > COMMITS -> break
    od
}
