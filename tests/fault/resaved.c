/* resaved FOLDER [full|free|leave]: four versions are saved, each with a segment that has no further copies, and once
 * more where that failed; whoever is the lowest says what became of it, and how many files are in the folder then. With
 * `full` rank 1 finds no room for its file of version 2; with `free` the segment is given back before version 4;
 * with `leave` rank 1 calls keel_finalize behind version 1. */
#include <keel/keel.h>

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../lib/expect.h"

enum { BYTES = 1 << 16, BARRIERS = 2 /* behind each save */ };

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    EXPECT(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes;
    EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static int files_in(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    EXPECT(d);
    for (struct dirent *e; (e = readdir(d));)
        n += *e->d_name != '.';
    closedir(d);
    return n;
}

static void save(uint64_t version, const char *folder, int full)
{
    if (full && version == 2 && keel_rank() == 1)
        limit_files(4096);
    keel_status status = keel_keep_save(version, folder), again = status;
    if (full && version == 2 && keel_rank() == 1)
        limit_files(RLIM_INFINITY);
    if (status != KEEL_OK)
        again = keel_keep_save(version, folder);
    CHECK(keel_barrier());
    printf("rank %d version %" PRIu64 ": %s, again: %s, %d files\n", keel_rank(), version, keel_status_name(status),
           keel_status_name(again), files_in(folder));
    fflush(stdout);
    CHECK(keel_barrier());
}

int main(int argc, char **argv)
{
    keel_segment *s, *single;
    uint64_t version, since, x = 0;
    EXPECT(argc >= 2);
    const int full = argc > 2 && strcmp(argv[2], "full") == 0, frees = argc > 2 && strcmp(argv[2], "free") == 0,
              leaves = argc > 2 && strcmp(argv[2], "leave") == 0;
    CHECK(keel_init());
    CHECK(keel_segment_alloc(BYTES, KEEL_REDUNDANCY_SHADOW, &s));
    CHECK(keel_segment_alloc(BYTES, KEEL_REDUNDANCY_NONE, &single));
    CHECK(keel_keep_room(64));
    CHECK(keel_keep("x", &x, sizeof x));
    CHECK(keel_keep_restore(&version, &since));
    for (uint64_t i = since; version && i < BARRIERS; i++)
        CHECK(keel_barrier());
    while (version++ < 4) {
        x = version;
        if (frees && version == 4)
            CHECK(keel_segment_free(single));
        save(version, argv[1], full);
        if (leaves && keel_rank() == 1)
            break;
    }
    CHECK(keel_finalize());
    return 0;
}
