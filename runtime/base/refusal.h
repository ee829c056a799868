/* What the operating system refused, in the line that a user reads: the error, and the limit that was reached, with
 * its value. */
#ifndef KEEL_BASE_REFUSAL_H
#define KEEL_BASE_REFUSAL_H

#include <keel/status.h>
#include <stddef.h>

enum { REFUSAL_MAX = 256 };

/* Keeps the error (an errno) for refusal_text. Any thread; the last one counts. */
void refusal_keep(int error);
static inline keel_status refusal_note(int error)
{
    refusal_keep(error);
    return KEEL_ERR_SYSTEM;
}
/* keel_status_text; of KEEL_ERR_SYSTEM with the error that was kept. Returns out. */
const char *refusal_text(keel_status status, char out[REFUSAL_MAX]);
/* strerror, and the limit: "File too large (ulimit -f is 64 KiB)". Returns out. */
const char *refusal_error(int error, char out[REFUSAL_MAX]);
/* The same of a request that locks memory, as RDMA devices need it. */
const char *refusal_locking(int error, char out[REFUSAL_MAX]);
#endif
