/* To be preloaded: an allocator that reads clocks with its lock held, as jemalloc and those of sanitizers do now and
 * then. Who needs memory to say what the time is comes here again, and the process ends with a line. */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);               // NOLINT(bugprone-reserved-identifier): glibc's
extern void *__libc_calloc(size_t nmemb, size_t size); // NOLINT(bugprone-reserved-identifier)
extern void *__libc_realloc(void *block, size_t size); // NOLINT(bugprone-reserved-identifier)

static pthread_mutex_t lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

static void look_at_clocks(void)
{
    static const char again[] = "the allocator waits for itself\n";
    struct timespec t;
    struct timeval v;
    if (pthread_mutex_lock(&lock) == EDEADLK) {
        (void)!write(STDERR_FILENO, again, strlen(again));
        abort();
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    (void)gettimeofday(&v, NULL);
    pthread_mutex_unlock(&lock);
}

__attribute__((visibility("default"))) void *malloc(size_t size)
{
    look_at_clocks();
    return __libc_malloc(size);
}

__attribute__((visibility("default"))) void *calloc(size_t nmemb, size_t size)
{
    look_at_clocks();
    return __libc_calloc(nmemb, size);
}

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the header's are reserved
__attribute__((visibility("default"))) void *realloc(void *block, size_t size)
{
    look_at_clocks();
    return __libc_realloc(block, size);
}
