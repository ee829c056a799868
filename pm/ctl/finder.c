#include "pm/ctl/finder.h"

#include "pm/bed/bed.h"
#include "pm/wire/bytes.h"
#include "pm/wire/message.h"
#include "pm/wire/quit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { NOT_OURS = -2 };

/* The sockets that our processes hold. Once for all names: whoever has taken a thousand would make us look for as
 * long. */
struct holdings {
    unsigned long *inodes;
    size_t count, room;
    bool known;
};

struct list {
    const char *prefix;
    struct found_agent *agents;
    int count;
    struct holdings ours;
};

static bool known(const struct list *l, uint64_t job_id, int node)
{
    for (int i = 0; i < l->count; i++)
        if (l->agents[i].job_id == job_id && l->agents[i].node == node)
            return true;
    return false;
}

static bool is_ours(const char *pid)
{
    char path[300], line[256];
    unsigned uid = 0;
    bool known_uid = false;
    snprintf(path, sizeof path, "/proc/%s/status", pid);
    FILE *f = fopen(path, "re");
    while (f && !known_uid && fgets(line, sizeof line, f))
        known_uid = sscanf(line, "Uid: %*u %u", &uid) == 1;
    if (f)
        fclose(f);
    return known_uid && uid == geteuid();
}

static void note_sockets(struct holdings *h, const char *pid)
{
    char path[300], target[64];
    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    DIR *fds = opendir(path);
    for (struct dirent *f; fds && (f = readdir(fds));) {
        ssize_t n = readlinkat(dirfd(fds), f->d_name, target, sizeof target - 1);
        unsigned long inode;
        target[n > 0 ? n : 0] = '\0';
        if (sscanf(target, "socket:[%lu]", &inode) != 1)
            continue;
        if (h->count == h->room) {
            h->room = h->room ? 2 * h->room : 64;
            unsigned long *grown = realloc(h->inodes, h->room * sizeof *grown);
            if (!grown)
                pm_quit(1, "out of memory");
            h->inodes = grown;
        }
        h->inodes[h->count++] = inode;
    }
    if (fds)
        closedir(fds);
}

static int by_inode(const void *a, const void *b)
{
    unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;
    return (x > y) - (x < y);
}

/* Whether one of our processes holds the socket: who takes no connection does not say who he is. */
static bool is_held_by_us(struct holdings *h, unsigned long inode)
{
    DIR *proc = h->known ? NULL : opendir("/proc");
    for (struct dirent *p; proc && (p = readdir(proc));)
        if (p->d_name[0] >= '0' && p->d_name[0] <= '9' && is_ours(p->d_name))
            note_sockets(h, p->d_name);
    if (proc)
        closedir(proc);
    if (!h->known && h->count)
        qsort(h->inodes, h->count, sizeof *h->inodes, by_inode);
    h->known = true;
    return h->count && bsearch(&inode, h->inodes, h->count, sizeof inode, by_inode) != NULL;
}

/* A descriptor, -1 if nobody takes the connection now, NOT_OURS. */
static int connect_console(struct holdings *ours, const char *name, unsigned long inode)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    struct ucred peer;
    socklen_t peer_len = sizeof peer;
    if (len + 1 > sizeof address.sun_path)
        return NOT_OURS;
    /* non-blocking: an agent that is frozen accepts nothing, and a full queue of connections would hold us for ever */
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return NOT_OURS;
    memcpy(address.sun_path + 1, name, len);
    int rc = connect(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len));
    bool frozen = rc < 0 && errno == EAGAIN;
    /* anybody may take a name in the abstract namespace: only a process of the same user is an agent of ours */
    if (rc < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len) < 0 || peer.uid != geteuid()) {
        close(fd);
        return frozen && is_held_by_us(ours, inode) ? -1 : NOT_OURS;
    }
    fcntl(fd, F_SETFL, 0);
    return fd;
}

/* /proc/self/net/unix belongs to the network namespace that we are in. */
static void scan_here(struct list *l)
{
    char line[512], name[128];
    FILE *f = fopen("/proc/self/net/unix", "re");
    while (f && fgets(line, sizeof line, f)) {
        unsigned long long job;
        unsigned long inode;
        int node, end = 0;
        const char *at = strstr(line, " @" CONSOLE_PREFIX);
        /* Num RefCount Protocol Flags Type St Inode Path */
        /* the name ends there, or goes on where somebody had taken the plain one */
        if (!at || sscanf(at + 2, CONSOLE_PREFIX "%16llx/%d%n%*[.0-9a-f]%n", &job, &node, &end, &end) != 2 ||
            known(l, job, node) || sscanf(line, "%*s %*s %*s %*s %*s %*s %lu", &inode) != 1)
            continue;
        snprintf(name, sizeof name, "%016llx", job);
        if (l->prefix && strncmp(name, l->prefix, strlen(l->prefix)) != 0)
            continue;
        snprintf(name, sizeof name, "%.*s", end, at + 2);
        int fd = connect_console(&l->ours, name, inode);
        if (fd == NOT_OURS)
            continue;
        struct found_agent *grown = realloc(l->agents, (size_t)(l->count + 1) * sizeof *grown);
        if (!grown) {
            if (fd >= 0)
                close(fd);
            break;
        }
        l->agents = grown;
        l->agents[l->count++] = (struct found_agent){.job_id = job, .node = node, .fd = fd};
    }
    if (f)
        fclose(f);
}

static void scan_beds(struct list *l)
{
    DIR *dir = opendir(BED_NETNS_DIR);
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    for (struct dirent *e; dir && home >= 0 && (e = readdir(dir));) {
        unsigned job;
        int node;
        char path[300];
        if (sscanf(e->d_name, "keel-%8x-n%d", &job, &node) != 2)
            continue;
        snprintf(path, sizeof path, BED_NETNS_DIR "/%s", e->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && setns(fd, CLONE_NEWNET) == 0)
            scan_here(l);
        if (fd >= 0)
            close(fd);
    }
    if (home >= 0 && setns(home, CLONE_NEWNET) < 0 && geteuid() == 0)
        perror("keelctl: setns");
    if (home >= 0)
        close(home);
    if (dir)
        closedir(dir);
}

static int by_job_and_node(const void *a, const void *b)
{
    const struct found_agent *x = a, *y = b;
    if (x->job_id != y->job_id)
        return x->job_id < y->job_id ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

struct found_agent *finder_agents(const char *prefix, int *count)
{
    struct list l = {.prefix = prefix};
    scan_here(&l);
    scan_beds(&l);
    if (l.count)
        qsort(l.agents, (size_t)l.count, sizeof *l.agents, by_job_and_node);
    free(l.ours.inodes);
    *count = l.count;
    return l.agents;
}
