#include <inttypes.h>
#include <math.h>

#include "sim/place/options.h"

void out_csv(FILE *f, const struct sample_config *c, const struct sample_result *r)
{
    struct place_method m = {0};
    if (setup_is_own(c->setup.method))
        m = (struct place_method){.steps = 1, .step = {{.order = PLACE_OWN}}};
    else
        place_method_parse(&m, c->setup.method, c->setup.grid.ndims);
    fputs("method,failures,cases,worst,mean,best,stddev,mean_load,moves,idle,cannot", f);
    for (int o = GRID_MAX_DIMS; o >= PLACE_OWN; o--)
        if (o <= c->setup.grid.ndims)
            fprintf(f, o == PLACE_OWN ? ",by_own" : ",by_%dD", o);
    fputc('\n', f);
    for (int32_t i = 0; i <= r->failures; i++) {
        const struct sample_row *w = &r->row[i];
        if (!w->cases)
            continue;
        double n = (double)w->cases, mean = (double)w->collisions / n;
        double var = (double)w->collisions_sq / n - mean * mean;
        fprintf(f, "%s,%d,%" PRId64 ",%" PRId64 ",%.6f,%" PRId64 ",%.6f,%.6f,%.3f,%" PRId64 ",%" PRId64,
                c->setup.method, i, w->cases, w->worst, mean, w->best, sqrt(var > 0 ? var : 0),
                (double)w->mean_load / 1e6 / n, (double)w->moves / n, w->idle, w->cannot);
        for (int o = GRID_MAX_DIMS; o >= PLACE_OWN; o--) {
            int64_t by = 0;
            for (int s = 0; s <= m.steps && s < PLACE_MAX_STEPS; s++) /* behind them 0D, for a bound */
                by += m.step[s].order == o ? w->step[s] : 0;
            if (o <= c->setup.grid.ndims)
                fprintf(f, ",%" PRId64, by);
        }
        fputc('\n', f);
    }
}

void out_links(FILE *f, const struct sample_result *r)
{
    fputs("failures,messages,links_per_case\n", f);
    for (int32_t i = 0; i <= r->failures; i++)
        for (int n = 0; n < SAMPLE_LINK_LOADS; n++)
            if (r->row[i].cases && r->link_loads[i][n])
                fprintf(f, "%d,%d,%.6f\n", i, n, (double)r->link_loads[i][n] / (double)r->row[i].cases);
}
