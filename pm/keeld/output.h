/* Output of the node, its ranks' and our own, on its way to keelrun and to who watches. */
#ifndef KEEL_PM_KEELD_OUTPUT_H
#define KEEL_PM_KEELD_OUTPUT_H

#include "pm/keeld/backlog.h"
#include "pm/keeld/lines.h"

#include <stdbool.h>
#include <uv.h>

struct keeld;

struct keeld_output {
    long long window[2]; /* what may still be sent of standard output and error */
    uv_pipe_t log_pipe;  /* our own standard error, once we run */
    struct lines log_lines;
    struct backlog backlog; /* what was said last, for keelctl attach */
};

void keeld_output_init(struct keeld *a);
/* stream is 1 or 2 here, as in MSG_OUTPUT; 0 or 1 below. */
void keeld_output(struct keeld *a, int rank, int stream, const uint8_t *lines, size_t len);
/* Nothing of that stream may be sent now. */
bool keeld_output_closed(const struct keeld *a, int stream);
void keeld_output_widen(struct keeld *a, int window);
/* MSG_TAKEN */
void keeld_output_taken(struct keeld *a, const uint8_t *body, size_t len);
/* Whether output waits for keelrun has changed: what may be read is read. */
void keeld_output_free(struct keeld *a);
/* From now on our standard error goes where the ranks' output goes, no more to the stub under Hydra's proxy. */
void keeld_log_capture(struct keeld *a);
/* What we have said and not read back yet. */
void keeld_log_drain(struct keeld *a);
#endif
