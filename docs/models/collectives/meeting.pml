/* A meeting of a group's members, for spin: barrier, agreement and the creation of a group by its members alone. check.py runs it;
 * README.md says what is covered and what is not.
 *
 * MEMBERS begin at any time. Up to DEATHS of them die, or are declared dead and live on without knowing, at any moment; each
 * other member learns of it at any later time, in the same order. A message may be taken at any time as long as its receiver
 * is in the view it was sent in, or never.
 *
 * Which step mirrors what (collectives/):
 *   partner            plan_cube                                          meet.c
 *   begin, view        instance_enter_meeting                             engine_meeting.c
 *   post, take         instance_meet                                      engine_meeting.c
 *   adopt              heard_decision; answer, instance_receive           engine_meeting.c, engine_receive.c, engine_event.c
 *   decide             is_over                                            engine_instance.c
 *
 * Properties:
 *   ONCE     who leaves a barrier does so after everybody who lives has begun it;
 *            all who live and return from the creation of a group have the same live set
 *   AGREE    all who return have the same value, also those who die right after it
 *   both     nobody waits for ever (no state without a next step, but the end)
 * BREAK=n takes one rule away; check.py sees that a property then fails. */
#define ONCE 0 /* one meeting: a barrier, the creation of a group */
#define AGREE 1

#ifndef KIND
#define KIND AGREE
#endif
#ifndef MEMBERS
#define MEMBERS 4
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
#ifndef BREAK
#define BREAK 0
#endif

#define STEPS 3 /* at most, with 5 to 8 members */
#define MEETINGS 2
#define BIT(i) (1 << (i))
#define HAS(set, i) ((set) >> (i) & 1)
#define COUNT(s) (((s) & 1) + ((s) >> 1 & 1) + ((s) >> 2 & 1) + ((s) >> 3 & 1) + ((s) >> 4 & 1))
#define LAST(a) ((KIND != AGREE || BREAK == 1) || (a) == 1)

byte live[DEATHS + 1];  /* the members that live in each view */
byte deaths;            /* views so far, without the first */
byte stopped, outcast;  /* sets: dead; declared dead, and going on */
byte begun;             /* set */
byte view[MEMBERS];
/* what member i sent in step k of a meeting in a view: whose contributions it knew; 0: not yet */
byte letter[(DEATHS + 1) * MEETINGS * STEPS * MEMBERS];
#define LETTER(e, a, k, i) letter[(((e) * MEETINGS + (a)) * STEPS + (k)) * MEMBERS + (i)]
/* decisions */
bool decided[MEETINGS * MEMBERS];
byte value[MEETINGS * MEMBERS], epoch[MEETINGS * MEMBERS];
#define AT(a, i) ((a) * MEMBERS + (i))

/* The member that is d live ones further on; only within a step, so that what it uses takes no part of the state. */
hidden byte other, to_go;
inline partner(set, from, d)
{
    other = from;
    to_go = (d) % COUNT(set);
    do
    :: to_go > 0 ->
        other = (other + 1) % MEMBERS;
        if
        :: HAS(set, other) -> to_go--
        :: else
        fi
    :: else -> break
    od
}

/* Step k of the meeting in our view: send what we know, and note whom we wait for. */
inline post()
{
    if
    :: BIT(k) < COUNT(live[view[i]]) ->
        LETTER(view[i], a, k, i) = known;
        partner(live[view[i]], i, COUNT(live[view[i]]) - BIT(k) % COUNT(live[view[i]]));
        from = other
    :: else -> from = MEMBERS /* all is known */
    fi
}

inline begin()
{
    k = 0;
    known = BIT(i);
    post()
}

/* Checked against everybody who has returned. */
inline check(v, e)
{
    other = 0;
    do
    :: other < MEMBERS ->
        assert(KIND != ONCE || HAS(begun, other) || HAS(stopped | outcast, other) || HAS(outcast, i));
        assert(KIND != AGREE || !decided[AT(a, other)] || HAS(outcast, i) || HAS(outcast, other) ||
               value[AT(a, other)] == v);
        assert(KIND != ONCE || !decided[AT(a, other)] || HAS(stopped | outcast, other) || HAS(outcast, i) ||
               epoch[AT(a, other)] == e);
        other++
    :: else -> break
    od
}

