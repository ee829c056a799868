/* What keelrun does with each signal; the table is in keelrun(1). What was ignored when it was started stays so.
 *
 *   end       INT, TERM, HUP, QUIT     the job ends; ranks get SIGTERM, of QUIT SIGQUIT, which leaves core files
 *   forward   USR1, USR2, ALRM ...     each rank gets it: batch systems warn by them
 *   stop      TSTP                     ranks are stopped, agents are not; then keelrun is
 *   go on     CONT                     ranks go on
 *   crash     SEGV, ABRT ...           keelrun's own end, with a line: the job goes on without it, if it runs
 *
 * PIPE and XFSZ are ignored (main), what they say comes by write. WINCH says nothing to ranks, which have no terminal.
 * TTIN and TTOU stop keelrun alone, as any program. */
#include "pm/run/job.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLUSH_LOOK_MS = 10, FLUSH_LOOKS = 100 /* until it stops though not all have taken what they are told */ };

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int forwarded[] = {SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF,
                                SIGXCPU, SIGURG,  SIGIO,   SIGPWR,    SIGSTKFLT};
static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
#define COUNT(list) ((int)(sizeof(list) / sizeof(list)[0]))

enum { WATCHED_MAX = 128 };

static struct {
    uv_signal_t watched[WATCHED_MAX];
    int count;
    uv_timer_t stopping;
    int looks;            /* of stopping */
    char last_words[200]; /* of a job that runs */
    volatile sig_atomic_t runs;
} here;

static bool has_default(int signal_number)
{
    struct sigaction now;
    return sigaction(signal_number, NULL, &now) == 0 && now.sa_handler == SIG_DFL;
}

static void tell_ranks(struct job *j, int signal_number)
{
    for (int i = 0; i < j->total && j->phase == JOB_RUNNING; i++)
        job_send_json(j, i, MSG_SIGNAL, json_pack("{s:i}", "signal", signal_number));
}

static void on_end(uv_signal_t *handle, int signal_number)
{
    job_interrupted(handle->data, signal_number);
}

static void on_forward(uv_signal_t *handle, int signal_number)
{
    tell_ranks(handle->data, signal_number);
}

/* ---- Ctrl-Z ---- */

static bool is_under_way(const struct job *j)
{
    for (int i = 0; i < j->total; i++)
        if (j->nodes[i].conn && conn_queued(j->nodes[i].conn) > 0)
            return true;
    return false;
}

static void stopping_passed(uv_timer_t *timer)
{
    const struct job *j = timer->data;
    if (is_under_way(j) && ++here.looks < FLUSH_LOOKS)
        return;
    uv_timer_stop(timer);
    raise(SIGSTOP); /* until SIGCONT */
}

static void on_stop(uv_signal_t *handle, int signal_number)
{
    if (uv_is_active((uv_handle_t *)&here.stopping))
        return;
    tell_ranks(handle->data, signal_number);
    here.looks = 0;
    uv_timer_start(&here.stopping, stopping_passed, 0, FLUSH_LOOK_MS);
}

static void on_continue(uv_signal_t *handle, int signal_number)
{
    struct job *j = handle->data;
    tell_ranks(j, signal_number);
    stdin_feed_taken(&j->feed, 0); /* it may be in the foreground again */
}

/* ---- a crash ---- */

static void on_crash(int signal_number)
{
    static const char early[] = "keelrun: killed by a signal of its own before the job ran; what it has started ends\n";
    const char *words = here.runs ? here.last_words : early;
    ssize_t rc = write(STDERR_FILENO, words, strlen(words));
    (void)rc;
    raise(signal_number); /* the default, for the handler is gone */
}

static void watch_crashes(const struct job *j)
{
    struct sigaction last = {.sa_handler = on_crash, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
    snprintf(here.last_words, sizeof here.last_words,
             "keelrun: killed by a signal of its own; the job goes on without it: keelctl attach %016llx\n",
             (unsigned long long)j->id);
    here.runs = false;
    for (int i = 0; i < COUNT(crashes); i++)
        if (has_default(crashes[i])) /* else a sanitizer's */
            sigaction(crashes[i], &last, NULL);
}

void job_signals_runs(void)
{
    here.runs = true;
}

/* ---- */

static void watch(struct job *j, int signal_number, uv_signal_cb handler)
{
    if (!has_default(signal_number) || here.count == WATCHED_MAX)
        return; /* ignored by nohup, or a shell's background */
    uv_signal_t *s = &here.watched[here.count++];
    uv_signal_init(&j->loop, s);
    s->data = j;
    uv_signal_start(s, handler, signal_number);
}

void job_signals_begin(struct job *j)
{
    for (int i = 0; i < COUNT(ending); i++)
        watch(j, ending[i], on_end);
    for (int i = 0; i < COUNT(forwarded); i++)
        watch(j, forwarded[i], on_forward);
    for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
        watch(j, s, on_forward);
    watch(j, SIGTSTP, on_stop);
    watch(j, SIGCONT, on_continue);
    uv_timer_init(&j->loop, &here.stopping);
    here.stopping.data = j;
    watch_crashes(j);
}

void job_signals_end(void)
{
    for (int i = 0; i < here.count; i++) {
        uv_signal_t *s = &here.watched[i];
        int number = s->signum;
        bool ends = false;
        for (int k = 0; k < COUNT(ending); k++)
            ends |= ending[k] == number;
        uv_signal_stop(s);
        if (!ends && number != SIGTSTP && number != SIGCONT)
            signal(number, SIG_IGN); /* nobody is left to get it */
    }
    for (int i = 0; i < COUNT(crashes); i++) {
        struct sigaction now;
        if (sigaction(crashes[i], NULL, &now) == 0 && now.sa_handler == on_crash)
            signal(crashes[i], SIG_DFL); /* nothing goes on without us */
    }
}
