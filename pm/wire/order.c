#include "pm/wire/order.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Two parts, each a length (4 bytes) and strings with their zeros. */
enum { PART_MAX = 16 << 20, NEAR_STRINGS = 4, FAR_STRINGS = 2 };

static const char *const ways[] = {"launcher", "launcher if far", "here"};

/* Returns where it begins. */
static size_t begin_part(struct bytes *b)
{
    static const uint8_t room[4];
    bytes_append(b, room, sizeof room);
    return b->len - sizeof room;
}

static void end_part(struct bytes *b, size_t at)
{
    put_u32(b->data + at, (uint32_t)(b->len - at - 4));
}

static void add(struct bytes *b, const char *text)
{
    bytes_append(b, text, strlen(text) + 1);
}

static void add_far(struct bytes *b, const struct order *o)
{
    size_t at = begin_part(b);
    add(b, o->ticket);
    add(b, o->keeld);
    for (char *const *e = o->env; *e; e++)
        add(b, *e);
    end_part(b, at);
}

/* Takes the memory of b. */
static int into_file(struct bytes *b)
{
    int fd = memfd_create("keel-order", MFD_CLOEXEC);
    size_t done = 0;
    while (fd >= 0 && done < b->len) {
        ssize_t n = write(fd, b->data + done, b->len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            close(fd);
            fd = -1;
            break;
        }
        done += (size_t)n;
    }
    int failed = errno;
    if (fd >= 0)
        lseek(fd, 0, SEEK_SET);
    explicit_bzero(b->data, b->len);
    bytes_free(b);
    errno = failed;
    return fd;
}

int order_write(const struct order *o)
{
    struct bytes b = {0};
    size_t at = begin_part(&b);
    add(&b, ways[o->way]);
    add(&b, o->launcher ? o->launcher : "");
    add(&b, o->host);
    add(&b, o->cwd);
    end_part(&b, at);
    add_far(&b, o);
    return into_file(&b);
}

int order_write_far(const struct order *o)
{
    struct bytes b = {0};
    add_far(&b, o);
    return into_file(&b);
}

static bool read_all(int fd, uint8_t *to, size_t len)
{
    size_t done = 0;
    while (done < len) {
        ssize_t n = read(fd, to + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* A part's strings, of which there are at least so many, with a NULL at their end: one allocation. NULL if it is
 * none. */
static char **read_part(int fd, size_t least)
{
    uint8_t head[4], *text;
    size_t count = 0, len;
    if (!read_all(fd, head, sizeof head) || (len = get_u32(head)) == 0 || len > PART_MAX)
        return NULL;
    text = pm_alloc(len);
    bool good = read_all(fd, text, len) && text[len - 1] == '\0';
    for (size_t i = 0; good && i < len; i++)
        count += text[i] == '\0';
    char **list = good && count >= least ? pm_alloc((count + 1) * sizeof *list + len) : NULL;
    char *at = list ? memcpy(list + count + 1, text, len) : NULL;
    for (size_t i = 0; list && i < count; i++, at += strlen(at) + 1)
        list[i] = at;
    explicit_bzero(text, len);
    free(text);
    return list;
}

bool order_read_far(int fd, struct order *o)
{
    char **far = read_part(fd, FAR_STRINGS);
    if (!far)
        return false;
    o->ticket = far[0];
    o->keeld = far[1];
    o->env = far + FAR_STRINGS;
    o->memory[1] = far;
    return true;
}

bool order_read(int fd, struct order *o)
{
    char **near = read_part(fd, NEAR_STRINGS);
    if (!near)
        return false;
    o->memory[0] = near;
    for (o->way = ORDER_BY_LAUNCHER; o->way < ORDER_HERE && strcmp(near[0], ways[o->way]) != 0; o->way++)
        ;
    o->launcher = near[1];
    o->host = near[2];
    o->cwd = near[3];
    return order_read_far(fd, o);
}

bool start_is_agents(pid_t pid)
{
    struct stat its, ours;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    return stat(path, &its) == 0 && stat("/proc/self/exe", &ours) == 0 && its.st_dev == ours.st_dev &&
           its.st_ino == ours.st_ino && start_is_of(pid);
}

bool start_is_of(pid_t pid)
{
    static const char name[] = START_ENV "=";
    char path[64], buffer[4096];
    size_t matched = 0, n;
    bool begins = true, found = false;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && !found && (n = fread(buffer, 1, sizeof buffer, f)) > 0)
        for (size_t i = 0; i < n && !found; i++) {
            matched = begins && buffer[i] == name[matched] ? matched + 1 : 0;
            begins = matched > 0 || buffer[i] == '\0';
            found = matched == sizeof name - 1;
        }
    if (f)
        fclose(f);
    return found;
}
