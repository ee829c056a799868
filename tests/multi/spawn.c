/* spawn [child]: a process that a rank starts is not that rank: it does not come into the job by what it inherits, and
 * the rank goes on. Exit 0 if all is right. */
#include <keel/keel.h>

#include <stdlib.h>
#include <sys/wait.h>

#include "../lib/expect.h"

int main(int argc, char **argv)
{
    int status;
    (void)argv;
    if (argc > 1)
        return keel_init() == KEEL_ERR_NOT_LAUNCHED ? 0 : 1;
    CHECK(keel_init());
    CHECK(keel_barrier());
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        execl("/proc/self/exe", "spawn", "child", (char *)NULL);
        _exit(2);
    }
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(keel_barrier());
    CHECK(keel_finalize());
    return 0;
}
