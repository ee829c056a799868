/* Lists of hosts, as users and batch systems write them. Pure.
 *
 *   list       a,b:4,user@c,node[1-4,07],[fd00::2]:8     as --hosts of MPICH and Open MPI and Slurm's node lists have
 *              it
 *   file       one such a line, and behind it slots=N, max_slots=N, user=NAME; # begins a comment
 *   slots      how many ranks a host takes: :N, slots=N, or how often it is named; a host without has one, if any has
 *              them
 *
 * A host is one node, however often it is named. */
#ifndef KEEL_PM_HOSTS_H
#define KEEL_PM_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

enum { HOSTS_SLOTS_MAX = 1 << 20 };

struct host_list {
    char **names;   /* for the launcher: with user@ if that was said, IPv6 addresses without brackets */
    int *slots;     /* of each: how often it was named, or the sum of what was said */
    int *most;      /* ... of ranks that it may have; 0: no limit */
    unsigned *sums; /* of the first `summed` names, by which equal ones are found; theirs who reads */
    int count, summed;
    bool slots_said; /* by anybody, for any host */
};

/* They append. False: why says what is wrong, and where. */
bool hosts_parse_list(struct host_list *hosts, const char *text, char *why, size_t size);
bool hosts_parse_file(struct host_list *hosts, const char *text, char *why, size_t size);
/* Slurm's node list and its tasks for each node, as in 4(x2),1; tasks may be NULL. */
bool hosts_parse_slurm(struct host_list *hosts, const char *nodes, const char *tasks, char *why, size_t size);
/* Names between white space, each as often as it has slots (LSF). */
bool hosts_parse_words(struct host_list *hosts, const char *text, char *why, size_t size);
/* Grid Engine's file: name, slots, and more, a line. */
bool hosts_parse_sge(struct host_list *hosts, const char *text, char *why, size_t size);
void hosts_free(struct host_list *hosts);
/* Without those at from and behind it that are before to. */
void hosts_drop(struct host_list *hosts, int from, int to);

/* Of the first `nodes` hosts: ranks in blocks, each host as many as it has slots; what is left after a round is given
 * out in further ones, up to `most`. Returns how many hosts have ranks, 0 if there is no room. rank_node has room
 * for ranks entries. */
int hosts_layout(const struct host_list *hosts, int nodes, int ranks, int *rank_node);
/* All slots of the first `nodes` hosts. */
int hosts_slots(const struct host_list *hosts, int nodes);

/* The name without the user. */
const char *host_address(const char *name);
#endif
