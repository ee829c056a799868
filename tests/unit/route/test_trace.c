/* Parsers of failure logs: the forms, bad rows, statistics that come back from generated logs, and a seeded fuzzer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sim/route/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LANL_HEADER                                                                                                    \
    "System,machine type,nodes,procstot,procsinnode,nodenum,nodenumz,node install,node prod,node decom,fru type,mem,"  \
    "cputype,memtype,num intercon,purpose,Prob Started,Prob Fixed,Down Time,Facilities,Hardware,Human Error,Network,"  \
    "Undetermined,Software,Same Event\n"
#define LANL_ROW(system, node, start, end, hardware)                                                                   \
    system ",cluster,49,6152,80,1," node ",5-Apr,5-Jun,current,part,80,1,1,0,compute," start "," end ",6,," hardware   \
           ",,,,,No\n"

static const char lanl[] = LANL_HEADER LANL_ROW("12", "7", "6/21/2005 10:54", "6/21/2005 11:00", "Interconnect Cable")
    LANL_ROW("12", "8", "6/20/2005 9:00", "6/20/2005 9:30", "\"Interconnect, soft\"")
        LANL_ROW("18", "9", "6/22/2005 9:00", "6/22/2005 9:30", "Interconnect Cable")
            LANL_ROW("12", "3", "6/22/2005 9:00", "6/22/2005 9:30", "Memory Dimm");
static const char extract[] = "start,end,node,cause,downtime_min\n"
                              "2003-11-12 14:42:00,2003-11-12 14:43:00,153,Interconnect Soft Error,1\r\n";
static const char pnnl[] = "Date,Hardware Identifier,What Failed,Description of Failure,Action Taken\n"
                           "12/4/2003 7:00,node 130,ELAN4,ELAN4 Error,REPLACE\n"
                           "12/4/2003 7:00,node 131,DISK,\"sda, sdb\",REPLACE\n"
                           "12/5/2003 7:00,Quadrics Switch 2 Node Level 00,QSW,x,NONE\n";
static const char pnnl_extract[] = "time,hw,what,desc,action\n2003-12-01 07:00:00,node 604,ELAN3,possible,REPLACE\n";

static bool parse(struct trace *t, const char *text, const struct trace_options *o, char what[TRACE_WHAT])
{
    return trace_parse(t, text, strlen(text), "log", o, what);
}

static void test_trace_each_form_is_told_by_its_header(void **state)
{
    (void)state;
    struct trace t;
    char what[TRACE_WHAT];
    struct trace_options o = {.system = 12};
    assert_true(parse(&t, lanl, &o, what));
    assert_int_equal(t.n, 2); /* of system 12, the network's, by time */
    assert_int_equal(t.rows, 4);
    assert_true(t.record[0].node == 8 && t.record[1].node == 7);
    assert_int_equal(t.record[1].end_s - t.record[1].start_s, 360);
    trace_fini(&t);
    o = (struct trace_options){.all = true};
    assert_true(parse(&t, lanl, &o, what));
    assert_int_equal(t.n, 4);
    trace_fini(&t);
    o = (struct trace_options){0};
    assert_true(parse(&t, extract, &o, what));
    assert_int_equal(t.n, 1);
    assert_int_equal(t.record[0].node, 153);
    assert_true(t.record[0].start_s == 1068648120);
    trace_fini(&t);
    assert_true(parse(&t, pnnl, &o, what));
    assert_int_equal(t.n, 2);
    assert_true(t.record[0].node == 130 && t.record[0].end_s == -1);
    trace_fini(&t);
    assert_true(parse(&t, pnnl_extract, &o, what));
    assert_int_equal(t.n, 1);
    trace_fini(&t);
}

