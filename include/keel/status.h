/* Result codes of every Keel call, grouped by the largest thing lost. 0 is success, errors are negative. */
#ifndef KEEL_STATUS_H
#define KEEL_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#define KEEL_STATUS_TABLE(X)                                                                                           \
    X(KEEL_OK, 0, "success")                                                                                           \
    /* the call: nothing was lost, the arguments or the moment are wrong */                                            \
    X(KEEL_ERR_ARG, -1, "an argument is out of range")                                                                 \
    X(KEEL_ERR_STATE, -2, "the call is not allowed at this moment")                                                    \
    X(KEEL_ERR_NOMEM, -3, "out of memory")                                                                             \
    X(KEEL_ERR_LIMIT, -4, "a fixed limit of the runtime is exceeded")                                                  \
    X(KEEL_ERR_SYSTEM, -5, "the operating system refused a request")                                                   \
    X(KEEL_ERR_MISMATCH, -6, "ranks disagree about the arguments of a collective call")                                \
    X(KEEL_IN_PROGRESS, -7, "the operation is not finished yet")                                                       \
    X(KEEL_ERR_REVOKED, -8, "the group was revoked")                                                                   \
    /* the link */                                                                                                     \
    X(KEEL_ERR_TIMEOUT, -20, "the operation's deadline passed")                                                        \
    X(KEEL_ERR_LINK, -21, "the connection broke; the outcome is unknown")                                              \
    X(KEEL_ERR_AUTH, -22, "the peer does not belong to this job")                                                      \
    /* a rank */                                                                                                       \
    X(KEEL_ERR_RANK_DEAD, -30, "the rank is dead")                                                                     \
    /* a node */                                                                                                       \
    X(KEEL_ERR_NODE_DEAD, -40, "the node is dead")                                                                     \
    /* data */                                                                                                         \
    X(KEEL_ERR_DATA_LOST, -50, "no copy of the data is left")                                                          \
    /* the job */                                                                                                      \
    X(KEEL_ERR_FENCED, -60, "this node was declared dead by the others")                                               \
    X(KEEL_ERR_NOT_LAUNCHED, -61, "the program was not started by keelrun, nor could it join a job")                   \
    X(KEEL_ERR_AGENT_GONE, -62, "this node's agent is gone")

typedef enum keel_status {
#define X(name, value, text) name = (value),
    KEEL_STATUS_TABLE(X)
#undef X
        KEEL_STATUS_LAST = KEEL_ERR_AGENT_GONE /* another name: C89 and C++98 allow no comma at the end */
} keel_status;

/* Results that may say that data are lost, or were not written: not to be ignored. */
#define KEEL_MUST_CHECK __attribute__((warn_unused_result))

/* One line of English without a trailing newline; never NULL. Static storage.
 * threads   any.   blocks  no. */
const char *keel_status_text(keel_status status);
/* The enumerator's name, for example "KEEL_ERR_ARG"; never NULL. Static storage.
 * threads   any.   blocks  no. */
const char *keel_status_name(keel_status status);

#ifdef __cplusplus
}
#endif
#endif
