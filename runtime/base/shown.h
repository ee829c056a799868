/* A text that a user gave, in a line that he reads: control characters, marks of direction and a byte order mark, of
 * which he would see nothing or two lines, or which his terminal would obey, as \n, \t, \x1b, \u009b, \u202e. Pure. */
#ifndef KEEL_BASE_SHOWN_H
#define KEEL_BASE_SHOWN_H

#include <stddef.h>

enum { SHOWN_A_BYTE = 4 }; /* what one byte becomes at most */

/* As much of it as fits, and a zero, if size > 0. Returns out. */
char *shown_text(const char *text, char *out, size_t size);
#endif
