/* The runtime's own segment. It has three copies (KEEL_REDUNDANCY_TRIPLE): a program whose data survive two nodes
 * also allocates for groups after they have died. */
#ifndef KEEL_WIRE_SYSTEM_H
#define KEEL_WIRE_SYSTEM_H

enum {
    SYSTEM_SEGMENT = 0,
    SYSTEM_COUNTER_AT = 0, /* in rank 0's part: how many numbers were drawn for segments of groups */
    /* in each rank's part: what of all live ranks was complete there (complete.h), where few nodes run ranks
     * (client/group/witness.h) */
    SYSTEM_COMPLETE_AT = 8,
    SYSTEM_SEGMENT_BYTES = 64,
};
#endif