static void test_trace_bad_rows_stop_with_their_line_or_are_counted(void **state)
{
    (void)state;
    const char *const bad[] = {"2003-11-12 14:42:00,2003-11-12 14:41:00,153,c,1",
                               "2003-13-12 14:42:00,2003-11-12 14:43:00,153,c,1",
                               "2003-02-30 14:42:00,2003-03-12 14:43:00,153,c,1",
                               "2003-11-12 14:42:00,2003-11-12 14:43:00,-3,c,1",
                               "2003-11-12 14:42:00,2003-11-12 14:43:00,153,c",
                               "2003-11-12 14:42:00,2003-11-12 14:43:00,153,\"c,1",
                               "2003-11-12 14:42:00,,153,c,1",
                               "2003-11-12 14:42:00x,2003-11-12 14:43:00,153,c,1",
                               "2003-11-12 14:42:00,2003-11-12 14:43:00,99999999999999999999,c,1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[600], what[TRACE_WHAT] = "";
        snprintf(text, sizeof text, "%s%s\n%s", extract, bad[i],
                 extract + strlen("start,end,node,cause,downtime_min\n"));
        struct trace t;
        struct trace_options o = {0};
        assert_false(parse(&t, text, &o, what));
        assert_non_null(strstr(what, "log:3: "));
        assert_null(t.record);
        o.skip_bad = true;
        assert_true(parse(&t, text, &o, what));
        assert_int_equal(t.n, 2);
        assert_int_equal(t.bad, 1);
        trace_fini(&t);
    }
}

static void test_trace_unknown_header_or_empty_file_is_refused(void **state)
{
    (void)state;
    const char *const bad[] = {"", "a,b,c\n1,2,3\n", "\n", "System\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct trace t;
        char what[TRACE_WHAT] = "";
        struct trace_options o = {.skip_bad = true};
        assert_false(parse(&t, bad[i], &o, what));
        assert_true(strlen(what) > 5);
    }
}

static void check_parsed(const struct trace *t)
{
    assert_true(t->n <= t->rows);
    size_t gaps = 0, repairs = 0;
    for (size_t i = 0; i < t->n; i++) {
        gaps += i > 0 && t->record[i].start_s > t->record[i - 1].start_s;
        repairs += t->record[i].end_s > t->record[i].start_s;
        assert_true(t->record[i].end_s == -1 || t->record[i].end_s >= t->record[i].start_s);
        assert_true(i == 0 || t->record[i].start_s >= t->record[i - 1].start_s);
    }
    struct trace_statistics s = trace_statistics(t);
    assert_int_equal(isnan(s.weibull_shape), gaps < 2);
    assert_int_equal(isnan(s.repair_mu), repairs < 2);
}

