/* Names of signals, as users know them. */
#ifndef KEEL_BASE_SIGNALS_H
#define KEEL_BASE_SIGNALS_H

#include <stddef.h>

/* "SIGKILL"; "signal 40" of one that has no name. Returns out, of which 16 bytes are enough. */
const char *signal_name(int number, char *out, size_t size);
#endif
