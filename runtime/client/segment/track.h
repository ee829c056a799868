/* What libkeel's other files tell track.c. */
#ifndef KEEL_CLIENT_SEGMENT_TRACK_H
#define KEEL_CLIENT_SEGMENT_TRACK_H

#include "runtime/client/client.h"

/* The segment is about to be unmapped (client_env.leaving); one that is not tracked is allowed. */
void track_forget(void *user, const keel_segment *segment);
/* Has this process stored nothing into tracked segments that it has not brought to the other copies? */
bool track_is_clean(void);
/* The system is about to write there, which raises no signal: it may if it is tracked memory. */
void track_touch(const void *dst, size_t len);
#endif
