#include "runtime/topo/place.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void add_slide(struct place_method *m, int order)
{
    m->step[m->steps++] = (struct place_step){.order = order, .fn = place_slide, .arg = (void *)(intptr_t)order};
}

bool place_method_add(struct place_method *m, place_fn *fn, void *arg)
{
    if (m->steps == PLACE_MAX_STEPS)
        return false;
    m->step[m->steps++] = (struct place_step){.order = PLACE_OWN, .fn = fn, .arg = arg};
    return true;
}

void place_method_order(struct place_method *m, const struct place_order *o)
{
    for (int i = 0; i < m->steps; i++)
        if (m->step[i].order > 0)
            m->step[i].arg = place_slide_arg(m->step[i].order, o);
}

const char *place_order_parse(struct place_order *o, const char *text, int ndims)
{
    static const char letters[] = "xyzuvw";
    static const char *const form = "an order names each dimension of the grid once, like yxz, or xyz- for planes "
                                    "from the highest dimension down";
    size_t n = strlen(text);
    *o = (struct place_order){.high_first = n && text[n - 1] == '-'};
    n -= o->high_first;
    if (n != (size_t)ndims)
        return form;
    for (int i = 0; i < GRID_MAX_DIMS; i++) {
        const char *l = i < ndims ? strchr(letters, text[i]) : letters + i;
        if (!l || l - letters >= (i < ndims ? ndims : GRID_MAX_DIMS) || (i < ndims && strchr(text, *l) != text + i))
            return form;
        o->dim[i] = (uint8_t)(l - letters);
    }
    return NULL;
}

/* "3D" at *text; moves *text past it. -1 when it is something else. */
static int read_order(const char **text)
{
    const char *t = *text;
    if (!isdigit((unsigned char)t[0]) || (t[1] != 'D' && t[1] != 'd'))
        return -1;
    *text = t + 2;
    return t[0] - '0';
}

static const char *const form = "a method is 0D, 1D, ..., hybrid(all), hybrid(-2D) or hybrid(2D+1D+0D)";
static const char *const too_high = "a sliding method cannot have more dimensions than the grid";

static const char *parse_list(struct place_method *m, const char *t, int ndims)
{
    for (unsigned seen = 0;; t++) {
        int order = read_order(&t);
        if (order < 0)
            return form;
        if (order > ndims)
            return too_high;
        if (seen >> order & 1)
            return "a sliding method is listed twice";
        seen |= 1u << order;
        add_slide(m, order);
        if (*t != '+')
            break;
    }
    return strcmp(t, ")") == 0 ? NULL : form;
}

const char *place_method_parse(struct place_method *m, const char *text, int ndims)
{
    memset(m, 0, sizeof *m);
    snprintf(m->name, sizeof m->name, "%s", text);
    const char *t = text;
    int order = read_order(&t);
    if (order >= 0) {
        if (*t != '\0')
            return form;
        if (order > ndims)
            return too_high;
        add_slide(m, order);
        return NULL;
    }
    if (strncmp(t, "hybrid(", 7) != 0)
        return form;
    t += 7;
    int without = -1;
    if (*t == '-') {
        t++;
        without = read_order(&t);
        if (without < 0 || strcmp(t, ")") != 0)
            return form;
        if (without > ndims)
            return too_high;
    } else if (strcmp(t, "all)") != 0)
        return parse_list(m, t, ndims);
    for (order = ndims; order >= 0; order--)
        if (order != without)
            add_slide(m, order);
    return NULL;
}
