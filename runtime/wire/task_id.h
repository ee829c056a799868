/* A task's identity in every message and record (guarantee G4): pool, number and round. */
#ifndef KEEL_WIRE_TASK_ID_H
#define KEEL_WIRE_TASK_ID_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t task_id(uint32_t pool, uint32_t number)
{
    return (uint64_t)pool << 32 | number;
}
static inline uint32_t task_id_pool(uint64_t task)
{
    return (uint32_t)(task >> 32);
}

/* Rounds are counted modulo 2^32; two that are compared lie less than 2^31 apart. */
static inline bool task_round_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}
#endif
