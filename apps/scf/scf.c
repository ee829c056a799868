/* The run as a sequence of phases with one collective after each, so that the number of completed collectives tells a
 * restarted rank where it is:
 *
 *   count 0          compare inputs            allreduce   -> 1
 *   count 1          write the first density   barrier     -> 2
 *   count 2k   k>=1  tasks of iteration k, decide, write the next density   barrier -> 2k+1
 *   count 2k+1       report iteration k        reopen the pool (a collective) -> 2k+2, or the end:
 *   count > 2K       report the rest           barrier, again until the report is known to be out
 *
 * A phase only reads what earlier phases completed, and whatever part of it has been done by others, or by a rank that
 * died in the middle, can be done again. docs/scf.md goes through the cases. */
#include "apps/scf/scf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <keel/keel.h>

#include "apps/scf/board.h"
#include "apps/scf/dmatrix.h"
#include "apps/scf/history.h"
#include "apps/scf/matrix.h"
#include "apps/scf/report.h"

struct run {
    const struct scf_input *input;
    const struct hf *hf; /* NULL if the input is bad */
    struct complaint *why;
    struct dmatrix densities;   /* D_k; the segment keeps them for as long as DIIS looks back */
    struct dmatrix twoelectron; /* G_k, accumulated by the tasks */
    struct board board;
    keel_taskpool *pool;
    struct history history;
    struct report report;
    uint64_t collectives;
};

