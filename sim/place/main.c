/* keel-place: spare allocation, substitution and the collision simulator. */
#include <stdio.h>
#include <string.h>

#include "sim/place/options.h"

static const struct {
    const char *name, *what;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"allocate", "spare nodes of a grid and the map at launch", cmd_allocate},
    {"substitute", "the moves and link loads for given failures", cmd_substitute},
    {"simulate", "random sequences of failures, or the worst case by search", cmd_simulate},
    {"optimise", "the best map for given failures that annealing finds, and what none can beat", cmd_optimise},
    {"figure", "the figures of docs/placement.md, as PNG, SVG and CSV", cmd_figure},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static int show_help(void)
{
    puts("Usage: keel-place COMMAND [OPTION...]\n"
         "Where spare nodes go, where slots move when nodes die, and what that does to the network.\n");
    for (int i = 0; i < COMMANDS; i++)
        printf("  %-12s%s\n", commands[i].name, commands[i].what);
    puts("\nkeel-place COMMAND --help tells the options. See also the man page keel-place(1).");
    options_shown();
    return 0;
}

_Noreturn static void no_command(const char *given)
{
    char names[256] = "";
    for (int i = 0; i < COMMANDS; i++) {
        size_t len = strlen(names);
        const char *before = i == 0 ? "" : i < COMMANDS - 1 || given ? ", " : " or ";
        snprintf(names + len, sizeof names - len, "%s%s", before, commands[i].name);
    }
    if (given)
        cli_die("unknown command '%s'; commands are %s", given, names);
    cli_die("a command is missing: %s", names);
}

int main(int argc, char **argv)
{
    cli_name("keel-place");
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0))
        return show_help();
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        puts("keel-place " KEEL_VERSION);
        options_shown();
        return 0;
    }
    for (int i = 0; argc > 1 && i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    no_command(argc > 1 ? argv[1] : NULL);
}
