/* keel_update_begin and keel_update_end on an instance. Not under the lock. */
#ifndef KEEL_CLIENT_SEGMENT_UPDATE_H
#define KEEL_CLIENT_SEGMENT_UPDATE_H

#include <stddef.h>
#include <stdint.h>

#include <keel/keel.h>

struct client;

keel_status update_begin(struct client *c, keel_segment *s, size_t offset, size_t len, uint8_t **address);
keel_status update_end(struct client *c, keel_segment *s, size_t offset, size_t len);
#endif
