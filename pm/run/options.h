/* keelrun's command line. */
#ifndef KEEL_PM_OPTIONS_H
#define KEEL_PM_OPTIONS_H

#include "pm/run/hosts.h"
#include "pm/wire/layout.h"
#include "runtime/base/job_settings.h"

enum bed { BED_NONE, BED_LOOPBACK, BED_NETNS };

struct options {
    struct job_settings job; /* what agents must know */
    int ppn;                 /* 0: as even as possible */
    struct host_list hosts;  /* of nodes and spares; empty on a bed */
    enum bed bed;
    bool bed_grid; /* of BED_NETNS: the nodes are joined as the job's grid is */
    int link_kbit; /* rate of each of its links; 0: as fast as they go */
    int fan_out;   /* nodes that keelrun starts itself; and each agent of the others */
    const char *launcher, *launcher_exec;
    const char *event_log;
    const char *restore;                 /* folder of what another job has saved; NULL: nothing */
    const char *topology_file, *rack_of; /* who fails together; NULL: not said */
    bool label, quiet;
    int start_timeout_s; /* that each node has to come and to be ready */
    int stdin_keep;      /* bytes of standard input for another process of rank 0 */
    int console_s;       /* how long output waits for us where we are out of reach */
    int timeout_s;       /* for the job; 0: none */
    char **program;      /* with its arguments, NULL-terminated */
};

/* Ends the program with one line and exit code 2 if the command line is not good. */
void options_parse(struct options *o, int argc, char **argv);
#endif
