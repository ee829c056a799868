/* The whole program but main, on the model of Keel: reference energies, and deaths of ranks at every call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/scf/scf.h"
#include "runtime/base/rng.h"
#include "tests/unit/scf/keel_model.h"

struct job {
    struct molecule molecule;
    struct basis_library library;
    struct hf hf;
    struct scf_input input;
    bool bad[MODEL_RANKS];   /* these ranks have no input */
    bool other[MODEL_RANKS]; /* these ranks have other input */
    bool bad_successors;
    char *report; /* what the ranks wrote, one after the other */
    size_t report_size;
    FILE *out;
    struct scf_result results[MODEL_RANKS];
    struct complaint complaints[MODEL_RANKS];
};

static void job_load(struct job *job, const char *molecule, const char *basis)
{
    char path[512];
    struct complaint why = {0};
    memset(job, 0, sizeof *job);
    snprintf(path, sizeof path, SCF_DATA "/molecules/%s.xyz", molecule);
    assert_true(molecule_read(path, &job->molecule, &why));
    snprintf(path, sizeof path, SCF_DATA "/basis/%s.nw", basis);
    assert_true(basis_library_read(path, &job->library, &why));
    assert_true(hf_init(&job->molecule, &job->library, 1e-12, &job->hf, &why));
    job->input = (struct scf_input){.hf = &job->hf,
                                    .library = &job->library,
                                    .fingerprint = 12345,
                                    .max_iterations = 50,
                                    .threshold = 1e-7,
                                    .redundancy = KEEL_REDUNDANCY_SHADOW,
                                    .molecule = molecule,
                                    .basis = basis};
}

static void job_fini(struct job *job)
{
    hf_fini(&job->hf);
    basis_library_fini(&job->library);
    molecule_fini(&job->molecule);
}

static int run_rank(void *user, int rank, int incarnation)
{
    struct job *job = user;
    struct scf_input input = job->input;
    struct complaint why = {0};
    struct scf_result result = {0};
    if (job->bad[rank] || (job->bad_successors && incarnation > 0)) {
        input.hf = NULL;
        complain(&why, "rank %d cannot read", rank);
    }
    input.fingerprint += job->other[rank] ? 1u << 20 : 0;
    enum scf_outcome outcome = scf_run(&input, job->out, &result, &why);
    if (outcome != SCF_BROKEN || strstr(why.text, "agent is gone") == NULL) { /* not the end of a dead process */
        job->results[rank] = result;
        job->complaints[rank] = why;
    }
    return (int)outcome;
}

static void run(struct job *job, struct model_config *config, struct model_outcome *outcome)
{
    config->program = run_rank;
    config->user = job;
    job->out = open_memstream(&job->report, &job->report_size);
    const char *broken = model_run(config, outcome);
    fclose(job->out);
    if (broken != NULL)
        fail_msg("seed %lu: %s", (unsigned long)config->seed, broken);
}

/* For a look at what a failing seed reported. */
static void show_report(const struct job *job)
{
    if (getenv("KEEL_TEST_SHOW") != NULL)
        fputs(job->report, stderr);
}

/* Every rank that lives to the end has the energy, and the report has the result and each iteration. */
static void check_energy(const struct job *job, const struct model_config *config, const struct model_outcome *outcome,
                         double energy, double tolerance)
{
    int survivors = 0;
    show_report(job);
    for (int r = 0; r < config->ranks; r++) {
        if (outcome->returned[r] < 0)
            continue;
        survivors++;
        if (outcome->returned[r] != SCF_CONVERGED || !(fabs(job->results[r].energy - energy) < tolerance))
            fail_msg("seed %lu rank %d: outcome %d (%s), energy %.12f, expected %.12f", (unsigned long)config->seed, r,
                     outcome->returned[r], job->complaints[r].text, job->results[r].energy, energy);
    }
    assert_true(survivors > 0);
    const char *total = strstr(job->report, "Total energy:");
    if (total == NULL || !(fabs(strtod(total + 13, NULL) - energy) < tolerance))
        fail_msg("seed %lu: the report lacks the energy", (unsigned long)config->seed);
    int iterations = 0;
    const char *converged = strstr(job->report, "\nConverged in ");
    assert_true(converged != NULL && sscanf(converged, "\nConverged in %d", &iterations) == 1 && iterations > 2);
    for (int i = 1; i <= iterations; i++) {
        char start[64];
        snprintf(start, sizeof start, "\niteration %3d  energy", i);
        if (strstr(job->report, start) == NULL)
            fail_msg("seed %lu: the line of iteration %d is missing", (unsigned long)config->seed, i);
    }
}

