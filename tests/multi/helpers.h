/* What the nodes of the test of helper threads tell the test, and their processes. */
#ifndef KEEL_TESTS_MULTI_HELPERS_H
#define KEEL_TESTS_MULTI_HELPERS_H

#include "detect/helper_internal.h"
#include "runtime/base/clock.h"

enum { NODES = 4, LOAD = 8 };
#define MS KEEL_NS_PER_MS

struct note {
    int node; /* who says it */
    enum { NOTE_BLOB, NOTE_COMMIT, NOTE_SUSPECT, NOTE_VERDICT, NOTE_HALT, NOTE_STATS } kind;
    int about; /* node declared dead, or suspected */
    enum member_evidence evidence;
    uint64_t epoch, t;
    double cpu;
    struct helper_counters counters;
    struct helper_blob blob;
};

extern int notes[2]; /* a pipe from all nodes */
extern int dark_ms;  /* 0: the default */

/* The process of a node: orders come from the descriptor. Does not return. */
_Noreturn void node_main(int node, int from);
/* As KEEL_HELPERS_PROBE says. */
enum probe_choice wanted_probe(void);
/* The format with the node's number, as the environment gives it. */
void fill_in(char *out, size_t size, const char *format, int node);
#endif
