#include "pm/wire/codec.h"

#include <malloc.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

void codec_free(void *p)
{
    if (p)
        explicit_bzero(p, malloc_usable_size(p));
    free(p);
}

void codec_init(void)
{
    json_set_alloc_funcs(pm_alloc, codec_free);
}

json_t *codec_text(const char *text)
{
    json_t *value = json_string(text ? text : "");
    if (value)
        return value;
    char *plain = pm_strdup(text);
    for (char *p = plain; *p; p++)
        if (*p & 0x80)
            *p = '?';
    value = json_string(plain);
    free(plain);
    return value;
}

json_t *codec_blob(const void *data, size_t len)
{
    size_t size = sodium_base64_encoded_len(len, sodium_base64_VARIANT_ORIGINAL);
    char *text = pm_alloc(size);
    sodium_bin2base64(text, size, data, len, sodium_base64_VARIANT_ORIGINAL);
    json_t *value = json_string(text);
    codec_free(text);
    return value;
}

bool codec_to_blob(const json_t *value, void *data, size_t size, size_t *len)
{
    const char *text = json_string_value(value), *end = NULL;
    return text &&
           sodium_base642bin(data, size, text, strlen(text), NULL, len, &end, sodium_base64_VARIANT_ORIGINAL) == 0 &&
           *end == '\0';
}

json_t *codec_strings(char *const *strings)
{
    struct bytes all = {0};
    for (size_t i = 0; strings[i]; i++)
        bytes_append(&all, strings[i], strlen(strings[i]) + 1);
    json_t *value = codec_blob(all.data ? all.data : (const uint8_t *)"", all.len);
    bytes_free(&all);
    return value;
}

char **codec_to_strings(const json_t *value)
{
    const char *text = json_string_value(value);
    if (!text)
        return NULL;
    size_t size = strlen(text) + 1, len = 0, count = 0;
    char *flat = pm_alloc(size);
    if (!codec_to_blob(value, flat, size, &len) || (len > 0 && flat[len - 1] != '\0')) {
        free(flat);
        return NULL;
    }
    for (size_t i = 0; i < len; i++)
        count += flat[i] == '\0';
    char **strings = pm_alloc((count + 1) * sizeof *strings + len);
    char *copy = (char *)(strings + count + 1);
    memcpy(copy, flat, len);
    free(flat);
    for (size_t i = 0; i < count; i++) {
        strings[i] = copy;
        copy += strlen(copy) + 1;
    }
    return strings;
}

json_t *codec_ints(const int *values, int count)
{
    json_t *array = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(array, json_integer(values[i]));
    return array;
}

bool codec_to_ints(const json_t *value, int *out, int count, int low, int high)
{
    if (!json_is_array(value) || json_array_size(value) != (size_t)count)
        return false;
    for (int i = 0; i < count; i++) {
        const json_t *item = json_array_get(value, (size_t)i);
        if (!json_is_integer(item) || json_integer_value(item) < low || json_integer_value(item) > high)
            return false;
        out[i] = (int)json_integer_value(item);
    }
    return true;
}

bool codec_int(const json_t *object, const char *key, long long low, long long high, long long *out)
{
    const json_t *item = json_object_get(object, key);
    if (!json_is_integer(item) || json_integer_value(item) < low || json_integer_value(item) > high)
        return false;
    *out = json_integer_value(item);
    return true;
}

json_t *codec_object(const void *text, size_t len)
{
    json_t *value = json_loadb(text, len, 0, NULL);
    if (json_is_object(value))
        return value;
    json_decref(value);
    return NULL;
}