static void test_scf_reference_energies_are_met(void **state)
{
    (void)state;
    static const struct {
        const char *molecule, *basis;
        int ranks;
        double energy;
    } lines[] = {
        {"water", "sto-3g", 1, -74.963146766239},    {"water", "6-31g", 2, -75.983831121446},
        {"water", "6-31gs", 1, -76.010481566212},    {"methane", "sto-3g", 4, -39.726715315264},
        {"methane", "6-31gs", 1, -40.195072523976},  {"ammonia", "6-31gs", 7, -56.183839982884},
        {"benzene", "sto-3g", 1, -227.890525566419},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct job job;
        struct model_config config = {.ranks = lines[i].ranks, .seed = i};
        struct model_outcome outcome;
        job_load(&job, lines[i].molecule, lines[i].basis);
        run(&job, &config, &outcome);
        check_energy(&job, &config, &outcome, lines[i].energy, 1e-8);
        free(job.report);
        job_fini(&job);
    }
}

static void test_scf_number_of_ranks_and_interleaving_do_not_matter(void **state)
{
    (void)state;
    struct job job;
    double first = 0;
    job_load(&job, "water", "6-31gs");
    for (int i = 0; i < 8; i++) {
        struct model_config config = {.ranks = i + 1, .seed = 77 + (uint64_t)i};
        struct model_outcome outcome;
        run(&job, &config, &outcome);
        if (i == 0)
            first = job.results[0].energy;
        check_energy(&job, &config, &outcome, first, 1e-10);
        free(job.report);
    }
    job_fini(&job);
}

/* The one rank there is dies in its n-th call, for every n, and a successor takes over. */
static void test_scf_lone_rank_restarted_at_every_call_finishes(void **state)
{
    (void)state;
    struct job job;
    uint64_t calls = 1;
    job_load(&job, "water", "sto-3g");
    for (uint64_t n = 1; n <= calls; n++) {
        struct model_config config = {.ranks = 1,
                                      .seed = n,
                                      .ndeaths = 1,
                                      .deaths = {{.rank = 0, .call = n, .after = n % 2, .substitute = true}}};
        struct model_outcome outcome;
        run(&job, &config, &outcome);
        if (n == 1) { /* how many calls there are is known from an undisturbed run */
            struct model_config undisturbed = {.ranks = 1, .seed = 1};
            free(job.report);
            run(&job, &undisturbed, &outcome);
            calls = outcome.calls[0];
            assert_true(calls > 300);
        }
        check_energy(&job, &config, &outcome, -74.963146766239, 1e-8);
        free(job.report);
    }
    job_fini(&job);
}

static void random_deaths(struct rng *rng, const uint64_t *calls, bool substitute, struct model_config *config)
{
    config->ndeaths = 1 + (int)rng_below(rng, substitute ? 5 : (uint64_t)config->ranks - 1);
    for (int d = 0; d < config->ndeaths; d++) {
        int rank = (int)rng_below(rng, (uint64_t)config->ranks);
        config->deaths[d] = (struct model_death){.rank = rank,
                                                 .call = 1 + rng_below(rng, calls[rank]),
                                                 .after = rng_below(rng, 2),
                                                 .substitute = substitute,
                                                 .delay = (int)rng_below(rng, 200)};
        if (!substitute) /* one rank at least must be left: rank numbers are drawn without repetition */
            config->deaths[d].rank = (int)((config->seed + (uint64_t)d) % (uint64_t)config->ranks);
        else if (rng_below(rng, 3) == 0) /* the successor dies, too, soon after its start */
            config->deaths[d].incarnation = 1, config->deaths[d].call = 1 + rng_below(rng, 40);
    }
}

static void die_at_random(bool substitute, int seeds)
{
    struct job job;
    const char *base = getenv("KEEL_TEST_SEED");
    job_load(&job, "water", "sto-3g");
    for (int i = 0; i < seeds; i++) {
        static const int ranks[] = {4, 2, 7, 3};
        struct model_config config = {.ranks = ranks[i % 4],
                                      .seed = (base != NULL ? strtoull(base, NULL, 10) : 1000) + (uint64_t)i};
        struct model_outcome outcome;
        struct rng rng;
        run(&job, &config, &outcome);
        free(job.report);
        rng_seed(&rng, config.seed);
        random_deaths(&rng, outcome.calls, substitute, &config);
        run(&job, &config, &outcome);
        check_energy(&job, &config, &outcome, -74.963146766239, 1e-8);
        free(job.report);
    }
    job_fini(&job);
}

