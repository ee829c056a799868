/* JSON that is written by hand, into a buffer or a file: events, what agents say of themselves. Commas, quotes and
 * escapes are the writer's matter; what is read, or built as a tree, is jansson's.
 *
 *     struct json_writer w = json_into(text, sizeof text);
 *     json_open(&w, NULL, '{');
 *     json_put(&w, J_INT("rank", 3));
 *     json_open(&w, "reads", '[');
 *     json_put(&w, J_INT(NULL, 1));
 *     json_close(&w, ']');
 *     json_close(&w, '}');                       {"rank":3,"reads":[1]}
 *
 * It allocates nothing. One thread. */
#ifndef KEEL_BASE_JSON_H
#define KEEL_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct json_member {
    const char *key; /* NULL: an element of an array */
    enum { JSON_IS_INT, JSON_IS_UINT, JSON_IS_REAL, JSON_IS_BOOL, JSON_IS_TEXT, JSON_IS_NULL } kind;
    union {
        long long i;
        unsigned long long u;
        double real;
        bool yes;
        const char *text; /* UTF-8, as far as it is to be; NULL: the empty one */
    };
    int decimals; /* of real */
};

#define J_INT(name, value) ((struct json_member){.key = (name), .kind = JSON_IS_INT, .i = (value)})
#define J_UINT(name, value) ((struct json_member){.key = (name), .kind = JSON_IS_UINT, .u = (value)})
#define J_REAL(name, value, digits)                                                                                    \
    ((struct json_member){.key = (name), .kind = JSON_IS_REAL, .real = (value), .decimals = (digits)})
#define J_BOOL(name, value) ((struct json_member){.key = (name), .kind = JSON_IS_BOOL, .yes = (value)})
#define J_TEXT(name, value) ((struct json_member){.key = (name), .kind = JSON_IS_TEXT, .text = (value)})
#define J_NULL(name) ((struct json_member){.key = (name), .kind = JSON_IS_NULL})

/* Two arguments: the members, and how many they are. */
#define J_ALL(...)                                                                                                     \
    (const struct json_member[]){__VA_ARGS__},                                                                         \
        sizeof((const struct json_member[]){__VA_ARGS__}) / sizeof(struct json_member)

struct json_writer {
    char *text; /* of size bytes, ends with 0; NULL: goes to file */
    size_t size;
    FILE *file;
    size_t len; /* of all that was put, whether there was room or not */
    char last;  /* character; 0: none */
};

struct json_writer json_into(char *text, size_t size);
/* Errors of the file stay for whoever closes it. */
struct json_writer json_into_file(FILE *file);
/* What is put first comes behind other members of the same object: it begins with a comma. */
void json_go_on(struct json_writer *w);

/* bracket is { or [, and its other one. */
void json_open(struct json_writer *w, const char *key, char bracket);
void json_close(struct json_writer *w, char bracket);
void json_put(struct json_writer *w, struct json_member m);
void json_put_all(struct json_writer *w, const struct json_member *m, size_t count);
/* What another writer has written behind json_go_on; "": nothing. */
void json_put_written(struct json_writer *w, const char *members);
/* False: it did not fit, and text is of no use. */
bool json_is_whole(const struct json_writer *w);
#endif
