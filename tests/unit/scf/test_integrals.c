#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/scf/eri.h"
#include "apps/scf/fock.h"
#include "apps/scf/hf.h"
#include "apps/scf/matrix.h"
#include "apps/scf/oneint.h"
#include "runtime/base/rng.h"

struct fixture {
    struct molecule molecule;
    struct basis_library library;
    struct hf hf;
};

static void fixture_load(struct fixture *f, const char *molecule, const char *basis)
{
    char path[512];
    struct complaint why = {0};
    snprintf(path, sizeof path, SCF_DATA "/molecules/%s.xyz", molecule);
    assert_true(molecule_read(path, &f->molecule, &why));
    snprintf(path, sizeof path, SCF_DATA "/basis/%s.nw", basis);
    assert_true(basis_library_read(path, &f->library, &why));
    assert_true(hf_init(&f->molecule, &f->library, 1e-14, &f->hf, &why));
}

static void fixture_fini(struct fixture *f)
{
    hf_fini(&f->hf);
    basis_library_fini(&f->library);
    molecule_fini(&f->molecule);
}

static void test_integrals_overlap_diagonal_is_one_and_a_third_for_mixed_d(void **state)
{
    (void)state;
    struct fixture f;
    fixture_load(&f, "ammonia", "6-31gs");
    for (int s = 0; s < f.hf.basis.nshells; s++) {
        const struct shell *shell = &f.hf.basis.shells[s];
        for (int c = 0; c < shell_functions(shell->l); c++) {
            int powers[3], i = shell->first + c;
            shell_powers(shell->l, c, powers);
            bool mixed = shell->l == 2 && powers[0] < 2 && powers[1] < 2 && powers[2] < 2;
            assert_true(fabs(f.hf.overlap[i * f.hf.n + i] - (mixed ? 1.0 / 3 : 1)) < 1e-13);
        }
    }
    fixture_fini(&f);
}

/* Two s Gaussians have closed forms for everything. */
static void test_integrals_s_gaussians_agree_with_closed_forms(void **state)
{
    (void)state;
    double a = 0.7, b = 1.9, p = a + b, mu = a * b / p, distance = 1.3;
    double na = pow(2 * a / M_PI, 0.75), nb = pow(2 * b / M_PI, 0.75);
    double exponents[2] = {a, b};
    struct shell shells[2] = {
        {.l = 0, .first = 0, .nprimitives = 1, .exponents = &exponents[0], .coefficients = &na},
        {.l = 0, .first = 1, .nprimitives = 1, .exponents = &exponents[1], .coefficients = &nb, .r = {0, 0, distance}}};
    struct basis basis = {2, 2, shells};
    double s[4], t[4], expected = na * nb * pow(M_PI / p, 1.5) * exp(-mu * distance * distance);
    oneint_overlap(&basis, s);
    oneint_kinetic(&basis, t);
    assert_true(fabs(s[1] - expected) < 1e-15);
    assert_true(fabs(t[1] - expected * mu * (3 - 2 * mu * distance * distance)) < 1e-14);
    assert_true(fabs(t[0] - 1.5 * a) < 1e-14);

    struct pairs pairs;
    pairs_build(&basis, &pairs);
    struct atom proton = {.z = 1};
    double v[4], eri;
    oneint_nuclear(&basis, &pairs, &(struct molecule){1, &proton}, v);
    assert_true(fabs(v[0] + 2 * sqrt(2 * a / M_PI)) < 1e-14);
    double x = p * pow(b * distance / p, 2); /* p times the square of the distance of the product's centre */
    assert_true(fabs(v[1] + expected * 2 * sqrt(p / M_PI) * 0.5 * sqrt(M_PI / x) * erf(sqrt(x))) < 1e-14);
    eri_quartet(&pairs.list[0], &pairs.list[0], &eri); /* (aa|aa) = 2 sqrt(a / pi) */
    assert_true(fabs(eri - 2 * sqrt(a / M_PI)) < 1e-14);
    assert_true(fabs(pairs.list[0].schwarz - sqrt(eri)) < 1e-15);
    eri_quartet(&pairs.list[0], &pairs.list[2], &eri); /* (aa|bb): two spheres of charge */
    double alpha = 4 * a * b / (2 * a + 2 * b);
    assert_true(fabs(eri - erf(sqrt(alpha) * distance) / distance) < 1e-14);
    pairs_fini(&pairs);
}

