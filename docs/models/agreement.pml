/* The view agreement of detect/, for spin. check.py runs it; README.md says what is covered and what is not.
 *
 * NODES members pass through up to INDEXES view changes. DEATHS of them die at any moment, FALSE verdicts fall on
 * members that are well, and one message (STRAY) is held back and comes at any later time, also after its sender has
 * died. Any message may be lost, and any may come late: a request is taken at any time while its phase lasts, or never;
 * an answer counts only when the coordinator goes on.
 *
 * What is left out: the tree (detect/wave.c) is a star, because it changes who carries a message and not what it says;
 * the detector is "anybody may find a dead member dead, with or without certainty, and FALSE times a living one"; events
 * of the runtime, which ride in a batch as deaths do; times and repeats. So no limit of detect/patience.c is in it: each verdict may fall
 * at any time, which is more than they allow, and who is stopped is a member that takes nothing for as long as it likes. A batch is the set of those it declares dead.
 *
 * Which step mirrors what:
 *   admissible          quorum_admissible                       detect/quorum.c
 *   believe, adopt      verdict_believe, verdict_adopt          detect/verdicts.c
 *   start_round         wave_start and act                     detect/wave.c
 *   collect             start_collect                           detect/agreement.c
 *   pump                agreement_pump, make_batch              detect/agreement.c
 *   take                take_wave, wave_join, repeat          detect/agreement.c, detect/wave.c
 *   complete            wave_recheck, agreement_wave_complete detect/wave_root.c, detect/agreement.c
 *   commit              ledger_commit                           detect/ledger.c
 *   fetch               ledger_behind, ledger_send, _take       detect/ledger.c
 *   report              report_send, report_take                detect/reports.c
 *
 * Properties (asserted where the step is made):
 *   P1  one index, one decision: every member commits the same batch and the same value in it
 *   P2  when an index is settled, its value is at least that of every living member: each was asked, or has ended
 *   P3  settled is said of an index only when every living member of the view has committed it
 *   P4  nobody is stuck: when nothing more can happen and no verdict was false, those who live have one view, without the dead
 * BREAK=n takes one rule away; check.py sees that a property then fails. */

#ifndef NODES
#define NODES 4
#endif
#ifndef INDEXES
#define INDEXES 2
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
#ifndef FALSE
#define FALSE 1
#endif
#ifndef STRAY
#define STRAY 1
#endif
#ifndef ROUNDS
#define ROUNDS 3 /* ballots each member may begin */
#endif
#ifndef BREAK
#define BREAK 0
#endif

#define ALL ((1 << NODES) - 1)
#define BIT(i) (1 << (i))
#define HAS(set, i) ((set) >> (i) & 1)
#define COUNT(s) (((s) & 1) + ((s) >> 1 & 1) + ((s) >> 2 & 1) + ((s) >> 3 & 1) + ((s) >> 4 & 1))
#define LOWEST(s) ((s) & (0 - (s)))
/* stay, out of a view, when `sure` are dead for certain */
#if BREAK == 1 /* a minority may decide, too */
#define ADMISSIBLE(view, stay, sure) ((stay) != 0)
#elif BREAK == 2 /* either half may */
#define ADMISSIBLE(view, stay, sure) (2 * COUNT(stay) >= COUNT(view))
#else
#define ADMISSIBLE(view, stay, sure)                                                                                   \
    (2 * COUNT(stay) > COUNT(view) || ((stay) != 0 && ((view) & ~(stay) & ~(sure)) == 0) ||                            \
     (2 * COUNT(stay) == COUNT(view) && ((stay) & LOWEST(view))))
#endif

/* A batch: whom it declares dead, and of which of them that is certain. */
#define SET(b) ((b) & ALL)
#define SURE(b) ((b) >> NODES)
#define BATCH(i) ((view[i] & dead[i]) | (view[i] & dead[i] & sure[i]) << NODES)

/* phases, in the order of enum wire_phase */
#define NONE 0
#define COLLECT 1
#define PREPARE 2
#define ACCEPT 3
#define COMMIT 4

