/* Which rank starts on which node. Pure. */
#ifndef KEEL_PM_LAYOUT_H
#define KEEL_PM_LAYOUT_H

#include <stddef.h>

#include "runtime/base/limits.h"

/* Blocks of consecutive ranks. ppn > 0: that many per node, the last node takes the rest. ppn 0: as even as possible,
 * the first nodes one more. rank_node has room for ranks entries. False if they do not fit or a node would stay empty.
 */
int layout_ranks(int ranks, int nodes, int ppn, int *rank_node);
/* The largest number of ranks on one node. */
int layout_max_per_node(const int *rank_node, int ranks);

/* PMI_process_mapping for rank_node: "(vector,(first node,nodes,ranks per node),...)". Returns the length that was
 * needed without the final zero; the text is cut if size is too small. */
size_t layout_pmi_mapping(const int *rank_node, int ranks, char *out, size_t size);
#endif
