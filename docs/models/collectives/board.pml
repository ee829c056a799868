/* A board: members that share memory meet without messages, for spin. check_board.py runs it.
 *
 * MEMBERS do TURNS calls one after the other. Each posts a call, or begins it with messages at once; looks; leaves at any moment. Up to DEATHS of them die
 * between any two accesses to a word; the others learn of it at any later time, between two calls. Every access is a step of its own.
 * What goes on with messages is complete when all who live go on with messages.
 *
 * Which step mirrors what (collectives/):
 *   post            board_post                                  board.c
 *   look            has_posted, board_look                      board.c
 *   close           begin_closing                               board.c
 *   judge           verdict                                     board.c
 *   beside          board_close                                 board.c, engine_begin_beside in engine_board.c
 *
 * Properties:
 *   of a call either all who live find that it was met, in the same view, or nobody does;
 *   who finds it met does so after all who live in that view have begun it, and while their lines still say so;
 *   nobody waits for ever.
 * BREAK=n takes one rule away; check_board.py sees that a property then fails. */
#ifndef MEMBERS
#define MEMBERS 3
#endif
#ifndef TURNS
#define TURNS 3
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef BREAK
#define BREAK 0
#endif

#define BIT(i) (1 << (i))
#define HAS(set, i) ((set) >> (i) & 1)
#define SIDE(t) ((t) & 1)
#define LINE(t, i) (SIDE(t) * MEMBERS + (i))

/* Shared memory. */
byte turn[2 * MEMBERS];  /* that the member has posted last on that side, */
byte epoch[2 * MEMBERS]; /* and in which view */
byte closed[2];          /* the last turn of the side that was closed, */
mtype = {NONE, CLOSING, MET, LEFT};
mtype word[2] = NONE;    /* and what became of it */

/* The world. */
byte dead, deaths, live[DEATHS + 1];
byte begun[TURNS + 1], messages[TURNS + 1]; /* sets */
byte met_in[TURNS + 1];                     /* 1 + the view in which somebody found it met, 0: nobody has */

inline die()
{
    atomic {
        deaths < DEATHS ->
            dead = dead | BIT(i);
            live[deaths + 1] = live[deaths] & ~BIT(i);
            deaths++;
            goto gone
    }
}

#define POSTED(j) (turn[LINE(t, j)] == t && (BREAK == 4 || epoch[LINE(t, j)] == view))
#define NEEDED(j) ((j) != i && HAS(live[view], j))

proctype member(byte i)
{
    byte t = 1, view = 0, j = 0;
    bool all = true;
next:
    do
    :: atomic { t > TURNS -> goto gone }
    :: die()
    :: atomic { t <= TURNS && view < deaths && !HAS(dead, i) -> view++ }
    :: atomic { t <= TURNS -> begun[t] = begun[t] | BIT(i); break }
    od;
    if
    :: /* beside: it never posts this one */
        atomic { closed[SIDE(t)] < t -> closed[SIDE(t)] = t; word[SIDE(t)] = LEFT }
        goto left
    :: atomic { closed[SIDE(t)] >= t -> goto left }
    :: /* post */
        epoch[LINE(t, i)] = view;
        turn[LINE(t, i)] = t
    fi;
look:
    j = 0;
    do
    :: die()
    :: atomic { j < MEMBERS && (!NEEDED(j) || POSTED(j)) -> j++ }
    :: atomic { j == MEMBERS -> break }
    :: atomic { BREAK != 3 && closed[SIDE(t)] == t -> j = 0; goto judge }
    :: goto close /* it has waited long enough */
    od;
    if
    :: atomic { BREAK == 3 || closed[SIDE(t)] != t -> goto met }
    :: atomic { BREAK != 3 && closed[SIDE(t)] == t -> j = 0; goto judge }
    fi;
close:
    j = 0;
#if BREAK == 1
    goto left;
#endif
#if BREAK == 2
    goto judge; /* the posts are read before the meeting is closed */
#endif
    atomic {
        if
        :: closed[SIDE(t)] < t -> closed[SIDE(t)] = t; word[SIDE(t)] = CLOSING
        :: else
        fi
    }
judge:
    all = true;
    do
    :: die()
    :: atomic { j < MEMBERS -> all = all && (!NEEDED(j) || POSTED(j)); j++ }
    :: atomic { j == MEMBERS -> break }
    od;
    atomic {
        if
        :: BREAK == 2 && closed[SIDE(t)] < t -> closed[SIDE(t)] = t; word[SIDE(t)] = CLOSING
        :: else
        fi;
        if
        :: word[SIDE(t)] == CLOSING && all -> word[SIDE(t)] = MET
        :: word[SIDE(t)] == CLOSING && !all -> word[SIDE(t)] = LEFT
        :: else
        fi
    }
    atomic {
        if
        :: word[SIDE(t)] == MET -> goto met
        :: else -> goto left
        fi
    }
met:
    atomic {
        assert((live[view] & ~begun[t]) == 0);
        assert(met_in[t] == 0 || met_in[t] == view + 1); /* the same members for all */
        assert((messages[t] & ~dead) == 0);
        met_in[t] = view + 1;
        j = 0
    }
    do /* their bytes are read */
    :: die()
    :: atomic { j < MEMBERS -> assert(!NEEDED(j) || turn[LINE(t, j)] == t); j++ }
    :: atomic { j == MEMBERS -> break }
    od;
    atomic { t++; all = true; j = 0; goto next }
left:
    atomic {
        assert(met_in[t] == 0);
        messages[t] = messages[t] | BIT(i)
    }
    do
    :: die()
    :: atomic { ((messages[t] | dead) & (BIT(MEMBERS) - 1)) == BIT(MEMBERS) - 1 -> break }
    od;
    atomic { t++; all = true; j = 0; goto next }
gone:
    skip
}

init
{
    byte i = 0;
    atomic {
        live[0] = BIT(MEMBERS) - 1;
        do
        :: i < MEMBERS -> run member(i); i++
        :: else -> break
        od
    }
}
