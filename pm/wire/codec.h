/* Small conversions for message bodies. */
#ifndef KEEL_PM_CODEC_H
#define KEEL_PM_CODEC_H

#include "pm/wire/bytes.h"

#include <jansson.h>
#include <stdbool.h>

/* Of JSON values and texts: wiped, for secrets and tickets are told in them; without memory for one the program ends
 * (bytes.h), as whoever waits for a message that was dropped waits for good. Before the first value is made. */
void codec_init(void);
void codec_free(void *p);

/* Strings of arbitrary bytes (arguments, environment) as base64 of the strings with their zeros. */
json_t *codec_strings(char *const *strings);
/* NULL-terminated, one allocation for free(). NULL if the value is not what codec_strings makes. */
char **codec_to_strings(const json_t *value);
/* Text of any origin: what is not UTF-8 becomes question marks, NULL the empty text. */
json_t *codec_text(const char *text);
json_t *codec_blob(const void *data, size_t len);
/* False if it is not base64 or does not fit. */
bool codec_to_blob(const json_t *value, void *data, size_t size, size_t *len);
json_t *codec_ints(const int *values, int count);
/* Exactly count integers within [low, high]. */
bool codec_to_ints(const json_t *value, int *out, int count, int low, int high);
/* An integer member within [low, high]. */
bool codec_int(const json_t *object, const char *key, long long low, long long high, long long *out);
/* Parse a JSON object. NULL if it is none. */
json_t *codec_object(const void *text, size_t len);
#endif
