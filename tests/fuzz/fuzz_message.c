/* The bodies of messages between keelrun and agents: JSON, and what is inside. The first byte says how the rest is
 * taken: as the whole text, as a value, as a text in a value, as bytes that must come back. */
#include "pm/wire/codec.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(json_t *item)
{
    int ints[4];
    uint8_t blob[64];
    size_t len;
    if (codec_to_ints(item, ints, 4, 0, 3))
        for (int i = 0; i < 4; i++)
            if (ints[i] < 0 || ints[i] > 3)
                abort();
    if (codec_to_blob(item, blob, sizeof blob, &len) && len > sizeof blob)
        abort();
    char **strings = codec_to_strings(item);
    if (strings)
        json_decref(codec_strings(strings));
    free(strings);
}

static void look_into(json_t *m)
{
    const char *key;
    json_t *item;
    json_object_foreach(m, key, item) {
        long long number;
        if (codec_int(m, key, -5, 300, &number) && (number < -5 || number > 300))
            abort();
        look(item);
    }
    json_decref(m);
}

static void back_and_forth(const uint8_t *data, size_t size)
{
    uint8_t *again = malloc(size + 1);
    size_t len = 0;
    json_t *value = codec_blob(data, size);
    if (!codec_to_blob(value, again, size + 1, &len) || len != size || memcmp(data, again, size) != 0)
        abort();
    json_decref(value);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct bytes text = {0};
    uint8_t how = data[0] % 4;
    data++, size--;
    if (how == 0) {
        look_into(codec_object(data, size));
    } else if (how == 1) {
        bytes_append(&text, "{\"k\":", 5);
        bytes_append(&text, data, size);
        bytes_append(&text, "}", 1);
        look_into(codec_object(text.data, text.len));
    } else if (how == 2) {
        json_t *value = json_stringn((const char *)data, size);
        look(value);
        json_decref(value);
    } else {
        back_and_forth(data, size);
    }
    bytes_free(&text);
    return 0;
}
