/* PMI-1 as a client: lines "cmd=... key=value ...", one answer to each (pm/pmi has the other side). MPI may speak on
 * the same descriptor before us or after us; it never leaves a question without having read its answer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/client/job/bootstrap.h"

enum {
    LINE = 2048,
    PIECE = 400 /* bytes of a value, written as hexadecimal digits: 1024 of these are the usual limit */
};

static struct {
    int fd;
    bool ours; /* MPI had not begun to use it */
    int rounds;
    char space[256];
} pmi = {.fd = -1};

/* MPI's own, if the program has it. */
int MPI_Initialized(int *flag) __attribute__((weak)); // NOLINT(readability-identifier-naming)

static bool mpi_has_it(void)
{
    int flag = 0;
    return MPI_Initialized && MPI_Initialized(&flag) == 0 && flag; /* stays true after MPI_Finalize */
}

static bool write_line(const char *line)
{
    for (size_t len = strlen(line), done = 0; done < len;) {
        ssize_t n = send(pmi.fd, line + done, len - done, MSG_NOSIGNAL);
        if (n < 0 && errno == ENOTSOCK)
            n = write(pmi.fd, line + done, len - done);
        if (n < 0 && errno != EINTR)
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Byte by byte: what follows the line may be for MPI. */
static bool read_line(char *line)
{
    size_t len = 0;
    while (len < LINE - 1) {
        ssize_t n = read(pmi.fd, line + len, 1);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        if (n == 1 && line[len++] == '\n') {
            line[len - 1] = '\0';
            return true;
        }
    }
    return false;
}

/* The value of a key in a line, up to the next space. */
static bool value_of(const char *line, const char *key, char *value, size_t size)
{
    size_t len = strlen(key);
    for (const char *at = line; at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL)
        if (strncmp(at, key, len) == 0 && at[len] == '=') {
            snprintf(value, size, "%.*s", (int)strcspn(at + len + 1, " "), at + len + 1);
            return true;
        }
    return false;
}

/* A question and its answer, which is to be of that kind and without an error. */
static bool ask(const char *question, const char *kind, char *answer)
{
    char cmd[64], rc[16];
    return write_line(question) && read_line(answer) && value_of(answer, "cmd", cmd, sizeof cmd) &&
           strcmp(cmd, kind) == 0 && (!value_of(answer, "rc", rc, sizeof rc) || strcmp(rc, "0") == 0);
}

static bool put(int round, int rank, int piece, const uint8_t *bytes, size_t len)
{
    char line[LINE], answer[LINE];
    int n = snprintf(line, sizeof line, "cmd=put kvsname=%s key=keel-%d-%d-%d value=-", pmi.space, round, rank, piece);
    for (size_t i = 0; i < len; i++)
        n += snprintf(line + n, sizeof line - (size_t)n, "%02x", bytes[i]);
    snprintf(line + n, sizeof line - (size_t)n, "\n");
    return ask(line, "put_result", answer);
}

static bool get(int round, int rank, int piece, uint8_t *bytes, size_t len)
{
    char line[LINE], answer[LINE], value[LINE];
    snprintf(line, sizeof line, "cmd=get kvsname=%s key=keel-%d-%d-%d\n", pmi.space, round, rank, piece);
    if (!ask(line, "get_result", answer) || !value_of(answer, "value", value, sizeof value) || value[0] != '-')
        return false;
    size_t got = strlen(value + 1) / 2;
    for (size_t i = 0; i < got && i < len; i++) {
        unsigned byte;
        if (sscanf(value + 1 + 2 * i, "%2x", &byte) != 1)
            return false;
        bytes[i] = (uint8_t)byte;
    }
    return got <= len;
}

/* Zeros at the end of a piece are not sent. */
static int gather(void *user, const void *mine, size_t len, void *all)
{
    const struct keel_exchange *e = user;
    char answer[LINE];
    int round = pmi.rounds++, pieces = (int)((len + PIECE - 1) / PIECE);
    for (int k = 0; k < pieces; k++) {
        const uint8_t *bytes = (const uint8_t *)mine + (size_t)k * PIECE;
        size_t n = k == pieces - 1 ? len - (size_t)k * PIECE : PIECE;
        while (n > 0 && bytes[n - 1] == 0)
            n--;
        if (!put(round, e->rank, k, bytes, n))
            return 1;
    }
    if (!ask("cmd=barrier_in\n", "barrier_out", answer))
        return 1;
    memset(all, 0, len * (size_t)e->size);
    for (int r = 0; r < e->size; r++)
        for (int k = 0; k < pieces; k++)
            if (!get(round, r, k, (uint8_t *)all + (size_t)r * len + (size_t)k * PIECE,
                     k == pieces - 1 ? len - (size_t)k * PIECE : PIECE))
                return 1;
    return 0;
}

static int number_in(const char *name)
{
    const char *text = getenv(name);
    char *end;
    long value = text ? strtol(text, &end, 10) : -1;
    return !text || !*text || *end || value < 0 || value > 1 << 20 ? -1 : (int)value;
}

bool pmi_exchange_found(void)
{
    return number_in("PMI_FD") >= 0 && number_in("PMI_RANK") >= 0 && number_in("PMI_SIZE") > 0;
}

keel_status pmi_exchange_open(struct keel_exchange *e)
{
    char answer[LINE];
    *e = (struct keel_exchange){
        .rank = number_in("PMI_RANK"), .size = number_in("PMI_SIZE"), .user = e, .gather = gather};
    pmi.fd = number_in("PMI_FD");
    pmi.ours = !mpi_has_it();
    if ((pmi.ours && !ask("cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init", answer)) ||
        !ask("cmd=get_my_kvsname\n", "my_kvsname", answer) ||
        !value_of(answer, "kvsname", pmi.space, sizeof pmi.space)) {
        fprintf(stderr, "keel_init: what started this process does not speak PMI-1 on descriptor %d%s\n", pmi.fd,
                pmi.ours ? ", or no longer: another program in its place has left"
                         : ", or no longer since MPI_Init: see keel_init_over");
        return KEEL_ERR_NOT_LAUNCHED;
    }
    return KEEL_OK;
}

const char *pmi_exchange_space(void)
{
    return pmi.space;
}

void pmi_exchange_close(void)
{
    char answer[LINE];
    if (pmi.fd >= 0 && pmi.ours && !mpi_has_it())
        (void)ask("cmd=finalize\n", "finalize_ack", answer);
    pmi.fd = -1;
}
