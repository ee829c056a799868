#include "tests/sim/data/state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/client/client.h"
#include "runtime/client/replica/replica.h"

static struct {
    int fd, entered;
    size_t bytes;
    char *all; /* [STATES_MAX * bytes] */
} states = {.fd = -1, .entered = -1};

static _Noreturn void fails(const char *what)
{
    perror(what);
    exit(2);
}

/* Also of what lies between variables, where AddressSanitizer lets nobody look. */
__attribute__((no_sanitize("address"))) static bool are_zeros(const volatile char *from, const volatile char *to)
{
    while (from < to && !*from)
        from++;
    return from == to;
}

/* They begin as zeros, which the first look at them says. */
static void open_states(void)
{
    states.bytes = (size_t)(state_end + STATE_PAGE - state_begin);
    if ((char *)&replica < state_begin || (char *)(&replica + 1) > state_end)
        fails("the linker has put variables elsewhere");
    if (!are_zeros(state_begin, state_end))
        fails("variables do not begin as zeros");
    states.fd = memfd_create("states", MFD_CLOEXEC);
    if (states.fd < 0 || ftruncate(states.fd, (off_t)(STATES_MAX * states.bytes)) != 0)
        fails("states");
    states.all = mmap(NULL, STATES_MAX * states.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, states.fd, 0);
    if (states.all == MAP_FAILED)
        fails("states");
}

void state_new(int number)
{
    if (states.fd < 0)
        open_states();
    memset(states.all + (size_t)number * states.bytes, 0, states.bytes);
    state_enter(number);
}

void state_enter(int number)
{
    if (number == states.entered || states.fd < 0)
        return;
    states.entered = number;
    if (mmap(state_begin, states.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, states.fd,
             (off_t)((size_t)number * states.bytes)) == MAP_FAILED)
        fails("state");
}

void *state_place(void *memory)
{
    char *at = memory;
    if (states.fd < 0 || at < state_begin || at >= state_end)
        return memory;
    return states.all + (size_t)states.entered * states.bytes + (at - state_begin);
}
