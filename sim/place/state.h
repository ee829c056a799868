/* State files: what a later run goes on from. A first line names the study, a last one has a sum over all before it, so
 * that one of another study is told from a damaged one. The file is replaced as a whole: whatever ends the program, the
 * state before or the new one is there. */
#ifndef KEEL_SIM_PLACE_STATE_H
#define KEEL_SIM_PLACE_STATE_H
#include <stdbool.h>
#include <stdio.h>

struct state {
    FILE *f; /* to write to, or to read from behind the first line */
    char *text;
    size_t len;
};

/* Each returns   NULL, or what is wrong (constant text). */
const char *state_begin(struct state *s, const char *name);
/* Ends it in any case. ok: everything was written to s->f. */
const char *state_save(struct state *s, const char *path, bool ok);
/* To be ended with state_close, also after an error. */
const char *state_open(struct state *s, const char *path, const char *name);
void state_close(struct state *s);

/* What state_open returns when the study is another one, or something in the file has changed. */
extern const char *const state_of_another, *const state_damaged;
#endif