inline decide(v, e)
{
    decided[AT(a, i)] = true;
    value[AT(a, i)] = v;
    epoch[AT(a, i)] = e;
    if
    :: LAST(a) ->
        check(v, e);
        returned = true;
        a = 0; /* these are of no use any more: fewer states */
        k = 0;
        known = 0;
        from = 0;
        mine = 0
    :: else ->
        mine = v; /* the second meeting is about this value */
        a++;
        begin()
    fi
}

#define UP (!HAS(stopped, i) && !returned && HAS(begun, i))
/* Member j, which lives by our view, has decided in a view that we have seen. */
#define TELLS(j) (UP && BREAK != 2 && j < MEMBERS && HAS(live[view[i]], j) && decided[AT(a, j)] && \
                  epoch[AT(a, j)] <= view[i])

proctype member(byte i)
{
    byte a = 0, k = 0, known = 0, from = MEMBERS, mine = 0, v = 0, e = 0;
    bool returned = false;
    do
    :: atomic { returned || HAS(stopped, i) || HAS(outcast, i) -> break }
    :: atomic { !HAS(stopped, i) && !HAS(begun, i) -> begun = begun | BIT(i); begin() }
    /* a view: meet again in it */
    :: atomic {
        !HAS(stopped | outcast, i) && view[i] < deaths && !returned ->
            view[i]++;
            if
            :: HAS(begun, i) -> begin()
            :: else
            fi
        }
    /* the letter of this step is here */
    :: atomic {
        UP && from < MEMBERS && LETTER(view[i], a, k, from) ->
            known = known | LETTER(view[i], a, k, from);
            k++;
            post()
        }
    /* BREAK 3: one from the view before will do as well */
    :: atomic {
        BREAK == 3 && UP && from < MEMBERS && view[i] > 0 && LETTER((view[i] - 1), a, k, from) ->
            known = known | LETTER((view[i] - 1), a, k, from);
            k++;
            post()
        }
    :: atomic {
        UP && from == MEMBERS ->
            v = (a == 0 -> known : mine);
            e = view[i];
            decide(v, e);
            v = 0;
            e = 0
        }
    :: atomic { TELLS(0) -> v = value[AT(a, 0)]; e = epoch[AT(a, 0)]; decide(v, e); v = 0; e = 0 }
    :: atomic { TELLS(1) -> v = value[AT(a, 1)]; e = epoch[AT(a, 1)]; decide(v, e); v = 0; e = 0 }
    :: atomic { TELLS(2) -> v = value[AT(a, 2)]; e = epoch[AT(a, 2)]; decide(v, e); v = 0; e = 0 }
    :: atomic { TELLS(3) -> v = value[AT(a, 3)]; e = epoch[AT(a, 3)]; decide(v, e); v = 0; e = 0 }
#if MEMBERS > 4
    :: atomic { TELLS(4) -> v = value[AT(a, 4)]; e = epoch[AT(a, 4)]; decide(v, e); v = 0; e = 0 }
#endif
    od
}

/* Somebody dies, or is left out and goes on. */
inline lose(who)
{
    live[deaths + 1] = live[deaths] & ~BIT(who);
    deaths++;
    if
    :: stopped = stopped | BIT(who)
    :: outcast = outcast | BIT(who)
    fi
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
    do
    :: atomic { deaths < DEATHS && HAS(live[deaths], 0) -> lose(0) }
    :: atomic { deaths < DEATHS && HAS(live[deaths], 1) -> lose(1) }
    :: atomic { deaths < DEATHS && HAS(live[deaths], 2) -> lose(2) }
    :: atomic { deaths < DEATHS && MEMBERS > 3 && HAS(live[deaths], 3) -> lose(3) }
    :: atomic { deaths < DEATHS && MEMBERS > 4 && HAS(live[deaths], 4) -> lose(4) }
    :: break
    od
}
