/* Options of a command line as rows of a table: a row says how an option is called, which value it takes, where that
 * goes and what --help says of it. It is read, and refused with one line and exit code 2, by what the row says
 * alone. */
#ifndef KEEL_PM_OPTION_ROW_H
#define KEEL_PM_OPTION_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
    TAKES_NOTHING, /* bool: true */
    TAKES_NUMBER,  /* int, of [low, high] */
    TAKES_TIME,    /* int, in milliseconds, of [low, high]: 3s, 0.5, 500ms; or never, if there is such a word */
    TAKES_CHOICE,  /* int or enum: the number of the word */
    TAKES_TEXT,    /* const char *: as it is, the command line's */
    TAKES_CALL,    /* what is read needs more than a row says */
    IS_ALIAS       /* another name of the row before */
};

struct option_row {
    const char *name;  /* without -- */
    char letter;       /* 0: none */
    const char *value; /* what --help calls it; NULL: takes none */
    int group;         /* of --help */
    const char *help;  /* NULL: hidden */
    enum option_kind kind;
    size_t at;    /* offset in what is filled in */
    size_t given; /* ... of a bool that becomes true; 0: nobody asks */
    int low, high;
    const char *never; /* TAKES_TIME: a word for 0; NULL: there is none */
    const char *const *words;
    void (*call)(void *into, const char *text); /* text is NULL where value is */
};

/* For rows about a member of a struct: its offset, its type being looked at, and what follows from that. */
#define OPTION_AT(s, member, ...) (offsetof(s, member) + 0 * sizeof(char[_Generic(((s *)0)->member, __VA_ARGS__)]))
#define OPTION_FLAG(s, member) .kind = TAKES_NOTHING, .at = OPTION_AT(s, member, bool : 1)
#define OPTION_NUMBER(s, member, from, to)                                                                             \
    .kind = TAKES_NUMBER, .at = OPTION_AT(s, member, int : 1), .low = (from), .high = (to)
#define OPTION_TIME(s, member, from, to)                                                                               \
    .kind = TAKES_TIME, .at = OPTION_AT(s, member, int : 1), .low = (from), .high = (to)
#define OPTION_CHOICE(s, member, ...)                                                                                  \
    .kind = TAKES_CHOICE, .at = OPTION_AT(s, member, int : 1, unsigned : 1), .words = (const char *const[])            \
    {                                                                                                                  \
        __VA_ARGS__, NULL                                                                                              \
    }
#define OPTION_TEXT(s, member) .kind = TAKES_TEXT, .at = OPTION_AT(s, member, const char * : 1)
#define OPTION_CALL(function) .kind = TAKES_CALL, .call = (function)

/* Fills in what the row says; ends the program with a line if the text is no such value. */
void option_take(const struct option_row *row, void *into, const char *text);

/* For rows that call: the number of the word, a time in milliseconds; or the end of the program. */
int option_choice(const char *name, const char *text, const char *const *words);
int option_time(const struct option_row *row, const char *text);
#endif
