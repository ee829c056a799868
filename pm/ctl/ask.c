#include "pm/ctl/ask.h"

#include "pm/wire/bytes.h"
#include "pm/wire/codec.h"
#include "pm/wire/message.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MS = 2000 };

bool ask(int fd, uint8_t type, const char *body)
{
    struct session s;
    struct bytes out = {0};
    session_init(&s, SESSION_PLAIN, 0, NULL, NULL, &out);
    session_seal(&s, type, body, strlen(body), &out);
    ssize_t n = send(fd, out.data, out.len, MSG_NOSIGNAL); /* small enough for the socket's buffer */
    bool good = n == (ssize_t)out.len;
    bytes_free(&out);
    session_fini(&s);
    return good;
}

ssize_t ask_receive(struct session *s, int fd, int timeout_ms)
{
    uint8_t buffer[65536];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, timeout_ms) <= 0)
        return -1;
    ssize_t n = read(fd, buffer, sizeof buffer);
    if (n > 0)
        session_feed(s, buffer, (size_t)n);
    return n < 0 ? 0 : n;
}

json_t *ask_about(int fd, uint8_t question, const char *body, uint8_t wanted, int timeout_ms)
{
    struct session s;
    struct bytes out = {0};
    json_t *answer = NULL;
    session_init(&s, SESSION_PLAIN, 0, NULL, NULL, &out);
    if (ask(fd, question, body)) {
        uint8_t type;
        const uint8_t *said;
        size_t len;
        while (!answer && ask_receive(&s, fd, timeout_ms) > 0)
            while (!answer && session_next(&s, &out, &type, &said, &len))
                if (type == wanted)
                    answer = codec_object(said, len);
    }
    bytes_free(&out);
    session_fini(&s);
    return answer;
}

json_t *ask_for(int fd, uint8_t question, uint8_t wanted, int timeout_ms)
{
    return ask_about(fd, question, "", wanted, timeout_ms);
}

json_t *ask_status(int fd)
{
    return ask_for(fd, MSG_ASK_STATUS, MSG_STATUS, ANSWER_MS);
}

long long ask_whom(int fd)
{
    struct ucred peer = {0};
    socklen_t len = sizeof peer;
    return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 ? peer.pid : 0;
}
