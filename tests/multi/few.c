/* few: keel_init where the process may open few descriptors, from none to as many as it takes: KEEL_ERR_SYSTEM with a
 * line that says so (keel/job.h), then KEEL_OK. Each try is a job of its own: few N. Exit 0 if it is one of these
 * two and, for 64, the second. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../lib/expect.h"

int main(int argc, char **argv)
{
    struct rlimit limit;
    char said[256] = "";
    EXPECT(argc == 2 && getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = (rlim_t)atoi(argv[1]);
    FILE *err = tmpfile();
    EXPECT(err && dup2(fileno(err), STDERR_FILENO) == STDERR_FILENO && setrlimit(RLIMIT_NOFILE, &limit) == 0);
    keel_status status = keel_init();
    rewind(err);
    size_t n = fread(said, 1, sizeof said - 1, err);
    said[n] = '\0';
    printf("%s: %s: %s\n", argv[1], keel_status_name(status), said);
    if (limit.rlim_cur >= 64 || status == KEEL_OK)
        return status == KEEL_OK && keel_finalize() == KEEL_OK ? 0 : 1;
    return status == KEEL_ERR_SYSTEM && strstr(said, "descriptors") ? 0 : 1;
}
