/* keel-place: spare allocation, substitution and the collision simulator. */
#include <stdio.h>
#include <string.h>

#include "sim/place/options.h"

static const char usage[] =
    "Usage: keel-place COMMAND [OPTION...]\n"
    "Where spare nodes go, where slots move when nodes die, and what that does to the network.\n\n"
    "  allocate    spare nodes of a grid and the map at launch\n"
    "  substitute  the moves and link loads for given failures\n"
    "  simulate    random sequences of failures, or the worst case by search\n"
    "  optimise    the best map for given failures that annealing finds, and what none can beat\n"
    "  figure      the figures of docs/placement.md, as PNG, SVG and CSV\n\n"
    "keel-place COMMAND --help tells the options. See also the man page keel-place(1).\n";

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = {{"allocate", cmd_allocate},
                    {"substitute", cmd_substitute},
                    {"simulate", cmd_simulate},
                    {"optimise", cmd_optimise},
                    {"figure", cmd_figure}};
    cli_name("keel-place");
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)) {
        fputs(usage, stdout);
        options_shown();
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        puts("keel-place " KEEL_VERSION);
        options_shown();
        return 0;
    }
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    if (argc > 1)
        cli_die("unknown command '%s'; commands are allocate, substitute, simulate, optimise, figure", argv[1]);
    cli_die("a command is missing: allocate, substitute, simulate, optimise or figure");
}
