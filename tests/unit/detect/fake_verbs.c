#include "fake_verbs.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { POSTS = 512, COMPLETIONS = 1024, EVENTS = 8 };

struct fake_orders fake_orders;

struct post {
    struct ibv_qp *qp;
    uint64_t wr_id;
    void *buffer;
    bool read, receive;
};

static struct {
    int live[FAKE_KINDS], calls;
    uint32_t numbers;
    struct post posts[POSTS];
    int n_posts;
    struct ibv_wc completions[COMPLETIONS];
    int n_completions;
    struct ibv_async_event events[EVENTS];
    int n_events;
    void *unacknowledged; /* what the event is about that was taken and not acknowledged */
    struct ibv_device device, *list[2];
} fake;

/* ------------------------------------------------------------------------------------------------ objects */

static bool fails(void)
{
    errno = ENOMEM;
    return ++fake.calls == fake_orders.fail_at;
}

static void *make(enum fake_kind kind, size_t size)
{
    if (fails())
        return NULL;
    fake.live[kind]++;
    void *object = calloc(1, size);
    assert(object);
    return object;
}

static int destroy(enum fake_kind kind, void *object)
{
    assert(object != fake.unacknowledged && "the library waits until the event is acknowledged");
    assert(fake.live[kind] > 0);
    fake.live[kind]--;
    free(object);
    return 0;
}

static void take_posts(const struct ibv_qp *qp)
{
    int kept = 0;
    for (int i = 0; i < fake.n_posts; i++)
        if (fake.posts[i].qp != qp)
            fake.posts[kept++] = fake.posts[i];
    fake.n_posts = kept;
}

/* ------------------------------------------------------------------------------------------------ posts and
 * completions */

static void complete(const struct post *p, enum ibv_wc_status status, uint32_t len)
{
    assert(fake.n_completions < COMPLETIONS);
    fake.completions[fake.n_completions++] = (struct ibv_wc){.wr_id = p->wr_id, .status = status, .byte_len = len};
}

static int post(struct ibv_qp *qp, struct post p)
{
    assert(fake.n_posts < POSTS);
    p.qp = qp;
    if (qp->state == IBV_QPS_ERR)
        complete(&p, IBV_WC_WR_FLUSH_ERR, 0);
    else
        fake.posts[fake.n_posts++] = p;
    return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    assert(qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_ERR);
    *bad = wr;
    if (fake_orders.refuse_posts)
        return errno = ENOMEM;
    return post(qp, (struct post){.wr_id = wr->wr_id,
                                  .buffer = (void *)(uintptr_t)wr->sg_list->addr,
                                  .read = wr->opcode == IBV_WR_RDMA_READ});
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    assert(qp->state != IBV_QPS_RESET);
    *bad = wr;
    if (fake_orders.refuse_receives || fails())
        return errno = ENOMEM;
    return post(qp, (struct post){.wr_id = wr->wr_id, .buffer = (void *)(uintptr_t)wr->sg_list->addr, .receive = true});
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    (void)cq;
    if (fake_orders.completions_fail)
        return -1;
    if (n > fake.n_completions)
        n = fake.n_completions;
    memcpy(wc, fake.completions, (size_t)n * sizeof *wc);
    fake.n_completions -= n;
    memmove(fake.completions, fake.completions + n, (size_t)fake.n_completions * sizeof *wc);
    return n;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    (void)cq;
    (void)solicited_only;
    return fake_orders.arming_fails ? EIO : 0;
}

/* ------------------------------------------------------------------------------------------------ the library's
 * functions */

static struct ibv_device **fake_get_device_list(int *n)
{
    *n = 1;
    fake.list[0] = &fake.device;
    return fake.list;
}

static void fake_free_device_list(struct ibv_device **list)
{
    assert(list == fake.list);
}

static const char *fake_get_device_name(struct ibv_device *device)
{
    (void)device;
    return "fake0";
}

static struct ibv_context *fake_open_device(struct ibv_device *device)
{
    struct ibv_context *c = make(FAKE_CONTEXT, sizeof *c);
    if (!c)
        return NULL;
    c->device = device;
    c->async_fd = eventfd(0, EFD_CLOEXEC);
    c->ops.poll_cq = poll_cq;
    c->ops.req_notify_cq = req_notify_cq;
    c->ops.post_send = post_send;
    c->ops.post_recv = post_recv;
    return c;
}

