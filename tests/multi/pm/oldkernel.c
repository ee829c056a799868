/* oldkernel ERROR PROGRAM [ARGUMENT...]: runs a program whose system calls of newer kernels fail with that error, as in
 * a container or on a kernel that does not have them; and with descriptors that it has to get rid of. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MARKER = 9, MARKER_HIGH = 700 };

/* From 4.19 on, and those before it that filters refuse. statx, clone3, faccessat2 are the C library's, which does
 * without for ENOSYS only. */
static const unsigned newer[] = {SYS_pidfd_send_signal,
                                 SYS_io_uring_setup,
                                 SYS_open_tree,
                                 SYS_move_mount,
                                 SYS_pidfd_open,
                                 SYS_close_range,
                                 SYS_openat2,
                                 SYS_pidfd_getfd,
                                 SYS_process_madvise,
                                 SYS_epoll_pwait2,
                                 SYS_preadv2,
                                 444 /* landlock_create_ruleset */,
                                 445,
                                 446,
                                 449 /* futex_waitv */,
                                 SYS_userfaultfd,
                                 SYS_membarrier,
                                 SYS_process_vm_readv,
                                 SYS_process_vm_writev,
                                 SYS_sched_setattr,
                                 SYS_sched_getattr};
static const unsigned of_the_c_library[] = {SYS_clone3, SYS_statx, SYS_faccessat2, SYS_rseq};

static struct sock_filter program[128];
static unsigned short length;

static void add(struct sock_filter line)
{
    program[length++] = line;
}

static void refuse(const unsigned *calls, size_t count, unsigned error)
{
    for (size_t i = 0; i < count; i++) {
        add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1));
        add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error));
    }
}

int main(int argc, char **argv)
{
    unsigned error = argc > 2 && strcmp(argv[1], "EPERM") == 0 ? EPERM : ENOSYS;
    if (argc < 3)
        return 2;
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    refuse(newer, sizeof newer / sizeof newer[0], error);
    if (error == ENOSYS)
        refuse(of_the_c_library, sizeof of_the_c_library / sizeof of_the_c_library[0], error);
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    int fd = open("/etc/passwd", O_RDONLY); // NOLINT(android-cloexec-open): it is to be inherited
    if (fd < 0 || dup2(fd, MARKER) < 0 || dup2(fd, MARKER_HIGH) < 0)
        return 1;
    close(fd);
    struct sock_fprog all = {.len = length, .filter = program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) != 0) {
        perror("oldkernel");
        return 77;
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