static void test_integrals_bra_and_ket_can_be_exchanged(void **state)
{
    (void)state;
    struct fixture f;
    fixture_load(&f, "water", "6-31gs");
    for (int x = 0; x < f.hf.pairs.count; x++)
        for (int y = 0; y < x; y++) {
            const struct pair *bra = &f.hf.pairs.list[x], *ket = &f.hf.pairs.list[y];
            double xy[PAIR_FUNCTIONS_MAX * PAIR_FUNCTIONS_MAX], yx[PAIR_FUNCTIONS_MAX * PAIR_FUNCTIONS_MAX];
            int nx = bra->product->nproducts, ny = ket->product->nproducts;
            eri_quartet(bra, ket, xy);
            eri_quartet(ket, bra, yx);
            for (int i = 0; i < nx; i++)
                for (int j = 0; j < ny; j++)
                    if (fabs(xy[i * ny + j] - yx[j * nx + i]) > 1e-13)
                        fail_msg("pairs %d %d, functions %d %d: %.16g and %.16g", x, y, i, j, xy[i * ny + j],
                                 yx[j * nx + i]);
        }
    fixture_fini(&f);
}

static void move_and_turn(struct molecule *molecule, double angle)
{
    for (int a = 0; a < molecule->natoms; a++) {
        double *r = molecule->atoms[a].r, c = cos(angle), s = sin(angle);
        for (int axis = 0; axis < 3; axis++) {
            double x = r[axis], y = r[(axis + 1) % 3];
            r[axis] = c * x - s * y + 0.3 * (axis + 1);
            r[(axis + 1) % 3] = s * x + c * y;
        }
    }
}

/* Core energies of the orbitals do not depend on where the molecule is or how it is turned; with d functions this
 * checks every component of every one-electron integral, and the energy of a density checks the two-electron ones. */
static void energies(const struct hf *hf, const struct basis_library *library, double *orbital, double *total)
{
    struct complaint why = {0};
    double *vectors = matrix_new(hf->m, hf->m), *f = matrix_new(hf->m, hf->m), *d = matrix_new(hf->n, hf->n);
    double *g = matrix_new(hf->n, hf->n), *maxima = matrix_new(hf->basis.nshells, hf->basis.nshells);
    matrix_transform(hf->n, hf->m, hf->core, hf->orthogonaliser, f);
    assert_true(matrix_eigen(hf->m, f, orbital, vectors));
    assert_true(hf_density(hf, hf->core, d));
    fock_block_maxima(&hf->basis, d, maxima);
    for (int task = 0; task < hf->plan.ntasks; task++)
        hf_task(hf, d, maxima, task, g);
    double *fock = matrix_new(hf->n, hf->n);
    hf_fock(hf, g, fock);
    *total = hf_energy(hf, d, fock);
    assert_true(guess_density(hf, library, d, &why));
    assert_true(fabs(matrix_dot((size_t)hf->n * (size_t)hf->n, d, hf->overlap) - 2 * hf->nocc) < 1e-10);
    free(vectors);
    free(f);
    free(d);
    free(g);
    free(maxima);
    free(fock);
}

static void test_integrals_turned_molecule_has_same_energies(void **state)
{
    (void)state;
    struct fixture f;
    struct hf turned;
    struct complaint why = {0};
    double before[64], after[64], e1, e2;
    fixture_load(&f, "ammonia", "6-31gs");
    energies(&f.hf, &f.library, before, &e1);
    move_and_turn(&f.molecule, 0.7);
    assert_true(hf_init(&f.molecule, &f.library, 1e-14, &turned, &why));
    energies(&turned, &f.library, after, &e2);
    for (int i = 0; i < f.hf.m; i++)
        assert_true(fabs(before[i] - after[i]) < 1e-10);
    assert_true(fabs(e1 - e2) < 1e-10);
    hf_fini(&turned);
    fixture_fini(&f);
}

