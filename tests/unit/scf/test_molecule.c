#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "apps/scf/molecule.h"
#include "tests/unit/scf/scratch.h"

static void test_molecule_shipped_files_have_reference_repulsion(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int electrons;
        double repulsion;
    } lines[] = {
        {SCF_DATA "/molecules/water.xyz", 10, 9.189193890566},
        {SCF_DATA "/molecules/methane.xyz", 10, 13.439528857016},
        {SCF_DATA "/molecules/ammonia.xyz", 10, 11.904529830715},
        {SCF_DATA "/molecules/benzene.xyz", 42, 203.153524374745},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct molecule molecule;
        struct complaint why = {0};
        assert_true(molecule_read(lines[i].path, &molecule, &why));
        assert_true(molecule_check(&molecule, &why));
        assert_int_equal(molecule_electrons(&molecule), lines[i].electrons);
        assert_true(fabs(molecule_nuclear_repulsion(&molecule) - lines[i].repulsion) < 1e-9);
        molecule_fini(&molecule);
    }
}

static void test_molecule_any_case_blanks_and_extra_columns_are_read(void **state)
{
    (void)state;
    char path[32];
    struct molecule molecule;
    struct complaint why = {0};
    scratch_write(path, " 2 \n\n  NE\t1 2e0 -3  0.5\nh 0 0 0\n\n \n");
    assert_true(molecule_read(path, &molecule, &why));
    unlink(path);
    assert_int_equal(molecule.natoms, 2);
    assert_int_equal(molecule.atoms[0].z, 10);
    assert_true(fabs(molecule.atoms[0].r[2] + 3 / 0.529177249) < 1e-12);
    assert_int_equal(molecule.atoms[1].z, 1);
    molecule_fini(&molecule);
}

static void test_molecule_bad_files_get_one_line_that_names_the_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", "empty"},
        {"x\n\nH 0 0 0\n", "line 1"},
        {"2 3\n\nH 0 0 0\nH 0 0 1\n", "line 1"},
        {"0\n\n", "line 1"},
        {"-1\n\n", "line 1"},
        {"99999999999999999999\n\n", "line 1"},
        {"2\n\nH 0 0 0\n", "ends after 1 of 2"},
        {"1\n", "ends after 0 of 1"},
        {"1\n\nH 0 0 0\nH 0 0 1\n", "line 4: more lines"},
        {"1\n\nXx 0 0 0\n", "unknown element Xx"},
        {"1\n\n\n", "line 3"},
        {"1\n\nH 0 0\n", "line 3: three coordinates"},
        {"1\n\nH 0 0 1,5\n", "line 3: three coordinates"},
        {"1\n\nH 0 nan 1\n", "line 3: three coordinates"},
        {"1\n\nH 0 1e999 1\n", "line 3: three coordinates"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[32];
        struct molecule molecule;
        struct complaint why = {0};
        scratch_write(path, cases[i].text);
        assert_false(molecule_read(path, &molecule, &why));
        unlink(path);
        if (strstr(why.text, cases[i].expected) == NULL)
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, why.text, cases[i].expected);
        assert_null(strchr(why.text, '\n'));
    }
    struct molecule molecule;
    struct complaint why = {0};
    assert_false(molecule_read("/nonexistent/x.xyz", &molecule, &why));
    assert_non_null(strstr(why.text, "/nonexistent/x.xyz: No such file"));
}

static void test_molecule_check_refuses_what_cannot_be_computed(void **state)
{
    (void)state;
    struct complaint why = {0};
    struct atom twice[] = {{1, {0, 0, 1}}, {8, {0, 0, 0}}, {1, {0, 0, 1.001}}};
    assert_false(molecule_check(&(struct molecule){3, twice}, &why));
    assert_string_equal(why.text, "atoms 1 (H) and 3 (H) are in one place");
    struct complaint odd = {0};
    struct atom radical[] = {{8, {0, 0, 0}}, {1, {0, 0, 1.8}}};
    assert_false(molecule_check(&(struct molecule){2, radical}, &odd));
    assert_non_null(strstr(odd.text, "9 electrons"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_molecule_shipped_files_have_reference_repulsion),
        cmocka_unit_test(test_molecule_any_case_blanks_and_extra_columns_are_read),
        cmocka_unit_test(test_molecule_bad_files_get_one_line_that_names_the_place),
        cmocka_unit_test(test_molecule_check_refuses_what_cannot_be_computed),
    };
    return cmocka_run_group_tests_name("scf molecule", tests, NULL, NULL);
}
