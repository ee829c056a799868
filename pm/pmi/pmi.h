/* PMI-1 server for the processes of one node. Pure: bytes from a process in, bytes to it out.
 *
 * Lines "cmd=... key=value ..." with the keys in any order. When all local ranks are in the barrier the caller
 * exchanges what was put with the other nodes (pmi_root.h) and calls pmi_release with everybody's pairs, from which
 * gets are answered. A rank that ends is not waited for. What is not PMI-1 breaks the client, nothing else. */
#ifndef KEEL_PM_PMI_H
#define KEEL_PM_PMI_H

#include "pm/wire/bytes.h"

#include <jansson.h>
#include <stdbool.h>

struct pmi_server;
struct pmi_client;

enum pmi_effect {
    PMI_NONE = 0,
    PMI_FENCE = 1,  /* all local ranks are in the barrier: exchange pmi_own_pairs, then pmi_release */
    PMI_ABORT = 2,  /* cmd=abort: *abort_code is set */
    PMI_BROKEN = 4, /* garbage: close the socket; *why (static text) says what */
};

/* local_ranks: how many ranks of this node take part in barriers. */
struct pmi_server *pmi_create(int ranks, int local_ranks, const char *kvsname, const char *mapping);
void pmi_destroy(struct pmi_server *s);
/* rank -1: a standby, whose requests are never answered: MPI has no notion of a rank that begins late. */
struct pmi_client *pmi_client_create(struct pmi_server *s, int rank);
void pmi_client_destroy(struct pmi_client *c);

/* Bytes from the process. Replies are appended to out. Returns a set of enum pmi_effect. */
int pmi_client_feed(struct pmi_client *c, const void *data, size_t len, struct bytes *out, int *abort_code,
                    const char **why);
/* The process ended: barriers do without it. Returns PMI_FENCE if it was the last one missing, else PMI_NONE. */
int pmi_client_gone(struct pmi_client *c);
/* Everything that local ranks have put so far; belongs to the server. */
json_t *pmi_own_pairs(const struct pmi_server *s);
/* The barrier is complete everywhere; kvs holds everybody's pairs. Then send pmi_barrier_out to each client for which
 * pmi_client_release is true. */
void pmi_release(struct pmi_server *s, const json_t *kvs);
bool pmi_client_release(struct pmi_client *c);
extern const char pmi_barrier_out[];
#endif
