/* Broken links between nodes that live: what each end says of them. */
#ifndef KEEL_DETECT_LINKMAP_H
#define KEEL_DETECT_LINKMAP_H

#include "detect/datagram.h"

/* What one end says of a link. works_since and breaks are of our own words only. */
enum { LINK_WORDS_MAX = MEMBER_LINKS_MAX };
struct link_word {
    int says, about;
    bool broken;
    uint64_t version; /* counted by who says it */
    uint64_t since;
    int breaks; /* how often it broke, up to a bound */
    uint64_t works_since;
    uint64_t tell_at; /* again, though nothing changed */
    int tells_left;   /* so often; an own broken one is told as long as it is broken */
};

struct linkmap {
    struct link_word *words;
    int n, cap;
};

void linkmap_broken(struct member *m, int node);
void linkmap_works(struct member *m, int node);
void linkmap_doubted(struct member *m, int node);
bool linkmap_is_tried(struct member *m, int node);
void linkmap_receive(struct member *m, const struct datagram *msg);
void linkmap_forget(struct member *m, int node);
void linkmap_tick(struct member *m);
uint64_t linkmap_deadline(const struct member *m);
#endif
