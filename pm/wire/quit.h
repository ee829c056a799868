/* The end of a program of ours that cannot do what it was asked: one line on stderr, "PROGRAM: " and the text as
 * shown.h shows it, then exit. code is 2 for bad input, 1 for all else. */
#ifndef KEEL_PM_QUIT_H
#define KEEL_PM_QUIT_H

#include <stddef.h>

_Noreturn void pm_quit(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Why a program that is not Keel's could not be started; if it is not there, with the Debian package that brings it. */
void pm_cannot_run(const char *program, int error, char *out, size_t size);
#endif
