/* Segments of a group: collective over it; bytes [members]; the other ranks have parts of no bytes. */
#ifndef KEEL_CLIENT_SEGMENT_SEGMENT_GROUP_H
#define KEEL_CLIENT_SEGMENT_SEGMENT_GROUP_H

#include <stddef.h>

#include <keel/keel.h>

struct client;

keel_status segment_alloc_group(struct keel_group *g, const size_t *bytes, keel_redundancy redundancy,
                                keel_segment **out);
keel_status segment_free_group(struct client *c, struct keel_segment *segment);
#endif
