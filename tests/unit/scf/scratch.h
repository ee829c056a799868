/* A file with given text, for tests of readers. */
#ifndef KEEL_TESTS_SCF_SCRATCH_H
#define KEEL_TESTS_SCF_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline const char *scratch_write(char path[32], const char *text)
{
    strcpy(path, "/tmp/keel-scf-test-XXXXXX");
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        abort();
    close(fd);
    return path;
}

#endif
