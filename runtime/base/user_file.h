/* A file that a user names on a command line, read whole: a regular one, or a pipe that a shell has opened, as
 * /dev/stdin and <(command) are. Everything else is refused with a reason instead of being waited for: a fifo that
 * somebody may open one day, a device, a folder. */
#ifndef KEEL_BASE_USER_FILE_H
#define KEEL_BASE_USER_FILE_H

#include <stdbool.h>
#include <stddef.h>

enum { USER_FILE_WHY = 512, USER_TEXT_MAX = 16 << 20 };

/* All of it, for free(), with a zero behind it; at most `most` bytes. NULL: why is a sentence that names the path;
 * errno is the system's error, 0 if it had none. Blocks as long as a pipe's writers live, with a warning in the log
 * when they say nothing for USER_FILE_QUIET_MS. Any thread. */
enum { USER_FILE_QUIET_MS = 5000 };
char *user_file_read(const char *path, size_t most, size_t *len, char why[USER_FILE_WHY]);
/* The same of a text of at most USER_TEXT_MAX bytes: without zeros, which would hide what follows them, and without a
 * byte order mark, which nobody would see in a line about the first word. */
char *user_text_read(const char *path, char why[USER_FILE_WHY]);
/* NULL: the text begins with no byte order mark; else what is wrong with it. */
const char *user_text_mark(const char *text, size_t len);
#endif
