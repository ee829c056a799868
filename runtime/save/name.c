/* How the files of a save are called. */
#include "runtime/save/save.h"

#include <stdio.h>
#include <string.h>

static const char suffix[] = ".manifest";

/* Eight bytes that only the job's own processes can tell. */
static uint64_t mark_of(const struct save_job *job, uint64_t version, uint64_t rank)
{
    const struct {
        char what[16];
        uint64_t job, version, rank;
    } named = {"keel save name", job->number, version, rank};
    uint64_t mark;
    crypto_generichash((uint8_t *)&mark, sizeof mark, (const uint8_t *)&named, sizeof named, job->secret, SAVE_SECRET);
    return mark;
}

void save_name(char name[SAVE_NAME], const struct save_job *job, uint64_t version, uint64_t rank)
{
    int n = snprintf(name, SAVE_NAME, "%llu.%016llx.%016llx", (unsigned long long)version,
                     (unsigned long long)job->number, (unsigned long long)mark_of(job, version, rank));
    if (rank == SAVE_MANIFEST)
        snprintf(name + n, SAVE_NAME - (size_t)n, "%s", suffix);
    else
        snprintf(name + n, SAVE_NAME - (size_t)n, ".rank%llu", (unsigned long long)rank);
}

bool save_name_read(const char *name, struct save_named *f)
{
    unsigned long long version, job, mark, rank, own;
    int n = 0, end = 0;
    *f = (struct save_named){0};
    if (sscanf(name, "%llu.%16llx%n", &version, &job, &n) != 2)
        return false;
    f->version = version;
    f->job = job;
    f->mark = n;
    f->kind = n;
    if (sscanf(name + n, ".%16llx%n", &mark, &end) == 1)
        f->kind = n += end;
    end = 0;
    f->manifest = strncmp(name + n, suffix, sizeof suffix - 1) == 0;
    if (f->manifest)
        n += (int)sizeof suffix - 1;
    else if (sscanf(name + n, ".rank%llu%n", &rank, &end) == 1)
        n += end;
    else
        return false;
    end = 0;
    f->part = sscanf(name + n, ".%16llx.part%n", &own, &end) == 1 && end > 0 && !name[n + end];
    return f->part || !name[n];
}

void save_name_of_part(char part[SAVE_PART], const char *name)
{
    uint64_t own;
    struct save_named f;
    randombytes_buf(&own, sizeof own);
    const bool marked = save_name_read(name, &f);
    snprintf(part, SAVE_PART, "%.*s%s.%016llx.part", marked ? f.mark : 0, name, name + (marked ? f.kind : 0),
             (unsigned long long)own);
}
