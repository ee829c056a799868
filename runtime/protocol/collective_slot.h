/* What a rank contributes to one collective, in the runtime's own segment (number 0). Each rank's part holds two of them,
 * used in turn by even and odd barrier instances, so that all have read a value before it is overwritten. The head is
 * written last and tells whether the rank contributed before it died: the same answer for everybody. */
#ifndef KEEL_CORE_COLLECTIVE_SLOT_H
#define KEEL_CORE_COLLECTIVE_SLOT_H

#include <stdint.h>

enum { COLLECTIVE_BYTES_MAX = 64 * 1024 };

struct collective_head {
    uint64_t tag; /* the barrier instance that this contribution belongs to */
    uint32_t kind;
    uint32_t len;
};

struct collective_slot {
    struct collective_head head;
    uint8_t pad[48];
    uint8_t data[COLLECTIVE_BYTES_MAX];
};

/* It has three copies (KEEL_REDUNDANCY_TRIPLE): a program whose data survive two nodes also allocates after they have died. */
enum { SYSTEM_SEGMENT = 0 };
/* Behind them in rank 0's part: how many numbers were drawn for segments of groups. */
#define SYSTEM_COUNTER_AT (2 * sizeof(struct collective_slot))
#define SYSTEM_SEGMENT_BYTES (SYSTEM_COUNTER_AT + 64)
#endif