/* a member */
byte alive = ALL;
byte epoch[NODES], view[NODES], dead[NODES], sure[NODES];
byte promised[NODES]; /* ballot: round * NODES + node; 0 is node 0's and promised by all */
byte acc_ballot[NODES], acc_value[NODES]; /* of index epoch+1; ballot + 1, 0: none */
short acc_batch[NODES];
byte settled[NODES];
/* as coordinator */
bool leading[NODES], collected[NODES], bound[NODES];
bool certain[NODES]; /* whom the tree leaves out is dead for certain */
byte phase[NODES], index[NODES], tree[NODES], acked[NODES], value[NODES];
short batch[NODES];
byte best_ballot[NODES], best_value[NODES];
short best_batch[NODES];
byte bound_value[NODES];
/* the message held back */
byte stray_phase, stray_root, stray_ballot, stray_index, stray_tree, stray_value;
short stray_batch;
bool stray_certain;
/* what was decided: of index s+1 */
short decided[INDEXES];
byte decided_value[INDEXES];
byte deaths = DEATHS, mistakes = FALSE, strays = STRAY;
bool out_of_ballots;

#define LIVE(i) HAS(alive, i)
#define STAY(i) (view[i] & ~dead[i])
#define FIRST(i) ((STAY(i) & (BIT(i) - 1)) == 0) /* i is coordinator, as it sees it */
#define OWN_VALUE(i) ((i) + 1)
#define MAX(a, b) ((a) > (b) -> (a) : (b))

inline cancel(i)
{
    phase[i] = NONE;
    index[i] = 0;
    tree[i] = 0;
    acked[i] = 0;
    batch[i] = 0;
    certain[i] = false;
    value[i] = 0;
    best_ballot[i] = 0;
    best_batch[i] = 0;
    best_value[i] = 0
}

/* The end of a process: nothing of it is left but what is under way. */
inline end(i)
{
    alive = alive & ~BIT(i);
    cancel(i);
    leading[i] = false;
    collected[i] = false;
    bound[i] = false;
    bound_value[i] = 0;
    acc_ballot[i] = 0;
    acc_batch[i] = 0;
    acc_value[i] = 0;
    dead[i] = 0;
    sure[i] = 0;
    promised[i] = 0;
    view[i] = 0;
    settled[i] = 0;
    epoch[i] = 0
}

/* The phase is over, or its coordinator: what it sent may still be under way. One such message is kept. */
inline hold_back(i)
{
    if
    :: strays > 0 && phase[i] != NONE ->
        strays--;
        stray_phase = phase[i];
        stray_root = i;
        stray_ballot = promised[i];
        stray_index = index[i];
        stray_tree = tree[i];
        stray_batch = batch[i];
        stray_certain = certain[i];
        stray_value = value[i]
    :: true
    fi
}

inline step_down(i)
{
    cancel(i);
    leading[i] = false;
    collected[i] = false
}

inline settle(i, s)
{
    if
    :: s > settled[i] ->
        settled[i] = s;
        k = 0;
        do
        :: k < NODES ->
            assert(!(LIVE(k) && HAS(view[i], k)) || epoch[k] >= s);                       /* P3 */
            assert(!(LIVE(k) && HAS(view[i], k)) || decided_value[s - 1] >= OWN_VALUE(k)); /* P2 */
            k++
        :: else -> break
        od;
        k = 0
    :: else
    fi
}

inline commit(i, b, v)
{
    if
    :: HAS(SET(b), i) -> end(i) /* declared dead */
    :: else ->
        /* What only the dead have seen may be decided anew: the last ones left go on from what they have. */
        k = 0;
        do
        :: k < NODES && !(LIVE(k) && epoch[k] > epoch[i]) -> k++
        :: else -> break
        od;
        if
        :: k == NODES ->
            decided[epoch[i]] = b;
            decided_value[epoch[i]] = v
        :: else
        fi;
        k = 0;
        assert(decided[epoch[i]] == b && decided_value[epoch[i]] == v); /* P1 */
        epoch[i]++;
        view[i] = view[i] & ~SET(b);
        dead[i] = dead[i] | SET(b);
        sure[i] = sure[i] | SURE(b);
        acc_ballot[i] = 0;
        acc_batch[i] = 0;
        acc_value[i] = 0;
        bound[i] = false;
        bound_value[i] = 0;
        if
        :: phase[i] != NONE && phase[i] <= ACCEPT && index[i] <= epoch[i] -> cancel(i)
        :: else
        fi
    fi
}

