#include "armci/graft/archive.h"

#include <ar.h>
#include <stdlib.h>
#include <string.h>

/* What one object's file holds, and where the objects of all names that others may use are. */
struct view {
    const Elf64_Shdr *sections;
    size_t section_count;
    const Elf64_Sym *symbols;
    size_t symbol_count;
    const char *names;
    size_t names_len;
};

struct global {
    const char *name;
    int object; /* -2: several have it */
    unsigned section;
    uint64_t value;
};

struct reading {
    struct graft_archive *a;
    struct view *view;
    struct global *global; /* a hash table */
    size_t slots;
    const char *why;
};

static bool inside(const struct graft_object *o, uint64_t offset, uint64_t len)
{
    return offset <= o->image_len && len <= o->image_len - offset;
}

static const char *name_of(const struct view *v, const Elf64_Sym *s)
{
    return s->st_name < v->names_len ? v->names + s->st_name : "";
}

static bool is_code(const Elf64_Shdr *s)
{
    return s->sh_type == SHT_PROGBITS && (s->sh_flags & SHF_ALLOC) && (s->sh_flags & SHF_EXECINSTR) && s->sh_size > 0;
}

/* The tables of an object's file. */
static const char *look(struct graft_object *o, struct view *v)
{
    const Elf64_Ehdr *e = (const void *)o->image;
    if (o->image_len < sizeof *e || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 || e->e_ident[EI_CLASS] != ELFCLASS64 ||
        e->e_machine != EM_X86_64 || e->e_type != ET_REL || e->e_shentsize != sizeof(Elf64_Shdr) || e->e_shoff % 8 ||
        !inside(o, e->e_shoff, (uint64_t)e->e_shnum * sizeof(Elf64_Shdr)))
        return "an object in it is not x86-64's";
    v->sections = (const void *)(o->image + e->e_shoff);
    v->section_count = e->e_shnum;
    for (size_t i = 0; i < v->section_count; i++) {
        const Elf64_Shdr *s = &v->sections[i];
        if (s->sh_type != SHT_NOBITS && !inside(o, s->sh_offset, s->sh_size))
            return "an object in it is cut off";
        if (is_code(s)) {
            if (o->code)
                return "an object in it has its code in several pieces";
            o->code = (const uint8_t *)o->image + s->sh_offset;
            o->len = s->sh_size;
            o->section = (unsigned)i;
        }
        if (s->sh_type != SHT_SYMTAB)
            continue;
        if (s->sh_link >= v->section_count || s->sh_offset % 8)
            return "an object in it has no names";
        const Elf64_Shdr *names = &v->sections[s->sh_link];
        if (!inside(o, names->sh_offset, names->sh_size) || names->sh_size == 0 ||
            o->image[names->sh_offset + names->sh_size - 1] != '\0')
            return "an object in it has no names";
        v->symbols = (const void *)(o->image + s->sh_offset);
        v->symbol_count = s->sh_size / sizeof *v->symbols;
        v->names = o->image + names->sh_offset;
        v->names_len = names->sh_size;
    }
    return v->symbols ? NULL : "an object in it has no names";
}

/* ---- names that others may use ---- */

static struct global *slot(struct reading *r, const char *name)
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

static bool gather_names(struct reading *r)
{
    size_t all = 0;
    for (size_t i = 0; i < r->a->count; i++)
        all += r->view[i].symbol_count;
    for (r->slots = 64; r->slots < 2 * all; r->slots *= 2)
        ;
    r->global = calloc(r->slots, sizeof *r->global);
    for (size_t i = 0; r->global && i < r->a->count; i++) {
        const struct view *v = &r->view[i];
        for (size_t s = 0; s < v->symbol_count; s++) {
            const Elf64_Sym *symbol = &v->symbols[s];
            if (!for_others(symbol) || symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= v->section_count)
                continue;
            struct global *g = slot(r, name_of(v, symbol));
            if (g->name)
                g->object = -2;
            else
                *g = (struct global){.name = name_of(v, symbol),
                                     .object = (int)i,
                                     .section = symbol->st_shndx,
                                     .value = symbol->st_value};
        }
    }
    return r->global;
}

