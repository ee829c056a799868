/* keelctl: look at jobs on this machine, attach to one, stop it; and, for test beds, break things. */
#include "pm/ctl/verb.h"
#include "pm/wire/bytes.h"
#include "pm/wire/quit.h"
#include "runtime/base/limits.h"
#include "runtime/base/number.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) const char *argp_program_version = "keelctl (Keel) " KEEL_VERSION;

/* Options that some verbs take and others refuse. */
enum { TAKES_JSON = 1, TAKES_DETECT = 2, TAKES_SIGNAL = 4, TAKES_COUNTERS = 8, TAKES_POSITION = 16, TAKES_TIME = 32 };

static const struct verb {
    const char *name, *arguments, *help;
    int low, high; /* number of arguments */
    int job;       /* which of them is the job; 0: none, the verb is for all jobs */
    unsigned takes;
    verb_function *run;
} verbs[] = {
    {"list", "", "the jobs of this machine", 0, 0, 0, TAKES_JSON, verb_list},
    {"status", "[JOB]", "nodes, processes, view", 0, 1, 1, TAKES_JSON | TAKES_DETECT | TAKES_COUNTERS, verb_status},
    {"attach", "[JOB]", "recent output, and what follows, until the job ends", 0, 1, 1, 0, verb_attach},
    {"stop", "[JOB]", "end the job (its exit code is 143)", 0, 1, 1, 0, verb_stop},
    {"verify", "[JOB]", "compare the copies of all segments", 0, 1, 1, TAKES_JSON, verb_verify},
    {"add-node", "[JOB] [HOST]", "a new node, on this host or that one", 0, 2, 1, TAKES_POSITION, verb_add_node},
    {"rebalance", "[JOB]", "move ranks that live, if that pays", 0, 1, 1, TAKES_JSON | TAKES_TIME, verb_rebalance},
    {"kill-node", "JOB NODE", "signal all processes of a node at once", 2, 2, 1, TAKES_SIGNAL, verb_kill_node},
    {"bed", "cut|heal JOB NODE", "netns bed: link of the node down or up", 3, 3, 2, 0, verb_bed},
};
enum { VERBS = sizeof verbs / sizeof verbs[0] };

static const char doc[] = "Look at running Keel jobs and control them.\v"
                          "JOB is an id from list, or the beginning of one. It may be left out if there is one job.";

/* The table of verbs stands before what --help says at its end. */
static char *help_text(int key, const char *text, void *input)
{
    enum { COLUMN = 24 };
    struct bytes out = {0};
    (void)input;
    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)text;
    for (int i = 0; i < VERBS; i++) {
        char usage[64], line[160];
        snprintf(usage, sizeof usage, "%s %s", verbs[i].name, verbs[i].arguments);
        int n = snprintf(line, sizeof line, "  %-*s%s\n", COLUMN, usage, verbs[i].help);
        bytes_append(&out, line, (size_t)n);
    }
    bytes_append(&out, text, strlen(text) + 1);
    return (char *)out.data; /* argp frees it */
}

static struct job_agents select_job(struct found_agent *all, int count, const char *wanted)
{
    struct job_agents job = {0};
    for (int i = 0; i < count; i++) {
        char id[17];
        snprintf(id, sizeof id, "%016" PRIx64, all[i].job_id);
        if (wanted && strncmp(id, wanted, strlen(wanted)) != 0)
            continue;
        if (job.count && job.id != all[i].job_id)
            pm_quit(2, wanted ? "more than one job begins with %s" : "there is more than one job: which one?", wanted);
        if (!job.count)
            job = (struct job_agents){.id = all[i].job_id, .agents = &all[i]};
        job.count++;
    }
    if (!job.count)
        pm_quit(1, wanted ? "no job %s on this machine" : "no job on this machine", wanted);
    return job;
}

bool may_be_job(const char *text)
{
    return text && text[0] && strlen(text) <= 16 && text[strspn(text, "0123456789abcdef")] == '\0';
}

