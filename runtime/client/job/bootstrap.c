/* Two exchanges. In the first each process says on which machine it is and where a listener of its own is; of each
 * machine the first one's is used: it starts an agent with it, and the others come there, too, before the agent runs if
 * need be. When all of its node have come the agent opens memory and transport and says how it is reached; the
 * second exchange carries that, or what went wrong, and the job starts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sodium.h>

#include "runtime/base/fault.h"
#include "runtime/base/limits.h"
#include "runtime/client/job/bootstrap_int.h"

/* Second exchange. */
struct report {
    char wrong[256]; /* empty: nothing */
    struct bootstrap_ready ready;
};

/* What rank 0's card asks of the job, and where everybody is. */
static bool place(const struct bootstrap_card *cards, const struct keel_exchange *e, struct bootstrap_job *j,
                  int *rank_node, char *wrong, size_t size)
{
    for (int r = 0; r < e->size; r++)
        if (memcmp(cards[r].version, cards[0].version, sizeof cards[r].version) != 0) {
            snprintf(wrong, size, "rank %d runs version %.15s, rank 0 %.15s", r, cards[r].version, cards[0].version);
            return false;
        }
    j->nodes = bootstrap_place(cards[0].machine, (int)sizeof *cards, e->size, cards[0].nodes_wanted, rank_node);
    if (j->nodes < 0) {
        snprintf(wrong, size, "KEEL_NODES is for jobs on one host");
        return false;
    }
    if (j->nodes > LIMIT_NODES || e->size > LIMIT_RANKS) {
        snprintf(wrong, size, "%d ranks on %d nodes: a job has %d nodes and %d ranks at most", e->size, j->nodes,
                 LIMIT_NODES, LIMIT_RANKS);
        return false;
    }
    memcpy(j->version, cards[0].version, sizeof j->version);
    j->job = cards[0].job;
    memcpy(j->secret, cards[0].secret, sizeof j->secret);
    j->degrade = cards[0].degrade;
    if (cards[0].rails_wrong[0]) {
        snprintf(wrong, size, "%s: %s", RAILS_ENV, cards[0].rails_wrong);
        return false;
    }
    j->rails = cards[0].rails;
    j->range = cards[0].range;
    for (int r = 0; r < e->size && !j->range.bytes; r++)
        if (cards[r].watched)
            j->range = address_range_small();
    j->ranks = e->size;
    j->node = rank_node[e->rank];
    return true;
}

/* Hosts are kernels: containers of one have their own networks, and fail together. domain is to be freed. */
static bool place_copies(const struct bootstrap_card *cards, const struct keel_exchange *e, struct bootstrap_job *j,
                         const int *rank_node, int **domain, char *wrong, size_t size)
{
    size_t nodes = (size_t)j->nodes;
    struct copy_rule rule = {0};
    const char **host = calloc(nodes, sizeof *host);
    struct rack_names *racks = calloc(nodes, sizeof *racks);
    char(*kernel)[sizeof cards->machine] = calloc(nodes, sizeof *kernel);
    bool good = true, known = cards[0].copies_at != COPIES_AT_NEXT, memory = host && racks && kernel;
    *domain = calloc(nodes * DOMAIN_LEVELS_MAX, sizeof **domain);
    memory = memory && *domain;
    for (int r = e->size - 1; r >= 0 && memory; r--) { /* the first rank of each node counts */
        int node = rank_node[r];
        memcpy(kernel[node], cards[r].machine, sizeof *kernel);
        kernel[node][strcspn(kernel[node], "/")] = '\0';
        host[node] = kernel[node];
        racks[node] = cards[r].racks;
        if (cards[r].racks_wrong[0]) {
            snprintf(wrong, size, "rank %d: %s", r, cards[r].racks_wrong);
            good = false;
        }
    }
    if (!memory)
        snprintf(wrong, size, "no memory for %zu nodes", nodes);
    else if (good && known)
        good = racks_number(&rule, *domain, host, racks[0].levels ? racks : NULL, j->nodes, wrong, size);
    j->copies_at = cards[0].copies_at;
    j->levels = rule.levels;
    j->hosts_told = rule.hosts_told;
    free(host);
    free(racks);
    free(kernel);
    return memory && good;
}

static void program_name(char *out, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", out, size - 1);
    out[n > 0 ? n : 0] = '\0';
}

