#include "runtime/base/user_file.h"

#include "runtime/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Not one with a name, which is a file of some other file system. */
static bool is_shells_pipe(int fd)
{
    struct statfs where;
    return fstatfs(fd, &where) == 0 && where.f_type == PIPEFS_MAGIC;
}

/* NULL: it can be read to its end. */
static const char *refuse(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return strerror(errno);
    if (S_ISREG(st.st_mode) || (S_ISFIFO(st.st_mode) && is_shells_pipe(fd)))
        return NULL;
    return S_ISFIFO(st.st_mode)  ? "it is a fifo, and no regular file"
           : S_ISDIR(st.st_mode) ? "it is a folder, and no regular file"
                                 : "it is a device, and no regular file";
}

/* Like read(2), of a descriptor that does not block. */
static ssize_t read_some(int fd, const char *path, char *at, size_t size, bool *warned)
{
    for (;;) {
        ssize_t n = read(fd, at, size);
        if (n >= 0 || (errno != EAGAIN && errno != EINTR))
            return n;
        struct pollfd one = {.fd = fd, .events = POLLIN};
        if (errno == EAGAIN && poll(&one, 1, *warned ? -1 : USER_FILE_QUIET_MS) == 0) {
            log_warn("%s: waiting for the program that writes into this pipe", path);
            *warned = true;
        }
    }
}

struct content {
    char *data;
    size_t len, room;
};

static bool grow(struct content *c, size_t most)
{
    size_t room = c->room ? 2 * c->room : 4096;
    room = room > most + 1 ? most + 1 : room;
    char *more = realloc(c->data, room + 1);
    if (!more)
        return false;
    c->data = more;
    c->room = room;
    return true;
}

/* One byte more than `most`, if there are so many. */
static bool read_all(int fd, const char *path, size_t most, struct content *c)
{
    bool warned = false;
    while (c->len <= most) {
        if (c->len == c->room && !grow(c, most))
            return false;
        ssize_t n = read_some(fd, path, c->data + c->len, c->room - c->len, &warned);
        if (n <= 0) {
            c->data[c->len] = '\0';
            return n == 0;
        }
        c->len += (size_t)n;
    }
    return true;
}

char *user_file_read(const char *path, size_t most, size_t *len, char why[USER_FILE_WHY])
{
    struct content c = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        int cause = errno;
        snprintf(why, USER_FILE_WHY, "cannot open %.300s: %s", path, strerror(cause));
        errno = cause;
        return NULL;
    }
    const char *refused = refuse(fd);
    int error = 0;
    if (refused)
        snprintf(why, USER_FILE_WHY, "cannot read %.300s: %s", path, refused);
    else if (!read_all(fd, path, most, &c))
        snprintf(why, USER_FILE_WHY, "cannot read %.300s: %s", path, strerror(error = errno));
    else if (c.len > most)
        snprintf(why, USER_FILE_WHY, "%.300s is longer than %zu bytes", path, most);
    else
        goto done;
    free(c.data);
    c = (struct content){0};
done:
    close(fd);
    *len = c.len;
    errno = error;
    return c.data;
}

const char *user_text_mark(const char *text, size_t len)
{
    static const char mark[] = "\xef\xbb\xbf";
    return len >= 3 && memcmp(text, mark, 3) == 0
               ? "the text begins with a byte order mark (UTF-8 with BOM); save it without"
               : NULL;
}

static int line_of(const char *text, const char *at)
{
    int line = 1;
    for (; text < at; text++)
        line += *text == '\n';
    return line;
}

char *user_text_read(const char *path, char why[USER_FILE_WHY])
{
    size_t len;
    char *text = user_file_read(path, USER_TEXT_MAX, &len, why);
    if (!text)
        return NULL;
    const char *zero = memchr(text, '\0', len), *mark = user_text_mark(text, len);
    if (!zero && !mark)
        return text;
    if (mark)
        snprintf(why, USER_FILE_WHY, "%.300s: line 1: %s", path, mark);
    else
        snprintf(why, USER_FILE_WHY, "%.300s: line %d: a zero byte, which no text has", path, line_of(text, zero));
    free(text);
    errno = 0;
    return NULL;
}
