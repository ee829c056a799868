/* keel-route: its commands. */
#include "sim/route/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct command command[] = {
    {"simulate", SIMULATE, command_simulate, false, "",
     "Run one configuration in many repetitions, without failures and, where failures are asked for, with them; print "
     "means with 95 % confidence intervals."},
    {"optimise", OPTIMISE, command_optimise, false, "",
     "Search the best routes around permanent failures that are known from the start, and measure them packet by "
     "packet: "
     "what is left to a router that has to learn."},
    {"figure", FIGURE, command_figure, true, "NAME",
     "Make a figure of docs/routing.md: picture, data and gnuplot script. NAME is one of: " FIGURE_NAMES ", or all."},
    {"trace", TRACE, command_trace, true, "[FILE]",
     "Read a failure log and print how many network failures it holds and the fits of their times, or write one."},
};
enum { COMMANDS = sizeof command / sizeof *command };

static void overview(void)
{
    puts("Simulate routing around broken links.\n");
    for (int i = 0; i < COMMANDS; i++)
        printf("  keel-route %s %s\n      %s\n", command[i].name, command[i].args, command[i].doc);
    puts("\nkeel-route COMMAND --help lists a command's options.");
}

int main(int argc, char **argv)
{
    struct options o;
    cli_name("keel-route");
    if (argc < 2)
        cli_die("say what to do: simulate, optimise, figure NAME or trace FILE (keel-route --help)");
    const struct command *c = NULL;
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(argv[1], command[i].name) == 0)
            c = &command[i];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-?") == 0) {
            c ? options_help(c) : overview();
            return 0;
        }
        if (strcmp(argv[i], "--version") == 0) {
            puts("keel-route " KEEL_VERSION);
            return 0;
        }
    }
    if (!c)
        cli_die("there is no command '%.60s' (simulate, optimise, figure, trace)", argv[1]);
    options_parse(&o, c, argc - 1, argv + 1);
    cli_catch_signals();
    int status = c->run(&o);
    if (fflush(stdout) != 0 || ferror(stdout))
        cli_die("cannot write standard output: %s", strerror(errno));
    options_fini(&o);
    return status;
}
