#include "pm/bed/bed.h"

#include "pm/bed/guardian.h"
#include "pm/wire/bytes.h"
#include "pm/wire/quit.h"
#include "runtime/base/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
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
    int nodes;
    char *helper, *variable;
    int home; /* the network namespace we came from */
    pid_t guardian;
    int guardian_pipe; /* its other end sees our end, however it comes */
};

void bed_loopback_address(int node, char *out, size_t size)
{
    const char *net = getenv("KEEL_BED_NET"); /* X.Y */
    int a = 127, b = 0;
    if (net && (sscanf(net, "%d.%d", &a, &b) != 2 || a < 1 || a > 255 || b < 0 || b > 255))
        pm_quit(2, "KEEL_BED_NET=%s is not two numbers, as 127.0", net);
    snprintf(out, size, "%d.%d.%d.%d", a, b, (node + 2) / 256, (node + 2) % 256);
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

/* Run ip(8) with a batch of commands in a namespace (NULL: ours); what it says goes to why. */
static bool ip_batch(const char *netns, const char *commands, char *why, size_t why_size)
{
    int in[2], out[2], status = 0;
    const char *argv[] = {"ip", "-n", netns, "-batch", "-", NULL};
    const char *argv_here[] = {"ip", "-batch", "-", NULL};
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
    int rc = posix_spawnp(&pid, "ip", &files, NULL, (char *const *)(netns ? argv : argv_here), environ);
    posix_spawn_file_actions_destroy(&files);
    close(in[0]);
    close(out[1]);
    ssize_t n = 0;
    bool given = false;
    if (rc == 0) {
        given = write(in[1], commands, strlen(commands)) == (ssize_t)strlen(commands); /* it says little on the way */
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
        pm_cannot_run("ip", rc, why, why_size);
    else if (!given && !*why)
        snprintf(why, why_size, "ip did not take its commands");
    return given && status == 0;
}

static void append(struct bytes *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void append(struct bytes *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf((char *)bytes_reserve(b, 256), 256, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
}

static bool build(uint64_t job_id, int nodes, int rails, char *why, size_t why_size)
{
    char hub[32], name[32], address[32];
    struct bytes namespaces = {0}, bridge = {0};
    bed_netns_name(job_id, -1, hub, sizeof hub);
    bed_netns_address(-1, address, sizeof address);
    append(&namespaces, "netns add %s\n", hub);
    /* An address of its own: else the bridge takes that of a port, and another one whenever a port leaves. */
    append(&bridge, "link set lo up\nlink add br0 address 02:4b:45:45:4c:01 type bridge\n");
    append(&bridge, "addr add %s/16 dev br0\nlink set br0 up\n", address);
    for (int r = 1; r < rails; r++)
        append(
            &bridge,
            "link add br%d address 02:4b:45:45:4c:0%d type bridge\naddr add 10.%d.0.1/16 dev br%d\nlink set br%d up\n",
            r, r + 1, NET + r, r, r);
    for (int i = 0; i < nodes; i++) {
        bed_netns_name(job_id, i, name, sizeof name);
        append(&namespaces, "netns add %s\n", name);
        append(&bridge, "link add p%d type veth peer name veth0 netns %s\nlink set p%d master br0 up\n", i, name, i);
        for (int r = 1; r < rails; r++)
            append(&bridge, "link add p%dr%d type veth peer name veth%d netns %s\nlink set p%dr%d master br%d up\n", i,
                   r, r, name, i, r, r);
        append(&bridge, "link add cut%d type bridge\nlink set cut%d up\n", i, i); /* see bed_netns_link */
    }
    bool good =
        ip_batch(NULL, (char *)namespaces.data, why, why_size) && ip_batch(hub, (char *)bridge.data, why, why_size);
    for (int i = 0; good && i < nodes; i++) {
        struct bytes node = {0};
        bed_netns_name(job_id, i, name, sizeof name);
        bed_netns_address(i, address, sizeof address);
        append(&node, "link set lo up\naddr add %s/16 dev veth0\nlink set veth0 up\n", address);
        for (int r = 1; r < rails; r++)
            append(&node, "addr add 10.%d.%d.%d/16 dev veth%d\nlink set veth%d up\n", NET + r, (i + 2) / 256,
                   (i + 2) % 256, r, r);
        good = ip_batch(name, (char *)node.data, why, why_size);
        bytes_free(&node);
    }
    bytes_free(&namespaces);
    bytes_free(&bridge);
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

struct bed_netns *bed_netns_create(uint64_t job_id, int nodes, int rails, const char *helper, char *why,
                                   size_t why_size)
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
    bool good = bed->home >= 0 && bed->guardian > 0 && build(job_id, nodes, rails, why, why_size);
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

int bed_netns_link(uint64_t job_id, int node, int up)
{
    char hub[32], command[128], why[128];
    bed_netns_name(job_id, -1, hub, sizeof hub);
    /* A cut link leads to a bridge where nobody else is. Setting it down would be no silent cut: the node loses its
     * carrier, and its kernel forgets all neighbours and asks for them once a second only. */
    if (up)
        snprintf(command, sizeof command, "link set p%d master br0\n", node);
    else
        snprintf(command, sizeof command, "link set p%d master cut%d\n", node, node);
    return ip_batch(hub, command, why, sizeof why) ? 0 : ENODEV;
}
