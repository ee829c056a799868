/* Which hosts fail together, as a user tells it: by a file, or by the hosts' names. Nothing is read or asked but the
 * arguments.
 *
 *   file         HOSTS RACK [SWITCH ...]   a line each; HOSTS as in n07,node[01-16]; RACK is what they share, SWITCH
 *                what
 *                racks share, from the nearest on, as many in each line; # begins a comment
 *   expression   a POSIX extended regular expression; a host's rack is what its first group matches, or all of it
 *                without a group */
#ifndef KEEL_BASE_RACKS_H
#define KEEL_BASE_RACKS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/job_settings.h"

enum { RACK_LEVELS_MAX = DOMAIN_LEVELS_MAX - 1, RACK_NAME_MAX = 32 };

/* Of one host. */
struct rack_names {
    int levels; /* 0: nothing is known */
    char name[RACK_LEVELS_MAX][RACK_NAME_MAX];
};

/* False, and why with the line: the text is wrong, or has not the host. Hosts match by their whole names, or, where one
 * has no dot, by what stands before the other's. */
bool racks_find(const char *text, const char *host, struct rack_names *out, char *why, size_t size);
bool racks_match(const char *expression, const char *host, struct rack_names *out, char *why, size_t size);

/* The domains of n nodes (spares last): hosts with the same text are one host; racks may be NULL. domain has room for
 * DOMAIN_LEVELS_MAX * n numbers. Levels that tell nobody apart are left out. False: nodes contradict each other, or one
 * rack has all. */
bool racks_number(struct copy_rule *rule, int *domain, const char *const *host, const struct rack_names *racks, int n,
                  char *why, size_t size);

/* What the domains of a level are called, from 1 on: host, rack, switch. */
const char *racks_level_name(const struct copy_rule *rule, int level);
#endif