/* What a process finds out for itself; what is wrong with the cards all find. */
static void attend(const struct keel_exchange *e, const struct bootstrap_card *cards, int own_listener,
                   struct bootstrap_job *j, const int *rank_node, const int *domain, struct report *report,
                   int *channel, int *control)
{
    int first = 0;
    while (rank_node[first] != j->node)
        first++;
    if (first == e->rank) {
        program_name(j->program, sizeof j->program);
        if (!bootstrap_find_address(cards, j, e->rank, report->wrong, sizeof report->wrong))
            return;
        *channel = bootstrap_agent_start(own_listener, report->wrong, sizeof report->wrong);
        if (*channel < 0)
            return;
    }
    FAULT_POINT("join.coming");
    *control = bootstrap_come_to(cards[first].listener, e->rank);
    if (*control < 0)
        snprintf(report->wrong, sizeof report->wrong, "rank %d cannot reach the agent that rank %d starts", e->rank,
                 first);
    else if (first == e->rank && (!bootstrap_agent_describe(*channel, j, rank_node, domain) ||
                                  recv(*channel, &report->ready, sizeof report->ready, 0) != sizeof report->ready))
        snprintf(report->wrong, sizeof report->wrong, "the agent of node %d has ended", j->node);
    else if (report->ready.failed)
        snprintf(report->wrong, sizeof report->wrong, "%.250s", report->ready.text);
}

/* Everything between the two exchanges: fills the report, and what came of it. What is wrong is told now: when the
 * others know, the launcher may end us for one of them. */
static void begin(const struct keel_exchange *e, const struct bootstrap_card *cards, int own_listener, int *rank_node,
                  struct report *report, int *channel, int *control)
{
    struct bootstrap_job j = {0};
    int *domain = NULL;
    bool placed = place(cards, e, &j, rank_node, report->wrong, sizeof report->wrong) &&
                  place_copies(cards, e, &j, rank_node, &domain, report->wrong, sizeof report->wrong);
    if (placed) {
        fault_init(j.node, e->rank, 0);
        FAULT_POINT("join.placed");
        attend(e, cards, own_listener, &j, rank_node, domain, report, channel, control);
    }
    free(domain);
    if (report->wrong[0] && (placed || e->rank == 0))
        fprintf(stderr, "keel_init: %s\n", report->wrong);
    sodium_memzero(j.secret, sizeof j.secret);
    FAULT_POINT("join.reporting");
}

/* With the packets of all nodes the agent starts. */
static bool start(const struct report *reports, const int *rank_node, int ranks, int channel)
{
    int next = 0;
    for (int r = 0; r < ranks; r++)
        if (rank_node[r] == next) {
            next++;
            if (send(channel, &reports[r].ready, sizeof reports[r].ready, MSG_NOSIGNAL) != sizeof reports[r].ready)
                return false;
        }
    return true;
}

static keel_status exchange_reports(const struct keel_exchange *e, const struct report *mine, const int *rank_node,
                                    int channel)
{
    struct report *reports = calloc((size_t)e->size, sizeof *reports);
    keel_status status = reports && e->gather(e->user, mine, sizeof *mine, reports) == 0 ? KEEL_OK : KEEL_ERR_SYSTEM;
    for (int r = 0; r < e->size && status == KEEL_OK; r++)
        if (reports[r].wrong[0])
            status = KEEL_ERR_NOT_LAUNCHED;
    if (status == KEEL_OK && channel >= 0 && !start(reports, rank_node, e->size, channel))
        status = KEEL_ERR_AGENT_GONE;
    free(reports);
    return status;
}

keel_status bootstrap_job(const struct keel_exchange *e, int *control_fd)
{
    struct bootstrap_card card = {0}, *cards = calloc((size_t)e->size, sizeof *cards);
    struct report report = {0};
    int *rank_node = calloc((size_t)e->size, sizeof *rank_node);
    int listener = bootstrap_open_listener(card.listener, sizeof card.listener), channel = -1, control = -1;
    keel_status status = KEEL_ERR_SYSTEM;
    bootstrap_card_fill(&card, e->rank);
    struct bootstrap_coming *coming = bootstrap_coming_begin(e);
    bool come = cards && rank_node && e->gather(e->user, &card, sizeof card, cards) == 0;
    bootstrap_coming_end(coming, come);
    if (come) {
        begin(e, cards, listener, rank_node, &report, &channel, &control);
        status = exchange_reports(e, &report, rank_node, channel);
    }
    /* the agent has its own descriptors of both; without a start the end of the channel is its end */
    if (channel >= 0)
        close(channel);
    if (listener >= 0)
        close(listener);
    sodium_memzero(&card, sizeof card);
    if (cards)
        sodium_memzero(cards, (size_t)e->size * sizeof *cards);
    free(cards);
    free(rank_node);
    if (status != KEEL_OK && control >= 0) {
        close(control);
        control = -1;
    }
    *control_fd = control;
    return status;
}
