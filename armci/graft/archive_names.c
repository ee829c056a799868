#include "armci/graft/archive_int.h"

#include <stdlib.h>
#include <string.h>

static const char *name_of(const struct archive_view *v, const Elf64_Sym *s)
{
    return s->st_name < v->names_len ? v->names + s->st_name : "";
}

/* ---- names that others may use ---- */

static struct archive_name *slot(struct archive_reading *r, const char *name)
{
    uint64_t hash = 1469598103934665603u;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    size_t i = hash & (r->slots - 1);
    while (r->global[i].name && strcmp(r->global[i].name, name) != 0)
        i = (i + 1) & (r->slots - 1);
    return &r->global[i];
}

static bool for_others(const Elf64_Sym *s)
{
    int how = ELF64_ST_BIND(s->st_info);
    return how == STB_GLOBAL || how == STB_WEAK;
}

bool archive_gather_names(struct archive_reading *r)
{
    size_t all = 0;
    for (size_t i = 0; i < r->a->count; i++)
        all += r->view[i].symbol_count;
    for (r->slots = 64; r->slots < 2 * all; r->slots *= 2)
        ;
    r->global = calloc(r->slots, sizeof *r->global);
    for (size_t i = 0; r->global && i < r->a->count; i++) {
        const struct archive_view *v = &r->view[i];
        for (size_t s = 0; s < v->symbol_count; s++) {
            const Elf64_Sym *symbol = &v->symbols[s];
            if (!for_others(symbol) || symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= v->section_count)
                continue;
            struct archive_name *g = slot(r, name_of(v, symbol));
            if (g->name)
                g->object = -2;
            else
                *g = (struct archive_name){.name = name_of(v, symbol),
                                           .object = (int)i,
                                           .section = symbol->st_shndx,
                                           .value = symbol->st_value};
        }
    }
    return r->global;
}

static int anchor_of(struct archive_reading *r, const char *name, int object, unsigned section)
{
    struct graft_archive *a = r->a;
    for (size_t i = 0; i < a->anchors; i++) {
        const struct graft_anchor *one = &a->anchor[i];
        if (name ? one->name && strcmp(one->name, name) == 0
                 : !one->name && one->object == object && one->section == section)
            return (int)i;
    }
    struct graft_anchor *more = realloc(a->anchor, (a->anchors + 1) * sizeof *more);
    if (!more)
        return -1;
    a->anchor = more;
    more[a->anchors] = (struct graft_anchor){.name = name, .object = name ? -1 : object, .section = section};
    return (int)a->anchors++;
}

/* The anchor that a symbol of an object stands for, and where it is from there. */
static int anchor_of_symbol(struct archive_reading *r, size_t object, const Elf64_Sym *s, int64_t *value)
{
    const struct archive_view *v = &r->view[object];
    unsigned section = s->st_shndx;
    int whose = (int)object;
    *value = (int64_t)s->st_value;
    if (for_others(s)) {
        const struct archive_name *g = slot(r, name_of(v, s));
        if (!g->name) {
            *value = 0;
            return section == SHN_UNDEF ? anchor_of(r, name_of(v, s), -1, 0) : -1;
        }
        if (g->object < 0)
            return -1;
        whose = g->object;
        section = g->section;
        *value = (int64_t)g->value;
    }
    if (section == SHN_UNDEF || section >= r->view[whose].section_count ||
        (r->view[whose].sections[section].sh_flags & SHF_MERGE)) /* whose pieces the linker lays anywhere */
        return -1;
    return anchor_of(r, NULL, whose, section);
}

/* ---- relocations ---- */

struct hole {
    uint64_t before, len; /* which bytes the linker may write, from so many before the place that is named */
    bool tells;           /* a distance to what is named */
};

