/* Orders: what comes on standard input of keel-launch, from whoever has the launcher's other end. The first byte says
 * whether it is a whole order or the far half. It comes by a pipe, and what is behind it has to stay there. What could
 * be read is written again and must come out as it went in. */
#include "pm/wire/order.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The program that reads an order becomes another one. */
static void release(struct order *o)
{
    free(o->memory[0]);
    free(o->memory[1]);
    o->memory[0] = o->memory[1] = NULL;
}

static bool same(const struct order *a, const struct order *b, bool whole)
{
    size_t i = 0;
    if (whole && (a->way != b->way || strcmp(a->launcher, b->launcher) != 0 || strcmp(a->host, b->host) != 0 ||
                  strcmp(a->cwd, b->cwd) != 0))
        return false;
    while (a->env[i] && b->env[i] && strcmp(a->env[i], b->env[i]) == 0)
        i++;
    return !a->env[i] && !b->env[i] && strcmp(a->ticket, b->ticket) == 0 && strcmp(a->keeld, b->keeld) == 0;
}

/* What is behind an order on a stream stays there: it is the next reader's. */
static void check_rest(int fd, const uint8_t *rest, size_t len)
{
    uint8_t got[64];
    ssize_t n = read(fd, got, sizeof got);
    size_t expected = len < sizeof got ? len : sizeof got;
    if (n != (ssize_t)expected || memcmp(got, rest, expected) != 0)
        abort();
}

static void write_again(const struct order *o, bool whole)
{
    struct order copy = {0};
    int fd = whole ? order_write(o) : order_write_far(o);
    if (fd < 0)
        return;
    if (!(whole ? order_read(fd, &copy) : order_read_far(fd, &copy)) || !same(o, &copy, whole))
        abort();
    release(&copy);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct order order = {0};
    int ends[2];
    if (size < 1 || size > 16384 || pipe2(ends, O_CLOEXEC) < 0)
        return 0;
    bool whole = data[0] & 1;
    if (size > 1 && write(ends[1], data + 1, size - 1) != (ssize_t)(size - 1))
        abort();
    close(ends[1]);
    if (whole ? order_read(ends[0], &order) : order_read_far(ends[0], &order)) {
        size_t used = 1, parts = whole ? 2 : 1;
        for (size_t i = 0; i < parts; i++)
            used += 4 + get_u32(data + used);
        check_rest(ends[0], data + used, size - used);
        write_again(&order, whole);
    }
    release(&order);
    close(ends[0]);
    return 0;
}
