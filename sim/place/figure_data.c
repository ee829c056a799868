#include <stdlib.h>
#include <string.h>

#include "sim/place/figure.h"
#include "sim/place/worst.h"

/* Figure 3: the share of spares by number of nodes; exact where the sides are whole numbers. */
bool figure_shares(const struct figure *fig, const struct options *o, FILE *f)
{
    (void)fig, (void)o;
    fputs("q,r,s,nodes,exact_percent,formula_percent\n", f);
    for (int q = 2; q <= 3; q++)
        for (int r = 1; r <= q; r++)
            for (int side = q == 2 ? 10 : 5; side <= (q == 2 ? 1000 : 100); side += q == 2 ? 10 : 1) {
                int size[3] = {side, side, side};
                struct grid g;
                struct spare_layout l = {.q = q, .r = r, .s = 1};
                grid_init(&g, q, size, NULL);
                fprintf(f, "%d,%d,1,%d,%.6f,%.6f\n", q, r, g.nodes, 100.0 * spare_count(&l, &g) / g.nodes,
                        100 * spare_share(&l, g.nodes));
            }
    return true;
}

/* Figure 22: the allocation that keeps the share between 2 and 5 percent, beside the fixed ones. */
bool figure_mixed(const struct figure *fig, const struct options *o, FILE *f)
{
    (void)fig, (void)o;
    fputs("kind,r,s,nodes,exact_percent\n", f);
    for (int r = 1; r <= 4; r++)
        for (int side = 10; side <= 160; side++) {
            int size[3] = {side, side, side};
            struct grid g;
            struct spare_layout l = {.q = 3, .r = r, .s = 1};
            grid_init(&g, 3, size, NULL);
            double share = r == 4 ? spare_choose(&g, 0.02, 0.05, &l) : (double)spare_count(&l, &g) / g.nodes;
            fprintf(f, "%s,%d,%d,%d,%.6f\n", r == 4 ? "chosen" : "fixed", l.r, l.s, g.nodes, 100 * share);
        }
    return true;
}
