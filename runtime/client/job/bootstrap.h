/* A process that keelrun did not start: who did start it lets all processes of the job exchange a few bytes
 * (keel_exchange), the first process of each node starts its agent, and all the node's processes come to that. */
#ifndef KEEL_CLIENT_JOB_BOOTSTRAP_H
#define KEEL_CLIENT_JOB_BOOTSTRAP_H

#include <stdbool.h>

#include <keel/job.h>

#include "runtime/base/racks.h"

/* Collective over the job. *control_fd is then what KEEL_FD is to the others. Errors are told on standard error, and
 * are an error on all processes, but for those of the exchange itself. */
keel_status bootstrap_job(const struct keel_exchange *e, int *control_fd);
/* The agent has welcomed us: from now on the kernel ends us when it dies. False: it has. */
bool bootstrap_hold(void);
/* Has joined so. */
bool bootstrap_is(void);
/* We have left the job: may outlive the agent, and have done what we were to. */
void bootstrap_release(void);

/* Process managers that speak PMI-1 on the descriptor PMI_FD: MPICH's Hydra, Slurm with --mpi=pmi2, Keel's own
 * agents. */
bool pmi_exchange_found(void);
keel_status pmi_exchange_open(struct keel_exchange *e);
/* Tells the process manager that this process ends well, unless MPI does or will. */
void pmi_exchange_close(void);

/* The name of the job that the process manager has given, empty: none did. */
const char *pmi_exchange_space(void);

/* While this process waits in the first exchange for the others to come: after 5 s, and again with growing gaps, a line
 * says which ranks of this host have, and which have not. NULL: nobody tells. `good`: all have come. */
struct bootstrap_coming;
struct bootstrap_coming *bootstrap_coming_begin(const struct keel_exchange *e);
void bootstrap_coming_end(struct bootstrap_coming *c, bool good);

/* Pure: the node of each of n ranks, from what tells their machines apart; as many nodes (at most n) in blocks if all
 * are on one and `wanted` is not 0. Nodes are numbered by their first rank. Returns their number, or -1: wanted, and
 * there are several machines. */
int bootstrap_place(const char *machines, int stride, int n, int wanted, int *rank_node);
/* KEEL_TOPOLOGY_FILE and KEEL_RACK_OF, of this process's host: out, or why they make no sense (else empty). */
void bootstrap_racks(const char *host, struct rack_names *out, char *why, size_t size);
/* KEEL_COPIES_AT. */
bool bootstrap_copies_at(struct copy_rule *rule, char *why, size_t size);
#endif
