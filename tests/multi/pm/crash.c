/* crash RANK SIGNAL once|always [hold]: the rank sends itself the signal after keel_init, in its first process or in
 * each; the others meet in a barrier and end. hold: rank 0 says "here" and waits for the end of its input before. */
#include <keel/keel.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/lib/sanitized.h"

int main(int argc, char **argv)
{
    if (argc < 4 || keel_init() != KEEL_OK)
        return 2;
    if (argc > 4 && keel_rank() == 0) {
        puts("here");
        fflush(stdout);
        while (getchar() != EOF)
            ;
    }
    if (keel_rank() == atoi(argv[1]) && (!keel_restarted() || strcmp(argv[3], "always") == 0)) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        if (SANITIZED) // they catch the signal to tell of it, and exit
            signal(atoi(argv[2]), SIG_DFL);
        kill(getpid(), atoi(argv[2]));
    }
    if (keel_restarted())
        keel_resume(NULL);
    if (keel_barrier() != KEEL_OK)
        return 3;
    return keel_finalize() == KEEL_OK ? 0 : 4;
}
