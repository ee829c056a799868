#include "apps/npb/cg_matrix.h"

#include "apps/npb/random.h"

#include <math.h>
#include <stdlib.h>

enum { ELEMENTS_MAX = 16 };
#define CONDITION 0.1

struct sparse {
    int n;
    int at[ELEMENTS_MAX];
    double value[ELEMENTS_MAX];
};

static int find(const struct sparse *vector, int at)
{
    int i = 0;
    while (i < vector->n && vector->at[i] != at)
        i++;
    return i;
}

static void put(struct sparse *vector, int i, int at, double value)
{
    vector->at[i] = at;
    vector->value[i] = value;
    vector->n += i == vector->n;
}

/* Value and place are drawn by turns; a place outside, or one that was drawn before, does not count. */
static void draw(struct random *random, int n, int nonzeros, int self, struct sparse *out)
{
    int power = 1;
    while (power < n)
        power *= 2;
    out->n = 0;
    while (out->n < nonzeros) {
        double value = random_next(random);
        int at = (int)(power * random_next(random));
        if (at < n && find(out, at) == out->n)
            put(out, out->n, at, value);
    }
    put(out, find(out, self), self, 0.5);
}

/* For each of the rows, the numbers of the vectors that have an element there, in rising order. */
struct users {
    size_t *start; /* [rows + 1] */
    int *vectors;
};

static void users_find(const struct sparse *vectors, int n, struct share rows, struct users *out)
{
    size_t *fill = reserve(rows.count + 1, sizeof *fill);
    out->start = reserve(rows.count + 1, sizeof *out->start);
    for (int v = 0; v < n; v++)
        for (int e = 0; e < vectors[v].n; e++) {
            size_t row = (size_t)vectors[v].at[e] - rows.first; /* wraps if it is one before them */
            if (row < rows.count)
                out->start[row + 1]++;
        }
    for (size_t row = 0; row < rows.count; row++)
        fill[row + 1] = out->start[row + 1] += out->start[row];
    out->vectors = reserve(out->start[rows.count], sizeof *out->vectors);
    for (int v = 0; v < n; v++)
        for (int e = 0; e < vectors[v].n; e++) {
            size_t row = (size_t)vectors[v].at[e] - rows.first;
            if (row < rows.count)
                out->vectors[fill[row]++] = v;
        }
    keel_local_free(fill);
}

/* A row under way: its values at their columns, and which columns those are. */
struct row {
    double *values; /* [n] */
    bool *used;     /* [n] */
    int *columns;   /* [n] */
    int count;
};

static void row_add(struct row *row, int column, double value)
{
    if (!row->used[column]) {
        row->used[column] = true;
        row->values[column] = 0;
        row->columns[row->count++] = column;
    }
    row->values[column] += value;
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void row_end(struct row *row, struct cg_matrix *out)
{
    size_t at = out->start[out->rows];
    qsort(row->columns, (size_t)row->count, sizeof *row->columns, by_number);
    for (int i = 0; i < row->count; i++, at++) {
        out->columns[at] = row->columns[i];
        out->values[at] = row->values[row->columns[i]];
        row->used[row->columns[i]] = false;
    }
    row->count = 0;
    out->start[++out->rows] = at;
}

static size_t elements_at_most(const struct sparse *vectors, const struct users *users, size_t rows)
{
    size_t sum = 0;
    for (size_t i = 0; i < users->start[rows]; i++)
        sum += (size_t)vectors[users->vectors[i]].n;
    return sum;
}

static void add_up(const struct sparse *vectors, const struct users *users, int n, double shift, struct share rows,
                   struct cg_matrix *out)
{
    struct row row = {reserve((size_t)n, sizeof(double)), reserve((size_t)n, sizeof(bool)),
                      reserve((size_t)n, sizeof(int)), 0};
    double *weights = reserve((size_t)n, sizeof *weights), ratio = pow(CONDITION, 1.0 / n);
    weights[0] = 1;
    for (int v = 1; v < n; v++)
        weights[v] = weights[v - 1] * ratio;
    for (size_t r = 0; r < rows.count; r++) {
        int self = (int)(rows.first + r);
        for (size_t i = users->start[r]; i < users->start[r + 1]; i++) {
            const struct sparse *vector = &vectors[users->vectors[i]];
            double scale = weights[users->vectors[i]] * vector->value[find(vector, self)];
            for (int e = 0; e < vector->n; e++)
                row_add(&row, vector->at[e], scale * vector->value[e]);
        }
        row_add(&row, self, CONDITION - shift);
        row_end(&row, out);
    }
    keel_local_free(weights);
    keel_local_free(row.values);
    keel_local_free(row.used);
    keel_local_free(row.columns);
}

void cg_matrix_create(int n, int nonzeros, double shift, struct share rows, struct cg_matrix *out)
{
    struct sparse *vectors = reserve((size_t)n, sizeof *vectors);
    struct random random = random_at(RANDOM_SEED, 1); /* the first number is not used */
    struct users users;
    for (int v = 0; v < n; v++)
        draw(&random, n, nonzeros, v, &vectors[v]);
    users_find(vectors, n, rows, &users);
    size_t most = elements_at_most(vectors, &users, rows.count);
    *out = (struct cg_matrix){.rows = 0,
                              .start = reserve(rows.count + 1, sizeof *out->start),
                              .columns = reserve(most, sizeof *out->columns),
                              .values = reserve(most, sizeof *out->values)};
    add_up(vectors, &users, n, shift, rows, out);
    keel_local_free(users.start);
    keel_local_free(users.vectors);
    keel_local_free(vectors);
}

void cg_matrix_destroy(struct cg_matrix *matrix)
{
    keel_local_free(matrix->start);
    keel_local_free(matrix->columns);
    keel_local_free(matrix->values);
}

void cg_matrix_multiply(const struct cg_matrix *matrix, const double *v, double *out)
{
    for (size_t row = 0; row < matrix->rows; row++) {
        double sum = 0;
        for (size_t i = matrix->start[row]; i < matrix->start[row + 1]; i++)
            sum += matrix->values[i] * v[matrix->columns[i]];
        out[row] = sum;
    }
}