/* Where it may put a shorter instruction in the place of one that looks an address up, it writes that, too. */
static bool hole_of(uint32_t type, struct hole *h)
{
    switch (type) {
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
        *h = (struct hole){0, 4, true};
        return true;
    case R_X86_64_32:
    case R_X86_64_32S:
    case R_X86_64_GOTPCREL:
        *h = (struct hole){0, 4, false};
        return true;
    case R_X86_64_64:
        *h = (struct hole){0, 8, false};
        return true;
    case R_X86_64_GOTPCRELX:
        *h = (struct hole){2, 6, false};
        return true;
    case R_X86_64_REX_GOTPCRELX:
        *h = (struct hole){3, 7, false};
        return true;
    default:
        return false;
    }
}

static const char *relocate(struct archive_reading *r, size_t object, const Elf64_Shdr *table)
{
    struct graft_object *o = &r->a->object[object];
    const struct archive_view *v = &r->view[object];
    size_t n = table->sh_size / sizeof(Elf64_Rela);
    o->reference = calloc(n + 1, sizeof *o->reference);
    if (!o->reference)
        return "out of memory";
    for (size_t i = 0; i < n; i++) {
        Elf64_Rela rela;
        memcpy(&rela, o->image + table->sh_offset + i * sizeof rela, sizeof rela);
        struct hole h;
        size_t symbol = ELF64_R_SYM(rela.r_info);
        if (!hole_of((uint32_t)ELF64_R_TYPE(rela.r_info), &h))
            return "an object in it is linked in a way that is not known here";
        if (rela.r_offset < h.before || rela.r_offset - h.before > o->len ||
            h.len > o->len - (rela.r_offset - h.before) || symbol >= v->symbol_count)
            return "an object in it is cut off";
        memset(o->literal + rela.r_offset - h.before, 0, h.len);
        if (!h.tells)
            continue;
        struct graft_reference *one = &o->reference[o->references++];
        int64_t value;
        one->at = rela.r_offset;
        one->anchor = anchor_of_symbol(r, object, &v->symbols[symbol], &value);
        one->offset = value + rela.r_addend;
    }
    return NULL;
}

const char *archive_relocate(struct archive_reading *r, size_t object)
{
    struct graft_object *o = &r->a->object[object];
    const struct archive_view *v = &r->view[object];
    o->literal = malloc(o->len + 1);
    if (!o->literal)
        return "out of memory";
    memset(o->literal, 0xff, o->len);
    for (size_t i = 0; i < v->section_count; i++) {
        const Elf64_Shdr *s = &v->sections[i];
        if ((s->sh_type != SHT_RELA && s->sh_type != SHT_REL) || s->sh_info != o->section)
            continue;
        const char *why = s->sh_type == SHT_REL || o->reference
                              ? "an object in it is linked in a way that is not known here"
                              : relocate(r, object, s);
        if (why)
            return why;
    }
    return NULL;
}

static int by_place(const void *left, const void *right)
{
    const struct graft_function *l = left, *r = right;
    if (l->at != r->at)
        return l->at < r->at ? -1 : 1;
    return strcmp(l->name, r->name);
}

const char *archive_list_functions(struct graft_object *o, const struct archive_view *v)
{
    o->function = calloc(v->symbol_count + 1, sizeof *o->function);
    if (!o->function)
        return "out of memory";
    for (size_t i = 0; i < v->symbol_count; i++) {
        const Elf64_Sym *s = &v->symbols[i];
        if (!for_others(s) || s->st_shndx != o->section || s->st_value >= o->len)
            continue;
        o->function[o->functions++] = (struct graft_function){.name = name_of(v, s), .at = s->st_value};
    }
    qsort(o->function, o->functions, sizeof *o->function, by_place);
    uint64_t end = o->len;
    for (size_t i = o->functions; i-- > 0;) {
        if (i + 1 < o->functions && o->function[i + 1].at > o->function[i].at)
            end = o->function[i + 1].at;
        o->function[i].room = end - o->function[i].at;
    }
    return NULL;
}
