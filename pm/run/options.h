/* keelrun's command line. */
#ifndef KEEL_PM_OPTIONS_H
#define KEEL_PM_OPTIONS_H

#include "pm/wire/layout.h"
#include "pm/plane.h"
#include "pm/run/watchers.h"

enum bed { BED_NONE, BED_LOOPBACK, BED_NETNS };

struct options {
    int ranks, nodes, ppn, spares; /* nodes: without spares; ppn 0: as even as possible */
    struct host_list hosts;        /* of nodes and spares; empty on a bed */
    enum bed bed;
    enum on_failure on_failure;
    enum plane_probe probe;
    enum plane_topology topology;
    struct watchers watchers; /* of a topology from a file */
    int silence_ms, dark_ms;  /* after which a node is dead; where its host does not answer either */
    int fan_out;              /* nodes that keelrun starts itself; and each agent of the others */
    const char *launcher, *launcher_exec;
    const char *event_log;
    bool label, quiet, secure;
    bool degrade_asked;  /* by the user; otherwise it is the default without spares */
    int start_timeout_s; /* for all nodes to have joined */
    int timeout_s;       /* for the job; 0: none */
    char **program;      /* with its arguments, NULL-terminated */
    int *rank_node;
};

/* Ends the program with one line and exit code 2 if the command line is not good. */
void options_parse(struct options *o, int argc, char **argv);
#endif
