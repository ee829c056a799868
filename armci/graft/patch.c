#include "armci/graft/patch.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    STONE_LEN = 32,       /* of what a jump steps on: its instructions and the address that they read */
    PACE = 1 << 20,       /* from one try to the next */
    REACH = (1 << 30) - 1 /* a jump of five bytes goes twice as far: from any place of the code there */
};

/* Memory that a near jump reaches from all of the code. */
static uint8_t *stones_near(uint64_t begin, size_t code_len, size_t len)
{
    for (uint64_t away = PACE; code_len < REACH && away < REACH; away += PACE) {
        uint64_t below = (begin - away) & ~(uint64_t)(PACE - 1),
                 above = (begin + code_len + away) & ~(uint64_t)(PACE - 1);
        for (int i = 0; i < 2; i++) {
            if (i == 0 && away >= begin)
                continue;
            void *want = (void *)(i == 0 ? below : above); /* NOLINT(performance-no-int-to-ptr): that is where */
            void *got =
                mmap(want, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            if (got == want)
                return got;
            if (got != MAP_FAILED) /* a kernel that does not know the flag */
                munmap(got, len);
        }
    }
    errno = ENOMEM;
    return NULL;
}

static void lay(uint8_t *stone, const struct graft_jump *jump)
{
    static const uint8_t load[] = {0x48, 0xbf},
                         go[] = {0xff, 0x25, 0, 0, 0, 0}; /* movabs argument, %rdi; jmp *(what follows) */
    if (jump->argument) {
        memcpy(stone, load, sizeof load);
        memcpy(stone + sizeof load, &jump->argument, sizeof jump->argument);
        stone += sizeof load + sizeof jump->argument;
    }
    memcpy(stone, go, sizeof go);
    memcpy(stone + sizeof go, &jump->to, sizeof jump->to);
}

static void write_jump(const struct graft_jump *jump, const uint8_t *stone)
{
    int32_t distance = (int32_t)((int64_t)(uintptr_t)stone - (int64_t)(jump->from + GRAFT_JUMP_LEN));
    uint8_t *code = (uint8_t *)jump->from; /* NOLINT(performance-no-int-to-ptr): the program's code */
    code[0] = 0xe9;
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): no function is at 0 */
    memcpy(code + 1, &distance, sizeof distance);
}

/* The pages that these functions begin on. */
static void pages_of(const struct graft_jump *jump, size_t jumps, uint64_t page, uint64_t *begin, size_t *len)
{
    uint64_t low = UINT64_MAX, high = 0;
    for (size_t i = 0; i < jumps; i++) {
        low = jump[i].from < low ? jump[i].from : low;
        high = jump[i].from + GRAFT_JUMP_LEN > high ? jump[i].from + GRAFT_JUMP_LEN : high;
    }
    *begin = low & ~(page - 1);
    *len = (size_t)(((high + page - 1) & ~(page - 1)) - *begin);
}

bool graft_patch(const struct graft_jump *jump, size_t jumps)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), stones_len = (jumps * STONE_LEN + page) & ~(page - 1), len;
    uint64_t begin;
    if (jumps == 0)
        return true;
    pages_of(jump, jumps, page, &begin, &len);
    uint8_t *stones = stones_near(begin, len, stones_len);
    if (!stones)
        return false;
    for (size_t i = 0; i < jumps; i++)
        lay(stones + i * STONE_LEN, &jump[i]);
    void *code = (void *)begin; /* NOLINT(performance-no-int-to-ptr): the program's code */
    if (mprotect(stones, stones_len, PROT_READ | PROT_EXEC) != 0 || mprotect(code, len, PROT_READ | PROT_WRITE) != 0) {
        int why = errno;
        munmap(stones, stones_len);
        errno = why;
        return false;
    }
    for (size_t i = 0; i < jumps; i++)
        write_jump(&jump[i], stones + i * STONE_LEN);
    return mprotect(code, len, PROT_READ | PROT_EXEC) == 0;
}
