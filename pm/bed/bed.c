#include "pm/bed/bed.h"

#include "pm/bed/grid.h"
#include "pm/bed/guardian.h"
#include "pm/wire/bytes.h"
#include "pm/wire/quit.h"
#include "pm/wire/ticket.h"
#include "runtime/base/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GUARDIAN_WAIT_MS = 3000, NET = 77 }; /* 10.NET of the first network, the next number of the next one */

struct bed_netns {
    uint64_t job_id;
    int nodes, rails;
    char *helper, *variable;
    int home; /* the network namespace we came from */
    pid_t guardian;
    int guardian_pipe; /* its other end sees our end, however it comes */
};

void bed_loopback_address(int node, char *out, size_t size)
{
    summons_loopback(node, out, size);
}

void bed_netns_address(int node, char *out, size_t size)
{
    snprintf(out, size, "10.%d.%d.%d", NET, (node + 2) / 256, (node + 2) % 256);
}

int bed_netns_node(const char *address)
{
    int high, low;
    char tail;
    return sscanf(address, "10.77.%d.%d%c", &high, &low, &tail) == 2 ? high * 256 + low - 2 : -1;
}

void bed_netns_name(uint64_t job_id, int node, char *out, size_t size)
{
    if (node < 0)
        snprintf(out, size, "keel-%08x-hub", (unsigned)(job_id >> 32));
    else
        snprintf(out, size, "keel-%08x-n%d", (unsigned)(job_id >> 32), node);
}

const char *bed_netns_exec(const struct bed_netns *bed)
{
    return bed->helper;
}

const char *bed_netns_variable(const struct bed_netns *bed)
{
    return bed->variable;
}

pid_t bed_netns_guardian(const struct bed_netns *bed)
{
    return bed->guardian;
}

/* Run ip(8) or tc(8) with a batch of commands in a namespace (NULL: ours); what it says goes to why. */
static bool batch(const char *program, const char *netns, const struct bytes *commands, char *why, size_t why_size)
{
    int in[2], out[2], status = 0;
    const char *argv[] = {program, "-n", netns, "-batch", "-", NULL};
    const char *argv_here[] = {program, "-batch", "-", NULL};
    if (pipe2(in, O_CLOEXEC) < 0)
        return false;
    if (pipe2(out, O_CLOEXEC) < 0) {
        close(in[0]), close(in[1]);
        return false;
    }
    pid_t pid = 0;
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in[0], 0);
    posix_spawn_file_actions_adddup2(&files, out[1], 1);
    posix_spawn_file_actions_adddup2(&files, out[1], 2);
    int rc = posix_spawnp(&pid, program, &files, NULL, (char *const *)(netns ? argv : argv_here), environ);
    posix_spawn_file_actions_destroy(&files);
    close(in[0]);
    close(out[1]);
    ssize_t n = 0;
    bool given = false;
    if (rc == 0) {
        given = write(in[1], commands->data, commands->len) == (ssize_t)commands->len; /* it says little on the way */
        close(in[1]);
        in[1] = -1;
        n = read(out[0], why, why_size - 1);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    if (in[1] >= 0)
        close(in[1]);
    close(out[0]);
    why[n > 0 ? n : 0] = '\0';
    why[strcspn(why, "\n")] = '\0';
    if (rc != 0)
        pm_cannot_run(program, rc, why, why_size);
    else if (!given && !*why)
        snprintf(why, why_size, "%s did not take its commands", program);
    return given && status == 0;
}

/* Each node forwards what is for others, by whichever link it came. Before there are links. Leaves the caller in its
 * namespace. */
static bool forward(const struct bed_netns *bed, char *why, size_t why_size)
{
    static const char *const setting[][2] = {{"/proc/sys/net/ipv4/ip_forward", "1"},
                                             {"/proc/sys/net/ipv4/conf/all/rp_filter", "0"},
                                             {"/proc/sys/net/ipv4/conf/default/rp_filter", "0"}};
    bool good = true;
    for (int i = 0; good && i < bed->nodes; i++) {
        char path[64];
        bed_netns_path(bed->job_id, i, path, sizeof path);
        int space = open(path, O_RDONLY | O_CLOEXEC);
        good = space >= 0 && setns(space, CLONE_NEWNET) == 0;
        for (size_t k = 0; good && k < sizeof setting / sizeof setting[0]; k++) {
            int fd = open(setting[k][0], O_WRONLY | O_CLOEXEC);
            good = fd >= 0 && write(fd, setting[k][1], 1) == 1;
            if (!good)
                snprintf(why, why_size, "%s: %s", setting[k][0], strerror(errno));
            if (fd >= 0)
                close(fd);
        }
        if (space >= 0)
            close(space);
    }
    return setns(bed->home, CLONE_NEWNET) == 0 && good;
}

