/* Maps of link load with the broken links in them. load: per link, share of the time it was busy. */
#ifndef KEEL_SIM_ROUTE_HEAT_H
#define KEEL_SIM_ROUTE_HEAT_H
#include "sim/route/outage.h"

/* On the terminal: one or two dimensions as a map, other networks as a list of the busiest links. */
void heat_print(FILE *out, const struct fabric *f, const float *load, const struct outages *o, bool color);
/* As a picture by gnuplot, .png or .svg by its name; two dimensions only.
 * returns NULL or what is wrong. */
const char *heat_image(const char *path, const struct fabric *f, const float *load, const struct outages *o);

/* A script for gnuplot, to write to and then to close: no file is left whatever happens. NULL when there can be
 * none. */
FILE *heat_script(void);
/* Run gnuplot on what was written to it. returns NULL or what is wrong. */
const char *heat_gnuplot(FILE *script);
#endif
