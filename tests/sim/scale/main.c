/* sim-scale [OPTIONS]: one run of detection at size, a line of figures. Exit 0: nobody who was well was declared dead
 * or ended, one history and one job, and at the end everybody who runs agrees on who failed, and nobody runs who was
 * cut off with a minority. */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/scale/scale.h"

static struct plan plan = {.n = 1000, .seed = 1, .end = 2 * SEC, .at = 500 * MS};
static int silence_ms, stopped_ms, suspect_ms;
static int least_declared;
static double most_messages, known_within_ms, many_periods, longest, node_bytes;
static bool kinds;

/* What keelrun would be told, and what is asked of the outcome. */
static bool parse_limits(int key, double x)
{
    switch (key) {
    case 'B':
        known_within_ms = x;
        break;
    case 'a':
        least_declared = (int)x;
        break;
    case 'b':
        most_messages = x;
        break;
    case 'K':
        kinds = true;
        break;
    case 'v':
        plan.trace = (int)x + 1;
        break;
    case 'L':
        longest = x;
        break;
    case 'D':
        node_bytes = x;
        break;
    case 'N':
        many_periods = x;
        break;
    case 'q':
        silence_ms = (int)x;
        break;
    case 'd':
        stopped_ms = (int)x;
        break;
    case 'u':
        suspect_ms = (int)x;
        break;
    default:
        return false;
    }
    return true;
}

