/* What no map can beat: a lower bound on the messages on the most used link, for any placement of the slots.
 *
 * All messages that a slot sends leave its node by the links that node has, and those it receives come in by them. With
 * at most c messages on a link a slot that sends k needs a node with k / c links or more; slots with many messages may
 * be too many for the live nodes with many links (the borders of a mesh have fewer), and then c is not enough. On a fat
 * tree every node has one link. The phases of a pattern are bounded one by one and added.
 * returns   the bound; 0 under LOAD_RECEIVED, where slots that have moved send nothing that counts. */
#ifndef KEEL_SIM_PLACE_BOUND_H
#define KEEL_SIM_PLACE_BOUND_H
#include "runtime/topo/load.h"

int32_t load_bound(const struct place *p, const struct load *l);
#endif