static int fake_close_device(struct ibv_context *c)
{
    assert(fake.live[FAKE_PD] == 0 && fake.live[FAKE_CHANNEL] == 0);
    close(c->async_fd);
    return destroy(FAKE_CONTEXT, c);
}

static int fake_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *out)
{
    struct ibv_port_attr *attr = (struct ibv_port_attr *)out;
    (void)c;
    if (port > FAKE_PORT)
        return EINVAL;
    attr->state = port == FAKE_PORT ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    attr->active_mtu = IBV_MTU_1024;
    attr->link_layer = IBV_LINK_LAYER_ETHERNET;
    attr->gid_tbl_len = 1;
    return 0;
}

static int fake_query_gid(struct ibv_context *c, uint8_t port, int i, union ibv_gid *gid)
{
    (void)c;
    (void)port;
    (void)i;
    *gid = (union ibv_gid){.raw = {[10] = 0xff, [11] = 0xff}};
    return inet_pton(AF_INET, "127.0.0.1", gid->raw + 12) != 1;
}

static struct ibv_pd *fake_alloc_pd(struct ibv_context *c)
{
    struct ibv_pd *pd = make(FAKE_PD, sizeof *pd);
    if (pd)
        pd->context = c;
    return pd;
}

static int fake_dealloc_pd(struct ibv_pd *pd)
{
    assert(fake.live[FAKE_MR] == 0 && fake.live[FAKE_QP] == 0 && fake.live[FAKE_AH] == 0);
    return destroy(FAKE_PD, pd);
}

static struct ibv_mr *fake_reg_mr(struct ibv_pd *pd, void *address, size_t len, int access)
{
    (void)pd;
    (void)address;
    (void)len;
    (void)access;
    return make(FAKE_MR, sizeof(struct ibv_mr));
}

static int fake_dereg_mr(struct ibv_mr *mr)
{
    return destroy(FAKE_MR, mr);
}

static struct ibv_comp_channel *fake_create_comp_channel(struct ibv_context *c)
{
    struct ibv_comp_channel *channel = make(FAKE_CHANNEL, sizeof *channel);
    if (channel) {
        channel->context = c;
        channel->fd = eventfd(0, EFD_CLOEXEC);
    }
    return channel;
}

static int fake_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    assert(fake.live[FAKE_CQ] == 0);
    close(channel->fd);
    return destroy(FAKE_CHANNEL, channel);
}

static struct ibv_cq *fake_create_cq(struct ibv_context *c, int n, void *context, struct ibv_comp_channel *channel,
                                     int vector)
{
    (void)n;
    (void)context;
    (void)vector;
    struct ibv_cq *cq = make(FAKE_CQ, sizeof *cq);
    if (cq) {
        cq->context = c;
        cq->channel = channel;
    }
    return cq;
}

static int fake_destroy_cq(struct ibv_cq *cq)
{
    assert(fake.live[FAKE_QP] == 0);
    return destroy(FAKE_CQ, cq);
}

static int fake_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
    (void)channel;
    (void)cq;
    (void)context;
    errno = fake_orders.channel_fails ? EIO : EAGAIN;
    return -1;
}

static void fake_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
    (void)cq;
    (void)n;
}

static int fake_get_async_event(struct ibv_context *c, struct ibv_async_event *event)
{
    (void)c;
    assert(!fake.unacknowledged);
    if (fake.n_events == 0) {
        errno = fake_orders.events_fail ? EIO : EAGAIN;
        return -1;
    }
    *event = fake.events[0];
    memmove(fake.events, fake.events + 1, (size_t)--fake.n_events * sizeof *event);
    if (event->event_type == IBV_EVENT_CQ_ERR || event->event_type == IBV_EVENT_QP_FATAL)
        fake.unacknowledged = event->element.qp;
    return 0;
}

static void fake_ack_async_event(struct ibv_async_event *event)
{
    (void)event;
    fake.unacknowledged = NULL;
}

static const char *fake_event_type_str(enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_DEVICE_FATAL:
        return "local catastrophic error";
    case IBV_EVENT_PORT_ERR:
        return "port error";
    case IBV_EVENT_PORT_ACTIVE:
        return "port active";
    default:
        return "another event";
    }
}

static struct ibv_qp *fake_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    if (fake_orders.no_queue_pairs) {
        errno = ENOMEM;
        return NULL;
    }
    struct ibv_qp *qp = make(FAKE_QP, sizeof *qp);
    if (qp) {
        qp->context = pd->context;
        qp->qp_type = init->qp_type;
        qp->state = IBV_QPS_RESET;
        qp->qp_num = ++fake.numbers;
    }
    return qp;
}

