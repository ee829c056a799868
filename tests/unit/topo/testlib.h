/* What the placement tests share: one job with its map, a plan, a pattern and its link load. */
#ifndef TESTS_TOPO_TESTLIB_H
#define TESTS_TOPO_TESTLIB_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/rng.h"
#include "runtime/topo/load.h"
#include "runtime/topo/place.h"

struct job {
    struct grid grid;
    struct spare_layout layout;
    struct place place;
    struct place_plan plan;
    struct place_method method;
    struct pattern pattern;
    struct load load;
};

static inline void job_open_on(struct job *j, const char *grid, const char *layout, const char *method,
                               enum pattern_kind pattern, enum load_convention convention,
                               const struct load_network *net)
{
    assert_null(grid_parse(&j->grid, grid));
    assert_null(spare_parse(&j->layout, layout));
    assert_true(place_init(&j->place, &j->grid, &j->layout, 0, NULL));
    assert_true(place_plan_init(&j->plan, &j->place));
    assert_null(place_method_parse(&j->method, method, j->grid.ndims));
    assert_true(pattern_init(&j->pattern, pattern, &j->place.slot_grid));
    assert_true(load_init(&j->load, &j->pattern, &j->place, net, convention));
}

static inline void job_open(struct job *j, const char *grid, const char *layout, const char *method)
{
    job_open_on(j, grid, layout, method, PATTERN_STAR, LOAD_ALL, NULL);
}

static inline void job_close(struct job *j)
{
    load_fini(&j->load);
    pattern_fini(&j->pattern);
    place_plan_fini(&j->plan);
    place_fini(&j->place);
}

/* One failure, with the link load following. */
static inline enum place_result job_fail(struct job *j, int32_t node)
{
    return load_substitute(&j->load, &j->place, &j->method, node, &j->plan);
}

static inline int32_t at(const struct job *j, int x, int y)
{
    return x + y * j->grid.stride[1];
}

static inline int job_fail_xy(struct job *j, int x, int y)
{
    return (int)job_fail(j, at(j, x, y));
}
#endif