/* What is in a node's own namespace. */
static bool build_node(const struct bed_netns *bed, const struct bed_grid *grid, int node, char *why, size_t why_size)
{
    char name[32], address[32];
    struct bytes ip = {0}, tc = {0};
    bed_netns_name(bed->job_id, node, name, sizeof name);
    bed_netns_address(node, address, sizeof address);
    if (grid) {
        bed_grid_node(&ip, grid, node);
        bed_grid_rates(&tc, grid, node);
    } else {
        bytes_printf(&ip, "link set lo up\naddr add %s/16 dev veth0\nlink set veth0 up\n", address);
    }
    for (int r = 1; r < bed->rails; r++)
        bytes_printf(&ip, "addr add 10.%d.%d.%d/16 dev veth%d\nlink set veth%d up\n", NET + r, (node + 2) / 256,
                     (node + 2) % 256, r, r);
    bool good = batch("ip", name, &ip, why, why_size) && (tc.len == 0 || batch("tc", name, &tc, why, why_size));
    bytes_free(&ip);
    bytes_free(&tc);
    return good;
}

static bool build(const struct bed_netns *bed, const struct bed_grid *grid, char *why, size_t why_size)
{
    char hub[32], name[32], address[32];
    struct bytes namespaces = {0}, bridge = {0}, links = {0};
    bed_netns_name(bed->job_id, -1, hub, sizeof hub);
    bed_netns_address(-1, address, sizeof address);
    bytes_printf(&namespaces, "netns add %s\n", hub);
    /* An address of its own: else the bridge takes that of a port, and another one whenever a port leaves. */
    bytes_printf(&bridge, "link set lo up\nlink add br0 address 02:4b:45:45:4c:01 type bridge\n");
    bytes_printf(&bridge, "addr add %s/16 dev br0\nlink set br0 up\n", address);
    for (int r = 1; r < bed->rails; r++)
        bytes_printf(
            &bridge,
            "link add br%d address 02:4b:45:45:4c:0%d type bridge\naddr add 10.%d.0.1/16 dev br%d\nlink set br%d up\n",
            r, r + 1, NET + r, r, r);
    for (int i = 0; i < bed->nodes; i++) {
        bed_netns_name(bed->job_id, i, name, sizeof name);
        bytes_printf(&namespaces, "netns add %s\n", name);
        bytes_printf(&bridge, "link add p%d type veth peer name veth0 netns %s\nlink set p%d master br0 up\n", i, name,
                     i);
        for (int r = 1; r < bed->rails; r++)
            bytes_printf(&bridge,
                         "link add p%dr%d type veth peer name veth%d netns %s\nlink set p%dr%d master br%d up\n", i, r,
                         r, name, i, r, r);
        bytes_printf(&bridge, "link add cut%d type bridge\nlink set cut%d up\n", i, i); /* see bed_netns_link */
    }
    bool good = batch("ip", NULL, &namespaces, why, why_size) && batch("ip", hub, &bridge, why, why_size);
    if (grid) {
        bed_grid_links(&links, grid, bed->job_id);
        good = good && forward(bed, why, why_size) && batch("ip", NULL, &links, why, why_size);
    }
    for (int i = 0; good && i < bed->nodes; i++)
        good = build_node(bed, grid, i, why, why_size);
    bytes_free(&namespaces);
    bytes_free(&bridge);
    bytes_free(&links);
    return good;
}

void bed_netns_path(uint64_t job_id, int node, char *out, size_t size)
{
    char name[32];
    bed_netns_name(job_id, node, name, sizeof name);
    snprintf(out, size, BED_NETNS_DIR "/%s", name);
}

