/* How a node is reached, by its launcher, and with which environment. */
#include "pm/run/launch_way.h"

#include "pm/wire/bytes.h"
#include "pm/wire/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Hydra's settings of the user's environment are for the user's clusters, not for a bed on this machine. */
static bool wanted_in_env(const struct options *o, const char *variable)
{
    static const char *const hydra[] = {"HYDRA_", "MPIEXEC_", "PMI_", "HYDI_", "MPI_LOCAL", "SLURM_", "PBS_", "LSB_"};
    if (strncmp(variable, START_ENV "=", strlen(START_ENV) + 1) == 0)
        return false;
    size_t count = o->bed == BED_NONE ? 0 : sizeof hydra / sizeof hydra[0];
    for (size_t i = 0; i < count; i++)
        if (strncmp(variable, hydra[i], strlen(hydra[i])) == 0)
            return false;
    return true;
}

static const char *first_of(const char *given, const char *variable, const char *older)
{
    const char *value = given ? given : getenv(variable);
    if (!value)
        value = getenv(older);
    return value ? value : "";
}

const char *launch_refuses(const struct options *o)
{
    static const char *const without[] = {"manual", "persist", "ll", "pbs", "cobalt"};
    const char *launcher = first_of(o->launcher, "HYDRA_LAUNCHER", "HYDRA_BOOTSTRAP");
    for (size_t i = 0; o->bed == BED_NONE && i < sizeof without / sizeof without[0]; i++)
        if (strcmp(launcher, without[i]) == 0)
            return without[i];
    return NULL;
}

static enum order_way way_to(const struct options *o, bool fork)
{
    const char *autofork = getenv("HYDRA_LAUNCHER_AUTOFORK");
    if (fork || o->bed == BED_LOOPBACK)
        return ORDER_HERE;
    bool always = autofork && (strcmp(autofork, "0") == 0 || strcasecmp(autofork, "no") == 0 ||
                               strcasecmp(autofork, "off") == 0 || strcasecmp(autofork, "false") == 0);
    return o->bed == BED_NETNS || always ? ORDER_BY_LAUNCHER : ORDER_BY_LAUNCHER_IF_FAR;
}

void launch_way(const struct launch_plan *p, int node, const struct ticket *ticket, struct start_plan *plan)
{
    const struct options *o = p->options;
    struct summons *to = &plan->summons;
    *plan = (struct start_plan){.launcher = "ssh", .program = "", .host = "127.0.0.1", .keel_launch = p->keel_launch};
    *to = (struct summons){.job_id = p->job_id, .ticket = *ticket, .port = p->port, .node = node};
    snprintf(to->host, sizeof to->host, "%s", p->host);
    if (o->bed == BED_LOOPBACK)
        bed_loopback_address(node, to->from, sizeof to->from);
    if (o->bed == BED_NETNS) {
        bed_netns_address(node, to->from, sizeof to->from);
        plan->launcher = "rsh";
        plan->program = bed_netns_exec(p->netns);
        plan->host = to->from;
    }
    if (o->bed == BED_NONE) {
        plan->launcher = first_of(o->launcher, "HYDRA_LAUNCHER", "HYDRA_BOOTSTRAP");
        plan->program = first_of(o->launcher_exec, "HYDRA_LAUNCHER_EXEC", "HYDRA_BOOTSTRAP_EXEC");
        plan->host = o->hosts.names[node];
    }
    bool fork = strcmp(plan->launcher, "fork") == 0;
    plan->way = way_to(o, fork);
    if (fork)
        plan->launcher = "ssh"; /* which is not called */
}

char **launch_env(const struct launch_plan *p, char **marker)
{
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    char **env = pm_alloc((count + 5) * sizeof *env);
    for (size_t i = 0; i < count; i++)
        if (wanted_in_env(p->options, environ[i]))
            env[kept++] = environ[i];
    *marker = pm_printf(START_ENV "=%016llx", (unsigned long long)p->job_id);
    env[kept++] = *marker;
    env[kept++] = (char *)NO_BACKTRACE_IPATH;
    env[kept++] = (char *)NO_BACKTRACE_HFI;
    if (p->netns)
        env[kept++] = (char *)bed_netns_variable(p->netns);
    return env;
}
