/* hidden HOW [FILE]: two ranks meet; then rank 1's first process ends as HOW says, and the others meet again. What a
 * later process of rank 1 finds, and what rank 0 hears of the end, is printed.
 *   kill, segv, _exit0, _exit3, exit0, exit3, quick, left (keel_finalize, then SIGKILL), abort (keel_abort),
 *   exec (of true), stay (till FILE is there) */
#include <keel/keel.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../lib/expect.h"
#include "../lib/sanitized.h"

static void end(const char *how, const char *file)
{
    if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    else if (strcmp(how, "segv") == 0)
        raise(SIGSEGV);
    else if (strcmp(how, "_exit0") == 0)
        _exit(0);
    else if (strcmp(how, "_exit3") == 0)
        _exit(3);
    else if (strcmp(how, "exit0") == 0)
        exit(0);
    else if (strcmp(how, "exit3") == 0)
        exit(3);
    else if (strcmp(how, "quick") == 0)
        quick_exit(3);
    else if (strcmp(how, "abort") == 0)
        keel_abort(5, "aborted");
    else if (strcmp(how, "exec") == 0)
        execlp("true", "true", NULL);
    else if (strcmp(how, "exec9") == 0)
        execlp("sh", "sh", "-c", "sleep 1; kill -9 $$", NULL);
    else if (strcmp(how, "stay") == 0)
        while (access(file, F_OK) != 0)
            usleep(1000);
    else {
        CHECK(keel_finalize());
        raise(SIGKILL);
    }
}

int main(int argc, char **argv)
{
    EXPECT(argc > 1);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (SANITIZED) // they catch the signal to tell of it, and exit
        signal(SIGSEGV, SIG_DFL);
    CHECK(keel_init());
    printf("rank %d pid %d of %d%s\n", keel_rank(), (int)getpid(), (int)getppid(), keel_restarted() ? " again" : "");
    fflush(stdout);
    CHECK(keel_restarted() ? keel_resume(NULL) : keel_barrier());
    if (keel_rank() == 1 && !keel_restarted()) {
        if (argc > 3) { /* without a descriptor that leads to its agent, from now to when the file is there */
            for (int fd = 3; fd < 1024; fd++)
                close(fd);
            end("stay", argv[2]);
        }
        end(argv[1], argv[2]);
    }
    CHECK(keel_barrier());
    keel_failure f[8];
    size_t n = 0;
    CHECK(keel_failures(0, f, 8, &n, NULL));
    for (size_t i = 0; i < n && keel_rank() == 0; i++)
        printf("failure rank %d signal %d\n", f[i].rank, f[i].signal);
    CHECK(keel_finalize());
    return 0;
}
