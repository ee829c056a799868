/* The memory of simulated processes. Everything that code of the runtime allocates while it runs on a process's fiber
 * belongs to that process: it is given back when the process is dead (a killed process frees nothing itself), it is
 * counted, and it can be made to fail. Works by the linker's --wrap of malloc and its kin, so that the code under test
 * is the code that ships. */
#ifndef KEEL_TESTS_SIM_DATA_HEAP_H
#define KEEL_TESTS_SIM_DATA_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_block;

struct heap {
    struct heap_block *first;
    uint64_t blocks;      /* living */
    uint64_t allocations; /* made, from the start on */
    uint64_t fail_at;     /* this one fails (counted from 1), 0: none */
    uint64_t fail_more;   /* and so many behind it */
};

/* Allocations from now on belong to it; NULL: to the simulator itself. Returns who was before. */
struct heap *heap_enter(struct heap *h);
/* Give everything back. */
void heap_drop(struct heap *h);
#endif
