/* The memory of an agent's copies (struct agent_ops): memfds, which it passes to its node's ranks. */
#ifndef KEEL_PLANE_MEMORY_H
#define KEEL_PLANE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <keel/status.h>

/* What memory_fill may write before it looks again how much memory there is. */
struct memory_credit {
    uint64_t bytes;
};

keel_status memory_make(void *user, size_t bytes, void **base, int64_t *handle);
void memory_free(void *user, void *base, size_t bytes, int64_t handle);
/* Into untouched memory. KEEL_ERR_NOMEM: the kernel refuses it, or would end a process for it soon (room_bytes of
 * base/room.h). */
keel_status memory_fill(struct memory_credit *credit, int64_t handle, size_t offset, const void *from, size_t bytes);
/* The range reads as zeros, and takes no memory any more. */
void memory_empty(void *user, void *base, int64_t handle, size_t offset, size_t bytes);
/* Has any of it memory? What was never touched has none. */
bool memory_used(void *user, int64_t handle, size_t offset, size_t bytes);
#endif
