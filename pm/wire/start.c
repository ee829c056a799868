#include "pm/wire/start.h"

#include "pm/wire/codec.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ARGS_MAX = 20 };

json_t *start_way_encode(const struct start_way *w)
{
    return json_pack("{s:i, s:o, s:o, s:i}", "bed", (int)w->bed, "launcher", codec_text(w->launcher), "program",
                     codec_text(w->program), "way", (int)w->way);
}

bool start_way_decode(struct start_way *w, const json_t *m)
{
    long long bed, way;
    const char *launcher = json_string_value(json_object_get(m, "launcher")),
               *program = json_string_value(json_object_get(m, "program"));
    *w = (struct start_way){0};
    if (!launcher || !program || !codec_int(m, "bed", 0, START_NETNS, &bed) ||
        !codec_int(m, "way", 0, ORDER_HERE, &way))
        return false;
    *w = (struct start_way){true, (enum start_bed)bed, pm_strdup(launcher), pm_strdup(program), (enum order_way)way};
    return true;
}

void start_way_free(struct start_way *w)
{
    free(w->launcher);
    free(w->program);
    *w = (struct start_way){0};
}

/* What Hydra 4.0.2 looks at to find the launcher and how it is called; and what is Keel's, for who looks for its
 * processes. The rest it would only tell. */
static bool is_for_mpiexec(const char *variable)
{
    static const char *const names[] = {"PATH",           "HOME",         "LD_LIBRARY_PATH",
                                        "HYDRA_LAUNCHER", "HYDRA_RMK",    "HYDRA_BOOTSTRAP",
                                        "LSF_BINDIR",     "SGE_ROOT",     "HYDRA_LAUNCHER_EXTRA_ARGS",
                                        "LSB_MCPU_HOSTS", "ARC",          "HYDRA_CONFIG_FILE",
                                        "LOADL_HOSTFILE", "PE_HOSTFILE",  "COBALT_NODEFILE",
                                        "SLURM_NNODES",   "PBS_NODEFILE", "SLURM_TASKS_PER_NODE",
                                        "SLURM_NODELIST"};
    size_t len = strcspn(variable, "=");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == len && strncmp(variable, names[i], len) == 0)
            return true;
    return strncmp(variable, "KEEL_", 5) == 0;
}

static char **mpiexec_environment(char *const *env)
{
    size_t count = 0, kept = 0;
    while (env[count])
        count++;
    char **out = pm_alloc((count + 2) * sizeof *out);
    for (size_t i = 0; i < count; i++)
        if (is_for_mpiexec(env[i]))
            out[kept++] = env[i];
    out[kept] = "HYDRA_LAUNCHER_AUTOFORK=0"; /* who is here is keel-launch's matter */
    return out;
}

/* How its launcher calls Hydra's proxy on some host. The true host is keel-launch's matter, and nobody comes back:
 * Hydra resolves no name. */
static void build_argv(const struct start_plan *p, const char **argv)
{
    int n = 0;
    argv[n++] = "mpiexec.hydra";
    if (*p->launcher)
        argv[n++] = "-launcher", argv[n++] = p->launcher;
    argv[n++] = "-launcher-exec", argv[n++] = p->keel_launch;
    argv[n++] = "-hosts", argv[n++] = "127.0.0.1";
    argv[n++] = "-localhost", argv[n++] = "127.0.0.1";
    argv[n++] = "-genvnone";
    argv[n++] = "-n", argv[n++] = "1";
    argv[n++] = p->keel_launch, argv[n++] = "--not-asked";
    argv[n] = NULL;
}

void start_run(struct hydra *h, const struct start_plan *plan, char *const *env, const struct rlimit *descriptors)
{
    const char *argv[ARGS_MAX], *slash = strrchr(plan->keel_launch, '/');
    char ticket[ORDER_TEXT], cwd[4096];
    char *keeld = pm_printf("%.*s/keeld", (int)(slash ? slash - plan->keel_launch : 0), plan->keel_launch);
    char **own = mpiexec_environment(env);
    build_argv(plan, argv);
    summons_write(&plan->summons, ticket, sizeof ticket);
    struct hydra_command command = {.argv = argv, .env = own, .descriptors = descriptors};
    command.order = (struct order){.way = plan->way,
                                   .launcher = plan->program,
                                   .host = plan->host,
                                   .cwd = getcwd(cwd, sizeof cwd) ? cwd : "/",
                                   .ticket = ticket,
                                   .keeld = keeld,
                                   .env = env};
    hydra_start(h, &command);
    explicit_bzero(ticket, sizeof ticket);
    free(own);
    free(keeld);
}
