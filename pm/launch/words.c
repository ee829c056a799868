#include "pm/launch/words.h"

#include "pm/wire/bytes.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Observed with 4.0.2: [option...] HOST "PROXY" --control-port ... --launcher NAME ... of ssh, rsh, lsf, sge;
 * --nodelist HOST -N 1 -n 1 --input none [option...] PROXY --control-port ... of slurm. */

static int find(int argc, char *const *argv, const char *word)
{
    int i = 1;
    while (i < argc && strcmp(argv[i], word) != 0)
        i++;
    return i;
}

bool words_are_hydras(int argc, char *const *argv)
{
    int control = find(argc, argv, "--control-port");
    return control >= 3 && control < argc;
}

static const char *launcher_name(int argc, char *const *argv)
{
    int at = find(argc, argv, "--launcher");
    return at + 1 < argc ? argv[at + 1] : "";
}

static char *in_folder(const char *folder, const char *name)
{
    return folder ? pm_printf("%s/%s", folder, name) : pm_strdup(name);
}

/* Of a launcher by its name in Hydra; NULL: not one of those that carry standard input. */
static char *program_of(const char *name)
{
    if (strcmp(name, "ssh") == 0 || strcmp(name, "rsh") == 0)
        return pm_strdup(name);
    if (strcmp(name, "slurm") == 0)
        return pm_strdup("srun");
    if (strcmp(name, "lsf") == 0)
        return in_folder(getenv("LSF_BINDIR"), "blaunch");
    if (strcmp(name, "sge") != 0)
        return NULL;
    const char *root = getenv("SGE_ROOT"), *arc = getenv("ARC");
    char *folder = root && arc ? pm_printf("%s/bin/%s", root, arc) : NULL;
    char *path = in_folder(folder, "qrsh");
    free(folder);
    return path;
}

/* For the shell at the other end. */
static char *quoted(const char *text)
{
    struct bytes b = {0};
    bytes_append(&b, "'", 1);
    for (; *text; text++) {
        if (*text == '\'')
            bytes_append(&b, "'\\'", 3);
        bytes_append(&b, text, 1);
    }
    bytes_append(&b, "'", 2);
    return (char *)b.data;
}

static void carry_input(struct words *w, int count, const char *name)
{
    for (int i = 1; i < count; i++)
        if (strcmp(name, "slurm") == 0 && strcmp(w->argv[i - 1], "--input") == 0)
            w->argv[i] = pm_strdup("all"); /* Hydra says none */
    if (strcmp(name, "lsf") == 0 && strcmp(w->argv[1], "-n") == 0)
        memmove(&w->argv[1], &w->argv[2], (size_t)(count - 1) * sizeof *w->argv); /* from /dev/null */
}

bool words_make(struct words *w, int argc, char *const *argv, const char *launcher, const char *host)
{
    int proxy = find(argc, argv, "--control-port") - 1, host_at = proxy - 1;
    const char *name = launcher_name(argc, argv);
    bool slurm = strcmp(name, "slurm") == 0;
    *w = (struct words){.may_be_here = !slurm};
    char *program = program_of(name);
    if (!program || proxy + 1 >= WORDS_MAX) {
        w->why = pm_printf("launcher %s does not carry what an agent is told: use another (--launcher ssh)", name);
        free(program);
        return false;
    }
    w->argv[0] = *launcher ? pm_strdup(launcher) : program;
    for (int i = 1; i < proxy; i++)
        w->argv[i] = argv[i];
    if (slurm)
        host_at = find(proxy, argv, "--nodelist") + 1;
    if (host_at < proxy)
        w->argv[host_at] = (char *)host;
    w->argv[proxy] = argv[proxy][0] == '"' ? quoted(argv[0]) : argv[0];
    carry_input(w, proxy + 1, name);
    return true;
}

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
    if (a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET)
        return memcmp(&((const struct sockaddr_in *)a)->sin_addr, &((const struct sockaddr_in *)b)->sin_addr, 4) == 0;
    return a->sa_family == AF_INET6 &&
           memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, &((const struct sockaddr_in6 *)b)->sin6_addr, 16) == 0;
}

static bool is_interface(const char *host)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *found = NULL;
    struct ifaddrs *all = NULL;
    bool is = false;
    if (getaddrinfo(host, NULL, &hints, &found) != 0 || getifaddrs(&all) != 0)
        all = NULL;
    for (struct ifaddrs *a = all; a && !is; a = a->ifa_next)
        is = a->ifa_addr && same_address(a->ifa_addr, found->ai_addr);
    if (all)
        freeifaddrs(all);
    if (found)
        freeaddrinfo(found);
    return is;
}

bool words_host_is_here(const char *host)
{
    static const char *const usual[] = {"localhost", "127.0.0.1", "127.0.1.1"};
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (strcmp(host, usual[i]) == 0)
            return true;
    return strcmp(host, name) == 0 || is_interface(host);
}
