#include "tests/sim/data/pages.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/sim/data/heap.h"

struct pages {
    struct pages *next;
    uint8_t *base;
    size_t blocks;                /* a power of two */
    size_t open_from, open_until; /* blocks: outside of these none can be written */
    bool *dirty;                  /* [blocks]: not known to be zero */
    uint64_t written[];           /* of each block: the number of the look that was the next one then */
};

static struct pages *all, *unused;
static uint64_t coming = 1; /* the next look */
static struct sigaction others;

static struct pages *find(const void *at)
{
    struct pages *p = all;
    while (p && ((const uint8_t *)at < p->base || (const uint8_t *)at >= p->base + p->blocks * PAGES_BLOCK))
        p = p->next;
    return p;
}

static void open_block(struct pages *p, size_t block)
{
    mprotect(p->base + block * PAGES_BLOCK, PAGES_BLOCK, PROT_READ | PROT_WRITE);
    p->written[block] = coming;
    p->dirty[block] = true;
    if (p->open_from == p->open_until)
        p->open_from = p->open_until = block;
    if (block < p->open_from)
        p->open_from = block;
    if (block >= p->open_until)
        p->open_until = block + 1;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
    struct pages *p = find(info->si_addr);
    size_t block = p ? (size_t)((uint8_t *)info->si_addr - p->base) / PAGES_BLOCK : 0;
    if (p && (p->written[block] != coming || !p->dirty[block]))
        open_block(p, block);
    else if (others.sa_flags & SA_SIGINFO)
        others.sa_sigaction(sig, info, context);
    else if (others.sa_handler == SIG_DFL || others.sa_handler == SIG_IGN)
        sigaction(SIGSEGV, &others, NULL); /* the same again, without us */
    else
        others.sa_handler(sig);
}

static void watch(void)
{
    struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER}, before;
    sigaction(SIGSEGV, &sa, &before);
    if (!(before.sa_flags & SA_SIGINFO) || before.sa_sigaction != on_fault)
        others = before;
}

static struct pages *map(size_t blocks)
{
    struct heap *outer = heap_enter(NULL);
    struct pages *p = calloc(1, sizeof *p + blocks * sizeof p->written[0]);
    bool *dirty = calloc(blocks, sizeof *dirty);
    heap_enter(outer);
    void *base = mmap(NULL, blocks * PAGES_BLOCK, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!p || !dirty || base == MAP_FAILED) {
        perror("pages");
        exit(2);
    }
    *p = (struct pages){.base = base, .blocks = blocks, .dirty = dirty};
    return p;
}

/* One that an earlier run has had: new memory from the system costs more than to clear what is not zero of it. */
static struct pages *used(size_t blocks)
{
    struct pages **link = &unused;
    while (*link && (*link)->blocks != blocks)
        link = &(*link)->next;
    struct pages *p = *link;
    if (p) {
        *link = p->next;
        mprotect(p->base, blocks * PAGES_BLOCK, PROT_READ | PROT_WRITE);
        for (size_t i = 0; i < blocks; i++)
            if (p->dirty[i])
                memset(p->base + i * PAGES_BLOCK, 0, PAGES_BLOCK);
        memset(p->dirty, 0, blocks * sizeof *p->dirty);
        mprotect(p->base, blocks * PAGES_BLOCK, PROT_READ);
    }
    return p;
}

struct pages *pages_alloc(size_t bytes, uint8_t **base)
{
    size_t blocks = 1;
    while (blocks * PAGES_BLOCK < bytes)
        blocks *= 2;
    struct pages *p = used(blocks);
    if (!p)
        p = map(blocks);
    watch();
    p->next = all;
    p->open_from = p->open_until = 0;
    for (size_t i = 0; i < blocks; i++)
        p->written[i] = coming;
    all = p;
    *base = p->base;
    return p;
}

static void set_aside(struct pages *p)
{
    struct pages **link = &all;
    while (*link != p)
        link = &(*link)->next;
    *link = p->next;
    p->next = unused;
    unused = p;
}

/* Who uses it all the same ends here. */
void pages_free(struct pages *p)
{
    mprotect(p->base, p->blocks * PAGES_BLOCK, PROT_NONE);
    set_aside(p);
}

void pages_free_all(void)
{
    while (all)
        set_aside(all);
    coming = 1;
}

void pages_looked(uint64_t n)
{
    coming = n + 1;
    for (struct pages *p = all; p; p = p->next) {
        if (p->open_from < p->open_until)
            mprotect(p->base + p->open_from * PAGES_BLOCK, (p->open_until - p->open_from) * PAGES_BLOCK, PROT_READ);
        p->open_from = p->open_until = 0;
    }
}

bool pages_written(const struct pages *p, const void *from, size_t len, uint64_t n)
{
    size_t first = (size_t)((const uint8_t *)from - p->base);
    for (size_t block = first / PAGES_BLOCK; len && block <= (first + len - 1) / PAGES_BLOCK; block++)
        if (p->written[block] > n)
            return true;
    return false;
}
