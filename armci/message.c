/* Messages and collectives, the latter on Keel's groups. Scopes: all processes, those of this node, the first of
 * each node. */
#include <stdlib.h>
#include <string.h>

#include "armci/armci_int.h"

/* The members of SCOPE_MASTERS: each node's first. NULL: this process is none. Made when first needed, by its
 * members only. */
static keel_group *masters;

static bool is_master(int proc)
{
    return armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, armci_domain_id(ARMCI_DOMAIN_SMP, proc), 0) == proc;
}

static keel_group *masters_group(void)
{
    if (masters || !is_master(keel_rank()))
        return masters;
    int n = armci_domain_count(ARMCI_DOMAIN_SMP), *ranks = malloc((size_t)n * sizeof *ranks);
    if (!ranks)
        armci_end("SCOPE_MASTERS", keel_rank(), "out of memory");
    for (int i = 0; i < n; i++)
        ranks[i] = armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, i, 0);
    masters = armci_make_group(ranks, n, 1, "SCOPE_MASTERS");
    free(ranks);
    return masters;
}

/* ---- messages: Keel's, of a tag that is ARMCI's and one more bit, so that they are not those that the program
 * sends by itself ---- */

enum { TAG_BIT = 0x40000000 };

static keel_segment *notes; /* of each process: how many notifications have come from whom */
static int64_t *notified;   /* [processes] how many of its were waited for, */
static int64_t *sent;       /* [processes] and how many were sent to it */

void armci_messages_init(void)
{
    masters = NULL;
    notified = calloc(2 * (size_t)keel_size(), sizeof *notified);
    sent = notified ? notified + keel_size() : NULL;
    armci_check(notified ? keel_segment_alloc((size_t)keel_size() * sizeof *notified, KEEL_REDUNDANCY_SHADOW, &notes)
                         : KEEL_ERR_NOMEM,
                "ARMCI_Init", keel_rank());
}

void armci_messages_fini(void)
{
    (void)keel_segment_free(notes);
    free(notified);
    notified = sent = NULL;
    if (masters)
        (void)keel_group_free(masters);
    masters = NULL;
}

static void check_process(const char *call, int proc)
{
    armci_running(call);
    if (proc < 0 || proc >= keel_size())
        armci_end(call, proc, "no such process");
}

/* In pieces, of which the first says in front how long the whole is: one of a message of Keel's each. */
ARMCI_EXPORT void armci_msg_snd(int tag, void *buffer, int len, int to)
{
    check_process("armci_msg_snd", to);
    if (len < 0)
        armci_end("armci_msg_snd", to, "a negative length");
    int first = len < KEEL_MESSAGE_MAX - (int)sizeof len ? len : KEEL_MESSAGE_MAX - (int)sizeof len;
    char *piece = malloc((size_t)first + sizeof len);
    if (!piece)
        armci_end("armci_msg_snd", to, "out of memory");
    memcpy(piece, &len, sizeof len);
    if (first)
        memcpy(piece + sizeof len, buffer, (size_t)first);
    uint32_t as = (uint32_t)tag ^ TAG_BIT;
    armci_check(keel_message_send(to, as, piece, (size_t)first + sizeof len), "armci_msg_snd", to);
    free(piece);
    for (int at = first, n; at < len; at += n) {
        n = len - at < KEEL_MESSAGE_MAX ? len - at : KEEL_MESSAGE_MAX;
        armci_check(keel_message_send(to, as, (char *)buffer + at, (size_t)n), "armci_msg_snd", to);
    }
}

/* Returns who has sent it. */
static int receive(const char *call, int tag, void *buffer, int buflen, int *msglen, int from)
{
    if (buflen < 0)
        armci_end(call, from, "a negative length");
    char *piece = malloc(KEEL_MESSAGE_MAX);
    uint32_t as = (uint32_t)tag ^ TAG_BIT;
    size_t got = 0;
    int len;
    if (!piece)
        armci_end(call, from, "out of memory");
    armci_check(keel_message_receive(from, as, piece, KEEL_MESSAGE_MAX, &got, &from), call, from);
    memcpy(&len, piece, sizeof len);
    if (len > buflen)
        armci_end(call, from, "the message is longer than the buffer");
    got -= sizeof len;
    if (got)
        memcpy(buffer, piece + sizeof len, got);
    free(piece);
    for (size_t at = got; at < (size_t)len; at += got)
        armci_check(keel_message_receive(from, as, (char *)buffer + at, (size_t)len - at, &got, NULL), call, from);
    if (msglen)
        *msglen = len;
    return from;
}

ARMCI_EXPORT void armci_msg_rcv(int tag, void *buffer, int buflen, int *msglen, int from)
{
    check_process("armci_msg_rcv", from);
    (void)receive("armci_msg_rcv", tag, buffer, buflen, msglen, from);
}

