/* A rank that puts to its neighbour. With -DBESIDE it uses libfabric itself, before and after Keel, and finds what
 * FI_PROVIDER lets it find. */
#include <keel/keel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef BESIDE
#include <rdma/fabric.h>

/* How many providers the program finds; -1 if one of them is not the wanted one, alone or below others. */
static int count_providers(const char *wanted)
{
    struct fi_info *all = NULL;
    int count = 0;
    if (fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &all) != 0)
        return 0;
    for (struct fi_info *i = all; i && count >= 0; i = i->next)
        count = strncmp(i->fabric_attr->prov_name, wanted, strlen(wanted)) == 0 ? count + 1 : -1;
    fi_freeinfo(all);
    return count;
}
#endif

static int put_to_neighbour(void)
{
    keel_segment *segment;
    int mine = keel_rank(), right = (mine + 1) % keel_size(), left = (mine + keel_size() - 1) % keel_size(), got = -1;
    if (keel_segment_alloc(sizeof mine, KEEL_REDUNDANCY_NONE, &segment) != KEEL_OK ||
        keel_put(segment, right, 0, &mine, sizeof mine) != KEEL_OK || keel_barrier() != KEEL_OK ||
        keel_get(segment, mine, 0, &got, sizeof got) != KEEL_OK)
        return 1;
    return got != left;
}

#ifndef BESIDE
/* Of libfabric's libraries, those that measure the clock by sleeping. */
static int has_napping_library(void)
{
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && !found && fgets(line, sizeof line, maps))
        found = strstr(line, "/libinfinipath.") != NULL;
    if (maps)
        fclose(maps);
    return found;
}
#endif

int main(void)
{
#ifdef BESIDE
    const char *filter = getenv("FI_PROVIDER");
    int before = count_providers(filter);
    if (before < 1)
        return 3;
#endif
    if (keel_init() != KEEL_OK)
        return 2;
    if (put_to_neighbour())
        return 1;
#ifdef BESIDE
    if (getenv("FI_PROVIDER") != filter || count_providers(filter) != before)
        return 4;
#else
    printf("%s\n", has_napping_library() ? "naps" : "awake");
#endif
    return keel_finalize() == KEEL_OK ? 0 : 5;
}
