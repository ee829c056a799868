#include "apps/npb/options.h"

#include <argp.h>
#include <errno.h>
#include <string.h>

__attribute__((visibility("default"))) const char *argp_program_version = "keel-npb " KEEL_VERSION;

enum { KEY_REDUNDANCY = 256 };

static const struct argp_option rows[] = {
    {"class", 'c', "LETTER", 0, "size of the problem: S (default), W or A", 0},
    {"redundancy", KEY_REDUNDANCY, "NAME", 0, "copies of what is shared: none, shadow (default) or triple", 0},
    {0},
};

struct parse {
    struct npb_options *options;
    struct npb_complaint *why;
    int next; /* number of the argument after the one that is wrong */
};

static error_t wrong(struct parse *parse, const char *text, const char *there_are)
{
    if (parse->why->text[0] == '\0')
        npb_complain(parse->why, "%.60s: there are %s", text, there_are);
    return EINVAL;
}

static error_t parse_class(struct parse *parse, const char *text)
{
    const char *at = text[0] != '\0' && text[1] == '\0' ? strchr(npb_class_names, text[0]) : NULL;
    if (at == NULL)
        return wrong(parse, text, "classes S, W and A");
    parse->options->class = (enum npb_class)(at - npb_class_names);
    return 0;
}

static error_t parse_redundancy(struct parse *parse, const char *text)
{
    static const char *const names[] = {
        [KEEL_REDUNDANCY_NONE] = "none", [KEEL_REDUNDANCY_SHADOW] = "shadow", [KEEL_REDUNDANCY_TRIPLE] = "triple"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(text, names[i]) == 0) {
            parse->options->redundancy = (keel_redundancy)i;
            return 0;
        }
    return wrong(parse, text, "none, shadow and triple");
}

static error_t parse_kernel(struct parse *parse, const char *text)
{
    if (parse->options->kernel != NULL)
        return wrong(parse, text, "no two kernels in one run");
    parse->options->kernel = npb_kernel_find(text);
    return parse->options->kernel != NULL ? 0 : wrong(parse, text, "the kernels ep, is, cg, mg, ft and lu");
}

static error_t parse_key(int key, char *text, struct argp_state *state)
{
    struct parse *parse = state->input;
    switch (key) {
    case 'c':
        return parse_class(parse, text);
    case KEY_REDUNDANCY:
        return parse_redundancy(parse, text);
    case ARGP_KEY_ARG:
        return parse_kernel(parse, text);
    case ARGP_KEY_ERROR:
        parse->next = state->next;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

bool npb_options_parse(int argc, char **argv, struct npb_options *out, struct npb_complaint *why)
{
    static const struct argp argp = {
        rows,
        parse_key,
        "KERNEL",
        "One of the NAS parallel benchmarks' kernels (ep, is, cg, mg, ft, lu) on the ranks of a keelrun job.\v"
        "Exit code 1 if the result is not the published one, 2 if the command line is wrong or the kernel cannot be "
        "run "
        "on so many ranks.",
        NULL,
        NULL,
        NULL};
    struct parse parse = {out, why, argc};
    *out = (struct npb_options){.class = CLASS_S, .redundancy = KEEL_REDUNDANCY_SHADOW};
    bool asks = false;
    for (int i = 1; i < argc; i++)
        asks = asks || strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-?") == 0 ||
               strcmp(argv[i], "--usage") == 0 || strcmp(argv[i], "--version") == 0 || strcmp(argv[i], "-V") == 0;
    unsigned quiet = asks ? 0 : ARGP_NO_ERRS | ARGP_NO_EXIT;
    if (argp_parse(&argp, argc, argv, quiet, NULL, &parse) != 0) {
        if (why->text[0] == '\0')
            npb_complain(why, "%.60s: unknown option, or its value is missing (see --help)",
                         argv[parse.next > 1 && parse.next <= argc ? parse.next - 1 : argc - 1]);
        return false;
    }
    if (out->kernel == NULL)
        return npb_complain(why, "which kernel? usage: keel-npb ep|is|cg|mg|ft|lu [--class S|W|A]");
    return true;
}
