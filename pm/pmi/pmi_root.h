/* The PMI barrier between nodes, at the one agent that keeps it (the lowest live node that started with ranks). Pure.
 *
 * Each node reports the round it has entered together with everything its ranks have put so far. A round is complete
 * when every live node is in it or beyond; what all have put is then given to everybody. Because reports are cumulative
 * they may be repeated, and another node can take over as root at any moment by hearing everybody's last report again.
 */
#ifndef KEEL_PM_PMI_ROOT_H
#define KEEL_PM_PMI_ROOT_H

#include <jansson.h>
#include <stdbool.h>

struct pmi_root;

struct pmi_root *pmi_root_create(int nodes);
void pmi_root_destroy(struct pmi_root *root);
/* Node entered round (1, 2, ...); kvs is everything its ranks have put. A lower round than before is ignored. */
void pmi_root_report(struct pmi_root *root, int node, long long round, const json_t *kvs);
/* A dead node is not waited for. */
void pmi_root_set_alive(struct pmi_root *root, int node, bool alive);
/* The highest complete round, 0 if none. */
long long pmi_root_complete(const struct pmi_root *root);
/* Everybody's pairs; the caller owns the object. */
json_t *pmi_root_pairs(const struct pmi_root *root);
#endif
