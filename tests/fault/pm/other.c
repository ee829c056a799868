/* For intruders.py: set-user-id root, becomes root in every respect, as what sudo starts does, and sleeps. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    if (setsid() < 0 || setresuid(0, 0, 0) < 0)
        return 1;
    printf("%d\n", (int)getpid());
    fflush(stdout);
    for (int i = 0; i < 3; i++)
        close(i);
    sleep(60);
    return 0;
}