static void test_scf_random_deaths_degraded_give_the_energy(void **state)
{
    (void)state;
    die_at_random(false, 60);
}

static void test_scf_random_deaths_substituted_give_the_energy(void **state)
{
    (void)state;
    die_at_random(true, 60);
}

static void test_scf_rank_zero_dead_the_next_reports(void **state)
{
    (void)state;
    struct job job;
    struct model_outcome outcome;
    struct model_config config = {.ranks = 3, .seed = 5, .ndeaths = 1, .deaths = {{.rank = 0, .call = 120}}};
    job_load(&job, "water", "sto-3g");
    run(&job, &config, &outcome);
    assert_int_equal(outcome.deaths, 1);
    assert_int_equal(outcome.returned[0], -1);
    check_energy(&job, &config, &outcome, -74.963146766239, 1e-8);
    free(job.report);
    job_fini(&job);
}

static void test_scf_too_few_iterations_are_told_by_all(void **state)
{
    (void)state;
    struct job job;
    struct model_outcome outcome;
    struct model_config config = {.ranks = 3, .seed = 6};
    job_load(&job, "water", "sto-3g");
    job.input.max_iterations = 3;
    run(&job, &config, &outcome);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(outcome.returned[r], SCF_NOT_CONVERGED);
        assert_non_null(strstr(job.complaints[r].text, "no convergence in 3 iterations"));
    }
    assert_null(strstr(job.report, "Total energy"));
    free(job.report);
    job_fini(&job);
}

static void test_scf_bad_input_is_told_by_one_rank(void **state)
{
    (void)state;
    static const struct {
        int ranks;
        bool bad[3], other[3];
        int speaker;
        const char *text;
    } cases[] = {
        {1, {true}, {false}, 0, "rank 0 cannot read"},
        {3, {true, true, true}, {false}, 0, "rank 0 cannot read"},
        {3, {false, true, true}, {false}, 1, "rank 1 cannot read"},
        {3, {false}, {false, false, true}, 2, "rank 2 reads another input than rank 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job job;
        struct model_outcome outcome;
        struct model_config config = {.ranks = cases[i].ranks, .seed = 8 + i};
        job_load(&job, "water", "sto-3g");
        memcpy(job.bad, cases[i].bad, sizeof cases[i].bad);
        memcpy(job.other, cases[i].other, sizeof cases[i].other);
        run(&job, &config, &outcome);
        for (int r = 0; r < config.ranks; r++) {
            assert_int_equal(outcome.returned[r], SCF_BAD_INPUT);
            assert_string_equal(job.complaints[r].text, r == cases[i].speaker ? cases[i].text : "");
        }
        assert_string_equal(job.report, "");
        free(job.report);
        job_fini(&job);
    }
}

static void test_scf_successor_without_input_leaves_the_others_unharmed(void **state)
{
    (void)state;
    struct job job;
    struct model_outcome outcome;
    struct model_config config = {
        .ranks = 3, .seed = 9, .ndeaths = 1, .deaths = {{.rank = 1, .call = 50, .substitute = true, .delay = 3}}};
    job_load(&job, "water", "sto-3g");
    job.bad_successors = true;
    run(&job, &config, &outcome);
    assert_int_equal(outcome.returned[1], SCF_BROKEN);
    assert_string_equal(job.complaints[1].text, "rank 1 cannot read");
    assert_int_equal(outcome.returned[0], SCF_CONVERGED);
    assert_true(fabs(job.results[2].energy + 74.963146766239) < 1e-8);
    free(job.report);
    job_fini(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scf_reference_energies_are_met),
        cmocka_unit_test(test_scf_number_of_ranks_and_interleaving_do_not_matter),
        cmocka_unit_test(test_scf_lone_rank_restarted_at_every_call_finishes),
        cmocka_unit_test(test_scf_random_deaths_degraded_give_the_energy),
        cmocka_unit_test(test_scf_random_deaths_substituted_give_the_energy),
        cmocka_unit_test(test_scf_rank_zero_dead_the_next_reports),
        cmocka_unit_test(test_scf_too_few_iterations_are_told_by_all),
        cmocka_unit_test(test_scf_bad_input_is_told_by_one_rank),
        cmocka_unit_test(test_scf_successor_without_input_leaves_the_others_unharmed),
    };
    return cmocka_run_group_tests_name("scf", tests, NULL, NULL);
}
