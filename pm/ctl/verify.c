/* keelctl verify: are all copies of the job's data equal? */
#include "pm/ctl/ask.h"
#include "pm/ctl/job_status.h"
#include "pm/ctl/verb.h"
#include "pm/wire/message.h"
#include "pm/wire/quit.h"
#include "runtime/base/plural.h"

#include <stdio.h>
#include <string.h>

enum { VERIFY_MS = 600000, EXIT_DIFFER = 3, EXIT_BUSY = 4 };

static void tell_verdict(const json_t *v, const char *result)
{
    char where[200] = "";
    if (json_object_get(v, "rank"))
        snprintf(where, sizeof where, "segment %lld, rank %lld's part, offset %lld (slot %lld)", int_of(v, "segment"),
                 int_of(v, "rank"), int_of(v, "offset"), int_of(v, "slot"));
    else if (json_object_get(v, "segment"))
        snprintf(where, sizeof where, "segment %lld, slot %lld, offset %lld", int_of(v, "segment"), int_of(v, "slot"),
                 int_of(v, "slot_offset"));
    if (strcmp(result, "equal") == 0) {
        printf("all copies are equal: %lld %s compared", int_of(v, "bytes"),
               plural(int_of(v, "bytes"), "byte", "bytes"));
        if (int_of(v, "single"))
            printf("; %lld parts have one copy only", int_of(v, "single"));
        putchar('\n');
    } else if (strcmp(result, "differs") == 0) {
        const json_t *copies = json_object_get(v, "copies"), *a = json_array_get(copies, 0),
                     *b = json_array_get(copies, 1);
        printf("copies differ: %s: node %lld has %02llx, node %lld %02llx\n", where, int_of(a, "node"),
               int_of(a, "byte"), int_of(b, "node"), int_of(b, "byte"));
    } else if (strcmp(result, "busy") == 0) {
        printf(
            "not comparable: being written, made equal, or a node does not answer; the first of %lld blocks is in %s\n",
            int_of(v, "busy"), where);
    } else {
        pm_quit(1, "the agent says: %s", result);
    }
}

/* One agent asks the others; any that answers will do. */
int verb_verify(const struct job_agents *job, const struct request *r)
{
    json_t *verdict = NULL;
    for (int i = 0; i < job->count && !verdict; i++) {
        json_t *status = ask_status(job->agents[i].fd);
        if (status && strcmp(text_of(status, "state"), "running") == 0)
            verdict = ask_for(job->agents[i].fd, MSG_VERIFY, MSG_VERIFIED, VERIFY_MS);
        json_decref(status);
    }
    if (!verdict)
        pm_quit(1, "no node of the job answers");
    const char *result = text_of(verdict, "result");
    int code = strcmp(result, "equal") == 0     ? 0
               : strcmp(result, "differs") == 0 ? EXIT_DIFFER
               : strcmp(result, "busy") == 0    ? EXIT_BUSY
                                                : 1;
    if (r->json) {
        show_json(verdict);
    } else {
        tell_verdict(verdict, result);
    }
    json_decref(verdict);
    return code;
}
