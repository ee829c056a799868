/* keel-sdc: how wrong bits have spread in a job, from its event log. */
#include <argp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/cli/cli.h"
#include "sim/sdc/sdc.h"

struct sdc_options {
    const char *log, *dir, *without;
};

enum { KEY_WITHOUT = 0x100 };

static error_t take(int key, char *text, struct argp_state *state)
{
    struct sdc_options *o = state->input;
    if (key == 'O')
        o->dir = text;
    else if (key == KEY_WITHOUT)
        o->without = text;
    else if (key == ARGP_KEY_ARG && !o->log)
        o->log = text;
    else if (key == ARGP_KEY_ARG)
        cli_die("one event log, not '%s' as well", text);
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static void check_dir(const char *dir)
{
    struct stat st;
    if (stat(dir, &st) != 0 || !S_ISDIR(st.st_mode) || access(dir, W_OK) != 0)
        cli_die("cannot write into the folder %s", dir);
    if (strpbrk(dir, "'\"\n") || strlen(dir) > 2048)
        cli_die("the folder name must be short and without quotes");
}

int main(int argc, char **argv)
{
    static const struct argp_option rows[] = {
        {"dir", 'O', "DIR", 0, "folder for steps.csv, pairs.csv and pictures of them (default: nothing is written)", 0},
        {"without", KEY_WITHOUT, "CALL,...", 0, "leave out what was sent by these calls, as keel_group_allgather", 0},
        {0}};
    static const struct argp argp = {
        .options = rows,
        .parser = take,
        .args_doc = "EVENT-LOG",
        .doc = "How wrong bits have spread in a job with replicas (keelrun --replicas 2 --on-mismatch report --inject "
               "... --event-log EVENT-LOG): whom they hit, who sent bad data to whom, who became tainted, in which "
               "step; and whether that is progressive, immediate or localised."};
    struct sdc_options o = {0};
    struct log log;
    struct course course;
    cli_name("keel-sdc");
    argp_program_version = "keel-sdc (Keel) " KEEL_VERSION;
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (!o.log)
        cli_die("which event log? See keel-sdc --help");
    if (o.dir)
        check_dir(o.dir);
    log_read(&log, o.log, o.without);
    course_make(&course, &log);
    uint64_t flips = 0;
    for (size_t i = 0; i < course.moments; i++)
        flips += course.moment[i].flips;
    const struct moment none = {0}, *end = course.moments ? &course.moment[course.moments - 1] : &none;
    printf("%s: %" PRIu64 " wrong bit%s, %" PRIu64 " bad messages, %d of %d ranks tainted", spread_name(course.spread),
           flips, flips == 1 ? "" : "s", end->all_messages, end->direct + end->indirect, log.ranks);
    if (course.moments)
        printf(", steps %" PRIu64 " to %" PRIu64, course.moment[0].step, end->step);
    putchar('\n');
    if (o.dir)
        out_csv(&course, &log, o.dir);
    bool drawn = !o.dir || !course.moments || out_pictures(&course, &log, o.dir);
    if (!drawn)
        fprintf(stderr, "keel-sdc: gnuplot failed (is it installed?); the data are in %s\n", o.dir);
    course_free(&course);
    log_free(&log);
    return drawn ? 0 : 1;
}
