/* Two teams, the even ranks and the odd ones, add up in rounds, each team for itself. When one of a team dies the
 * others of it, and nobody else, make a new group and go on. survivors ROUNDS: so many rounds after the first loss
 * of each team. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

static const keel_combine sum_of = {.type = KEEL_INT64, .op = KEEL_SUM};

/* Adds up the ranks of the team. list, *n: whom the sum covers, the same at all who get it. */
static int64_t add_up(keel_group *team, int *list, int *n)
{
    int64_t mine = keel_rank(), sum = 0;
    keel_request *request;
    keel_covered *covered;
    check(keel_group_allreduce_begin(team, &mine, &sum, 1, &sum_of, &request), "allreduce");
    check(keel_request_wait(request, &covered), "wait");
    *n = 0;
    for (int m = 0; m < keel_group_size(team); m++)
        if (keel_covered_has(covered, m))
            list[(*n)++] = keel_group_to_world(team, m);
    keel_covered_free(covered);
    return sum;
}

static void say(const char *name, const int *list, int n, int64_t sum)
{
    if (list[0] == keel_rank()) /* the first of those who live speaks */
        printf("%s: %d ranks, sum %lld\n", name, n, (long long)sum);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    check(keel_init(), "init");
    int left = argc > 1 ? atoi(argv[1]) : 100, n = 0, lost = 0;
    int *list = calloc((size_t)keel_size(), sizeof *list);
    const char *name = keel_rank() % 2 ? "odd" : "even";
    for (int r = keel_rank() % 2; r < keel_size(); r += 2)
        list[n++] = r;
    keel_group *team, *old;
    check(keel_group_create(list, n, 0, &team), "create");
    say(name, list, n, add_up(team, list, &n));
    keel_event("begun", keel_rank(), NULL);
    for (uint64_t round = 1; left > 0; round++) {
        int64_t sum = add_up(team, list, &n);
        if (n < keel_group_size(team)) { /* all of the team who live see this in the same round, with the same list */
            lost = 1;
            old = team;
            check(keel_group_create(list, n, round, &team), "create");
            check(keel_group_free(old), "free");
            say(name, list, n, sum);
        }
        left -= lost;
    }
    say(name, list, n, add_up(team, list, &n));
    check(keel_group_free(team), "free");
    free(list);
    return keel_finalize() == KEEL_OK ? 0 : 1;
}