int node_number(const char *text)
{
    int64_t node;
    if (!number_whole(text, 0, LIMIT_NODES - 1, &node))
        pm_quit(2, "%s is not a node number", text);
    return (int)node;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct request *r = state->input;
    int64_t number;
    switch (key) {
    case 'j':
        r->json = true;
        return 0;
    case 'd':
        r->detect = true;
        return 0;
    case 'c':
        r->counters = true;
        return 0;
    case 'H':
        if (arg[0] == '-' || !arg[0])
            pm_quit(2, "--host: %s is not a host", arg);
        r->host = arg;
        return 0;
    case 'p':
        r->position = arg;
        return 0;
    case 's':
        if (!number_whole(arg, 1, 64, &number))
            pm_quit(2, "--signal: %s is not a signal number", arg);
        r->signal = (int)number;
        r->aimed = true;
        return 0;
    case 't':
        if (!number_whole(arg, 1, TIME_MAX_S, &number))
            pm_quit(2, "--time: %s is not 1 to %d seconds", arg, TIME_MAX_S);
        r->time_s = (int)number;
        return 0;
    case ARGP_KEY_ARG:
        if (r->count == ARGS_MAX)
            pm_quit(2, "too many arguments");
        r->words[r->count++] = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void parse(struct request *r, int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"json", 'j', NULL, 0, "list, status, verify, rebalance: one line of JSON", 0},
        {"detect", 'd', NULL, 0, "status: what each node's detector sees, too", 0},
        {"counters", 'c', NULL, 0, "status: what ranks and agents have counted, too", 0},
        {"host", 'H', "HOST", 0, "do it on that host, by ssh", 0},
        {"position", 'p', "X,Y", 0, "add-node: this place of the grid, whose node is dead (default: the first)", 0},
        {"signal", 's', "NUMBER", 0, "kill-node: this signal instead of 9 (19 freezes, 18 thaws)", 0},
        {"time", 't', "SECONDS", 0, "rebalance: the job will run for so long (default: as long as it has)", 0},
        {0}};
    static const struct argp argp = {options, parse_option, "COMMAND [ARGUMENT...]", doc, NULL, help_text, NULL};
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, r);
}

/* Ends the program if the option was given and the verb does not take it: "--NAME is for A, B and C". */
static void check_taken(const struct verb *verb, bool given, unsigned option, const char *name)
{
    char who[128] = "";
    int last = -1;
    size_t n = 0;
    if (!given || verb->takes & option)
        return;
    for (int i = 0; i < VERBS; i++)
        if (verbs[i].takes & option)
            last = i;
    for (int i = 0; i <= last; i++)
        if (verbs[i].takes & option)
            n += (size_t)snprintf(who + n, sizeof who - n, "%s%s",
                                  n == 0      ? ""
                                  : i == last ? " and "
                                              : ", ",
                                  verbs[i].name);
    pm_quit(2, "--%s is for %s", name, who);
}

static const struct verb *find_verb(const struct request *r)
{
    const char *command = r->count ? r->words[0] : "";
    int k = 0;
    while (k < VERBS && strcmp(verbs[k].name, command) != 0)
        k++;
    if (k == VERBS)
        pm_quit(2, *command ? "%s is not a command; see keelctl --help" : "a command is missing; see keelctl --help",
                command);
    const struct verb *verb = &verbs[k];
    if (r->count - 1 < verb->low || r->count - 1 > verb->high)
        pm_quit(2, "wrong number of arguments for %s; see keelctl --help", command);
    check_taken(verb, r->json, TAKES_JSON, "json");
    check_taken(verb, r->detect, TAKES_DETECT, "detect");
    check_taken(verb, r->counters, TAKES_COUNTERS, "counters");
    check_taken(verb, r->position != NULL, TAKES_POSITION, "position");
    check_taken(verb, r->aimed, TAKES_SIGNAL, "signal");
    check_taken(verb, r->time_s > 0, TAKES_TIME, "time");
    return verb;
}

/* Returns the exit code. */
static int run(int argc, char **argv)
{
    struct request r = {.signal = SIGKILL};
    int count;
    parse(&r, argc, argv);
    if (r.host)
        run_elsewhere(&r);
    const struct verb *verb = find_verb(&r);
    static struct found_agent *all; /* until the end of the program */
    const char *wanted = verb->job && verb->job < r.count ? r.words[verb->job] : NULL;
    if (verb->run == verb_add_node && r.count == 2 && !may_be_job(wanted))
        wanted = NULL; /* it is the host */
    all = finder_agents(wanted, &count);
    struct job_agents job = {.agents = all, .count = count};
    if (verb->job)
        job = select_job(all, count, wanted);
    return verb->run(&job, &r);
}

int main(int argc, char **argv)
{
    int code = run(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout))
        pm_quit(1, "cannot write standard output: %s", strerror(errno));
    return code;
}
