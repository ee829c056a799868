/* What the command lines of the simulators share: how they end on a mistake, how they are interrupted, numbers. */
#ifndef KEEL_SIM_CLI_CLI_H
#define KEEL_SIM_CLI_CLI_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The name in front of every message: "keel-place simulate". Not copied. */
void cli_name(const char *name);
/* One line on standard error, "NAME: ...", and the end with code 2: what the user gave cannot be done. */
_Noreturn void cli_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Set by SIGINT and SIGTERM once cli_catch_signals was called; a second signal, more than a second after the first,
 * ends the program at once. */
extern atomic_bool cli_stop;
void cli_catch_signals(void);
/* A program that reads what is written to `in`, in a process group of its own: a signal to the group of this process,
 * as a terminal and timeout(1) send it, does not end it, but the end of its input does. False: it cannot be started. */
struct cli_pipe {
    FILE *in;
    int pid;
};
bool cli_pipe_begin(struct cli_pipe *p, const char *command);
/* False: it ended otherwise than with code 0. */
bool cli_pipe_end(struct cli_pipe *p);

/* The number text stands for; dies unless it is one from low to high. what names it: "--seed". */
double cli_number(const char *text, const char *what, double low, double high);
int64_t cli_whole(const char *text, const char *what, int64_t low, int64_t high);

/* Threads to start when the user names no number: one per processor. */
int cli_threads(void);
#endif
