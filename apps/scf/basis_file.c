/* Reader of basis set files in NWChem's format. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "apps/scf/basis.h"

enum { COLUMNS_MAX = 16, PRIMITIVES_MAX = 64 };

/* The block being read: one element, one set of exponents, one or more columns of coefficients. */
struct block {
    int z; /* 0: no block is open */
    int line;
    int l[COLUMNS_MAX]; /* angular momentum of each column */
    int ncolumns;       /* 0: not known before the first row */
    int nrows;
    double rows[PRIMITIVES_MAX][1 + COLUMNS_MAX];
};

struct reader {
    const char *path;
    int line;
    struct block block;
    struct basis_library *library;
    struct complaint *why;
};

static void add_entry(struct element_shells *element, const struct block *block, int column)
{
    size_t count = (size_t)element->nshells + 1, n = (size_t)block->nrows;
    element->shells = realloc(element->shells, count * sizeof *element->shells);
    struct shell_entry *entry = &element->shells[element->nshells++];
    *entry = (struct shell_entry){.l = block->l[column],
                                  .nprimitives = block->nrows,
                                  .exponents = calloc(n, sizeof(double)),
                                  .coefficients = calloc(n, sizeof(double))};
    int kept = 0;
    for (int row = 0; row < block->nrows; row++) {
        if (block->rows[row][1 + column] == 0)
            continue; /* a general contraction names every exponent in every column */
        entry->exponents[kept] = block->rows[row][0];
        entry->coefficients[kept++] = block->rows[row][1 + column];
    }
    entry->nprimitives = kept;
}

static bool close_block(struct reader *reader)
{
    struct block *block = &reader->block;
    if (block->z == 0)
        return true;
    if (block->nrows == 0)
        return complain(reader->why, "%s: line %d: a shell of %s without exponents", reader->path, block->line,
                        element_symbol(block->z));
    for (int column = 0; column < block->ncolumns; column++)
        add_entry(&reader->library->elements[block->z], block, column);
    block->z = 0;
    return true;
}

static bool open_block(struct reader *reader, const char *symbol, const char *type)
{
    static const char letters[] = "SPD";
    if (!close_block(reader))
        return false;
    struct block *block = &reader->block;
    *block = (struct block){.line = reader->line};
    int z = element_number(symbol);
    if (z == 0)
        return complain(reader->why, "%s: line %d: unknown element %s", reader->path, reader->line, symbol);
    if (strcasecmp(type, "SP") == 0) {
        block->ncolumns = 2;
        block->l[1] = 1;
    } else {
        const char *found = strlen(type) == 1 ? strchr(letters, toupper((unsigned char)type[0])) : NULL;
        if (found == NULL)
            return complain(reader->why, "%s: line %d: shell type %s (S, P, D and SP are known)", reader->path,
                            reader->line, type);
        for (int c = 0; c < COLUMNS_MAX; c++)
            block->l[c] = (int)(found - letters);
    }
    block->z = z;
    return true;
}

/* A number, with Fortran's D for the exponent allowed. */
static bool parse_number(char *word, double *out)
{
    for (char *p = word; *p != '\0'; p++)
        if (*p == 'd' || *p == 'D')
            *p = 'e';
    char *end;
    *out = strtod(word, &end);
    return end != word && *end == '\0' && isfinite(*out);
}

static bool add_row(struct reader *reader, char **words, int nwords)
{
    struct block *block = &reader->block;
    if (block->z == 0)
        return complain(reader->why, "%s: line %d: expected an element and a shell type, found %s", reader->path,
                        reader->line, words[0]);
    if (block->ncolumns == 0)
        block->ncolumns = nwords - 1;
    if (nwords < 2 || nwords - 1 != block->ncolumns)
        return complain(reader->why, "%s: line %d: %d coefficient(s) after the exponent, expected %d", reader->path,
                        reader->line, nwords - 1, block->ncolumns > 0 ? block->ncolumns : 1);
    if (block->nrows == PRIMITIVES_MAX)
        return complain(reader->why, "%s: line %d: more than %d exponents in a shell", reader->path, reader->line,
                        PRIMITIVES_MAX);
    double *row = block->rows[block->nrows++];
    for (int i = 0; i < nwords; i++)
        if (!parse_number(words[i], &row[i]))
            return complain(reader->why, "%s: line %d: %s is not a number", reader->path, reader->line, words[i]);
    if (row[0] <= 0)
        return complain(reader->why, "%s: line %d: exponent %g is not positive", reader->path, reader->line, row[0]);
    return true;
}

static bool read_line(struct reader *reader, char *line)
{
    char *words[1 + COLUMNS_MAX], *rest;
    int nwords = 0;
    char *comment = strchr(line, '#');
    if (comment != NULL)
        *comment = '\0';
    for (char *w = strtok_r(line, " \t\r\n", &rest); w != NULL; w = strtok_r(NULL, " \t\r\n", &rest)) {
        if (nwords == 1 + COLUMNS_MAX)
            return complain(reader->why, "%s: line %d: too many columns", reader->path, reader->line);
        words[nwords++] = w;
    }
    if (nwords == 0)
        return true;
    if (strcasecmp(words[0], "basis") == 0 || strcasecmp(words[0], "end") == 0)
        return close_block(reader);
    if (strcasecmp(words[0], "ecp") == 0)
        return complain(reader->why, "%s: line %d: effective core potentials are not supported", reader->path,
                        reader->line);
    if (isalpha((unsigned char)words[0][0])) {
        if (nwords != 2)
            return complain(reader->why, "%s: line %d: expected an element and a shell type", reader->path,
                            reader->line);
        return open_block(reader, words[0], words[1]);
    }
    return add_row(reader, words, nwords);
}

bool basis_library_read(const char *path, struct basis_library *out, struct complaint *why)
{
    *out = (struct basis_library){0};
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return complain(why, "%s: %s", path, strerror(errno));
    struct reader reader = {.path = path, .library = out, .why = why};
    char *line = NULL;
    size_t room = 0;
    bool good = true;
    while (good && getline(&line, &room, file) >= 0) {
        reader.line++;
        good = read_line(&reader, line);
    }
    good = good && close_block(&reader);
    if (good && ferror(file))
        good = complain(why, "%s: the file cannot be read", path);
    free(line);
    fclose(file);
    bool empty = true;
    for (int z = 1; z <= ELEMENT_MAX; z++)
        empty = empty && out->elements[z].nshells == 0;
    if (good && empty)
        good = complain(why, "%s: no basis functions in the file", path);
    if (!good)
        basis_library_fini(out);
    return good;
}

void basis_library_fini(struct basis_library *library)
{
    for (int z = 0; z <= ELEMENT_MAX; z++) {
        struct element_shells *element = &library->elements[z];
        for (int s = 0; s < element->nshells; s++) {
            free(element->shells[s].exponents);
            free(element->shells[s].coefficients);
        }
        free(element->shells);
    }
    *library = (struct basis_library){0};
}
