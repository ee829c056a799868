/* What one source knows about broken cables: a small hash table, at most `max` entries; when it is full the entry heard
 * of longest ago makes room. Cables are named as in fabric.h. Paper: FT-routing, "Link Fault Information". */
#ifndef KEEL_TOPO_DETOUR_FAULTS_H
#define KEEL_TOPO_DETOUR_FAULTS_H
#include <stdbool.h>
#include <stdint.h>

struct detour_fault {
    int32_t cable;
    uint32_t count;    /* notifications since the entry was made */
    bool permanent;    /* count has reached the threshold */
    bool lasting;      /* out for long enough to be planned for */
    bool works;        /* the last thing heard is that a message came through */
    uint8_t told;      /* how often it has been passed on since that was heard, 255 at most */
    uint32_t doubts;   /* silences since a message came through */
    uint64_t last_ns;  /* time of the last thing heard of it; 0: nothing yet */
    uint64_t out_ns;   /* how long it had been out when it was last found broken */
    uint64_t found_ns; /* when somebody first found it broken, this time */
    uint64_t retry_ns; /* until then no message tries the cable (only where faults are forgotten by time) */
};

/* Entries lie densely, so that walking over them touches little memory; a hash table of their indices finds one. New
 * ones come last. */
struct detour_faults {
    struct detour_fault *entry; /* [used] roughly by age: removal puts the last one into the gap */
    int32_t *slot;              /* open addressing: index of an entry, or -1 */
    uint32_t mask;              /* slots - 1; slots is a power of two, 0 slots before the first entry */
    uint32_t used;
    uint32_t version; /* counts every change of the set or of an entry's permanence */
};

void detour_faults_fini(struct detour_faults *t);
/* NULL when nothing is known against the cable. Valid until the next add or remove. */
struct detour_fault *detour_faults_find(const struct detour_faults *t, int32_t cable);
/* Find or make an entry. returns NULL when memory is out. */
struct detour_fault *detour_faults_add(struct detour_faults *t, int32_t cable, uint32_t max);
/* Put an entry last, as if it were new. returns where it is now. */
struct detour_fault *detour_faults_renew(struct detour_faults *t, struct detour_fault *f);
/* A message came through at `seen`, after an outage of at least out_ns. */
void detour_faults_end(struct detour_fault *f, uint64_t out_ns, uint64_t seen);
/* returns whether there was one. */
bool detour_faults_remove(struct detour_faults *t, int32_t cable);
#endif
