#include "pm/run/allocation.h"

#include "pm/wire/bytes.h"
#include "pm/wire/quit.h"
#include "runtime/base/log.h"
#include "runtime/base/user_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *read_whole_file(const char *path)
{
    char why[USER_FILE_WHY], *text = user_text_read(path, why);
    if (!text)
        pm_quit(2, "%s", why);
    return text;
}

/* Slurm says it by two variables, the others by one with the text or the path of a file. */
struct way {
    const char *variable;
    bool (*parse)(struct host_list *hosts, const char *text, char *why, size_t size);
    bool is_file;
};

static bool parse_slurm(struct host_list *hosts, const char *text, char *why, size_t size)
{
    const char *tasks = getenv("SLURM_TASKS_PER_NODE");
    return hosts_parse_slurm(hosts, text, tasks ? tasks : getenv("SLURM_JOB_CPUS_PER_NODE"), why, size);
}

bool allocation_hosts(struct host_list *hosts)
{
    static const struct way ways[] = {
        {"SLURM_JOB_NODELIST", parse_slurm, false},     {"SLURM_NODELIST", parse_slurm, false},
        {"PBS_NODEFILE", hosts_parse_words, true},      {"COBALT_NODEFILE", hosts_parse_words, true},
        {"LSB_DJOB_HOSTFILE", hosts_parse_words, true}, {"LSB_HOSTS", hosts_parse_words, false},
        {"PE_HOSTFILE", hosts_parse_sge, true}};
    char why[256];
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const char *value = getenv(ways[i].variable);
        if (!value || !*value)
            continue;
        char *text = ways[i].is_file ? read_whole_file(value) : pm_strdup(value);
        if (!ways[i].parse(hosts, text, why, sizeof why))
            pm_quit(2, "%s%s%s: %s; --hosts names the hosts, --nodes emulates nodes here", ways[i].variable,
                    ways[i].is_file ? "=" : "", ways[i].is_file ? value : "", why);
        free(text);
        log_info("the hosts are those of %s", ways[i].variable);
        return true;
    }
    return false;
}
