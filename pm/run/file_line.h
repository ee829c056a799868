/* Where a file of the user's is wrong: in which line, and what is said of it. Pure. */
#ifndef KEEL_PM_FILE_LINE_H
#define KEEL_PM_FILE_LINE_H

#include <stdbool.h>
#include <stddef.h>

struct file_line {
    int number; /* from 1; 0: none was read yet */
    char *why;  /* len bytes, the caller's */
    size_t len;
};

/* Writes "line NUMBER: ..." into why, cut to its room. Returns false. */
bool file_line_wrong(const struct file_line *at, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#endif
