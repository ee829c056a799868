/* LU's equations: flow of a gas in a cube, by what stands in five numbers at each of n points a side. They differ in
 * three directions by a name only. */
#ifndef KEEL_NPB_LU_FLOW_H
#define KEEL_NPB_LU_FLOW_H

enum { LU_PARTS = 5, LU_POINTS_MAX = 64 };

/* Density, momenta in x, y and z, energy. */
typedef struct gas {
    double part[LU_PARTS];
} gas;

/* What the exact solution is at a place in the unit cube. */
gas lu_exact(double x, double y, double z);
/* Where the iteration begins: the exact solution on the faces, between them from these alone. */
gas lu_start(double x, double y, double z);
double lu_pressure(const gas *u);

/* A line of points in one direction (0: x, 1: y, 2: z): u[0] is point first of the n in the cube, and there are two
 * points beyond each end of from..to-1, where the cube has them. */
struct lu_line {
    int n, direction, first, from, to;
};

/* Add what the direction does to the gas in a unit of time, to points from..to-1 (none on a face); out[0] is point
 * from. */
void lu_line_add(const struct lu_line *line, const gas *u, gas *out);

/* The implicit step of dt as a matrix of 5 x 5 blocks. What the neighbour's block in a direction, before (side -1) or
 * behind (side 1), makes of x is added to *sum; u is the gas there. */
void lu_neighbour_add(int n, double dt, int direction, int side, const gas *u, const gas *x, gas *sum);
/* Solve (the point's own block) x = right; u is the gas there. */
gas lu_own_solve(int n, double dt, const gas *u, const gas *right);

#endif