/* The message goes out, and the coordinator does its own part. */
inline start_round(i, p, s, b, v)
{
    hold_back(i);
    cancel(i);
    phase[i] = p;
    index[i] = s;
    batch[i] = b;
    tree[i] = STAY(i);
    if
    :: p == PREPARE || p == ACCEPT -> tree[i] = tree[i] & ~SET(b)
    :: else
    fi;
    certain[i] = (view[i] & ~tree[i] & ~sure[i]) == 0;
    value[i] = v;
    acked[i] = BIT(i);
    if
    :: p == COLLECT && acc_ballot[i] ->
        best_ballot[i] = acc_ballot[i];
        best_batch[i] = acc_batch[i];
        best_value[i] = acc_value[i]
    :: p == PREPARE ->
        value[i] = OWN_VALUE(i);
        dead[i] = dead[i] | SET(b);
        sure[i] = sure[i] | SURE(b)
    :: p == ACCEPT ->
        acc_ballot[i] = promised[i] + 1;
        acc_batch[i] = b;
        acc_value[i] = v
    :: p == COMMIT && s == epoch[i] + 1 -> commit(i, b, v)
    :: else
    fi
}

inline collect(i)
{
    if
    :: promised[i] / NODES < ROUNDS ->
        promised[i] = (promised[i] / NODES + 1) * NODES + i;
        leading[i] = false;
        collected[i] = false;
        bound[i] = false;
        bound_value[i] = 0;
        start_round(i, COLLECT, (epoch[i] + 1), 0, 0)
    :: else -> out_of_ballots = true /* random delays end such duels; here the run ends */
    fi
}

#define CAN_PUMP(i)                                                                                                    \
    (LIVE(i) && FIRST(i) && (phase[i] == NONE || phase[i] == COMMIT) &&                                                \
     (!leading[i] || (view[i] & dead[i] && epoch[i] < INDEXES) ||                                                      \
      (phase[i] == NONE && settled[i] < epoch[i] && (view[i] & dead[i]) == 0)))

inline pump(i)
{
    if
    :: !leading[i] -> collect(i)
    :: leading[i] && view[i] & dead[i] && epoch[i] < INDEXES ->
        if
        :: view[i] & dead[i] & ~sure[i] && !collected[i] -> collect(i)
        :: else ->
            collected[i] = false;
            b1 = BATCH(i);
            start_round(i, PREPARE, (epoch[i] + 1), b1, 0);
            b1 = 0
        fi
    :: else ->
        b1 = decided[epoch[i] - 1];
        v1 = decided_value[epoch[i] - 1];
        start_round(i, COMMIT, epoch[i], b1, v1);
        b1 = 0;
        v1 = 0
    fi
}

/* "All live" have answered, and they are a quorum. */
#define OUTSIDE(i) (view[i] & ~acked[i])
#if BREAK == 6 /* one that is not believed dead need not answer: it may be stopped (ADR 0030) */
#define ALL_ANSWERED(i) (COUNT(tree[i] & ~acked[i] & ~dead[i]) <= 1)
#else
#define ALL_ANSWERED(i) ((tree[i] & ~acked[i] & ~dead[i]) == 0)
#endif
#define CAN_COMPLETE(i)                                                                                                \
    (LIVE(i) && phase[i] != NONE && ALL_ANSWERED(i) &&                                                                 \
     (phase[i] == COMMIT || ADMISSIBLE(view[i], view[i] & acked[i], sure[i])))
#define EVERYBODY(i) ((view[i] & ~acked[i] & ~(phase[i] == ACCEPT -> SET(batch[i]) : 0)) == 0)

