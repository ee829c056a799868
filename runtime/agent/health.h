/* What ranks may know of nodes, of links and of each other's processes: kept on the view page, and looked at anew when
 * one of them asks (CONTROL_STATUS). Whoever asks says when it did; an answer carries that time, so it is never older
 * than the question. */
#ifndef KEEL_AGENT_HEALTH_H
#define KEEL_AGENT_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/view/view.h"
#include "runtime/wire/control.h"
#include "runtime/wire/page.h"
#include "runtime/wire/wire.h"

struct agent;

/* What nodes' deaths would cost, as the detector was told last. */
struct stakes {
    uint8_t *told;  /* [members] enum view_stake */
    uint64_t epoch; /* of the view and */
    unsigned used;  /* the classes (view.h: view_stake) that these follow from */
};

/* False: out of memory. stakes_fini frees what was made, also of an all-zero one. */
bool stakes_init(struct stakes *stakes, int members);
void stakes_fini(struct stakes *stakes);

/* A rank of this node asks. */
void health_ask(struct agent *a, const struct control *r);
/* A rank of this node leaves without another one, as it says. */
void health_left_behind(struct agent *a, const struct control *r);
/* WIRE_RANK_ASK, where the rank is; WIRE_RANK_SAYS, where it was asked. */
void health_asked(struct agent *a, int from, const struct wire *w);
void health_told(struct agent *a, int from, const struct wire *w);
/* Is the process of a rank of this node stopped now? A look, of which nobody is told. */
bool health_is_stopped(const struct agent *a, int rank);
/* The detector: `bits` (enum page_doubt) of what it thinks of the node are set, or not. */
void health_doubt(struct agent *a, int node, unsigned bits, bool set);
/* The detector suspects it; or has heard of it again. */
void health_suspect(struct agent *a, int node, bool suspected);
/* The node has answered what was asked at this time. */
void health_answered(struct agent *a, int node, uint64_t asked);
/* All links that are broken now; more than PAGE_LINKS_MAX are not shown. */
struct health_link {
    int a, b;
    uint64_t since_ns;
};
void health_links(struct agent *a, const struct health_link *links, int n);

/* The view: what a rank's page entry says of its deaths; and that the page is complete. */
void health_show_rank(struct page_rank *k, const struct view_rank *r);
void health_committed(struct agent *a);
/* This node hears too few of the others, and will end; or that is over. */
void health_cut_off(struct agent *a, bool cut);
/* What nodes' deaths would cost, to the detector, if that has changed. */
void health_stakes(struct agent *a);
#endif
