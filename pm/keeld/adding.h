/* A new node, which keelctl asks this agent to start: adding.c has its way. One at a time; others wait their turn. */
#ifndef KEEL_PM_KEELD_ADDING_H
#define KEEL_PM_KEELD_ADDING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct keeld;
struct keeld_guest;
struct keeld_adding;

struct keeld_addings {          /* adding.c alone touches it */
    struct keeld_adding *first; /* has its turn */
    uv_timer_t deadline;        /* of its step */
};

void keeld_adding_init(struct keeld *a);
/* MSG_ADD, from keelctl. */
void keeld_adding_ask(struct keeld *a, struct keeld_guest *g, const json_t *m);
/* The key of the ticket of that name; NULL: there is none. */
const uint8_t *keeld_adding_key(const struct keeld *a, uint64_t id);
/* A guest has come with that ticket. */
void keeld_adding_opened(struct keeld *a, struct keeld_guest *g);
/* What such a one says. */
void keeld_adding_frame(struct keeld *a, uint8_t type, const uint8_t *body, size_t len);
/* A guest is going: who asked, or who was to come. */
void keeld_adding_lost(struct keeld *a, const struct keeld_guest *g, const char *why);
/* MSG_NUMBER, from keelrun. */
void keeld_adding_number(struct keeld *a, const json_t *m);
/* What was to start the node has ended. */
void keeld_adding_launcher_ended(struct keeld *a, int node, const char *why);
/* A view has come. */
void keeld_adding_view(struct keeld *a);
/* keelrun, which was perhaps asked for the number, has ended. */
void keeld_adding_keelrun_gone(struct keeld *a);
/* Nobody is added any more. */
void keeld_adding_stop(struct keeld *a, const char *why);

/* The other end, of the node that is added. From MSG_START on keelrun is its keelrun, if there is one. */
void keeld_added_start(struct keeld *a);
/* A view has come. */
void keeld_added_view(struct keeld *a);
#endif
