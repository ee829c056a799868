#include "armci/graft/archive_int.h"

#include <ar.h>
#include <stdlib.h>
#include <string.h>

static bool inside(const struct graft_object *o, uint64_t offset, uint64_t len)
{
    return offset <= o->image_len && len <= o->image_len - offset;
}

static bool is_code(const Elf64_Shdr *s)
{
    return s->sh_type == SHT_PROGBITS && (s->sh_flags & SHF_ALLOC) && (s->sh_flags & SHF_EXECINSTR) && s->sh_size > 0;
}

/* The tables of an object's file. */
static const char *look(struct graft_object *o, struct archive_view *v)
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

static const char *read_objects(struct archive_reading *r)
{
    struct graft_archive *a = r->a;
    const char *why = NULL;
    r->view = calloc(a->count, sizeof *r->view);
    if (!r->view)
        return "out of memory";
    for (size_t i = 0; i < a->count && !why; i++)
        why = look(&a->object[i], &r->view[i]);
    if (!why && !archive_gather_names(r))
        why = "out of memory";
    for (size_t i = 0; i < a->count && !why; i++) {
        why = archive_relocate(r, i);
        if (!why)
            why = archive_list_functions(&a->object[i], &r->view[i]);
    }
    return why;
}

bool graft_archive_read(struct graft_archive *a, const void *bytes, size_t len, const char **why)
{
    *a = (struct graft_archive){0};
    struct archive_reading r = {.a = a};
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
