/* What replica_output.c keeps. Besides it only its test includes this. */
#ifndef KEEL_PM_RUN_REPLICA_OUTPUT_INT_H
#define KEEL_PM_RUN_REPLICA_OUTPUT_INT_H

#include "pm/run/replica_output.h"
#include "pm/wire/bytes.h"

struct stream {
    unsigned lives;                   /* bit s: what set s writes counts */
    unsigned joins;                   /* bit s: it will, when others have come to the place where it begins */
    struct bytes early[REPLICAS_MAX]; /* what those have written */
    uint64_t at[REPLICAS_MAX];        /* so far has each set come, */
    uint64_t shown;                   /* and what is shown */
    uint64_t base;                    /* the place of the first byte that is kept */
    struct bytes kept;                /* up to the place of who has come furthest */
    bool differs;                     /* that was told */
};

struct replica_output {
    const struct replica_map *map;
    struct replica_output_events events;
    struct stream *stream; /* [ranks][2] */
    unsigned retired;      /* bit s: set s is, also where the last bytes of a rank are its */
    size_t kept, kept_max;
};
#endif
