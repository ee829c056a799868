/* The runtime's own segment. It has three copies (KEEL_REDUNDANCY_TRIPLE): a program whose data survive two nodes
 * also allocates for groups after they have died. */
#ifndef KEEL_WIRE_SYSTEM_H
#define KEEL_WIRE_SYSTEM_H

enum {
    SYSTEM_SEGMENT = 0,
    SYSTEM_COUNTER_AT = 0, /* in rank 0's part: how many numbers were drawn for segments of groups */
    SYSTEM_SEGMENT_BYTES = 64,
};
#endif