/* What goes wrong, and how much of it. */
static bool parse_harm(int key, double x)
{
    switch (key) {
    case 'k':
        plan.killed = (int)x;
        break;
    case 'o':
        plan.off = (int)x;
        break;
    case 'f':
        plan.frozen = (int)x;
        break;
    case 'x':
        plan.starved = (int)x;
        break;
    case 'X':
        plan.starve_ns = (uint64_t)(x * MS);
        break;
    case 'l':
        plan.loss = x / 100;
        break;
    case 'p':
        plan.spike = x / 100;
        break;
    case 'P':
        plan.spike_ns = (uint64_t)(x * MS);
        break;
    case 'w':
        plan.slow = x / 100;
        break;
    case 'W':
        plan.slow_ns = (uint64_t)(x * MS);
        break;
    case 'c':
        plan.cut = x / 100;
        break;
    case 'C':
        plan.cut_ns = (uint64_t)(x * MS);
        break;
    case 'F':
        plan.flapping = (int)x;
        break;
    default:
        return false;
    }
    return true;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    double x = arg ? atof(arg) : 0; // NOLINT(cert-err34-c): a test program
    switch (key) {
    case 'n':
        plan.n = (int)x;
        if (plan.n < 1 || plan.n > MEMBER_NODES_MAX)
            argp_failure(state, 2, 0, "--nodes must be from 1 to %d", MEMBER_NODES_MAX);
        break;
    case 'S':
        plan.seed = (uint64_t)x;
        break;
    case 't':
        plan.end = (uint64_t)(x * SEC);
        break;
    case 'A':
        plan.at = (uint64_t)(x * SEC);
        break;
    case 'T':
        plan.together = true;
        break;
    case 'e':
        plan.submitted = (int)x;
        break;
    case 'm':
        plan.cores = (int)x;
        if (plan.cores < 1 || plan.cores > 64)
            argp_failure(state, 2, 0, "--cores must be from 1 to 64");
        break;
    case 'M':
        plan.work_ns = (uint64_t)(x * 1000);
        break;
    default:
        return parse_harm(key, x) || parse_limits(key, x) ? 0 : ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static void print_kinds(const struct outcome *o)
{
    static const char *const names[SCALE_TYPES] = {"",     "ping",   "pong",  "vote?", "vote", "wave", "ack",
                                                   "nack", "report", "fetch", "log",   "dead", "link"};
    for (int i = 0; i < SCALE_TYPES; i++)
        if (o->by_type[i])
            printf(" %s %llu", names[i] ? names[i] : "?", (unsigned long long)o->by_type[i]);
    printf("\n");
}

/* Is it as it should be? One line says all of it. */
static bool tell(const struct outcome *o)
{
    double seconds = (double)plan.end / SEC, periods = seconds * SEC / (double)plan.params.period_ns * plan.n;
    bool storm = most_messages > 0 && (double)o->messages > most_messages;
    bool large =
        (longest > 0 && (double)o->longest > longest) || (node_bytes > 0 && (double)o->node_bytes > node_bytes);
    bool few = o->declared < least_declared;
    bool late = known_within_ms > 0 && (double)o->known > known_within_ms * MS;
    printf("%d nodes, %.1f s, %.3g node-periods: %d failed, found after %.1f ms, known to all after %.1f ms; %d "
           "declared, %d wrong, "
           "%d ended, %llu suspicions; %.1f messages and %.1f reads per node and second, the longest %zu bytes; %zu "
           "bytes per node; %llu "
           "events, %.2f million/s of processor time; %d of %d ordered, %llu messages%s%s%s%s%s%s%s%s%s\n",
           plan.n, seconds, periods, o->failed, (double)o->detected / MS, (double)o->known / MS, o->declared, o->wrong,
           o->halted, (unsigned long long)o->suspicions, (double)o->messages / plan.n / seconds,
           (double)o->reads / plan.n / seconds, o->longest, o->node_bytes, (unsigned long long)o->events,
           (double)o->events / o->cpu_s / 1e6, o->ordered, plan.submitted, (unsigned long long)o->messages,
           o->consistent ? "" : "; TWO HISTORIES", o->two_jobs ? "; TWO JOBS" : "", o->agreed ? "" : "; NOT ALL AGREE",
           o->ended ? "" : "; A MINORITY RUNS ON", o->wrong ? "; WRONG" : "", storm ? "; TOO MANY MESSAGES" : "",
           large ? "; TOO LARGE" : "", late ? "; LATE" : "", few ? "; TOO FEW DECLARED" : "");
    if (kinds)
        print_kinds(o);
    return !late && !few && !large && o->consistent && !o->two_jobs && o->agreed && o->ended && o->wrong == 0 &&
           o->ordered == plan.submitted && !storm;
}

static bool run(struct outcome *o)
{
    if (!scale_run(&plan, o))
        fprintf(stderr, "sim-scale: out of memory\n");
    else
        return true;
    return false;
}

/* One seed after the other until all runs together have so many node-periods. Says now and then how far it is; a run
 * that is not as it should be is the last one, and its seed is told. */
static bool run_many(void)
{
    double each = (double)plan.end / (double)plan.params.period_ns * plan.n, done = 0, cpu = 0, told = 0;
    uint64_t first = plan.seed, events = 0, suspicions = 0;
    bool ok = true;
    for (; ok && done < many_periods; plan.seed++) {
        struct outcome o;
        if (!run(&o))
            return false;
        done += each;
        cpu += o.cpu_s;
        events += o.events;
        suspicions += o.suspicions;
        ok = o.consistent && !o.two_jobs && o.agreed && o.wrong == 0;
        if (ok && done < many_periods && done < told + many_periods / 100)
            continue;
        told = done;
        printf("%.4g node-periods of %d nodes, seeds %llu to %llu: %d wrong, %llu suspicions, %llu events, %.2f "
               "million/s of processor time\n",
               done, plan.n, (unsigned long long)first, (unsigned long long)plan.seed, o.wrong,
               (unsigned long long)suspicions, (unsigned long long)events, (double)events / cpu / 1e6);
        fflush(stdout);
        if (!ok)
            tell(&o);
    }
    return ok;
}

int main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"nodes", 'n', "N", 0, "number of nodes (1000)", 0},
        {"seed", 'S', "S", 0, "seed (1)", 0},
        {"seconds", 't', "S", 0, "simulated time (2)", 0},
        {"at", 'A', "S", 0, "when the failures come (0.5); nodes may only be starting before 3", 0},
        {"periods", 'N', "P", 0,
         "run one seed after the other until there were so many node-periods; ends at the first wrong one", 0},
        {"killed", 'k', "K", 0, "so many processes are killed", 1},
        {"off", 'o', "K", 0, "... nodes are switched off", 1},
        {"frozen", 'f', "K", 0, "... processes are stopped for good", 1},
        {"starved", 'x', "K", 0, "... get no processor for a time", 1},
        {"starved-ms", 'X', "MS", 0, "this one", 1},
        {"together", 'T', NULL, 0, "all these are neighbours", 1},
        {"loss", 'l', "PERCENT", 0, "of all messages are lost", 2},
        {"spikes", 'p', "PERCENT", 0, "of all messages are late", 2},
        {"spikes-ms", 'P', "MS", 0, "by up to so much", 2},
        {"slow", 'w', "PERCENT", 0, "of the nodes handle everything late", 2},
        {"slow-ms", 'W', "MS", 0, "by up to so much", 2},
        {"cut", 'c', "PERCENT", 0, "of the nodes, the last ones, are cut off from the others", 2},
        {"cut-ms", 'C', "MS", 0, "for so long; 0: for good", 2},
        {"flapping", 'F', "K", 0, "links between neighbours fail and come back every 20 to 720 ms", 2},
        {"submitted", 'e', "K", 0, "nodes have an event ordered each when the failures come", 2},
        {"cores", 'm', "K", 0, "processors that all nodes share (each has its own)", 2},
        {"work-us", 'M', "US", 0, "of one of them for each event, and for each message sent", 2},
        {"most-messages", 'b', "M", 0, "more than so many are a fault", 2},
        {"known-within", 'B', "MS", 0, "after the failures; known to all later is a fault", 2},
        {"least-declared", 'a', "K", 0, "fewer nodes than that declared dead are a fault", 2},
        {"longest", 'L', "BYTES", 0, "a longer message is a fault", 2},
        {"node-bytes", 'D', "BYTES", 0, "more for each node, at the end, are a fault", 2},
        {"kinds", 'K', NULL, 0, "print how many messages of each kind there were", 2},
        {"trace", 'v', "NODE", 0, "print what it reports", 2},
        {"silence", 'q', "MS", 0, "as keelrun's", 3},
        {"stopped", 'd', "MS", 0, "as keelrun's, but in milliseconds", 3},
        {"late", 'u', "MS", 0, "after which a read is late", 3},
        {0},
    };
    static const struct argp argp = {options, parse, NULL, "Detection at size, in virtual time.", NULL, NULL, NULL};
    struct outcome o;
    argp_err_exit_status = 2;
    if (argp_parse(&argp, argc, argv, 0, NULL, NULL))
        return 2;
    if (plan.n > LIMIT_NODES)
        fprintf(stderr, "sim-scale: %d nodes of the detector alone; a job has %d at most\n", plan.n, LIMIT_NODES);
    member_params_default(&plan.params, plan.n, 0);
    if (suspect_ms)
        member_params_late(&plan.params, suspect_ms);
    if (silence_ms || stopped_ms)
        member_params_silence(&plan.params, silence_ms ? silence_ms : SILENCE_DEFAULT_MS,
                              stopped_ms ? stopped_ms : STOPPED_DEFAULT_MS);
    if (many_periods > 0)
        return run_many() ? 0 : 1;
    return run(&o) && tell(&o) ? 0 : 1;
}