/* Turns Keel's status into true or a complaint. */
static bool ok(struct run *run, keel_status status, const char *doing)
{
    return status == KEEL_OK || complain(run->why, "%s: %s", doing, keel_status_text(status));
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Same order on all ranks. A rank with bad input asks for empty segments; if others do not, all get
 * KEEL_ERR_MISMATCH. */
static keel_status allocate(struct run *run)
{
    int n = run->hf != NULL ? run->hf->n : 0;
    keel_redundancy copies = run->input->redundancy;
    keel_status status = dmatrix_create(n, BOARD_SLOTS, copies, &run->densities);
    if (status == KEEL_OK)
        status = dmatrix_create(n, BOARD_SLOTS, copies, &run->twoelectron);
    if (status == KEEL_OK)
        status = board_create(copies, &run->board);
    if (status == KEEL_OK)
        status = keel_taskpool_create(run->hf != NULL ? run->hf->plan.ntasks : 1, &run->pool);
    return status;
}

/* Phase 0: every rank tells whether its input is good and which it is. False with a complaint on the rank that should
 * speak (the lowest with a complaint of its own), and *agreed false on all. */
static bool compare_inputs(struct run *run, bool *agreed)
{
    int size = keel_size(), me = keel_rank();
    double *told = matrix_new(2, size), *bad = told, *print = told + size;
    bad[me] = run->hf == NULL;
    /* 52 bits: exact in a double. 0 is a rank that died before. */
    print[me] = 1 + (double)(run->input->fingerprint >> 12);
    bool good = ok(run, keel_allreduce_sum(told, told, 2 * (size_t)size), "comparing inputs");
    *agreed = good;
    int speaker = -1, first = -1;
    for (int r = size - 1; r >= 0 && good; r--) {
        speaker = bad[r] > 0 ? r : speaker;
        first = print[r] > 0 ? r : first;
    }
    for (int r = 0; r < size && good && speaker < 0; r++)
        if (print[r] > 0 && print[r] != print[first]) {
            speaker = r;
            if (r == me)
                complain(run->why, "rank %d reads another input than rank %d", r, first);
        }
    if (speaker >= 0) {
        *agreed = false;
        if (speaker != me)
            run->why->text[0] = '\0';
    }
    free(told);
    return good;
}

/* Bring density number `number` into global memory and clear the two-electron matrix after the next, block by block.
 * Every rank begins with its own block and goes on to any that is not tagged complete, so no rank leaves before all
 * are, whoever died. Two that write the same block write the same values. */
static bool publish_density(struct run *run, int number, const double *density)
{
    int size = run->board.size;
    int64_t tag;
    bool good = true;
    for (int step = 0; step < size && good; step++) {
        int block = (keel_rank() + step) % size;
        good = ok(run, board_get_tag(&run->board, block, &tag), "reading a block tag");
        if (!good || tag == number)
            continue;
        good = ok(run, dmatrix_put_block(&run->densities, number, block, density), "writing the density") &&
               ok(run, dmatrix_put_block(&run->twoelectron, number + 1, block, NULL), "clearing the Fock matrix") &&
               ok(run, board_put_tag(&run->board, block, number), "writing a block tag");
    }
    return good;
}

/* Phase 1 */
static bool start(struct run *run)
{
    double *density = matrix_new(run->hf->n, run->hf->n);
    bool good = guess_density(run->hf, run->input->library, density, run->why) &&
                ok(run, board_put_fingerprint(&run->board, run->input->fingerprint), "writing the fingerprint") &&
                publish_density(run, 1, density);
    free(density);
    return good;
}

static bool run_tasks(struct run *run, int iteration)
{
    const struct hf *hf = run->hf;
    double *density = matrix_new(hf->n, hf->n), *part = matrix_new(hf->n, hf->n);
    double *maxima = matrix_new(hf->basis.nshells, hf->basis.nshells);
    bool good = ok(run, dmatrix_get(&run->densities, iteration, density), "reading the density");
    fock_block_maxima(&hf->basis, density, maxima);
    while (good) {
        int64_t task;
        good = ok(run, keel_task_next(run->pool, &task), "drawing a task");
        if (!good || task < 0)
            break;
        if (task == hf->plan.ntasks / 2)
            (void)keel_event("scf_half", iteration, "half of the iteration's tasks are given out");
        memset(part, 0, (size_t)hf->n * (size_t)hf->n * sizeof *part);
        hf_task(hf, density, maxima, (int)task, part);
        good = ok(run, dmatrix_accumulate(&run->twoelectron, iteration, part), "accumulating the Fock matrix") &&
               ok(run, keel_task_commit(run->pool, task), "committing a task");
    }
    free(density);
    free(part);
    free(maxima);
    return good;
}

static enum verdict judge(const struct run *run, const struct record *record)
{
    double threshold = run->input->threshold;
    if (!isfinite(record->energy) || !isfinite(record->error))
        return VERDICT_GIVEN_UP;
    if (record->iteration > 1 && record->error < threshold && fabs(record->delta) < 0.01 * threshold)
        return VERDICT_CONVERGED;
    return record->iteration < run->input->max_iterations ? VERDICT_GO_ON : VERDICT_GIVEN_UP;
}

/* Agree on what the iteration gave. All ranks compute a record, equal but for rounding; the one of the rank whose
 * proposal comes first counts for all. A record is in global memory before it is proposed, and is not touched once
 * one is decided. */
static bool decide(struct run *run, int iteration, double began, struct decision *decision, struct record *record)
{
    if (!ok(run, board_decision(&run->board, iteration, decision), "reading the decision"))
        return false;
    if (decision->verdict == VERDICT_NONE) {
        bool good = ok(run, history_record(&run->history, iteration, record), "reading the Fock matrix");
        record->seconds = seconds_now() - began;
        struct decision proposal = {iteration, judge(run, record), keel_rank()};
        if (!good || !ok(run, board_put_record(&run->board, record), "writing the record") ||
            !ok(run, board_decide(&run->board, proposal, decision), "deciding"))
            return false;
    }
    return ok(run, board_get_record(&run->board, *decision, record), "reading the record");
}

static bool write_next_density(struct run *run, const struct record *record)
{
    int n = run->hf->n;
    double *fock = matrix_new(n, n), *density = matrix_new(n, n);
    bool good = ok(run, history_extrapolate(&run->history, record, fock), "reading the Fock matrices");
    if (good && !hf_density(run->hf, fock, density))
        good = complain(run->why, "iteration %d: the Fock matrix cannot be diagonalised", (int)record->iteration);
    good = good && publish_density(run, (int)record->iteration + 1, density);
    free(fock);
    free(density);
    return good;
}

/* Phase 2k */
static bool iterate(struct run *run, int iteration)
{
    double began = seconds_now();
    struct decision decision;
    struct record record;
    keel_timestep((uint64_t)iteration);
    return run_tasks(run, iteration) && decide(run, iteration, began, &decision, &record) &&
           (decision.verdict != VERDICT_GO_ON || write_next_density(run, &record));
}

static bool barrier(struct run *run)
{
    if (!ok(run, keel_barrier(), "barrier"))
        return false;
    run->collectives++;
    return true;
}

/* The end: the lowest live rank reports; all leave when the report is known to be out. What counts is that it was
 * closed before the barrier that a rank has just left, so all leave after the same one. */
static bool finish(struct run *run, struct decision last, struct scf_result *result)
{
    struct record record;
    if (!ok(run, board_get_record(&run->board, last, &record), "reading the record"))
        return false;
    *result = (struct scf_result){record.energy, last.iteration};
    for (;;) {
        int64_t closed;
        if (!ok(run, board_get_closed(&run->board, &closed), "reading the board"))
            return false;
        if (closed != 0 && (uint64_t)closed < run->collectives)
            break;
        if (!ok(run, report_close(&run->report, &run->board, last, run->collectives), "reporting") || !barrier(run))
            return false;
    }
    if (last.verdict == VERDICT_GIVEN_UP)
        complain(run->why, "no convergence in %d iterations (energy %.9f Hartree, last change %.1e, error %.1e)",
                 last.iteration, record.energy, record.delta, record.error);
    return true;
}

/* From wherever the job is to the last decision, which is in *last. */
static bool go_through_phases(struct run *run, struct decision *last)
{
    if (run->collectives == 1 && !(start(run) && barrier(run)))
        return false;
    for (;;) {
        if (!ok(run, board_final(&run->board, last), "reading the decisions"))
            return false;
        if (last->iteration > 0 && run->collectives > 2 * (uint64_t)last->iteration)
            return true;
        int iteration = (int)(run->collectives / 2);
        if (run->collectives % 2 == 0) {
            if (!iterate(run, iteration) || !barrier(run))
                return false;
            continue;
        }
        if (!ok(run, report_iterations(&run->report, &run->board, iteration), "reporting") ||
            !ok(run, keel_taskpool_reset(run->pool), "reopening the tasks"))
            return false;
        run->collectives++;
    }
}

/* A restarted rank must have read the input that the others compute with. */
static bool same_input(struct run *run)
{
    uint64_t fingerprint;
    if (run->hf == NULL)
        return false;
    if (run->collectives < 2)
        return true;
    if (!ok(run, board_get_fingerprint(&run->board, &fingerprint), "reading the fingerprint"))
        return false;
    return fingerprint == run->input->fingerprint ||
           complain(run->why, "restarted rank %d reads another input than the job", keel_rank());
}

static enum scf_outcome run_job(struct run *run, struct scf_result *result)
{
    keel_status allocated = allocate(run);
    if (allocated != KEEL_ERR_MISMATCH && !ok(run, allocated, "allocating the matrices"))
        return SCF_BROKEN;
    if (!ok(run, keel_resume(&run->collectives), "joining the collectives"))
        return SCF_BROKEN;
    if (run->collectives == 0) {
        bool agreed;
        if (!compare_inputs(run, &agreed))
            return SCF_BROKEN;
        if (!agreed)
            return SCF_BAD_INPUT;
        run->collectives = 1;
    } else if (!same_input(run)) {
        return SCF_BROKEN;
    }
    if (!ok(run, allocated, "allocating the matrices"))
        return SCF_BROKEN;
    history_init(run->hf, &run->densities, &run->twoelectron, &run->history);
    struct decision last;
    bool good = go_through_phases(run, &last) && finish(run, last, result);
    history_fini(&run->history);
    if (!good)
        return SCF_BROKEN;
    return last.verdict == VERDICT_CONVERGED ? SCF_CONVERGED : SCF_NOT_CONVERGED;
}

enum scf_outcome scf_run(const struct scf_input *input, FILE *out, struct scf_result *result, struct complaint *why)
{
    struct run run = {.input = input, .hf = input->hf, .why = why};
    run.report = (struct report){.out = out, .input = input};
    return run_job(&run, result);
}
