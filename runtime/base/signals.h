/* Names of signals, as users know them. */
#ifndef KEEL_BASE_SIGNALS_H
#define KEEL_BASE_SIGNALS_H

#include <stddef.h>

/* In place of the number of the signal that killed a process: its script has hidden how it ended, and the kernel
 * (before 6.15) does not say. */
enum { SIGNAL_HIDDEN = -1 };

/* "SIGKILL"; "signal 40" of one that has no name. Returns out, of which 16 bytes are enough. */
const char *signal_name(int number, char *out, size_t size);
/* "was killed by SIGKILL", or what there is to say of SIGNAL_HIDDEN. Returns out, of which SIGNAL_DID bytes suffice. */
enum { SIGNAL_DID = 64 };
const char *signal_did(int number, char *out, size_t size);
/* The exit code of a job that ends for it. */
int signal_code(int number);
#endif
