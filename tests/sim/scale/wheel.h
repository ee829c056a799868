/* Events in the order of their times, for very many: a wheel of short slots for what is near, a heap for the rest.
 * Events of one slot come in the order in which they were added, so time goes on in steps of WHEEL_SLOT_NS. */
#ifndef KEEL_TESTS_SIM_SCALE_WHEEL_H
#define KEEL_TESTS_SIM_SCALE_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

enum { WHEEL_INLINE = 48, WHEEL_SLOT_NS = 8192 };

struct occurrence {
    uint64_t t, value;
    int node, from;
    uint32_t next; /* the wheel's */
    uint16_t len;
    uint8_t kind, has_turn; /* has_turn: waits for the processor has_turn - 1 */
    uint8_t near[WHEEL_INLINE];
    uint8_t *far; /* longer bytes; freed by whoever takes it out */
};

struct wheel;
struct wheel *wheel_create(uint64_t now);
void wheel_destroy(struct wheel *w);
/* Valid until the next call. t may not be in the past; it is moved up to now if it is. */
struct occurrence *wheel_add(struct wheel *w, uint64_t t);
/* False: none until `end`. */
bool wheel_take(struct wheel *w, uint64_t end, struct occurrence *out);
#endif
