#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "apps/scf/basis.h"
#include "tests/unit/scf/scratch.h"

static void test_basis_shipped_sets_cover_hydrogen_to_neon(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int hydrogen, carbon; /* functions */
    } sets[] = {
        {SCF_DATA "/basis/sto-3g.nw", 1, 5}, {SCF_DATA "/basis/6-31g.nw", 2, 9}, {SCF_DATA "/basis/6-31gs.nw", 2, 15}};
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        struct basis_library library;
        struct complaint why = {0};
        assert_true(basis_library_read(sets[i].path, &library, &why));
        for (int z = 1; z <= 10; z++) {
            struct atom atom = {.z = z};
            struct basis basis;
            assert_true(basis_build(&library, &(struct molecule){1, &atom}, &basis, &why));
            if (z == 1)
                assert_int_equal(basis.nfunctions, sets[i].hydrogen);
            if (z == 6)
                assert_int_equal(basis.nfunctions, sets[i].carbon);
            basis_fini(&basis);
        }
        basis_library_fini(&library);
    }
}

static void test_basis_shell_powers_follow_cartesian_order(void **state)
{
    (void)state;
    static const int d[6][3] = {{2, 0, 0}, {1, 1, 0}, {1, 0, 1}, {0, 2, 0}, {0, 1, 1}, {0, 0, 2}};
    for (int c = 0; c < 6; c++) {
        int powers[3];
        shell_powers(2, c, powers);
        assert_memory_equal(powers, d[c], sizeof powers);
    }
}

static void test_basis_general_contraction_and_fortran_exponents_are_read(void **state)
{
    (void)state;
    char path[32];
    struct basis_library library;
    struct complaint why = {0};
    scratch_write(
        path,
        "# a comment\nBASIS \"ao\" SPHERICAL PRINT\nc s\n 1.0D+01 0.5 0.0 # tail\n 2.d0 -1 1\nC sp\n1 2 3\nEND\n");
    assert_true(basis_library_read(path, &library, &why));
    unlink(path);
    const struct element_shells *carbon = &library.elements[6];
    assert_int_equal(carbon->nshells, 4);
    assert_int_equal(carbon->shells[0].nprimitives, 2);
    assert_true(carbon->shells[0].exponents[0] == 10 && carbon->shells[0].coefficients[1] == -1);
    assert_int_equal(carbon->shells[1].nprimitives, 1); /* the zero is left out */
    assert_true(carbon->shells[1].exponents[0] == 2);
    assert_int_equal(carbon->shells[2].l, 0);
    assert_int_equal(carbon->shells[3].l, 1);
    assert_true(carbon->shells[3].coefficients[0] == 3);
    basis_library_fini(&library);
}

static void test_basis_bad_files_get_one_line_that_names_the_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", "no basis functions"},
        {"basis \"x\"\nend\n", "no basis functions"},
        {"C S\n", "line 1: a shell of C without exponents"},
        {"C S\nC S\n1 1\n", "line 1: a shell of C without exponents"},
        {"Qq S\n1 1\n", "line 1: unknown element Qq"},
        {"C F\n1 1\n", "shell type F"},
        {"C PS\n1 1 1\n", "shell type PS"},
        {"1 1\n", "line 1: expected an element"},
        {"C S extra\n1 1\n", "line 1: expected an element and a shell type"},
        {"C S\n1 one\n", "line 2: one is not a number"},
        {"C S\n1\n", "line 2: 0 coefficient(s)"},
        {"C SP\n1 1\n", "line 2: 1 coefficient(s) after the exponent, expected 2"},
        {"C S\n1 1\n1 1 1\n", "line 3: 2 coefficient(s) after the exponent, expected 1"},
        {"C S\n-1 1\n", "line 2: exponent -1 is not positive"},
        {"C S\n0 1\n", "line 2: exponent 0 is not positive"},
        {"ECP\n", "effective core potentials"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[32];
        struct basis_library library;
        struct complaint why = {0};
        scratch_write(path, cases[i].text);
        assert_false(basis_library_read(path, &library, &why));
        unlink(path);
        if (strstr(why.text, cases[i].expected) == NULL)
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, why.text, cases[i].expected);
    }
}

static void test_basis_build_names_element_without_functions(void **state)
{
    (void)state;
    struct basis_library library;
    struct basis basis;
    struct complaint why = {0};
    struct atom silicon = {.z = 14};
    assert_true(basis_library_read(SCF_DATA "/basis/sto-3g.nw", &library, &why));
    assert_false(basis_build(&library, &(struct molecule){1, &silicon}, &basis, &why));
    assert_string_equal(why.text, "the basis set has no functions for Si");
    basis_library_fini(&library);
}

static void test_basis_build_refuses_contraction_without_norm(void **state)
{
    (void)state;
    char path[32];
    struct basis_library library;
    struct basis basis;
    struct complaint why = {0};
    struct atom helium = {.z = 2};
    scratch_write(path, "He S\n1 1\n1 -1\n");
    assert_true(basis_library_read(path, &library, &why));
    unlink(path);
    assert_false(basis_build(&library, &(struct molecule){1, &helium}, &basis, &why));
    assert_string_equal(why.text, "basis set: shell 1 of He has norm 0");
    basis_library_fini(&library);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_basis_shipped_sets_cover_hydrogen_to_neon),
        cmocka_unit_test(test_basis_shell_powers_follow_cartesian_order),
        cmocka_unit_test(test_basis_general_contraction_and_fortran_exponents_are_read),
        cmocka_unit_test(test_basis_bad_files_get_one_line_that_names_the_place),
        cmocka_unit_test(test_basis_build_names_element_without_functions),
        cmocka_unit_test(test_basis_build_refuses_contraction_without_norm),
    };
    return cmocka_run_group_tests_name("scf basis", tests, NULL, NULL);
}