/* Whatever bytes change, a parser ends with records that make sense or one line that names a place. */
static void test_trace_fuzzed_logs_are_parsed_or_refused(void **state)
{
    (void)state;
    const char *const seeds[] = {lanl, extract, pnnl, pnnl_extract};
    static const char tokens[] = ",\"\n\r/:- 0129\0\xff";
    struct rng rng;
    const char *given = getenv("KEEL_FUZZ_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 20101004;
    printf("seed %llu (KEEL_FUZZ_SEED)\n", (unsigned long long)seed);
    rng_seed(&rng, seed);
    int parsed = 0, refused = 0;
    for (int round = 0; round < 40000; round++) {
        const char *from = seeds[rng_below(&rng, 4)];
        size_t len = strlen(from);
        char *text = malloc(2 * len + 64);
        assert_non_null(text);
        memcpy(text, from, len); // NOLINT(bugprone-not-null-terminated-result): it goes with its length
        for (uint64_t edits = rng_below(&rng, 6); edits > 0; edits--) {
            size_t at = rng_below(&rng, len), n = 1 + rng_below(&rng, 8);
            switch (rng_below(&rng, 4)) {
            case 0:
                text[at] = (char)rng_u64(&rng);
                break;
            case 1:
                text[at] = tokens[rng_below(&rng, sizeof tokens - 1)];
                break;
            case 2: /* cut */
                n = at + n > len ? len - at : n;
                memmove(text + at, text + at + n, len - at - n);
                len -= len > n ? n : 0;
                break;
            default: /* repeat */
                if (len + n < 2 * strlen(from) && at + n <= len) {
                    memmove(text + at + n, text + at, len - at);
                    len += n;
                }
            }
        }
        char *exact = malloc(len); /* so that a sanitizer sees a step too far */
        assert_non_null(exact);
        memcpy(exact, text, len);
        struct trace t;
        char what[TRACE_WHAT] = "";
        struct trace_options o = {.skip_bad = rng_below(&rng, 2), .all = rng_below(&rng, 2)};
        if (trace_parse(&t, exact, len, "log", &o, what)) {
            check_parsed(&t);
            parsed++;
        } else {
            assert_non_null(strstr(what, "log:"));
            assert_null(strchr(what, '\n'));
            refused++;
        }
        trace_fini(&t);
        free(exact);
        free(text);
    }
    assert_true(parsed > 1000 && refused > 1000);
}

static void test_trace_failures_without_end_or_beyond_the_clock_last_for_ever(void **state)
{
    (void)state;
    struct fabric f;
    struct trace t;
    struct trace_options o = {0};
    struct rng rng;
    char what[TRACE_WHAT] = "";
    assert_null(fabric_parse(&f, "4tx4t"));
    rng_seed(&rng, 3);
    const char *const log[] = {pnnl_extract, extract};
    for (int i = 0; i < 2; i++) {
        struct outages out = {0};
        assert_true(parse(&t, log[i], &o, what));
        assert_null(trace_outages(&t, &f, 1000000000, i ? 1e12 : 1, &rng, &out));
        assert_true(out.n > 0);
        for (size_t k = 0; k < out.n; k++)
            assert_true(out.list[k].end_ns == OUTAGE_FOREVER);
        outages_fini(&out);
        trace_fini(&t);
    }
    assert_true(outage_end(5, 0) == 6 && outage_end(5, 7.5) == 12 && outage_end(5, 1e30) == OUTAGE_FOREVER);
    fabric_fini(&f);
}

static void test_trace_generated_logs_have_the_statistics_of_their_profile(void **state)
{
    (void)state;
    for (size_t i = 0; i < trace_nprofiles; i++) {
        struct trace_profile p = trace_profiles[i];
        p.count = 20000;
        p.weibull_scale_h = fmin(p.weibull_scale_h, 30); /* keeps so many failures within the years a date can name */
        struct rng rng;
        rng_seed(&rng, 100 + i);
        struct trace t;
        assert_true(trace_generate(&t, &p, &rng));
        struct trace_statistics s = trace_statistics(&t);
        assert_int_equal(t.n, p.count);
        assert_true(fabs(s.weibull_shape / p.weibull_shape - 1) < 0.05);
        assert_true(fabs(s.weibull_scale_h / p.weibull_scale_h - 1) < 0.10);
        if (p.repair_sigma > 0) { /* whole minutes, at least one, at most a year */
            assert_true(fabs(s.repair_mu - p.repair_mu) < 0.25);
            assert_true(fabs(s.repair_sigma / p.repair_sigma - 1) < 0.2);
        }
        trace_fini(&t);
    }
}

static void test_trace_written_log_reads_back(void **state)
{
    (void)state;
    const char *const names[] = {"lanl19", "pnnl"};
    for (int i = 0; i < 2; i++) {
        struct rng rng;
        rng_seed(&rng, 5);
        struct trace t, back;
        struct trace_options o = {0};
        char *text = NULL, what[TRACE_WHAT];
        size_t len = 0;
        FILE *out = open_memstream(&text, &len);
        assert_true(trace_generate(&t, trace_profile_find(names[i]), &rng) && trace_write(&t, out));
        fclose(out);
        assert_true(trace_parse(&back, text, len, "log", &o, what));
        assert_int_equal(back.n, t.n);
        int64_t ends = 0, nodes = 0; /* failures of the same second may have changed places */
        for (size_t k = 0; k < t.n; k++) {
            assert_true(back.record[k].start_s == t.record[k].start_s);
            ends += back.record[k].end_s - t.record[k].end_s;
            nodes += (int64_t)back.record[k].node - (int64_t)t.record[k].node;
        }
        assert_true(ends == 0 && nodes == 0);
        trace_fini(&t);
        trace_fini(&back);
        free(text);
    }
}

static void test_trace_outages_are_scaled_to_the_run_and_seeded(void **state)
{
    (void)state;
    struct fabric f;
    struct trace t;
    char what[TRACE_WHAT];
    struct trace_options all = {.all = true};
    struct outages a = {0}, b = {0};
    struct rng ra, rb;
    rng_seed(&ra, 1);
    rng_seed(&rb, 1);
    assert_null(fabric_parse(&f, "8tx8t"));
    assert_true(parse(&t, lanl, &all, what));
    assert_null(trace_outages(&t, &f, 1000000, 1, &ra, &a));
    assert_null(trace_outages(&t, &f, 1000000, 1, &rb, &b));
    assert_int_equal(a.n, 4);
    for (size_t i = 0; i < a.n; i++)
        assert_true(a.list[i].cable == b.list[i].cable && a.list[i].start_ns == b.list[i].start_ns);
    assert_true(a.list[0].start_ns == 0 && a.list[3].end_ns <= 1000000 && a.list[3].end_ns > 999000);
    for (size_t i = 0; i < a.n; i++) /* a cable of the node's router */
        assert_true(a.list[i].end_ns > a.list[i].start_ns);
    trace_fini(&t);
    outages_fini(&a);
    outages_fini(&b);
    fabric_fini(&f);
}

/* The logs themselves, where they are. */
static void test_trace_real_logs_have_the_published_counts(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        int system;
        size_t n;
        double shape, scale;
    } log[] = {{"lanl12_interconnect.csv", 0, 52, 0.671, 237},
               {"lanl18_interconnect.csv", 0, 28, 0.531, 650},
               {"lanl19_interconnect.csv", 0, 58, 0.396, 114},
               {"pnnl_qsnet.csv", 0, 176, 0.452, 150},
               {"LA-UR-05-7318-failure-data-1996-2005.csv.xz", 12, 52, 0.671, 237},
               {"LA-UR-05-7318-failure-data-1996-2005.csv.xz", 18, 28, 0.531, 650},
               {"LA-UR-05-7318-failure-data-1996-2005.csv.xz", 19, 58, 0.396, 114},
               {"PNNL2007.csv.xz", 0, 176, 0.452, 150}};
    for (size_t i = 0; i < sizeof log / sizeof *log; i++) {
        char path[512], what[TRACE_WHAT] = "";
        snprintf(path, sizeof path, "%s/%s", TRACES, log[i].file);
        if (access(path, R_OK) != 0)
            skip();
        struct trace t;
        struct trace_options o = {.system = log[i].system};
        if (!trace_load(&t, path, &o, what))
            fail_msg("%s", what);
        struct trace_statistics s = trace_statistics(&t);
        assert_int_equal(t.n, log[i].n);
        assert_true(fabs(s.weibull_shape - log[i].shape) < 0.002);
        assert_true(fabs(s.weibull_scale_h / log[i].scale - 1) < 0.005);
        trace_fini(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trace_each_form_is_told_by_its_header),
        cmocka_unit_test(test_trace_bad_rows_stop_with_their_line_or_are_counted),
        cmocka_unit_test(test_trace_unknown_header_or_empty_file_is_refused),
        cmocka_unit_test(test_trace_fuzzed_logs_are_parsed_or_refused),
        cmocka_unit_test(test_trace_failures_without_end_or_beyond_the_clock_last_for_ever),
        cmocka_unit_test(test_trace_generated_logs_have_the_statistics_of_their_profile),
        cmocka_unit_test(test_trace_written_log_reads_back),
        cmocka_unit_test(test_trace_outages_are_scaled_to_the_run_and_seeded),
        cmocka_unit_test(test_trace_real_logs_have_the_published_counts),
    };
    return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
