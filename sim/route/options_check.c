/* Do the options of keel-route make sense together? */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/route/options_int.h"

/* Before the runs, not after them: can the picture be made and written? */
static void check_picture(const struct options *o)
{
    size_t len = strlen(o->heat_image);
    const char *end = len > 4 ? o->heat_image + len - 4 : "";
    if (strcmp(end, ".png") != 0 && strcmp(end, ".svg") != 0)
        cli_die("--heat-image %.80s: the name of a picture ends in .png or .svg", o->heat_image);
    if (o->fabric.kind != FABRIC_GRID || o->fabric.grid.ndims != 2)
        cli_die("--heat-image: a heat picture needs a network of two dimensions");
    if (strchr(o->heat_image, '\''))
        cli_die("--heat-image %.80s: the name of a picture may not hold a quote", o->heat_image);
    bool is_new = access(o->heat_image, F_OK) != 0;
    FILE *out = fopen(o->heat_image, "ab");
    if (!out)
        cli_die("--heat-image %.80s: %s", o->heat_image, strerror(errno));
    fclose(out);
    if (is_new)
        unlink(o->heat_image);
}

/* What says how failures are must find failures of that kind. */
static void check_failures(const struct options *o)
{
    bool logged = o->trace_file || o->profile, ends = o->has_failures && !o->permanent;
    if (o->has_failures + (o->failure_file != NULL) + (o->trace_file != NULL) + (o->profile != NULL) > 1)
        cli_die("give one of --failures, --failure-file, --trace and --profile");
    if (!o->has_failures && (o->permanent || o->allow_cut || o->onset >= 0 || o->length_ns))
        cli_die("--permanent, --allow-cut, --onset and --length are for --failures");
    if (o->length_ns && o->permanent)
        cli_die("--length is for --failures that are not --permanent");
    if (o->has_lasting && !logged && (!ends || o->length_ns))
        cli_die("--lasting is for --trace, --profile, and --failures without --permanent or --length");
}

void options_apply(struct options *o, const struct parse *p)
{
    const char *wrong = fabric_parse(&o->fabric, p->topology);
    if (wrong)
        cli_die("--topology %.60s: %s", p->topology, wrong);
    if (o->fabric.kind == FABRIC_GRID && o->fabric.grid.ndims > 3)
        cli_die("--topology %.60s: the simulator takes 1 to 3 dimensions", p->topology);
    struct sim_config *c = &o->config;
    c->fabric = &o->fabric;
    sim_method_apply(c, (enum sim_method)p->method);
    if (p->threshold && p->method != SIM_FT && p->method != SIM_SINGLE)
        cli_die("--threshold is for --method ft and single: the others have none, or one of their own");
    if (p->max_paths && p->method == SIM_DOR)
        cli_die("--max-paths: --method dor has one path");
    if (p->threshold)
        c->detour.threshold = (uint32_t)p->threshold;
    if (p->max_paths)
        c->detour.max_paths = (int)p->max_paths;
    c->rate_gbps = p->rate > 0 ? p->rate : o->load * fabric_bisection_bound(&o->fabric) * c->link_gbps;
    c->warmup_ns = p->warmup_ms >= 0 ? (uint64_t)p->warmup_ms : c->time_ns / 10;
    c->drain_ns = p->drain_ms >= 0 ? (uint64_t)p->drain_ms : c->time_ns;
    wrong = sim_config_wrong(c);
    if (wrong)
        cli_die("%s", wrong);
    if (o->has_load && p->rate > 0)
        cli_die("give one of --load and --rate");
    check_failures(o);
    if (o->onset < 0)
        o->onset = o->length_ns ? 1 : 0;
    if (!p->needs_name && !o->trace_file && (o->trace.system || o->trace.all || o->trace.skip_bad))
        cli_die("--system, --all-failures and --skip-bad are for --trace");
    if (o->heat && o->output != OUTPUT_TEXT)
        cli_die("--heat is for the terminal: neither --json nor --csv goes with it (--heat-image does)");
    if (o->heat_image)
        check_picture(o);
}
