/* A part of a segment of a group, for others; all local. */
#ifndef KEEL_CLIENT_SEGMENT_SEGMENT_PART_H
#define KEEL_CLIENT_SEGMENT_SEGMENT_PART_H

#include <keel/keel.h>

struct client;

keel_status segment_describe(const struct keel_segment *s, int rank, keel_segment_part *out);
keel_status segment_attach_part(struct client *c, const keel_segment_part *part, struct keel_segment **out);
keel_status segment_detach(struct client *c, struct keel_segment *s);
#endif
