#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "apps/scf/boys.h"

/* Power series in 90-digit decimal arithmetic. */
static const struct {
    int m;
    double x, value;
} references[] = {
    {0, 0, 1.00000000000000000e+00},      {0, 1e-9, 9.99999999666666639e-01},  {0, 0.03125, 9.89680267367010869e-01},
    {0, 0.5, 8.55624391892148783e-01},    {0, 1.7, 6.35390690402152902e-01},   {0, 6.28125, 3.53468685183439046e-01},
    {0, 12.34, 2.52282465666451239e-01},  {0, 25.5, 1.75499082551202029e-01},  {0, 33, 1.54272305827641010e-01},
    {0, 39.97, 1.40177356778658418e-01},  {0, 40, 1.40124780409948219e-01},    {0, 45.3, 1.31672729907404029e-01},
    {1, 0, 3.33333333333333315e-01},      {1, 1e-9, 3.33333333133333354e-01},  {1, 0.03125, 3.27152526250667930e-01},
    {1, 0.5, 2.49093732179515387e-01},    {1, 1.7, 1.33149166573358291e-01},   {1, 6.28125, 2.79878706369731216e-02},
    {1, 12.34, 1.02219648459660212e-02},  {1, 25.5, 3.44115848123095237e-03},  {1, 33, 2.33745917920661142e-03},
    {1, 39.97, 1.75353210881484139e-03},  {1, 40, 1.75155975512435256e-03},    {1, 45.3, 1.45334138970644629e-03},
    {4, 0, 1.11111111111111105e-01},      {4, 1e-9, 1.11111111020202019e-01},  {4, 0.03125, 1.08307425356581680e-01},
    {4, 0.5, 7.40235112058776346e-02},    {4, 1.7, 2.86751917833353159e-02},   {4, 6.28125, 1.21731925076054765e-03},
    {4, 12.34, 7.11607166798220044e-05},  {4, 25.5, 2.72385142454880096e-06},  {4, 33, 8.53692621094153107e-07},
    {4, 39.97, 3.60421417132443288e-07},  {4, 40, 3.59206590406303351e-07},    {4, 45.3, 2.05197633592219603e-07},
    {8, 0, 5.88235294117647051e-02},      {8, 1e-9, 5.88235293591331254e-02},  {8, 0.03125, 5.72018244961875755e-02},
    {8, 0.5, 3.76495465034909979e-02},    {8, 1.7, 1.30335898838054246e-02},   {8, 6.28125, 2.71606849853151314e-04},
    {8, 12.34, 3.33588340495615456e-06},  {8, 25.5, 7.77248213155956902e-09},  {8, 33, 8.68551443163514790e-10},
    {8, 39.97, 1.70382042444943308e-10},  {8, 40, 1.69298906863654781e-10},    {8, 45.3, 5.87935065808756097e-11},
    {10, 0, 4.76190476190476164e-02},     {10, 1e-9, 4.76190475755693607e-02}, {10, 0.03125, 4.62796961990111985e-02},
    {10, 0.5, 3.01903263749237032e-02},   {10, 1.7, 1.01849994539702574e-02},  {10, 6.28125, 1.81690055306217156e-04},
    {10, 12.34, 1.45536447259208127e-06}, {10, 25.5, 9.64983500973059694e-10}, {10, 33, 6.44035170193969068e-11},
    {10, 39.97, 8.61188161520557205e-12}, {10, 40, 8.54430414005834748e-12},   {10, 45.3, 2.31353188984141027e-12},
};

static void test_boys_table_and_asymptote_agree_with_references(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof references / sizeof references[0]; i++) {
        double f[BOYS_M_MAX + 1];
        boys(references[i].m, references[i].x, f);
        double error = fabs(f[references[i].m] - references[i].value);
        if (error > 1e-14 * references[i].value)
            fail_msg("F_%d(%g) is off by %g of its value", references[i].m, references[i].x,
                     error / references[i].value);
    }
}

/* 2x F_{m+1} + exp(-x) = (2m+1) F_m must hold between orders found in different ways. */
static void test_boys_all_orders_fulfil_recursion(void **state)
{
    (void)state;
    for (int i = 0; i < 4380; i++) {
        double x = 0.0137 * i;
        double high[BOYS_M_MAX + 1];
        boys(BOYS_M_MAX, x, high);
        for (int m = 0; m < BOYS_M_MAX; m++) {
            double own[BOYS_M_MAX + 1];
            boys(m, x, own);
            assert_true(fabs(own[m] - high[m]) <= 2e-14 * own[m]);
            assert_true(high[m + 1] < high[m] && high[m + 1] > 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boys_table_and_asymptote_agree_with_references),
        cmocka_unit_test(test_boys_all_orders_fulfil_recursion),
    };
    return cmocka_run_group_tests_name("scf boys", tests, NULL, NULL);
}
