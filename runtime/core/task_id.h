/* A task's identity in every message and record: pool, round and number (guarantee G4). */
#ifndef KEEL_CORE_TASK_ID_H
#define KEEL_CORE_TASK_ID_H

#include <stdint.h>

static inline uint64_t task_id(uint32_t pool, uint32_t round, uint32_t number)
{
    return (uint64_t)(pool & 0xfff) << 52 | (uint64_t)(round & 0xfffff) << 32 | number;
}
static inline uint32_t task_id_pool(uint64_t task)
{
    return (uint32_t)(task >> 52);
}
static inline uint32_t task_id_round(uint64_t task)
{
    return (uint32_t)(task >> 32) & 0xfffff;
}
#endif
