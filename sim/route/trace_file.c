/* Reading trace files, packed or not. */
#include "sim/route/trace.h"

#include "runtime/base/user_file.h"

#include <stdlib.h>
#include <string.h>
#ifdef KEEL_HAVE_LZMA
#include <lzma.h>
#endif

enum { FILE_MAX = 256 << 20 };

#ifdef KEEL_HAVE_LZMA
static char *unpack(const char *packed, size_t len, size_t *out_len)
{
    for (size_t cap = 8 * len + 4096; cap <= FILE_MAX; cap *= 2) {
        char *out = malloc(cap);
        if (!out)
            return NULL;
        uint64_t memory = 256 << 20;
        size_t in_at = 0, out_at = 0;
        lzma_ret ret = lzma_stream_buffer_decode(&memory, 0, NULL, (const uint8_t *)packed, &in_at, len, (uint8_t *)out,
                                                 &out_at, cap);
        if (ret == LZMA_OK) {
            *out_len = out_at;
            return out;
        }
        free(out);
        if (ret != LZMA_BUF_ERROR || in_at == len)
            return NULL;
    }
    return NULL;
}
#else
static char *unpack(const char *packed, size_t len, size_t *out_len)
{
    (void)packed;
    (void)len;
    (void)out_len;
    return NULL;
}
#endif

bool trace_load(struct trace *t, const char *path, const struct trace_options *o, char what[TRACE_WHAT])
{
    *t = (struct trace){0};
    size_t len = 0, name_len = strlen(path);
    char why[USER_FILE_WHY], *data = user_file_read(path, FILE_MAX, &len, why);
    if (!data) {
        snprintf(what, TRACE_WHAT, "%.*s", TRACE_WHAT - 1, why);
        return false;
    }
    if (name_len > 3 && strcmp(path + name_len - 3, ".xz") == 0) {
        char *packed = data;
        data = unpack(packed, len, &len);
        free(packed);
        if (!data) {
            snprintf(what, TRACE_WHAT, "%.100s: cannot be unpacked (damaged, or built without liblzma)", path);
            return false;
        }
    }
    bool ok = trace_parse(t, data, len, path, o, what);
    free(data);
    return ok;
}
