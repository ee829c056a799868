#include "tests/sim/data/fiber.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "tests/lib/sanitized.h"

#ifdef SANITIZED_ADDRESS
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef SANITIZED_THREAD
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__x86_64__) && !SANITIZED
#define FIBER_SWITCH 1 /* without the system calls of swapcontext, which the sanitizers know how to follow */
#endif

enum { STACK_BYTES = 256 * 1024, GUARD_BYTES = 4096 };

struct fiber {
    struct fiber *next_free;
    void (*run)(void *arg);
    void *arg;
    char *stack;
#ifdef FIBER_SWITCH
    void *sp; /* where it goes on */
#else
    ucontext_t context;
#endif
    bool begun, done;
    void *fake_stack; /* address sanitizer's */
    void *thread;     /* thread sanitizer's */
};

static struct fiber *running, *free_fibers;
#ifdef FIBER_SWITCH
static void *scheduler_sp;

/* What a function keeps goes onto the stack, which is left for the other one. */
void fiber_switch(void **from, void *to);
__asm__(".text\n"
        ".p2align 4\n"
        ".globl fiber_switch\n"
        ".hidden fiber_switch\n"
        ".type fiber_switch, @function\n"
        "fiber_switch:\n"
        "\tpushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n"
        "\tmovq %rsp, (%rdi)\n"
        "\tmovq %rsi, %rsp\n"
        "\tpopq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n"
        "\tret\n"
        ".size fiber_switch, .-fiber_switch\n");
#else
static ucontext_t scheduler;
#endif
#ifdef SANITIZED_ADDRESS
static const void *scheduler_stack;
static size_t scheduler_bytes;
static void *scheduler_fake;
#endif
#ifdef SANITIZED_THREAD
static void *scheduler_thread;
#endif

static struct fiber *fiber_new(void)
{
    struct fiber *f = calloc(1, sizeof *f);
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (!f || stack == MAP_FAILED || mprotect(stack, GUARD_BYTES, PROT_NONE) != 0) {
        perror("fiber");
        exit(2);
    }
    f->stack = stack;
    return f;
}

struct fiber *fiber_create(void (*run)(void *arg), void *arg)
{
    struct fiber *f = free_fibers;
    if (f)
        free_fibers = f->next_free;
    else
        f = fiber_new();
    f->run = run;
    f->arg = arg;
    f->begun = f->done = false;
    f->fake_stack = NULL;
#ifdef SANITIZED_ADDRESS
    ASAN_UNPOISON_MEMORY_REGION(f->stack + GUARD_BYTES, STACK_BYTES - GUARD_BYTES);
#endif
#ifdef SANITIZED_THREAD
    f->thread = __tsan_create_fiber(0);
#endif
    return f;
}

/* The other side of a switch has arrived. */
static void arrived_in_fiber(void)
{
#ifdef SANITIZED_ADDRESS
    __sanitizer_finish_switch_fiber(running->fake_stack, &scheduler_stack, &scheduler_bytes);
#endif
}

static void to_scheduler(void)
{
#ifdef SANITIZED_ADDRESS
    __sanitizer_start_switch_fiber(running->done ? NULL : &running->fake_stack, scheduler_stack, scheduler_bytes);
#endif
#ifdef SANITIZED_THREAD
    __tsan_switch_to_fiber(scheduler_thread, 0);
#endif
#ifdef FIBER_SWITCH
    fiber_switch(&running->sp, scheduler_sp);
#else
    swapcontext(&running->context, &scheduler);
#endif
    arrived_in_fiber();
}

static void first(void)
{
    arrived_in_fiber();
    running->run(running->arg);
    running->done = true;
    to_scheduler();
    abort();
}

static void begin(struct fiber *f)
{
    f->begun = true;
#ifdef FIBER_SWITCH
    enum { KEPT = 6 };
    void **top = (void **)(f->stack + STACK_BYTES - 16); /* where a call would have left the address to return to */
    *--top = NULL;
    *--top = (void *)first;
    f->sp = top - KEPT;
#else
    if (getcontext(&f->context) != 0)
        abort();
    f->context.uc_stack.ss_sp = f->stack + GUARD_BYTES;
    f->context.uc_stack.ss_size = STACK_BYTES - GUARD_BYTES;
    f->context.uc_link = NULL;
    makecontext(&f->context, first, 0);
#endif
}

static void enter(struct fiber *f)
{
    if (!f->begun)
        begin(f);
#ifdef FIBER_SWITCH
    fiber_switch(&scheduler_sp, f->sp);
#else
    swapcontext(&scheduler, &f->context);
#endif
}

void fiber_resume(struct fiber *f)
{
    if (running || f->done)
        abort();
    running = f;
#ifdef SANITIZED_ADDRESS
    __sanitizer_start_switch_fiber(&scheduler_fake, f->stack + GUARD_BYTES, STACK_BYTES - GUARD_BYTES);
#endif
#ifdef SANITIZED_THREAD
    scheduler_thread = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(f->thread, 0);
#endif
    enter(f);
#ifdef SANITIZED_ADDRESS
    __sanitizer_finish_switch_fiber(scheduler_fake, NULL, NULL);
#endif
    running = NULL;
}

void fiber_suspend(void)
{
    to_scheduler();
}

struct fiber *fiber_current(void)
{
    return running;
}

bool fiber_is_done(const struct fiber *f)
{
    return f->done;
}

void fiber_destroy(struct fiber *f)
{
    if (!f)
        return;
#ifdef SANITIZED_THREAD
    __tsan_destroy_fiber(f->thread);
#endif
    f->next_free = free_fibers;
    free_fibers = f;
}

void fiber_abandon(void)
{
    running = NULL;
}
