/* The public calls on requests and on lists of members, and how a call on a group begins. */
#include <stdlib.h>

#include "collectives/group.h"
#include "runtime/client/api/calls.h"
#include "runtime/client/api/living.h"
#include "runtime/client/api/public_int.h"
#include "runtime/client/job/process.h"
#include "runtime/client/progress.h"

keel_status public_wrong(void)
{
    return process_client.ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
}

/* Requests and lists of members are numbers to the program (living.h). */

static keel_status end_of(keel_request *number, keel_covered **covered, bool waits)
{
    keel_covered *list = NULL;
    keel_request *r = living_find(number, LIVING_REQUEST);
    bool left = !process_client.ready;
    if (covered)
        *covered = NULL;
    if (!r)
        return public_wrong();
    keel_covered **wanted = covered && !left ? &list : NULL;
    keel_status status = waits ? coll_wait(r, wanted, NULL) : coll_test(r, wanted);
    if (status == KEEL_IN_PROGRESS)
        return status;
    if (list) {
        living_become(number, LIVING_COVERED, list);
        *covered = (keel_covered *)(void *)number;
    } else {
        living_give_back(number);
    }
    return left ? KEEL_ERR_STATE : status;
}

keel_status call_request_test(keel_request *request, keel_covered **covered)
{
    return end_of(request, covered, false);
}

keel_status call_request_wait(keel_request *request, keel_covered **covered)
{
    return end_of(request, covered, true);
}

bool call_covered_has(const keel_covered *covered, int member)
{
    const keel_covered *list = living_find(covered, LIVING_COVERED);
    return list && member >= 0 && member < roster_size(list->roster) && roster_has(list->roster, member);
}

int call_covered_count(const keel_covered *covered)
{
    const keel_covered *list = living_find(covered, LIVING_COVERED);
    return list ? roster_live(list->roster) : 0;
}

void call_covered_free(keel_covered *covered)
{
    keel_covered *list = living_find(covered, LIVING_COVERED);
    if (!list)
        return;
    living_give_back(covered);
    client_lock(list->client);
    roster_unref(list->roster);
    pthread_mutex_unlock(&list->client->lock);
    free(list);
}

keel_status public_request_start(keel_group *g, const struct engine_call *call, size_t *blocks, keel_request **request)
{
    keel_status status;
    if (!request) {
        status = coll_run(g, call, NULL);
        free(blocks);
        return status;
    }
    keel_request *number = living_take(LIVING_REQUEST), *r;
    if (!number) {
        free(blocks);
        return KEEL_ERR_LIMIT;
    }
    status = coll_call(g, call, blocks, &r);
    living_set(number, r);
    if (status == KEEL_OK)
        *request = number;
    else
        living_give_back(number);
    return status;
}

keel_status public_request_begin(keel_group *g, const struct engine_call *call, keel_request **request)
{
    if (request)
        *request = NULL;
    if (!g)
        return public_wrong();
    return public_request_start(g, call, NULL, request);
}
