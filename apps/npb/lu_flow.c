/* With density r, velocities v, energy e of a unit of mass and pressure p, a direction d carries E = u v_d + p (and
 * p v_d of the energy), and diffuses W: velocities, 4/3 of v_d, and of the energy what friction and heat make of it.
 * All blocks are derivatives of these two, so they are applied as such and need no matrices; the point's own has
 * nothing above its diagonal. */
#include "apps/npb/lu_flow.h"

enum { DENSITY, MOMENTUM, ENERGY = 4, DIRECTIONS = 3 };

static const double gamma_1 = 0.4;    /* of the gas, less one */
static const double friction = 0.1;   /* c3 c4 of the specification */
static const double heat = 1.4 * 1.4; /* c1 c5 */
static const double damping = 0.25;   /* of fourth differences */
static const double spreading[DIRECTIONS] = {0.75, 0.75, 1.0};

static const double coefficients[LU_PARTS][13] = {{2, 0, 0, 4, 5, 3, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3},
                                                  {1, 0, 0, 0, 1, 2, 3, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5},
                                                  {2, 2, 0, 0, 0, 2, 3, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4},
                                                  {2, 2, 0, 0, 0, 2, 3, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3},
                                                  {5, 4, 3, 2, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2}};

gas lu_exact(double x, double y, double z)
{
    gas u;
    const double at[DIRECTIONS] = {x, y, z};
    for (int m = 0; m < LU_PARTS; m++) {
        const double *c = coefficients[m];
        u.part[m] = c[0];
        for (int d = 0; d < DIRECTIONS; d++)
            u.part[m] += at[d] * (c[1 + d] + at[d] * (c[4 + d] + at[d] * (c[7 + d] + at[d] * c[10 + d])));
    }
    return u;
}

gas lu_start(double x, double y, double z)
{
    gas u, low[DIRECTIONS] = {lu_exact(0, y, z), lu_exact(x, 0, z), lu_exact(x, y, 0)};
    gas high[DIRECTIONS] = {lu_exact(1, y, z), lu_exact(x, 1, z), lu_exact(x, y, 1)};
    for (int m = 0; m < LU_PARTS; m++) {
        double a = (1 - x) * low[0].part[m] + x * high[0].part[m];
        double b = (1 - y) * low[1].part[m] + y * high[1].part[m];
        double c = (1 - z) * low[2].part[m] + z * high[2].part[m];
        u.part[m] = a + b + c - a * b - b * c - c * a + a * b * c;
    }
    return u;
}

/* What the five numbers mean. */
struct state {
    double volume, v[DIRECTIONS], energy, motion, pressure; /* volume, energy, motion: of a unit of mass */
};

static inline struct state state_of(const gas *u)
{
    struct state s = {.volume = 1 / u->part[DENSITY]};
    for (int k = 0; k < DIRECTIONS; k++) {
        s.v[k] = u->part[MOMENTUM + k] * s.volume;
        s.motion += 0.5 * s.v[k] * s.v[k];
    }
    s.energy = u->part[ENERGY] * s.volume;
    s.pressure = gamma_1 * (u->part[ENERGY] - s.motion * u->part[DENSITY]);
    return s;
}

double lu_pressure(const gas *u)
{
    return state_of(u).pressure;
}

static inline double stretch(int k, int direction)
{
    return k == direction ? 4.0 / 3 : 1;
}

static gas carried(const gas *u, const struct state *s, int d)
{
    gas flux;
    for (int m = 0; m < LU_PARTS; m++)
        flux.part[m] = u->part[m] * s->v[d];
    flux.part[MOMENTUM + d] += s->pressure;
    flux.part[ENERGY] += s->pressure * s->v[d];
    return flux;
}

/* What is diffused: W of friction, and the gas itself. */
static gas diffused(const gas *u, const struct state *s, int d)
{
    gas w;
    w.part[DENSITY] = 0;
    for (int k = 0; k < DIRECTIONS; k++)
        w.part[MOMENTUM + k] = friction * stretch(k, d) * s->v[k];
    w.part[ENERGY] = friction * ((1 - heat) * s->motion + s->v[d] * s->v[d] / 6 + heat * s->energy);
    for (int m = 0; m < LU_PARTS; m++)
        w.part[m] += spreading[d] * u->part[m];
    return w;
}

