/* The wrapper is put together, and what a program asks of the job. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/client/api/public_int.h"
#include "runtime/client/client.h"
#include "runtime/client/job/grid.h"
#include "runtime/client/replica/replica.h"

#define BELOW replica.below

keel_status replica_refuses(enum replica_call call)
{
    static bool said[REPLICA_CALLS];
    if (!said[call])
        log_warn("%s: not where the program has replicas", replica_call_name(call));
    said[call] = true;
    return KEEL_ERR_STATE;
}

/* ---- nodes ---- */

/* As the agents count them for the environment. Ranks stay where they began. */
static bool count_nodes(void)
{
    const struct page *page = replica.client->page;
    int natives = replica_map_natives(&replica.client->replicas);
    int *node = calloc((size_t)natives, sizeof *node);
    replica.node = malloc((size_t)replica.size * sizeof *replica.node);
    replica.native_node = malloc((size_t)replica.size * sizeof *replica.native_node);
    bool good = node && replica.node && replica.native_node;
    for (int r = 0; good && r < natives; r++)
        node[r] = (int)page_rank(page, r)->slot;
    if (good)
        replica_map_number(&replica.client->replicas, replica.set, node, replica.node);
    for (int r = 0; good && r < replica.size; r++) {
        replica.native_node[replica.node[r]] = node[replica_native_of(r)];
        if (replica.node[r] >= replica.nodes)
            replica.nodes = replica.node[r] + 1;
    }
    free(node);
    return good;
}

int replica_node_count(void)
{
    return replica.nodes;
}

int replica_rank_node(int rank)
{
    return rank >= 0 && rank < replica.size ? replica.node[rank] : -1;
}

/* Where partners act it lives as long as one of its replicas does. */
static bool lives(int rank)
{
    bool any = BELOW->rank_alive(replica_native_of(rank));
    for (int s = 0; replica.partners && s < replica.sets; s++)
        any = any || BELOW->rank_alive(replica_native(&replica.client->replicas, rank, s));
    return any;
}

bool replica_rank_alive(int rank)
{
    struct replica_answer a;
    if (rank < 0 || rank >= replica.size)
        return false;
    if (replica_decides(&a)) /* it may have ended */
        a = replica_tell((struct replica_answer){{lives(rank)}});
    return a.value[0];
}

static keel_status verdict_of(keel_status status, keel_verdict *verdict)
{
    (void)replica_tell((struct replica_answer){{status, verdict ? (int64_t)*verdict : 0}});
    return status;
}

static keel_status verdict_heard(const struct replica_answer *a, keel_verdict *verdict)
{
    if (verdict && a->value[0] == KEEL_OK)
        *verdict = (keel_verdict)a->value[1];
    return (keel_status)a->value[0];
}

keel_status replica_node_status(int node, int timeout_ms, keel_verdict *verdict)
{
    struct replica_answer a;
    if (node < 0 || node >= replica.nodes)
        return KEEL_ERR_ARG;
    if (!replica_decides(&a))
        return verdict_heard(&a, verdict);
    return verdict_of(BELOW->node_status(replica.native_node[node], timeout_ms, verdict), verdict);
}

keel_status replica_rank_status(int rank, int timeout_ms, keel_verdict *verdict)
{
    struct replica_answer a;
    if (!replica_decides(&a))
        return verdict_heard(&a, verdict);
    return verdict_of(BELOW->rank_status(replica_native_of(rank), timeout_ms, verdict), verdict);
}

/* ---- failures: a set is whole as long as the program sees it ---- */

keel_status replica_failures(uint64_t since_epoch, keel_failure *out, size_t max, size_t *count, uint64_t *epoch)
{
    if (!replica.client->ready)
        return KEEL_ERR_STATE;
    if (!count || (max && !out))
        return KEEL_ERR_ARG;
    *count = 0;
    if (epoch)
        *epoch = since_epoch > 1 ? since_epoch : 1;
    return KEEL_OK;
}

keel_status replica_on_failure(void (*callback)(const keel_failure *failure, void *arg), void *arg)
{
    (void)callback, (void)arg;
    return replica.client->ready ? KEEL_OK : KEEL_ERR_STATE;
}

uint64_t replica_view_epoch(void)
{
    return 1;
}

keel_status replica_links(keel_link *out, size_t max, size_t *count)
{
    (void)out, (void)max, (void)count;
    return replica_refuses(CALL_links);
}

/* ---- the grid of nodes is that of all sets: a set's ranks have a grid, its nodes have none ---- */

keel_status replica_grid_make(int dims, const int64_t *extent, keel_grid *grid)
{
    return grid_make_plain(replica.size, dims == 0 && !extent ? 2 : dims, extent, grid);
}

int replica_grid_place(int rank, int *coords)
{
    (void)rank, (void)coords;
    return 0;
}

