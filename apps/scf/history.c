#include "apps/scf/history.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/scf/matrix.h"

void history_init(const struct hf *hf, const struct dmatrix *densities, const struct dmatrix *twoelectron,
                  struct history *out)
{
    *out = (struct history){.hf = hf, .densities = densities, .twoelectron = twoelectron};
    for (int i = 0; i < BOARD_SLOTS; i++) {
        out->entries[i].density = matrix_new(hf->n, hf->n);
        out->entries[i].fock = matrix_new(hf->n, hf->n);
        out->entries[i].commutator = matrix_new(hf->m, hf->m);
    }
}

void history_fini(struct history *history)
{
    for (int i = 0; i < BOARD_SLOTS; i++) {
        free(history->entries[i].density);
        free(history->entries[i].fock);
        free(history->entries[i].commutator);
    }
    *history = (struct history){0};
}

/* First iteration of the window that ends with `iteration`. The first iteration of all is left out as soon as it can
 * be: its density is a guess, not a projector, and its commutator means little. */
static int history_oldest(int iteration)
{
    int oldest = iteration - DIIS_MAX + 1, first = iteration == 1 ? 1 : 2;
    return oldest > first ? oldest : first;
}

/* The entry of an iteration, read and computed if it is not there yet. The tasks of the iteration must be complete. */
static keel_status history_entry(struct history *history, int iteration, const struct entry **out)
{
    const struct hf *hf = history->hf;
    struct entry *entry = &history->entries[iteration % BOARD_SLOTS];
    *out = entry;
    if (entry->iteration == iteration)
        return KEEL_OK;
    entry->iteration = 0;
    double *g = matrix_new(hf->n, hf->n);
    keel_status status = dmatrix_get(history->densities, iteration, entry->density);
    if (status == KEEL_OK)
        status = dmatrix_get(history->twoelectron, iteration, g);
    if (status == KEEL_OK) {
        hf_fock(hf, g, entry->fock);
        entry->energy = hf_energy(hf, entry->density, entry->fock);
        entry->error = hf_error(hf, entry->density, entry->fock, entry->commutator);
        entry->iteration = iteration;
    }
    free(g);
    return status;
}

static double rms_difference(size_t count, const double *a, const double *b)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum / (double)count);
}

keel_status history_record(struct history *history, int iteration, struct record *out)
{
    const struct hf *hf = history->hf;
    const struct entry *entry = NULL, *last;
    const double *errors[DIIS_MAX] = {NULL};
    int oldest = history_oldest(iteration);
    keel_status status;
    assert(oldest <= iteration);
    *out = (struct record){.iteration = iteration, .oldest = oldest};
    for (int i = oldest; i <= iteration; i++) {
        if ((status = history_entry(history, i, &entry)) != KEEL_OK)
            return status;
        errors[i - oldest] = entry->commutator;
    }
    diis_coefficients(iteration - oldest + 1, (size_t)hf->m * (size_t)hf->m, errors, out->coefficients);
    out->energy = entry->energy;
    out->error = entry->error;
    if (iteration == 1)
        return KEEL_OK;
    if ((status = history_entry(history, iteration - 1, &last)) != KEEL_OK)
        return status;
    out->delta = entry->energy - last->energy;
    out->rms = rms_difference((size_t)hf->n * (size_t)hf->n, entry->density, last->density);
    return KEEL_OK;
}

keel_status history_extrapolate(struct history *history, const struct record *record, double *fock)
{
    size_t count = (size_t)history->hf->n * (size_t)history->hf->n;
    memset(fock, 0, count * sizeof *fock);
    for (int64_t i = record->oldest; i <= record->iteration; i++) {
        const struct entry *entry;
        keel_status status = history_entry(history, (int)i, &entry);
        if (status != KEEL_OK)
            return status;
        for (size_t e = 0; e < count; e++)
            fock[e] += record->coefficients[i - record->oldest] * entry->fock[e];
    }
    return KEEL_OK;
}
