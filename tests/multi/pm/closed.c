/* A rank without standard descriptors: what it prints all the same is refused as before keel_init, and reaches no
 * socket of libkeel's. */
#include <keel/keel.h>

#include <errno.h>
#include <unistd.h>

int main(void)
{
    static const char line[] = "a line that nobody reads\n";
    char byte;
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    if (keel_init() != KEEL_OK)
        return 2;
    for (int i = 0; i < 100; i++) {
        if (keel_barrier() != KEEL_OK)
            return 3;
        for (int fd = 0; fd < 3; fd++)
            if (write(fd, line, sizeof line - 1) >= 0 || errno != EBADF || read(fd, &byte, 1) >= 0 || errno != EBADF)
                return 4 + fd;
    }
    return keel_finalize() == KEEL_OK ? 0 : 1;
}