ARMCI_EXPORT int armci_msg_rcvany(int tag, void *buffer, int buflen, int *msglen)
{
    armci_running("armci_msg_rcvany");
    return receive("armci_msg_rcvany", tag, buffer, buflen, msglen, KEEL_ANY_RANK);
}

/* ---- notifications: who has seen one sees what the notifier had put before ---- */

ARMCI_EXPORT int armci_notify(int proc)
{
    check_process("armci_notify", proc);
    ARMCI_Fence(proc);
    armci_check(keel_signal(notes, proc, (size_t)keel_rank() * sizeof *sent, 1), "armci_notify", proc);
    return (int)++sent[proc];
}

ARMCI_EXPORT int armci_notify_wait(int proc, int *pval)
{
    int64_t got = 0;
    check_process("armci_notify_wait", proc);
    notified[proc]++;
    armci_check(keel_wait_until(notes, (size_t)proc * sizeof got, KEEL_GE, notified[proc], proc, &got),
                "armci_notify_wait", proc);
    if (pval)
        *pval = (int)notified[proc];
    return (int)got;
}

/* ---- scopes ---- */

keel_group *armci_scope_group(int scope, const char *call)
{
    armci_running(call);
    if (scope < SCOPE_ALL || scope > SCOPE_MASTERS)
        armci_end(call, keel_rank(), "no such scope");
    if (scope == SCOPE_NODE)
        return keel_group_node();
    return scope == SCOPE_MASTERS ? masters_group() : keel_group_world();
}

ARMCI_EXPORT void armci_msg_barrier(void)
{
    armci_running("armci_msg_barrier");
    armci_update_copies(keel_group_world());
    armci_check_all(keel_group_barrier(keel_group_world()), "armci_msg_barrier");
}

ARMCI_EXPORT void armci_msg_group_barrier(ARMCI_Group *group)
{
    keel_group *g = armci_group(group, "armci_msg_group_barrier");
    armci_update_copies(g);
    armci_check_all(keel_group_barrier(g), "armci_msg_group_barrier");
}

/* A binary tree over the places of a scope. */
ARMCI_EXPORT void armci_msg_bintree(int scope, int *root, int *up, int *left, int *right)
{
    keel_group *g = armci_scope_group(scope, "armci_msg_bintree");
    *root = *up = *left = *right = -1;
    if (!g)
        return;
    int me = keel_group_rank(g), n = keel_group_size(g);
    *root = keel_group_to_world(g, 0);
    *up = me > 0 ? keel_group_to_world(g, (me - 1) / 2) : -1;
    *left = 2 * me + 1 < n ? keel_group_to_world(g, 2 * me + 1) : -1;
    *right = 2 * me + 2 < n ? keel_group_to_world(g, 2 * me + 2) : -1;
}

static void bcast(keel_group *g, void *buffer, int len, int root, const char *call)
{
    armci_running(call);
    if (len < 0)
        armci_end(call, root, "a negative length");
    if (g && (root < 0 || root >= keel_group_size(g)))
        armci_end(call, root, "no such process in the group");
    if (!g)
        return;
    keel_status status = keel_group_bcast(g, root, buffer, (size_t)len);
    armci_loss_look();
    armci_check(status, call, keel_group_to_world(g, root));
}

ARMCI_EXPORT void armci_msg_bcast(void *buffer, int len, int root)
{
    bcast(keel_group_world(), buffer, len, root, "armci_msg_bcast");
}

ARMCI_EXPORT void armci_msg_brdcst(void *buffer, int len, int root)
{
    bcast(keel_group_world(), buffer, len, root, "armci_msg_brdcst");
}

ARMCI_EXPORT void armci_msg_bcast_scope(int scope, void *buffer, int len, int root)
{
    keel_group *g = armci_scope_group(scope, "armci_msg_bcast_scope");
    bcast(g, buffer, len, g ? keel_group_from_world(g, root) : -1, "armci_msg_bcast_scope");
}

ARMCI_EXPORT void armci_msg_clus_brdcst(void *buffer, int len)
{
    bcast(armci_scope_group(SCOPE_NODE, "armci_msg_clus_brdcst"), buffer, len, 0, "armci_msg_clus_brdcst");
}

ARMCI_EXPORT void armci_msg_group_bcast_scope(int scope, void *buffer, int len, int root, ARMCI_Group *group)
{
    keel_group *g = armci_group(group, "armci_msg_group_bcast_scope");
    if (scope == SCOPE_ALL)
        bcast(g, buffer, len, keel_group_from_world(g, root), "armci_msg_group_bcast_scope");
    else
        armci_msg_bcast_scope(scope, buffer, len, root);
}