/* G from the tasks against the plain sum over all n^4 integrals, for a random symmetric density. */
static void test_integrals_tasks_sum_to_the_plain_fock_matrix(void **state)
{
    (void)state;
    struct fixture f;
    struct rng rng;
    fixture_load(&f, "water", "6-31gs");
    const struct hf *hf = &f.hf;
    size_t n = (size_t)hf->n;
    double *d = matrix_new(hf->n, hf->n), *plain = matrix_new(hf->n, hf->n), *g = matrix_new(hf->n, hf->n);
    double *maxima = matrix_new(hf->basis.nshells, hf->basis.nshells);
    rng_seed(&rng, 4);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            d[i * n + j] = d[j * n + i] = (double)rng_below(&rng, 2001) / 1000 - 1;
    double block[PAIR_FUNCTIONS_MAX * PAIR_FUNCTIONS_MAX];
    for (int x = 0; x < hf->basis.nshells * hf->basis.nshells; x++)
        for (int y = 0; y < hf->basis.nshells * hf->basis.nshells; y++) {
            struct pair bra, ket; /* every ordered pair, made afresh */
            pair_build(&hf->basis, x / hf->basis.nshells, x % hf->basis.nshells, &bra);
            pair_build(&hf->basis, y / hf->basis.nshells, y % hf->basis.nshells, &ket);
            eri_quartet(&bra, &ket, block);
            const struct shell *s = hf->basis.shells;
            int nb = shell_functions(s[bra.b].l), nd = shell_functions(s[ket.b].l), nket = ket.product->nproducts;
            for (int ab = 0; ab < bra.product->nproducts; ab++)
                for (int cd = 0; cd < nket; cd++) {
                    size_t i = (size_t)(s[bra.a].first + ab / nb), j = (size_t)(s[bra.b].first + ab % nb);
                    size_t k = (size_t)(s[ket.a].first + cd / nd), l = (size_t)(s[ket.b].first + cd % nd);
                    plain[i * n + j] += d[k * n + l] * block[ab * nket + cd];
                    plain[i * n + k] -= 0.5 * d[j * n + l] * block[ab * nket + cd];
                }
            pair_fini(&bra);
            pair_fini(&ket);
        }
    fock_block_maxima(&hf->basis, d, maxima);
    for (int task = 0; task < hf->plan.ntasks; task++)
        hf_task(hf, d, maxima, task, g);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            assert_true(fabs(0.5 * (g[i * n + j] + g[j * n + i]) - plain[i * n + j]) < 1e-11);
    free(d);
    free(plain);
    free(g);
    free(maxima);
    fixture_fini(&f);
}

static void test_integrals_plan_covers_every_pair_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_load(&f, "benzene", "sto-3g");
    const struct fock_plan *plan = &f.hf.plan;
    assert_in_range(plan->ntasks, 100, 400);
    assert_int_equal(plan->start[0], plan->npairs);
    assert_int_equal(plan->start[plan->ntasks], 0);
    for (int t = 0; t < plan->ntasks; t++)
        assert_true(plan->start[t + 1] < plan->start[t]);
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integrals_overlap_diagonal_is_one_and_a_third_for_mixed_d),
        cmocka_unit_test(test_integrals_s_gaussians_agree_with_closed_forms),
        cmocka_unit_test(test_integrals_bra_and_ket_can_be_exchanged),
        cmocka_unit_test(test_integrals_turned_molecule_has_same_energies),
        cmocka_unit_test(test_integrals_tasks_sum_to_the_plain_fock_matrix),
        cmocka_unit_test(test_integrals_plan_covers_every_pair_once),
    };
    return cmocka_run_group_tests_name("scf integrals", tests, NULL, NULL);
}