void bed_demolish(uint64_t job_id, int nodes)
{
    char path[64];
    for (int i = -1; i < nodes; i++) {
        bed_netns_path(job_id, i, path, sizeof path);
        umount2(path, MNT_DETACH);
        unlink(path);
    }
}

struct bed_netns *bed_netns_create(uint64_t job_id, int nodes, int rails, const struct bed_grid *grid,
                                   const char *helper, char *why, size_t why_size)
{
    int fds[2];
    char path[64];
    if (geteuid() != 0) {
        snprintf(why, why_size, "the netns bed needs root; --bed loopback does not");
        return NULL;
    }
    if (pipe2(fds, O_CLOEXEC) < 0) {
        snprintf(why, why_size, "pipe: %s", strerror(errno));
        return NULL;
    }
    struct bed_netns *bed = pm_alloc(sizeof *bed);
    bed->job_id = job_id;
    bed->nodes = nodes;
    bed->rails = rails;
    bed->helper = pm_strdup(helper);
    bed->variable = pm_printf(BED_ENV "=%016llx", (unsigned long long)job_id);
    bed->guardian_pipe = fds[1];
    bed->home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    bed_sweep();
    int guard = bed_guard_name(job_id);
    bed->guardian = fork();
    if (bed->guardian == 0)
        bed_guardian_run(job_id, nodes, fds[0], guard);
    close(fds[0]);
    if (guard >= 0)
        close(guard);
    why[0] = '\0';
    bed_netns_path(job_id, -1, path, sizeof path);
    bool good = bed->home >= 0 && bed->guardian > 0 && build(bed, grid, why, why_size);
    int hub = good ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    good = good && hub >= 0 && setns(hub, CLONE_NEWNET) == 0;
    if (hub >= 0)
        close(hub);
    if (!good) {
        char reason[128];
        snprintf(reason, sizeof reason, "%s", why[0] ? why : strerror(errno));
        bed_netns_destroy(bed);
        snprintf(why, why_size, "cannot build the netns bed: %s", reason);
        return NULL;
    }
    return bed;
}

void bed_netns_destroy(struct bed_netns *bed)
{
    if (!bed)
        return;
    if (bed->home >= 0 && setns(bed->home, CLONE_NEWNET) == 0)
        close(bed->home);
    close(bed->guardian_pipe);
    if (bed->guardian > 0) {
        struct pollfd p = {.fd = process_open(bed->guardian), .events = POLLIN};
        if (p.fd >= 0) {
            poll(&p, 1, GUARDIAN_WAIT_MS);
            process_close(p.fd);
        }
        int status = 0;
        /* somebody killed the guardian: its work is ours; if it only has to wait longer, it does its work without us */
        if (waitpid(bed->guardian, &status, WNOHANG) != 0 && status != 0)
            bed_demolish(bed->job_id, bed->nodes);
    }
    free(bed->helper);
    free(bed->variable);
    free(bed);
}

/* Are the nodes joined as a grid? Then a node's rules of routing are in an order of their own. */
static bool is_grid(const char *node)
{
    struct bytes ask = {0};
    char says[128];
    bytes_printf(&ask, "rule show pref 0\n");
    bool grid = batch("ip", node, &ask, says, sizeof says) && says[0] == '\0';
    bytes_free(&ask);
    return grid;
}

int bed_netns_link(uint64_t job_id, int node, int up)
{
    char hub[32], name[32], why[128];
    struct bytes port = {0}, rules = {0};
    bed_netns_name(job_id, -1, hub, sizeof hub);
    bed_netns_name(job_id, node, name, sizeof name);
    /* A cut link leads to a bridge where nobody else is. Setting it down would be no silent cut: the node loses its
     * carrier, and its kernel forgets all neighbours and asks for them once a second only. */
    if (up)
        bytes_printf(&port, "link set p%d master br0\n", node);
    else
        bytes_printf(&port, "link set p%d master cut%d\n", node, node);
    bool good = batch("ip", hub, &port, why, sizeof why);
    if (good && is_grid(name)) {
        bed_grid_cut(&rules, node, up);
        batch("ip", name, &rules, why, sizeof why); /* says no where it is so already */
    }
    bytes_free(&port);
    bytes_free(&rules);
    return good ? 0 : ENODEV;
}