int replica_grid_distance(int a, int b)
{
    (void)a, (void)b;
    return -1;
}

/* ---- moves: a rank does not go on elsewhere ---- */

bool replica_move_pending(void)
{
    return false;
}

keel_status replica_move(void)
{
    return KEEL_ERR_STATE;
}

/* ---- the job ---- */

keel_status replica_finalize(void)
{
    keel_status status = replica_after(BELOW->fence_all()), met = replica_meet(CALL_finalize);
    met = met == KEEL_OK ? replica_leaves() : met;
    if (status != KEEL_OK || met != KEEL_OK)
        return status != KEEL_OK ? status : met;
    replica.ended = true;
    return BELOW->finalize();
}

/* Who comes to an end without keel_finalize where the others go on has parted from them. Who ends with another code
 * breaks its set by that, and the child of a fork is no rank. */
void replica_ends(int code)
{
    if (code != 0 || replica.ended || getpid() != replica.pid)
        return;
    replica.ended = true;
    if (replica_meet(CALL_finalize) == KEEL_OK)
        (void)replica_leaves();
}

static void compare_at_exit(int code, void *unused)
{
    (void)unused;
    replica_ends(code);
}

uint64_t replica_collective_count(void)
{
    return replica.collectives;
}

keel_status replica_resume(uint64_t *collectives)
{
    keel_status status = BELOW->resume(NULL);
    if (collectives)
        *collectives = replica.collectives;
    return status;
}

/* ---- its start ---- */

static struct api_calls wrapped;

static void fill_in(const struct api_calls *below)
{
    wrapped = *below;
#define OWN(name, what) wrapped.name = replica_##name;
#define PASSED(name, why)
#include "runtime/client/replica/rows.inc"
#undef OWN
#undef PASSED
}

static keel_status make_groups(void)
{
    int *natives = malloc((size_t)replica.size * sizeof *natives);
    if (!natives)
        return KEEL_ERR_NOMEM;
    for (int r = 0; r < replica.size; r++)
        natives[r] = replica_native_of(r);
    keel_status status = BELOW->group_create(natives, replica.size, 0, &replica.group);
    free(natives);
    if (status == KEEL_OK)
        status = BELOW->group_split(replica.group, replica.node[replica.rank], replica.rank, &replica.on_node);
    if (status == KEEL_OK)
        public_groups_are(replica.group, replica.on_node);
    return status;
}

/* Lines of the library are a part of what the program writes, which is compared. */
static void speaks_as(int rank)
{
    char who[32];
    snprintf(who, sizeof who, "rank %d", rank);
    log_init(who);
    log_without_time();
}

/* A set that is coming compares with nobody until it joins, nor does anybody with it (docs/adr/0198). */
static void find_replicas(const struct client *c)
{
    bool is_guest = c->incarnation && atomic_load_explicit(&c->page->set[replica.set], memory_order_acquire);
    replica.guest = is_guest ? c->incarnation : 0;
    for (int s = 0; s < replica.sets; s++) {
        const struct page_rank *k = page_rank(c->page, replica_native(&c->replicas, replica.rank, s));
        uint32_t is = atomic_load_explicit(&c->page->set[s], memory_order_acquire);
        replica.life[s] = (uint32_t)atomic_load_explicit(&k->where, memory_order_acquire);
        replica.gone[s] = s != replica.set && (is_guest || (is && is != PAGE_SET_OVER));
    }
}

keel_status replica_begin(struct client *c)
{
    if (!replica_map_is_used(&c->replicas))
        return KEEL_OK;
    struct replica me = replica_of(&c->replicas, c->rank);
    speaks_as(me.rank);
    replica.client = c;
    replica.below = calls_now();
    replica.rank = me.rank;
    replica.set = me.set;
    replica.size = c->replicas.ranks;
    replica.sets = c->replicas.replicas;
    find_replicas(c);
    replica.check = (enum replica_check)c->page->check;
    replica.on_mismatch = (enum replica_mismatch)c->page->on_mismatch;
    replica.copies = (enum replica_share)c->page->set_copies;
    replica.partners = c->page->on_death == DEATH_PARTNER && replica.check != CHECK_NONE;
    check_init(&replica.ops, replica.ring, REPLICA_RING);
    replica_partners_begin();
    if (!count_nodes())
        return KEEL_ERR_NOMEM;
    keel_status status = make_groups();
    if (status == KEEL_OK)
        status = replica_acting_begin();
    if (status != KEEL_OK) {
        replica_binds(); /* perhaps a member has died before it could act */
        return replica_after(status);
    }
    fill_in(replica.below);
    replica.pid = getpid();
    if (on_exit(compare_at_exit, NULL) != 0)
        return KEEL_ERR_NOMEM;
    c->lasts = replica_lasts;
    (void)calls_wrap(&wrapped);
    replica_world_begin();
    return KEEL_OK;
}
