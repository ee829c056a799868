/* keel-nsexec: what mpiexec.hydra calls on the netns bed in the place of rsh: [option...] HOST COMMAND...
 * Enters the host's network namespace, gives it a host name and a /sys of its own, and runs the command by the shell,
 * as rsh would on another machine. */
#include "pm/bed/bed.h"
#include "pm/wire/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static int fail(const char *what)
{
    fprintf(stderr, "keel-nsexec: %s: %s\n", what, strerror(errno));
    return 255;
}

int main(int argc, char **argv)
{
    int i = 1, node = -1;
    unsigned long long job = 0;
    while (i < argc && argv[i][0] == '-')
        i++;
    const char *bed = getenv(BED_ENV);
    if (i + 1 >= argc || !bed || sscanf(bed, "%16llx", &job) != 1 || (node = bed_netns_node(argv[i])) < 0) {
        fprintf(stderr, "keel-nsexec: called by keelrun's mpiexec only\n");
        return 2;
    }
    char name[32], path[64];
    bed_netns_name(job, node, name, sizeof name);
    snprintf(path, sizeof path, BED_NETNS_DIR "/%s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
        return fail(path);
    if (unshare(CLONE_NEWNS | CLONE_NEWUTS) < 0)
        return fail("unshare");
    snprintf(name, sizeof name, "keel-node%d", node);
    if (sethostname(name, strlen(name)) < 0)
        return fail("sethostname");
    /* /sys shows the interfaces of the namespace it was mounted in */
    if (mount("", "/", "none", MS_SLAVE | MS_REC, NULL) < 0)
        return fail("mount /");
    umount2("/sys", MNT_DETACH);
    if (mount("sysfs", "/sys", "sysfs", 0, NULL) < 0 && mount("sysfs", "/sys", "sysfs", MS_RDONLY, NULL) < 0)
        return fail("mount /sys");
    struct bytes command = {0};
    bytes_append(&command, "exec", 4);
    for (i++; i < argc; i++) {
        bytes_append(&command, " ", 1);
        bytes_append(&command, argv[i], strlen(argv[i]));
    }
    bytes_append(&command, "", 1);
    execl("/bin/sh", "sh", "-c", (char *)command.data, (char *)NULL);
    return fail("/bin/sh");
}
