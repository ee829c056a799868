#include "apps/scf/report.h"

#include <keel/keel.h>

static bool is_lowest_live(void)
{
    for (int r = 0; r < keel_rank(); r++)
        if (keel_rank_alive(r))
            return false;
    return true;
}

static void write_heading(const struct report *report)
{
    const struct hf *hf = report->input->hf;
    fprintf(report->out,
            "Restricted Hartree-Fock of %s in %s: %d atoms, %d electrons, %d shells, %d cartesian functions\n"
            "%d ranks, %d tasks an iteration, commutator below %.0e\n"
            "Nuclear repulsion: %.12f  Hartree\n",
            report->input->molecule, report->input->basis, hf->molecule->natoms, 2 * hf->nocc, hf->basis.nshells, hf->n,
            keel_size(), hf->plan.ntasks, report->input->threshold, hf->nuclear_repulsion);
}

static keel_status write_iteration(const struct report *report, const struct board *board, int iteration)
{
    struct decision decision;
    struct record record;
    keel_status status = board_decision(board, iteration, &decision);
    if (status != KEEL_OK || decision.verdict == VERDICT_NONE)
        return status; /* off the board: more than BOARD_SLOTS iterations ago */
    if ((status = board_get_record(board, decision, &record)) != KEEL_OK)
        return status;
    char line[160];
    snprintf(line, sizeof line, "iteration %3d  energy %19.12f  delta %9.2e  rms %8.2e  error %8.2e  seconds %.4f",
             iteration, record.energy, record.delta, record.rms, record.error, record.seconds);
    fprintf(report->out, "%s\n", line);
    fflush(report->out);
    return keel_event("scf_iteration", iteration, line);
}

/* printed on the board: 0 nothing, 1 the heading, 1 + k the line of iteration k */
static keel_status write_up_to(const struct report *report, const struct board *board, int iteration)
{
    int64_t printed;
    keel_status status = board_get_printed(board, &printed);
    if (status != KEEL_OK || printed > iteration)
        return status;
    if (printed == 0) {
        write_heading(report);
        printed = 1;
    }
    for (; printed <= iteration; printed++)
        if ((status = write_iteration(report, board, (int)printed)) != KEEL_OK)
            return status;
    return board_put_printed(board, printed);
}

keel_status report_iterations(const struct report *report, const struct board *board, int iteration)
{
    return is_lowest_live() ? write_up_to(report, board, iteration) : KEEL_OK;
}

keel_status report_close(const struct report *report, const struct board *board, struct decision final,
                         uint64_t collectives)
{
    int64_t closed;
    struct record record;
    if (!is_lowest_live())
        return KEEL_OK;
    keel_status status = board_get_closed(board, &closed);
    if (status != KEEL_OK || closed != 0)
        return status;
    /* Whoever has begun to close writes all of it: a lower rank may come (back) to life in between. */
    if ((status = write_up_to(report, board, final.iteration)) != KEEL_OK ||
        (status = board_get_record(board, final, &record)) != KEEL_OK)
        return status;
    if (final.verdict == VERDICT_CONVERGED)
        fprintf(report->out,
                "Converged in %d iterations\nNuclear repulsion: %.12f  Hartree\nTotal energy: %.12f  Hartree\n",
                final.iteration, report->input->hf->nuclear_repulsion, record.energy);
    fflush(report->out);
    return board_put_closed(board, (int64_t)collectives);
}
