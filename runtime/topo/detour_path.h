/* A multi-step path, and a walk along it. */
#ifndef KEEL_TOPO_DETOUR_PATH_H
#define KEEL_TOPO_DETOUR_PATH_H
#include "runtime/topo/fabric.h"

enum { DETOUR_MAX_VIA = 6 };

/* Its intermediate routers; nvia 0 is the original path. A way around what is broken may need more of them: then these
 * are the first, what follows the last is the static route, and who meets a broken cable on it asks again
 * (detour_escape, detour_relay). */
struct detour_path {
    int32_t via[DETOUR_MAX_VIA];
    uint8_t nvia;
};

/* A walk along a path, link by link: detour_walk_begin(...); while ((link = detour_walk_next(&w)) >= 0) ... */
struct detour_walk {
    const struct fabric *fabric;
    const struct detour_path *path;
    int32_t at, to, dest;
    int step;
};
void detour_walk_begin(struct detour_walk *w, const struct fabric *f, int32_t from, const struct detour_path *path,
                       int32_t dest);
int32_t detour_walk_next(struct detour_walk *w);
#endif
