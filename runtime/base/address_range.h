/* Addresses that each process of a job keeps free for the parts of segments: the same in all of them, so one word of
 * the job's settings. */
#ifndef KEEL_BASE_ADDRESS_RANGE_H
#define KEEL_BASE_ADDRESS_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct address_range {
    uint64_t base, bytes; /* bytes 0: what is usual */
};

#define ADDRESS_RANGE_ENV "KEEL_ADDRESS_RANGE"
#define ADDRESS_RANGE_FORM "small, or BASE,BYTES in whole megabytes such as 0x400000000,32G"

/* "small", or BASE,BYTES: numbers as in C, the bytes also with K, M, G or T behind. */
bool address_range_parse(const char *text, struct address_range *out);
/* 32 GiB, low enough for a tool that keeps an account of each piece of a process's memory, also of what is only kept
 * free. */
struct address_range address_range_small(void);
/* Does such a command line say that valgrind runs the program? It cannot hold the usual range. */
bool address_range_will_be_watched(char *const *argv);
#endif