inline complete(i)
{
    all = EVERYBODY(i);
    b1 = (phase[i] == COLLECT -> best_batch[i] : batch[i]);
    v1 = (phase[i] == COLLECT -> best_value[i] : value[i]);
    p1 = phase[i];
    s1 = index[i];
    if
    :: p1 == COLLECT ->
        had = best_ballot[i] != 0;
        hold_back(i);
        cancel(i);
        leading[i] = true;
        collected[i] = true;
        if
        :: all -> settle(i, (s1 - 1))
        :: else
        fi;
        if
        :: had && BREAK != 3 ->
            if
            :: ADMISSIBLE(view[i], view[i] & ~dead[i] & ~SET(b1), sure[i] | SURE(b1)) ->
                bound[i] = true;
                bound_value[i] = v1;
                start_round(i, PREPARE, s1, b1, 0)
            :: else -> leading[i] = false
            fi
        :: else
        fi
    :: p1 == PREPARE ->
        v1 = (bound[i] -> bound_value[i] : v1);
        start_round(i, ACCEPT, s1, b1, v1)
    :: p1 == ACCEPT ->
        start_round(i, COMMIT, s1, b1, v1);
        if
        :: all && LIVE(i) -> settle(i, (s1 - 1))
        :: else
        fi
    :: else -> /* COMMIT */
        hold_back(i);
        cancel(i);
        if
        :: all || BREAK == 4 -> settle(i, s1)
        :: else
        fi
    fi;
    all = false;
    had = false;
    b1 = 0;
    v1 = 0;
    p1 = 0;
    s1 = 0
}

/* Member m takes a message of coordinator r. `now`: r still is in that phase and gets the answer, or a refusal. */
inline answer(m, r)
{
    if
    :: now -> acked[r] = acked[r] | BIT(m)
    :: true /* lost */
    fi
}

inline refuse(r, ballot)
{
    if
    :: now && promised[r] < ballot -> step_down(r)
    :: true /* lost */
    fi
}

inline join_proposal(m, r, p, ball, t, c, b, v)
{
    /* adopt_left_out, ledger_prepare */
    if
    :: c -> sure[m] = sure[m] | (view[m] & ~t & ~BIT(m) & ~SET(b) & ~dead[m])
    :: else
    fi;
    dead[m] = dead[m] | (view[m] & ~t & ~BIT(m) & ~SET(b));
    if
    :: p == PREPARE && HAS(t, m) ->
        dead[m] = dead[m] | SET(b);
        sure[m] = sure[m] | SURE(b)
    :: else
    fi;
    if
    :: HAS(t, m) && p == PREPARE ->
        if
        :: now ->
            acked[r] = acked[r] | BIT(m);
            value[r] = MAX(value[r], OWN_VALUE(m))
        :: true
        fi
    :: HAS(t, m) && p == ACCEPT ->
        acc_ballot[m] = ball + 1;
        acc_batch[m] = b;
        acc_value[m] = v;
        answer(m, r)
    :: else
    fi
}

inline join_collect(m, r, t)
{
    if
    :: HAS(t, m) && now ->
        acked[r] = acked[r] | BIT(m);
        if
        :: acc_ballot[m] > best_ballot[r] ->
            best_ballot[r] = acc_ballot[m];
            best_batch[r] = acc_batch[m];
            best_value[r] = acc_value[m]
        :: else
        fi
    :: true
    fi
}

