/* keel-launch: between mpiexec.hydra and the agent, twice.
 *
 * Near: what mpiexec.hydra takes for ssh, srun, ... It reads the order that keelrun has left in a descriptor and
 * becomes the true launcher, called as Hydra calls it, with another command than Hydra's proxy and with the order's
 * other half as standard input. So what an agent is told goes where the launcher goes, and comes from whom the launcher
 * vouches for; nobody has to connect to mpiexec.hydra.
 * Far: that command. It reads the order from standard input, takes over the environment and becomes keeld. */
#include "pm/launch/words.h"
#include "pm/wire/order.h"
#include "pm/wire/ticket.h"
#include "runtime/base/fault.h"
#include "runtime/base/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int fail(const char *what)
{
    fprintf(stderr, "keel-launch: %s: %s\n", what, strerror(errno));
    return 255;
}

/* Points are those of one node, which the ticket's line names. */
static void arm_faults(const char *line)
{
    struct summons s;
    if (getenv("KEEL_FAULT") && summons_read(line, &s))
        fault_init(s.node, -1, 0);
    explicit_bzero(&s, sizeof s);
}

/* ---- far ---- */

/* What the way here has set for this host stays: an ssh from here has another agent than one from keelrun's host. */
static void take_environment(char *const *env)
{
    for (; *env; env++) {
        char *equals = strchr(*env, '=');
        if (!equals || strncmp(*env, "SSH_", 4) == 0)
            continue;
        *equals = '\0';
        setenv(*env, equals + 1, 1);
        *equals = '=';
    }
}

static int run_agent(bool from_far)
{
    struct order order;
    int line[2];
    if (!order_read_far(STDIN_FILENO, &order)) {
        fprintf(stderr, "keel-launch: nothing came on standard input: the launcher has to carry it here (no ssh -n, no "
                        "srun --input "
                        "none)\n");
        return 255;
    }
    if (from_far)
        take_environment(order.env);
    arm_faults(order.ticket);
    FAULT_POINT("order.arrived");
    size_t len = strlen(order.ticket);
    if (pipe(line) < 0 || write(line[1], order.ticket, len) != (ssize_t)len || dup2(line[0], STDIN_FILENO) < 0)
        return fail("pipe");
    explicit_bzero((char *)order.ticket, len);
    (void)kernel_close_from(3, false);
    FAULT_POINT("order.handed_on");
    execl(order.keeld, order.keeld, (char *)NULL);
    return fail(order.keeld);
}

/* ---- near ---- */

/* keelrun knows who we are, and mpiexec.hydra is gone. */
static bool may_go_on(void)
{
    char byte = 0;
    ssize_t n;
    if (send(ORDER_REPORT, &byte, 1, MSG_NOSIGNAL) != 1)
        return false;
    while ((n = recv(ORDER_REPORT, &byte, 1, 0)) < 0 && errno == EINTR)
        ;
    return n == 1;
}

static void reset_signals(void)
{
    sigset_t none;
    for (int s = 1; s < 32; s++)
        signal(s, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* What Hydra has left open is closed: its listener among it. */
static bool take_descriptors(int input)
{
    return dup2(ORDER_OUTPUT, STDOUT_FILENO) >= 0 && dup2(ORDER_OUTPUT, STDERR_FILENO) >= 0 &&
           dup2(input, STDIN_FILENO) >= 0 && kernel_close_from(3, false);
}

static int run_launcher(int argc, char **argv)
{
    struct order order;
    struct words words;
    if (fcntl(STDIN_FILENO, F_GETFD) < 0) /* Hydra gives some launchers none: nothing else is to get its number */
        (void)open("/dev/null", O_RDONLY);
    if (!order_read(ORDER_FILE, &order))
        return 255;
    arm_faults(order.ticket);
    FAULT_POINT("order.read");
    if (!may_go_on())
        return 255;
    FAULT_POINT("order.may_go_on");
    int input = order_write_far(&order);
    if (input < 0)
        return fail("memory file");
    reset_signals();
    if (!take_descriptors(input))
        return fail("descriptors");
    if (chdir(order.cwd) < 0)
        return fail(order.cwd);
    environ = (char **)order.env;
    if (!words_make(&words, argc, argv, order.launcher, order.host)) {
        fprintf(stderr, "keel-launch: %s\n", words.why);
        return 255;
    }
    if (order.way == ORDER_HERE ||
        (order.way == ORDER_BY_LAUNCHER_IF_FAR && words.may_be_here && words_host_is_here(order.host)))
        return run_agent(false);
    FAULT_POINT("order.launching");
    execvp(words.argv[0], words.argv);
    return fail(words.argv[0]);
}

int main(int argc, char **argv)
{
    if (words_are_hydras(argc, argv))
        return run_launcher(argc, argv);
    if (argc == 1)
        return run_agent(true);
    /* what mpiexec.hydra is asked to run, and does where it does not ask a launcher that we can be */
    fprintf(stderr,
            "this launcher of mpiexec.hydra does not carry what an agent is told: use another (--launcher ssh)\n");
    return 255;
}
