/* What an agent is started with, and how it gets there.
 *
 *      keelrun -> mpiexec.hydra -> keel-launch ------ ssh, srun, ... ------> keel-launch -> keeld
 *        memory file, descriptor 3 ---^     rest of it, standard input ---^   line ---^
 *
 * Hydra finds the launcher and how it is called. It knows nothing of the order: what it knows it tells whoever
 * connects to it. */
#ifndef KEEL_PM_ORDER_H
#define KEEL_PM_ORDER_H

#include "pm/wire/bytes.h"

#include <stdbool.h>
#include <sys/types.h>

/* Descriptors of the keel-launch that mpiexec.hydra runs. */
enum {
    ORDER_FILE = 3,
    ORDER_REPORT = 4, /* a byte there says that it is there, a byte back that it may go on */
    ORDER_OUTPUT = 5, /* where the launcher's output goes: mpiexec.hydra does not stay */
    ORDER_TEXT = 512, /* a ticket's line, with its end */
};

enum order_way { ORDER_BY_LAUNCHER, ORDER_BY_LAUNCHER_IF_FAR, ORDER_HERE };

struct order {
    enum order_way way;
    const char *launcher; /* program in the place of Hydra's choice; "": that */
    const char *host;     /* for the launcher */
    const char *cwd;      /* of the launcher */
    /* for where the agent runs */
    const char *ticket; /* a line */
    const char *keeld;
    char *const *env;
    void *memory[2]; /* of one that was read: malloc's, the reader's until it becomes another program */
};

/* A file in memory with all of it, or -1 and errno. */
int order_write(const struct order *o);
/* What the agent's host needs of it. */
int order_write_far(const struct order *o);
/* From where the file stands, which may be a stream: not one byte more. Strings lie in o->memory. */
bool order_read(int fd, struct order *o);
bool order_read_far(int fd, struct order *o);

/* A marker in the environment of what belongs to the start of a node: mpiexec, the launcher, the stub. Neither an
 * agent's ranks nor what these leave behind have it. */
#define START_ENV "KEEL_LAUNCH"
bool start_is_of(pid_t pid);
/* ... and of the program that we are: where agents and stubs ask, another node's, which looks after itself. */
bool start_is_agents(pid_t pid);
#endif
