/* Writing where a file may become no larger (RLIMIT_FSIZE, ulimit -f). The kernel then refuses a write and sends
 * SIGXFSZ, which ends the process. In a program's process the library leaves that signal's disposition to the program,
 * and its own write is an error like that to a full disk. */
#ifndef KEEL_BASE_LIMITED_H
#define KEEL_BASE_LIMITED_H

#include <stddef.h>
#include <sys/types.h>

/* write(2), whose EFBIG comes without a signal. threads   any; allowed in handlers of signals. */
ssize_t limited_write(int fd, const void *data, size_t len);
#endif
