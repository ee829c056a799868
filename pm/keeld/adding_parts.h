/* Of adding.c: adding_may.c says whether and where, adding_come.c has what passes with the agent that comes,
 * adding_meet.c tells the others. */
#ifndef KEEL_PM_KEELD_ADDING_PARTS_H
#define KEEL_PM_KEELD_ADDING_PARTS_H

#include "pm/keeld/keeld.h"
#include "pm/wire/dialogue.h"

enum {
    ADDING_MEET_MS = 10000, /* for all to hear of it */
    ADDING_JOIN_MS = 30000, /* from START to a view that has it */
    ADDING_USE = 2,         /* keelctl's exit code: it cannot be, as the job is */
};

enum adding_step { WAITS, ASKS, NUMBERED, LAUNCHES, BEGINS, MEETS, JOINS };

struct meeting;

struct keeld_adding {
    struct keeld *agent;
    struct keeld_adding *next;
    enum adding_step step;
    struct keeld_guest *asker; /* NULL: it has gone */
    char *host, *position;     /* as asked; NULL: not said */
    int tries;
    int node;          /* its number */
    int was, place;    /* 1 + the dead node that was there, 1 + the place of the grid; 0: none */
    long long console; /* by which keelrun knows it; -1: keelrun is gone */
    struct ticket *ticket;
    struct keeld_guest *newcomer;
    struct dialogue frames; /* with it */
    json_t *ready;
    struct meeting *meetings;
};

/* May it be, and where? was and place are set. returns   0; else keelctl's exit code, with a line. */
int adding_may_be(struct keeld_adding *n, char *why, size_t size);
/* Of the first one, which is ready: all that live hear of it. adding_met follows as each does. */
void adding_meet_all(struct keeld_adding *n);
/* Who lives, and has not heard; -1: nobody. */
int adding_deaf(const struct keeld_adding *n);
void adding_forget_meetings(struct keeld_adding *n);
/* MSG_MEET. */
json_t *adding_where(const struct keeld_adding *n);

/* adding.c: its next step, which may take so long. */
void adding_enter(struct keeld_adding *n, enum adding_step step, uint64_t limit_ms);
/* why: NULL, it is a member. */
void adding_end(struct keeld_adding *n, int code, const char *why);
/* Another one was born under its number. */
void adding_start_over(struct keeld_adding *n);
/* There is no keelrun that would have a say. */
bool adding_is_alone(const struct keeld_adding *n);
const char *adding_name(const struct keeld_adding *n);
/* One that has heard of it knows another node of that number, which was born: so will our view. */
void adding_taken(struct keeld_adding *n);
void adding_fail(struct keeld_adding *n, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* adding_come.c: once those that are to hear of it have. */
void adding_met(struct keeld_adding *n);
#endif
