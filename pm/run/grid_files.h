/* Files about a grid: where hosts stand on it, and a user's plans for failures. Pure. # begins a comment.
 *
 *   positions   HOST X Y ...            a line for each host
 *   plans       PLACE: FROM>TO ...      what moves when the node of that place dies, in this order; places are numbers
 *                                       or hosts */
#ifndef KEEL_PM_GRID_FILES_H
#define KEEL_PM_GRID_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* Whom a word names. */
struct grid_names {
    const char *const *host; /* [hosts], NULL: there are none */
    int hosts;
    int places;
    const int *place_of; /* [hosts]; NULL: host i has place i */
};

/* place_of[hosts] becomes where they stand on a grid of these sides. False: why says what is wrong, and where. */
bool grid_positions_parse(const struct grid_names *names, int dims, const int *size, const char *text, int *place_of,
                          char *why, size_t len);
/* The sides of the smallest grid that has all positions of the file: as many dimensions as its first line has
 * coordinates, most at most, and limit places. False: why says what is wrong, and where. */
bool grid_positions_extents(const char *text, int most, int limit, int *dims, int *size, char *why, size_t len);
/* *words becomes what grid_choice has, for free(); *count of them. */
bool grid_plans_parse(const struct grid_names *names, const char *text, int **words, int *count, char *why, size_t len);
/* The place that the word names; -1: none. */
int grid_place_of(const struct grid_names *names, const char *word);
#endif