/* The fourth difference at a point of the n. Points on a face and beyond take no part. */
static double fourth(const gas *u, int at, int n, int m)
{
    double sum = (at == 1 || at == n - 2 ? 5 : 6) * u[0].part[m];
    if (at > 1)
        sum -= 4 * u[-1].part[m];
    if (at > 2)
        sum += u[-2].part[m];
    if (at < n - 2)
        sum -= 4 * u[1].part[m];
    if (at < n - 3)
        sum += u[2].part[m];
    return sum;
}

void lu_line_add(const struct lu_line *line, const gas *u, gas *out)
{
    double across = line->n - 1, once = 0.5 * across, twice = across * across;
    gas flux[LU_POINTS_MAX], spread[LU_POINTS_MAX];
    for (int i = line->from - 1 - line->first; i <= line->to - line->first; i++) {
        struct state s = state_of(&u[i]);
        flux[i] = carried(&u[i], &s, line->direction);
        spread[i] = diffused(&u[i], &s, line->direction);
    }
    for (int at = line->from; at < line->to; at++, out++)
        for (int i = at - line->first, m = 0; m < LU_PARTS; m++)
            out->part[m] += twice * (spread[i - 1].part[m] - 2 * spread[i].part[m] + spread[i + 1].part[m]) -
                            once * (flux[i + 1].part[m] - flux[i - 1].part[m]) -
                            damping * fourth(&u[i], at, line->n, m);
}

/* Derivatives of the state along x. */
static inline void change_of(const struct state *s, const gas *x, double v[DIRECTIONS], double *energy)
{
    for (int k = 0; k < DIRECTIONS; k++)
        v[k] = (x->part[MOMENTUM + k] - s->v[k] * x->part[DENSITY]) * s->volume;
    *energy = (x->part[ENERGY] - s->energy * x->part[DENSITY]) * s->volume;
}

void lu_neighbour_add(int n, double dt, int d, int side, const gas *u, const gas *x, gas *sum)
{
    struct state s = state_of(u);
    double across = n - 1, once = side * dt * 0.5 * across, twice = dt * across * across;
    double v[DIRECTIONS], energy, pressure = s.motion * x->part[DENSITY] + x->part[ENERGY], warmth = 0;
    change_of(&s, x, v, &energy);
    for (int k = 0; k < DIRECTIONS; k++) {
        pressure -= s.v[k] * x->part[MOMENTUM + k];
        warmth += (stretch(k, d) - heat) * s.v[k] * v[k];
    }
    pressure *= gamma_1;
    for (int m = 0; m < LU_PARTS; m++)
        sum->part[m] += once * (s.v[d] * x->part[m] + u->part[m] * v[d]) - twice * spreading[d] * x->part[m];
    for (int k = 0; k < DIRECTIONS; k++)
        sum->part[MOMENTUM + k] -= twice * friction * stretch(k, d) * v[k];
    sum->part[MOMENTUM + d] += once * pressure;
    sum->part[ENERGY] += once * (s.v[d] * pressure + s.pressure * v[d]) - twice * friction * (warmth + heat * energy);
}

gas lu_own_solve(int n, double dt, const gas *u, const gas *right)
{
    struct state s = state_of(u);
    double across = n - 1, twice = 2 * dt * across * across, own = 1, energy = right->part[ENERGY];
    gas x;
    for (int d = 0; d < DIRECTIONS; d++)
        own += twice * spreading[d];
    x.part[DENSITY] = right->part[DENSITY] / own;
    for (int k = 0; k < DIRECTIONS; k++) {
        double rub = twice * friction * (2 + 4.0 / 3) * s.volume; /* of all three directions */
        double warm = twice * friction * (2 + 4.0 / 3 - 3 * heat) * s.v[k];
        x.part[MOMENTUM + k] = (right->part[MOMENTUM + k] + rub * s.v[k] * x.part[DENSITY]) / (own + rub);
        energy -= warm * (x.part[MOMENTUM + k] - s.v[k] * x.part[DENSITY]) * s.volume;
    }
    double conduct = twice * friction * 3 * heat * s.volume;
    x.part[ENERGY] = (energy + conduct * s.energy * x.part[DENSITY]) / (own + conduct);
    return x;
}
