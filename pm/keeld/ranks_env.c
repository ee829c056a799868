/* The environment of a rank. */
#include "pm/keeld/keeld.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void env_set(struct env_list *env, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void env_set(struct env_list *env, const char *name, const char *fmt, ...)
{
    char value[160];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(value, sizeof value, fmt, ap);
    va_end(ap);
    env->list = realloc(env->list, (env->count + 2) * sizeof *env->list);
    if (!env->list)
        abort();
    env->list[env->count++] = pm_printf("%s=%s", name, value);
    env->list[env->count] = NULL;
}

static bool belongs_to_launcher(const char *variable)
{
    static const char *const prefixes[] = {"PMI_",       "PMIX_",      "HYDI_",        "HYDRA_",
                                           "MPI_LOCAL",  "KEEL_FD=",   "KEEL_LAUNCH=", "KEEL_RANK=",
                                           "KEEL_SIZE=", "KEEL_NODE=", "KEEL_JOB=",    "KEEL_ON_FAILURE="};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* The variable's place in the list, which it has from here on; its value, NULL: it had none. */
static size_t env_find(struct env_list *env, const char *name, const char **value)
{
    size_t i = 0, len = strlen(name);
    while (i < env->count && (strncmp(env->list[i], name, len) != 0 || env->list[i][len] != '='))
        i++;
    *value = i < env->count ? env->list[i] + len + 1 : NULL;
    if (i < env->count)
        return i;
    env->list = realloc(env->list, (env->count + 2) * sizeof *env->list);
    if (!env->list)
        abort();
    env->list[env->count++] = NULL;
    env->list[env->count] = NULL;
    return i;
}

/* Before what the user has it preload. */
static void preload(struct env_list *env, const char *library)
{
    const char *users;
    size_t i = env_find(env, "LD_PRELOAD", &users);
    char *before = env->list[i];
    env->list[i] = pm_printf("LD_PRELOAD=%s%s%s", library, users ? ":" : "", users ? users : "");
    free(before);
}

/* After what the user says, unless that says it, too. */
static void add_option(struct env_list *env, const char *variable, const char *option, const char *value)
{
    const char *users;
    size_t i = env_find(env, variable, &users);
    char *before = env->list[i];
    if (users && strstr(users, option))
        return;
    env->list[i] = pm_printf("%s=%s%s%s=%s", variable, users ? users : "", users && *users ? ":" : "", option, value);
    free(before);
}

/* The allocators of sanitizers read clocks with a lock held, unless they are told to give nothing back. A clock of all
 * replicas takes memory (runtime/world), and where they are a part of the program nobody can tell whose call it is. And
 * ours is preloaded before a sanitizer that is a library, which it refuses. */
static void tell_sanitizers(struct env_list *env)
{
    static const char never[] = "allocator_release_to_os_interval_ms";
    add_option(env, "ASAN_OPTIONS", never, "-1");
    add_option(env, "MSAN_OPTIONS", never, "-1");
    add_option(env, "TSAN_OPTIONS", never, "-1");
    add_option(env, "ASAN_OPTIONS", "verify_asan_link_order", "0");
}

static void enter_world(struct env_list *env, const struct keeld *a)
{
    char *library = keeld_world_library(a);
    if (!library)
        return;
    preload(env, library);
    free(library);
    if (a->job.settings.world == SHARE_ONE)
        tell_sanitizers(env);
}

/* What a process sees: its own set, with ranks and nodes counted from 0. */
struct seen {
    int rank, size, node;
    int local, before; /* ranks on its node, and those of them below it */
};

/* A set that begins anew has on a spare the ranks that began together on the node that died. */
static struct seen see(const struct keeld *a, int rank)
{
    const struct job_settings *s = &a->job.settings;
    const struct replica_map *m = &s->replicas;
    bool in_set = replica_map_is_used(m) && rank >= 0;
    int slot = in_set ? s->rank_node[rank] : a->launch.node;
    struct replica who = in_set ? replica_of(m, rank) : (struct replica){rank, 0};
    struct seen seen = {.rank = who.rank, .size = in_set ? m->ranks : s->ranks, .node = a->launch.node};
    for (int r = 0; r < seen.size; r++) {
        bool here = s->rank_node[in_set ? replica_native(m, r, who.set) : r] == slot;
        seen.local += here;
        seen.before += here && r < who.rank;
    }
    if (in_set) {
        int *number = pm_alloc((size_t)m->ranks * sizeof *number);
        replica_map_number(m, who.set, s->rank_node, number);
        seen.node = number[who.rank];
        free(number);
    }
    return seen;
}

int keeld_rank_node(const struct keeld *a, int rank)
{
    return see(a, rank).node;
}

struct env_list keeld_rank_env(const struct keeld *a, int rank)
{
    struct env_list env = {0};
    struct seen seen = see(a, rank);
    for (size_t i = 0; a->job.env[i]; i++)
        if (!belongs_to_launcher(a->job.env[i])) {
            char *eq = strchr(a->job.env[i], '=');
            if (!eq)
                continue;
            env.list = realloc(env.list, (env.count + 2) * sizeof *env.list);
            if (!env.list)
                abort();
            env.list[env.count++] = pm_strdup(a->job.env[i]);
            env.list[env.count] = NULL;
        }
    if (rank >= 0)
        enter_world(&env, a);
    env_set(&env, "KEEL_JOB", "%016llx", (unsigned long long)a->launch.job_id);
    env_set(&env, "KEEL_NODE", "%d", seen.node);
    env_set(&env, "KEEL_SIZE", "%d", seen.size);
    if (a->job.settings.degrade_asked)
        env_set(&env, "KEEL_ON_FAILURE", "degrade");
    /* A standby learns its rank from keel_init; its PMI requests wait, so that an MPI program waits too. */
    if (rank >= 0)
        env_set(&env, "KEEL_RANK", "%d", seen.rank);
    env_set(&env, "PMI_RANK", "%d", rank >= 0 ? seen.rank : 0);
    env_set(&env, "PMI_SIZE", "%d", seen.size);
    env_set(&env, "MPI_LOCALNRANKS", "%d", seen.local);
    env_set(&env, "MPI_LOCALRANKID", "%d", seen.before);
    return env;
}