inline take(m, r, p, ball, s, t, c, b, v)
{
    if
    :: !HAS(view[m], r) -> /* told that it is dead, if that arrives and it runs */
        if
        :: LIVE(r) -> end(r)
        :: true
        fi
    :: else ->
        if
        :: p == COMMIT ->
            if
            :: s == epoch[m] + 1 -> commit(m, b, v)
            :: else
            fi;
            if
            :: LIVE(m) && s <= epoch[m] && ball >= promised[m] && HAS(t, m) -> answer(m, r)
            :: LIVE(m) && ball < promised[m] -> refuse(r, promised[m])
            :: else
            fi
        :: p != COMMIT && ball < promised[m] && BREAK != 5 -> refuse(r, promised[m])
        :: p != COMMIT && (ball >= promised[m] || BREAK == 5) && s <= epoch[m] -> /* the log, if it arrives */
            if
            :: now && s == epoch[r] + 1 ->
                b1 = decided[s - 1];
                v1 = decided_value[s - 1];
                commit(r, b1, v1);
                b1 = 0;
                v1 = 0
            :: true
            fi
        :: p != COMMIT && (ball >= promised[m] || BREAK == 5) && s == epoch[m] + 1 ->
            if
            :: ball > promised[m] ->
                hold_back(m);
                step_down(m);
                promised[m] = ball
            :: else
            fi;
            if
            :: p == COLLECT -> join_collect(m, r, t)
            :: else -> join_proposal(m, r, p, ball, t, c, b, v)
            fi
        :: else /* of a later index: it fetches */
        fi
    fi;
    now = false
}

#define CAN_TAKE(m, r) (m != r && LIVE(m) && LIVE(r) && phase[r] != NONE && !HAS(acked[r], m) && HAS(tree[r], m))
#define CAN_STRAY(m) (stray_phase != NONE && LIVE(m) && m != stray_root && HAS(stray_tree, m))

/* The detector */
#define CAN_FIND(i, j) (i != j && LIVE(i) && !LIVE(j) && HAS(view[i], j) && !(HAS(dead[i], j) && HAS(sure[i], j)))
#define CAN_ERR(i, j) (i != j && mistakes > 0 && LIVE(i) && LIVE(j) && HAS(STAY(i), j) && epoch[i] < INDEXES)
#define CAN_REPORT(i, j)                                                                                               \
    (i != j && LIVE(i) && LIVE(j) && HAS(STAY(i), j) && HAS(view[j], i) && (dead[i] & STAY(j) & ~BIT(j)) != 0)
#define CAN_FETCH(i, j) (i != j && LIVE(i) && LIVE(j) && epoch[j] > epoch[i] && HAS(view[j], i))
#define CAN_LEARN(i, j) (i != j && LIVE(i) && LIVE(j) && HAS(view[i], j) && !HAS(view[j], i))

inline believe(i, set, for_sure)
{
    if
    :: (STAY(i) & (set)) == 0 || ADMISSIBLE(view[i], STAY(i) & ~(set), sure[i] | (for_sure)) ->
        dead[i] = dead[i] | (set);
        sure[i] = sure[i] | (for_sure)
    :: else
    fi
}

/* Every step is chosen by its guard with all that it needs (me, other), then made, in one atomic sequence. */
#if NODES == 2
#define EACH(i, X) X(i, 0) X(i, 1)
#elif NODES == 3
#define EACH(i, X) X(i, 0) X(i, 1) X(i, 2)
#elif NODES == 4
#define EACH(i, X) X(i, 0) X(i, 1) X(i, 2) X(i, 3)
#else
#define EACH(i, X) X(i, 0) X(i, 1) X(i, 2) X(i, 3) X(i, 4)
#endif

mtype = {PUMP, COMPLETE, LATE, DIE, TAKE, FIND, SILENT, ERR, REPORT, FETCH, LEARN};
#define STEP(name, i, j) step = name; me = i; other = j

#define TAKES(i, j) :: CAN_TAKE(i, j) -> STEP(TAKE, i, j)
#define FINDS(i, j) :: CAN_FIND(i, j) && (HAS(dead[i], j) || ADMISSIBLE(view[i], STAY(i) & ~BIT(j), sure[i] | BIT(j))) -> STEP(FIND, i, j)
#define SILENTS(i, j)                                                                                                  \
    :: CAN_FIND(i, j) && !HAS(dead[i], j) && ADMISSIBLE(view[i], STAY(i) & ~BIT(j), sure[i]) -> STEP(SILENT, i, j)
