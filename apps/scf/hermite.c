#include "apps/scf/hermite.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "apps/scf/boys.h"

static_assert(HERMITE_COUNT <= UINT8_MAX + 1, "an order fits a byte");
static_assert((int)BOYS_M_MAX >= (int)HERMITE_L_MAX, "the Boys function goes high enough");

/* R of one order from two lower ones: R^n[order] = d[axis] R^{n+1}[lower] + factor R^{n+1}[lowest]. */
struct recipe {
    uint8_t axis, lower, lowest, factor;
};

static struct {
    uint8_t powers[HERMITE_COUNT][3];
    uint8_t number[HERMITE_L_MAX + 1][HERMITE_L_MAX + 1][HERMITE_L_MAX + 1];
    struct recipe recipe[HERMITE_COUNT];
    uint8_t sums[HERMITE_PAIR_COUNT][HERMITE_PAIR_COUNT];
    struct hermite_product products[SHELL_L_MAX + 1][SHELL_L_MAX + 1];
} tables;
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void number_orders(void)
{
    int next = 0;
    for (int l = 0; l <= HERMITE_L_MAX; l++)
        for (int t = l; t >= 0; t--)
            for (int u = l - t; u >= 0; u--) {
                int v = l - t - u;
                tables.powers[next][0] = (uint8_t)t;
                tables.powers[next][1] = (uint8_t)u;
                tables.powers[next][2] = (uint8_t)v;
                tables.number[t][u][v] = (uint8_t)next++;
            }
}

static uint8_t number_of(const int tuv[3])
{
    return tables.number[tuv[0]][tuv[1]][tuv[2]];
}

static void write_recipes(void)
{
    for (int order = 1; order < HERMITE_COUNT; order++) {
        int tuv[3] = {tables.powers[order][0], tables.powers[order][1], tables.powers[order][2]};
        int axis = tuv[0] > 0 ? 0 : tuv[1] > 0 ? 1 : 2;
        struct recipe *recipe = &tables.recipe[order];
        recipe->axis = (uint8_t)axis;
        tuv[axis]--;
        recipe->lower = number_of(tuv);
        recipe->factor = (uint8_t)tuv[axis];
        if (tuv[axis] > 0)
            tuv[axis]--;
        recipe->lowest = number_of(tuv);
    }
}

static void add_orders(void)
{
    for (int a = 0; a < HERMITE_PAIR_COUNT; a++)
        for (int b = 0; b < HERMITE_PAIR_COUNT; b++) {
            const uint8_t *p = tables.powers[a], *q = tables.powers[b];
            tables.sums[a][b] = tables.number[p[0] + q[0]][p[1] + q[1]][p[2] + q[2]];
        }
}

static void list_terms(int la, int lb, struct hermite_product *out)
{
    *out = (struct hermite_product){
        .la = la, .lb = lb, .nproducts = shell_functions(la) * shell_functions(lb), .norders = hermite_count(la + lb)};
    int product = 0;
    for (int a = 0; a < shell_functions(la); a++)
        for (int b = 0; b < shell_functions(lb); b++) {
            int i[3], j[3];
            shell_powers(la, a, i);
            shell_powers(lb, b, j);
            for (int order = 0; order < out->norders; order++) {
                const uint8_t *tuv = tables.powers[order];
                if (tuv[0] <= i[0] + j[0] && tuv[1] <= i[1] + j[1] && tuv[2] <= i[2] + j[2]) {
                    assert(out->nterms < PAIR_TERMS_MAX);
                    out->order[out->nterms++] = (uint8_t)order;
                }
            }
            out->start[++product] = (uint16_t)out->nterms;
        }
}

static void tables_fill(void)
{
    number_orders();
    write_recipes();
    add_orders();
    for (int la = 0; la <= SHELL_L_MAX; la++)
        for (int lb = 0; lb <= SHELL_L_MAX; lb++)
            list_terms(la, lb, &tables.products[la][lb]);
}

void hermite_powers(int order, int tuv[3])
{
    pthread_once(&tables_once, tables_fill);
    for (int i = 0; i < 3; i++)
        tuv[i] = tables.powers[order][i];
}

const uint8_t *hermite_sums(int order)
{
    return tables.sums[order];
}

const struct hermite_product *hermite_product(int la, int lb)
{
    pthread_once(&tables_once, tables_fill);
    return &tables.products[la][lb];
}

void hermite_integrals(int l, double alpha, const double d[3], double scale, double *out)
{
    double f[HERMITE_L_MAX + 1];
    boys(l, alpha * (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]), f);
    for (int n = 0; n <= l; n++) {
        f[n] *= scale;
        scale *= -2 * alpha;
    }
    /* Auxiliary index n falls from l to 0; in step n the orders up to degree l - n are made from those of step n + 1,
     * in place, highest first, since each needs only lower ones of the step before. */
    out[0] = f[l];
    for (int n = l - 1; n >= 0; n--) {
        for (int order = hermite_count(l - n) - 1; order > 0; order--) {
            const struct recipe *r = &tables.recipe[order];
            out[order] = d[r->axis] * out[r->lower];
            if (r->factor > 0)
                out[order] += r->factor * out[r->lowest];
        }
        out[0] = f[n];
    }
}

void hermite_expand(int la, int lb, double xa, double xb, double p, double e0, hermite_1d out)
{
    double half = 0.5 / p;
    memset(out, 0, sizeof(hermite_1d));
    out[0][0][0] = e0;
    for (int i = 0; i <= la; i++)
        for (int j = 0; j <= lb; j++) {
            if (i + j == 0)
                continue;
            /* raise the second function's power if it has any, else the first's */
            const double *from = j > 0 ? out[i][j - 1] : out[i - 1][j];
            double x = j > 0 ? xb : xa;
            int l = i + j;
            for (int t = 0; t <= l; t++)
                out[i][j][t] = (t > 0 ? half * from[t - 1] : 0) + (t < l ? x * from[t] : 0) +
                               (t + 1 < l ? (t + 1) * from[t + 1] : 0);
        }
}