static int fake_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    assert(mask & IBV_QP_STATE);
    assert(attr->qp_state == IBV_QPS_RESET || attr->qp_state == qp->state + 1);
    if (fails() || (fake_orders.no_joins && attr->qp_state == IBV_QPS_RTR))
        return errno = EINVAL;
    if (attr->qp_state == IBV_QPS_RESET) /* what is complete stays in the completion queue, as with soft devices */
        take_posts(qp);
    qp->state = attr->qp_state;
    return 0;
}

static int fake_destroy_qp(struct ibv_qp *qp)
{
    take_posts(qp);
    return destroy(FAKE_QP, qp);
}

static struct ibv_ah *fake_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    (void)pd;
    assert(attr->port_num == FAKE_PORT);
    return make(FAKE_AH, sizeof(struct ibv_ah));
}

static int fake_destroy_ah(struct ibv_ah *ah)
{
    return destroy(FAKE_AH, ah);
}

static const char *fake_wc_status_str(enum ibv_wc_status status)
{
    return status == IBV_WC_WR_FLUSH_ERR ? "flushed" : "failed";
}

/* ------------------------------------------------------------------------------------------------ what the test
 * says */

void fake_begin(void)
{
    for (int k = 0; k < FAKE_KINDS; k++)
        assert(fake.live[k] == 0);
    memset(&fake, 0, sizeof fake);
    memset(&fake_orders, 0, sizeof fake_orders);
    verbs_ib.library = &fake; /* it is loaded already */
#define X(type, name, args) verbs_ib.name = fake_##name;
    VERBS_FUNCTIONS(X)
#undef X
}

int fake_live(enum fake_kind kind)
{
    return fake.live[kind];
}

int fake_calls(void)
{
    return fake.calls;
}

void fake_event(enum ibv_event_type type, void *what)
{
    assert(fake.n_events < EVENTS);
    fake.events[fake.n_events++] = (struct ibv_async_event){.event_type = type, .element.qp = what};
}

void fake_port_event(enum ibv_event_type type, int port)
{
    fake_event(type, NULL);
    fake.events[fake.n_events - 1].element.port_num = port;
}

static int count(bool read, bool receive)
{
    int n = 0;
    for (int i = 0; i < fake.n_posts; i++)
        n += fake.posts[i].read == read && fake.posts[i].receive == receive;
    return n;
}

int fake_posted_reads(void)
{
    return count(true, false);
}

int fake_posted_sends(void)
{
    return count(false, false);
}

int fake_posted_receives(void)
{
    return count(false, true);
}

static struct post take(bool read, bool receive)
{
    int i = 0;
    while (i < fake.n_posts && (fake.posts[i].read != read || fake.posts[i].receive != receive))
        i++;
    assert(i < fake.n_posts);
    struct post p = fake.posts[i];
    memmove(&fake.posts[i], &fake.posts[i + 1], (size_t)(--fake.n_posts - i) * sizeof p);
    return p;
}

void fake_finish_read(enum ibv_wc_status status, uint64_t value)
{
    struct post p = take(true, false);
    if (status == IBV_WC_SUCCESS)
        memcpy(p.buffer, &value, sizeof value);
    else
        p.qp->state = IBV_QPS_ERR;
    complete(&p, status, sizeof value);
}

void fake_finish_sends(void)
{
    while (fake_posted_sends() > 0) {
        struct post p = take(false, false);
        complete(&p, IBV_WC_SUCCESS, 0);
    }
}

void fake_deliver(const void *data, size_t len)
{
    struct post p = take(false, true);
    memcpy((char *)p.buffer + GRH, data, len);
    complete(&p, IBV_WC_SUCCESS, (uint32_t)(GRH + len));
}

bool fake_sends_differ(void)
{
    for (int i = 0; i < fake.n_posts; i++)
        for (int k = 0; k < i; k++)
            if (fake.posts[i].buffer == fake.posts[k].buffer)
                return false;
    return true;
}

void fake_break(struct ibv_qp *qp, enum ibv_wc_status first)
{
    qp->state = IBV_QPS_ERR;
    for (int i = 0; i < fake.n_posts; i++)
        if (fake.posts[i].qp == qp) {
            complete(&fake.posts[i], first, 0);
            first = IBV_WC_WR_FLUSH_ERR;
        }
    take_posts(qp);
}
