/* What one study looks at: grid, spares, method, pattern, network, convention; and one worker's live copy of it. */
#ifndef KEEL_SIM_PLACE_SETUP_H
#define KEEL_SIM_PLACE_SETUP_H
#include "runtime/topo/balance.h"
#include "runtime/topo/load.h"
#include "runtime/topo/place.h"
#include "runtime/topo/remap.h"

struct setup {
    struct grid grid;
    struct spare_layout layout;
    char method[64]; /* as place_method_parse reads it, or Keel's own: "balance", "repair", "repair(8)" */
    char order[8];   /* of slides, as place_order_parse reads it; empty: the default */
    int32_t moves;   /* that one failure may cost, by any method; 0: any number */
    int32_t slots;   /* the job's, at most one on each place; 0: so many */
    enum pattern_kind pattern;
    enum load_convention convention;
    struct load_network net;
};

/* One job under study. Not shared between threads. */
struct job {
    const struct setup *setup;
    struct place place, launch; /* now, and as at launch */
    struct load load, launch_load;
    struct place_plan plan;
    struct place_method method;
    struct balance balance;
    struct remap remap;
    struct pattern pattern;
};

/* Is it one of Keel's own methods, which are no list of slides? */
bool setup_is_own(const char *method);
/* Is a slide among its steps, so that an order of them matters? For a method that setup_check has let pass. */
bool setup_slides(const struct setup *s);
/* The stencil that fits a grid: 5p in 2D, 7p in 3D, star in others. */
enum pattern_kind setup_stencil(const struct grid *g);
/* returns   NULL, or a constant text that says what does not fit. */
const char *setup_check(const struct setup *s);
/* returns   false when out of memory. The setup was checked and stays the caller's. */
bool job_open(struct job *j, const struct setup *s);
/* Also returns false soon after *stop was set: grids of many millions of nodes take a while. */
bool job_open_until(struct job *j, const struct setup *s, const atomic_bool *stop);
void job_close(struct job *j);
/* The map as it is now becomes the one at launch (after nodes that were dead from the start). */
void job_launch(struct job *j);
/* Back to launch. */
void job_reset(struct job *j);
/* A node dies and is substituted; place and load follow. */
enum place_result job_fail(struct job *j, int32_t node);
/* The order of the step that made the last plan: q for qD, PLACE_OWN for another. */
int job_order(const struct job *j);
#endif
