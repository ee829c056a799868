/* The end of a program of ours that cannot do what it was asked: one line on stderr, "PROGRAM: " and the text, then exit.
 * code is 2 for bad input, 1 for all else. */
#ifndef KEEL_PM_QUIT_H
#define KEEL_PM_QUIT_H

_Noreturn void pm_quit(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#endif
