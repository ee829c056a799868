#include "apps/stencil/sweep.h"

#include <string.h>

static const struct {
    const char *name;
    int dims;
    bool corners;
} kinds[] = {[STENCIL_5P] = {"5p", 2, false},
             [STENCIL_9P] = {"9p", 2, true},
             [STENCIL_7P] = {"7p", 3, false},
             [STENCIL_27P] = {"27p", 3, true}};

bool stencil_parse(const char *text, enum stencil *out)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(text, kinds[i].name) == 0) {
            *out = (enum stencil)i;
            return true;
        }
    }
    return false;
}

const char *stencil_name(enum stencil s)
{
    return kinds[s].name;
}

int stencil_dims(enum stencil s)
{
    return kinds[s].dims;
}

bool stencil_has_corners(enum stencil s)
{
    return kinds[s].corners;
}

static bool in_patch(const struct field *f, const int *at, int from, int to)
{
    for (int d = 0; d < f->dims && d < STENCIL_DIMS; d++)
        if (at[d] * 16 < from * f->cells[d] || at[d] * 16 >= to * f->cells[d])
            return false;
    return true;
}

/* at: in the whole field; -1 and cells[d] are its border. */
static double at_begin(const struct field *f, const int *at)
{
    if (!f->periodic && at[0] < 0)
        return 1.0;
    if (in_patch(f, at, 5, 8))
        return 0.5;
    return f->periodic && in_patch(f, at, 10, 14) ? 1.0 : 0.0;
}

void sweep_begin(const struct field *f, const struct block *b, double *cells)
{
    int at[STENCIL_DIMS];
    for (int i = 0; i < b->cells[0] + 2; i++) {
        for (int j = 0; j < b->cells[1] + 2; j++) {
            for (int k = 0; k < b->cells[2] + 2; k++) {
                at[0] = b->first[0] + i - 1;
                at[1] = b->first[1] + j - 1;
                at[2] = b->first[2] + k - 1;
                cells[block_index(b, i, j, k)] = at_begin(f, at);
            }
        }
    }
}

struct strides {
    ptrdiff_t i, j;
};

static double mean_5(const double *c, struct strides s)
{
    return 0.25 * ((c[-s.i] + c[s.i]) + (c[-s.j] + c[s.j]));
}

static double mean_9(const double *c, struct strides s)
{
    double beside = (c[-s.i] + c[s.i]) + (c[-s.j] + c[s.j]);
    double corners = (c[-s.i - s.j] + c[-s.i + s.j]) + (c[s.i - s.j] + c[s.i + s.j]);
    return 0.05 * (4.0 * beside + corners);
}

static double mean_7(const double *c, struct strides s)
{
    return ((c[-s.i] + c[s.i]) + (c[-s.j] + c[s.j]) + (c[-1] + c[1])) / 6.0;
}

static double mean_27(const double *c, struct strides s)
{
    double beside = (c[-s.i] + c[s.i]) + (c[-s.j] + c[s.j]) + (c[-1] + c[1]);
    double edges = (c[-s.i - s.j] + c[-s.i + s.j]) + (c[s.i - s.j] + c[s.i + s.j]);
    edges += (c[-s.i - 1] + c[-s.i + 1]) + (c[s.i - 1] + c[s.i + 1]);
    edges += (c[-s.j - 1] + c[-s.j + 1]) + (c[s.j - 1] + c[s.j + 1]);
    double corners = (c[-s.i - s.j - 1] + c[-s.i - s.j + 1]) + (c[-s.i + s.j - 1] + c[-s.i + s.j + 1]);
    corners += (c[s.i - s.j - 1] + c[s.i - s.j + 1]) + (c[s.i + s.j - 1] + c[s.i + s.j + 1]);
    return (14.0 * beside + 3.0 * edges + corners) / 128.0;
}

/* Each kind gets a loop of its own. */
static inline __attribute__((always_inline)) double sweep_all(const struct block *b, const double *from, double *to,
                                                              double (*mean)(const double *c, struct strides s))
{
    struct strides s = {.i = (ptrdiff_t)(b->cells[1] + 2) * (b->cells[2] + 2), .j = b->cells[2] + 2};
    double changed = 0;
    for (int i = 1; i <= b->cells[0]; i++) {
        for (int j = 1; j <= b->cells[1]; j++) {
            size_t row = block_index(b, i, j, 0);
            for (int k = 1; k <= b->cells[2]; k++) {
                double was = from[row + (size_t)k], is = mean(from + row + k, s);
                to[row + (size_t)k] = is;
                changed += (is - was) * (is - was);
            }
        }
    }
    return changed;
}

double sweep(enum stencil s, const struct block *b, const double *from, double *to)
{
    switch (s) {
    case STENCIL_5P:
        return sweep_all(b, from, to, mean_5);
    case STENCIL_9P:
        return sweep_all(b, from, to, mean_9);
    case STENCIL_7P:
        return sweep_all(b, from, to, mean_7);
    case STENCIL_27P:
        break;
    }
    return sweep_all(b, from, to, mean_27);
}