static int anchor_of(struct reading *r, const char *name, int object, unsigned section)
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
static int anchor_of_symbol(struct reading *r, size_t object, const Elf64_Sym *s, int64_t *value)
{
    const struct view *v = &r->view[object];
    unsigned section = s->st_shndx;
    int whose = (int)object;
    *value = (int64_t)s->st_value;
    if (for_others(s)) {
        const struct global *g = slot(r, name_of(v, s));
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

static const char *relocate(struct reading *r, size_t object, const Elf64_Shdr *table)
{
    struct graft_object *o = &r->a->object[object];
    const struct view *v = &r->view[object];
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

static const char *relocate_code(struct reading *r, size_t object)
{
    struct graft_object *o = &r->a->object[object];
    const struct view *v = &r->view[object];
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

static const char *list_functions(struct graft_object *o, const struct view *v)
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

/* ---- the archive ---- */

struct member {
    char name[sizeof((struct ar_hdr *)0)->ar_name + 1];
    size_t at, len; /* in the archive */
};

/* The next member, from *at on. false: there is none (m->len 0), or the archive is cut off. */
static bool next_member(const char *bytes, size_t len, size_t *at, struct member *m)
{
    struct ar_hdr head;
    *m = (struct member){.len = *at < len};
    if (*at >= len || len - *at < sizeof head)
        return false;
    memcpy(&head, bytes + *at, sizeof head);
    char size[sizeof head.ar_size + 1] = {0};
    memcpy(size, head.ar_size, sizeof head.ar_size);
    memcpy(m->name, head.ar_name, sizeof head.ar_name);
    m->at = *at + sizeof head;
    m->len = strtoul(size, NULL, 10);
    *at = m->at + m->len + (m->len & 1);
    return memcmp(head.ar_fmag, ARFMAG, sizeof head.ar_fmag) == 0 && m->len <= len - m->at;
}

/* Long names stand in a member of their own, each up to its slash. */
static void copy_name(char *to, size_t room, const struct member *m, const char *names, size_t names_len)
{
    const char *from = m->name;
    size_t max = sizeof m->name;
    if (m->name[0] == '/') {
        size_t where = strtoul(m->name + 1, NULL, 10);
        from = where < names_len ? names + where : "";
        max = where < names_len ? names_len - where : 1;
    }
    size_t n = 0;
    while (n < max && n + 1 < room && from[n] && from[n] != '/' && from[n] != ' ') {
        to[n] = from[n];
        n++;
    }
    to[n] = '\0';
}

static const char *read_members(struct graft_archive *a, const char *bytes, size_t len)
{
    struct member m;
    size_t at = SARMAG, names_len = 0;
    const char *names = "";
    if (len < SARMAG || memcmp(bytes, ARMAG, SARMAG) != 0)
        return "it is no static library";
    while (next_member(bytes, len, &at, &m)) {
        if (m.name[0] == '/' && m.name[1] == '/') {
            names = bytes + m.at;
            names_len = m.len;
        }
        if (m.name[0] == '/' && (m.name[1] == ' ' || m.name[1] == '/'))
            continue;
        struct graft_object *more = realloc(a->object, (a->count + 1) * sizeof *more);
        if (!more)
            return "out of memory";
        a->object = more;
        struct graft_object *o = &more[a->count++];
        *o = (struct graft_object){.image = malloc(m.len + 1), .image_len = m.len};
        if (!o->image)
            return "out of memory";
        memcpy(o->image, bytes + m.at, m.len);
        copy_name(o->name, sizeof o->name, &m, names, names_len);
    }
    if (m.len)
        return "it is cut off";
    return a->count ? NULL : "nothing is in it";
}

static const char *read_objects(struct reading *r)
{
    struct graft_archive *a = r->a;
    const char *why = NULL;
    r->view = calloc(a->count, sizeof *r->view);
    if (!r->view)
        return "out of memory";
    for (size_t i = 0; i < a->count && !why; i++)
        why = look(&a->object[i], &r->view[i]);
    if (!why && !gather_names(r))
        why = "out of memory";
    for (size_t i = 0; i < a->count && !why; i++) {
        why = relocate_code(r, i);
        if (!why)
            why = list_functions(&a->object[i], &r->view[i]);
    }
    return why;
}

bool graft_archive_read(struct graft_archive *a, const void *bytes, size_t len, const char **why)
{
    *a = (struct graft_archive){0};
    struct reading r = {.a = a};
    *why = read_members(a, bytes, len);
    if (!*why)
        *why = read_objects(&r);
    free(r.view);
    free(r.global);
    if (*why)
        graft_archive_fini(a);
    return !*why;
}

void graft_archive_fini(struct graft_archive *a)
{
    for (size_t i = 0; i < a->count; i++) {
        struct graft_object *o = &a->object[i];
        free(o->image);
        free(o->literal);
        free(o->function);
        free(o->reference);
    }
    free(a->object);
    free(a->anchor);
    *a = (struct graft_archive){0};
}