#define ERRS(i, j) :: CAN_ERR(i, j) && ADMISSIBLE(view[i], STAY(i) & ~BIT(j), sure[i]) -> STEP(ERR, i, j)
#define REPORTS(i, j)                                                                                                  \
    :: CAN_REPORT(i, j) && ADMISSIBLE(view[j], STAY(j) & ~dead[i], sure[j] | (sure[i] & dead[i])) -> STEP(REPORT, i, j)
#define FETCHES(i, j) :: CAN_FETCH(i, j) -> STEP(FETCH, i, j)
#define LEARNS(i, j) :: CAN_LEARN(i, j) -> STEP(LEARN, i, j)
#define NODE(i)                                                                                                        \
    :: CAN_PUMP(i) -> STEP(PUMP, i, i)                                                                                 \
    :: CAN_COMPLETE(i) -> STEP(COMPLETE, i, i)                                                                         \
    :: CAN_STRAY(i) -> STEP(LATE, i, stray_root)                                                                       \
    :: LIVE(i) && deaths > 0 -> STEP(DIE, i, i)                                                                        \
    EACH(i, TAKES) EACH(i, FINDS) EACH(i, SILENTS) EACH(i, ERRS) EACH(i, REPORTS) EACH(i, FETCHES) EACH(i, LEARNS)

inline make()
{
    if
    :: step == PUMP -> pump(me)
    :: step == COMPLETE -> complete(me)
    :: step == DIE ->
        deaths--;
        hold_back(me);
        end(me)
    :: step == TAKE || step == LATE ->
        now = step == TAKE;
        mp = (now -> phase[other] : stray_phase);
        mb = (now -> promised[other] : stray_ballot);
        ms = (now -> index[other] : stray_index);
        mt = (now -> tree[other] : stray_tree);
        mc = (now -> certain[other] : stray_certain);
        mx = (now -> batch[other] : stray_batch);
        mv = (now -> value[other] : stray_value);
        if
        :: !now -> stray_phase = NONE; stray_root = 0; stray_ballot = 0; stray_index = 0; stray_tree = 0; stray_certain = false; stray_batch = 0; stray_value = 0
        :: else
        fi;
        take(me, other, mp, mb, ms, mt, mc, mx, mv);
        mc = false; mp = 0; mb = 0; ms = 0; mt = 0; mx = 0; mv = 0
    :: step == FIND -> believe(me, BIT(other), BIT(other))
    :: step == SILENT -> believe(me, BIT(other), 0)
    :: step == ERR ->
        mistakes--;
        believe(me, BIT(other), 0)
    :: step == REPORT -> believe(other, dead[me] & STAY(other) & ~BIT(other), sure[me] & dead[me] & view[other])
    :: step == FETCH ->
        mx = decided[epoch[me]];
        mv = decided_value[epoch[me]];
        commit(me, mx, mv);
        mx = 0; mv = 0
    :: step == LEARN -> end(me)
    fi;
    step = 0;
    me = 0;
    other = 0
}

/* P4: nothing can happen any more. */
inline check_end()
{
    i0 = 0;
    do
    :: i0 < NODES ->
        if
        :: LIVE(i0) && !out_of_ballots && mistakes == FALSE ->
            assert(epoch[i0] == INDEXES || view[i0] == alive);
            k = 0;
            do
            :: k < NODES ->
                assert(!LIVE(k) || epoch[k] == epoch[i0]);
                k++
            :: else -> break
            od
        :: else
        fi;
        i0++
    :: else -> break
    od
}

active proctype world()
{
    byte k, i0, v1, p1, s1, me, other, step, mp, mb, ms, mt, mv;
    short b1, mx;
    bool all, had, now, mc;
    d_step {
        do
        :: i0 < NODES ->
            view[i0] = ALL;
            i0++
        :: else -> break
        od;
        i0 = 0;
        leading[0] = true
    }
    do
    :: atomic {
        if
        NODE(0)
        NODE(1)
#if NODES > 2
        NODE(2)
#endif
#if NODES > 3
        NODE(3)
#endif
#if NODES > 4
        NODE(4)
#endif
        fi;
        make()
    }
    :: timeout -> break
    od;
    atomic { check_end() }
}
