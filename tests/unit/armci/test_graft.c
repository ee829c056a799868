/* test_graft ARCHIVE PROGRAM...: the finder on programs that were linked with the archive, as they are and spoilt in
 * many ways. The first program has all of the archive, and a table of names, which says where each function
 * is. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "armci/graft/find.h"
#include "armci/graft/names.h"

enum { POSITIONS = 7, LONG = 256, ALL = 25 };

struct file {
    uint8_t *bytes;
    size_t len;
};

static struct file library;
static const char *const *program_path;
static int programs;

static struct file read_file(const char *path)
{
    struct file f = {0};
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    f.len = (size_t)st.st_size;
    f.bytes = malloc(f.len + 1);
    assert_non_null(f.bytes);
    assert_int_equal(read(fd, f.bytes, f.len), f.len);
    close(fd);
    return f;
}

static struct graft_code code_of(const struct file *f)
{
    const Elf64_Ehdr *e = (const void *)f->bytes;
    for (int i = 0; i < e->e_phnum; i++) {
        const Elf64_Phdr *h = (const void *)(f->bytes + e->e_phoff + (size_t)i * sizeof *h);
        if (h->p_type == PT_LOAD && (h->p_flags & PF_X))
            return (struct graft_code){.bytes = f->bytes + h->p_offset, .len = h->p_filesz, .address = h->p_vaddr};
    }
    fail();
    return (struct graft_code){0};
}

static struct graft_archive read_library(void)
{
    struct graft_archive a;
    const char *why;
    assert_true(graft_archive_read(&a, library.bytes, library.len, &why));
    return a;
}

static bool found(struct graft_archive *a, const struct graft_code *code)
{
    char why[256] = "";
    for (size_t i = 0; i < a->count; i++)
        a->object[i].address = 0;
    for (size_t i = 0; i < a->anchors; i++)
        a->anchor[i].address = 0;
    bool done = graft_find(a, code, GRAFT_NEEDED, why, sizeof why);
    assert_true(done || why[0]);
    return done;
}

/* Where the program's table of names has it; 0: nowhere. */
static uint64_t named(const struct file *f, const char *name)
{
    const Elf64_Ehdr *e = (const void *)f->bytes;
    const Elf64_Shdr *s = (const void *)(f->bytes + e->e_shoff);
    for (int i = 0; i < e->e_shnum; i++) {
        if (s[i].sh_type != SHT_SYMTAB)
            continue;
        const char *names = (const char *)f->bytes + s[s[i].sh_link].sh_offset;
        const Elf64_Sym *symbol = (const void *)(f->bytes + s[i].sh_offset);
        for (size_t k = 0; k < s[i].sh_size / sizeof *symbol; k++)
            if (symbol[k].st_shndx != SHN_UNDEF && strcmp(names + symbol[k].st_name, name) == 0)
                return symbol[k].st_value;
    }
    return 0;
}

static void test_graft_program_finds_what_its_names_say(void **state)
{
    (void)state;
    struct file program = read_file(program_path[0]);
    struct graft_code code = code_of(&program);
    struct graft_archive a = read_library();
    int there = 0;
    assert_true(found(&a, &code));
    for (size_t i = 0; i < a.count; i++)
        for (size_t f = 0; f < a.object[i].functions; f++) {
            const struct graft_object *o = &a.object[i];
            uint64_t is = named(&program, o->function[f].name);
            there += is != 0;
            /* of a name that two objects have the program has one */
            if (o->address && strncmp(o->function[f].name, "PARMCI_", 7) == 0)
                assert_int_equal(o->address + o->function[f].at, is);
            if (is && is - code.address < code.len && !o->address)
                for (size_t k = 0, others = 0; k <= a.count; k++) {
                    assert_true(k < a.count || others);
                    for (size_t g = 0; k < a.count && a.object[k].address && g < a.object[k].functions; g++)
                        others += strcmp(a.object[k].function[g].name, o->function[f].name) == 0;
                }
        }
    assert_true(there > 100);
    graft_archive_fini(&a);
    free(program.bytes);
}

static void test_graft_each_program_is_found(void **state)
{
    (void)state;
    for (int i = 0; i < programs; i++) {
        struct file program = read_file(program_path[i]);
        struct graft_code code = code_of(&program);
        struct graft_archive a = read_library();
        size_t objects = 0;
        assert_true(found(&a, &code));
        for (size_t k = 0; k < a.count; k++) {
            const struct graft_object *o = &a.object[k];
            objects += o->address != 0;
            for (size_t f = 0; o->address && f < o->functions; f++)
                assert_true(graft_room(&code, o, &o->function[f]) >= 5);
        }
        assert_true(objects >= (i == 0 ? ALL : 10));
        graft_archive_fini(&a);
        free(program.bytes);
    }
}

/* Of one function, the plain way: is there an instruction outside of the library that leads to it? */
static bool leads_to(const struct graft_archive *a, const struct graft_code *code, uint64_t function)
{
    for (size_t i = 0; i + 5 <= code->len; i++) {
        int32_t distance;
        memcpy(&distance, code->bytes + i + 1, sizeof distance);
        uint64_t at = code->address + i;
        if ((code->bytes[i] == 0xe8 || code->bytes[i] == 0xe9) && at + 5 + (uint64_t)(int64_t)distance == function &&
            !graft_overlaps(a, at, 1))
            return true;
    }
    return false;
}

static void test_graft_calls_are_those_that_lead_there(void **state)
{
    (void)state;
    int called = 0, not_called = 0;
    for (int p = 0; p < programs; p++) {
        struct file program = read_file(program_path[p]);
        struct graft_code code = code_of(&program);
        struct graft_archive a = read_library();
        assert_true(found(&a, &code));
        graft_find_calls(&a, &code);
        for (size_t i = 0; i < a.count; i++)
            for (size_t f = 0; f < a.object[i].functions; f++) {
                const struct graft_object *o = &a.object[i];
                bool is = o->address && leads_to(&a, &code, o->address + o->function[f].at);
                assert_int_equal(o->function[f].called, is);
                *(is ? &called : &not_called) += 1;
            }
        graft_archive_fini(&a);
        free(program.bytes);
    }
    assert_true(called > 0 && not_called > 0);
}

/* Calls of fn with each object that the first program has, and where its bytes are. */
static void for_each_object(void (*fn)(struct graft_archive *a, const struct graft_code *code, struct graft_object o,
                                       uint8_t *bytes))
{
    struct file program = read_file(program_path[0]);
    struct graft_code code = code_of(&program);
    struct graft_archive a = read_library();
    int objects = 0;
    for (size_t i = 0; i < a.count; i++) {
        assert_true(found(&a, &code));
        struct graft_object o = a.object[i];
        if (!o.address)
            continue;
        fn(&a, &code, o, program.bytes + (code.bytes - program.bytes) + (o.address - code.address));
        objects++;
    }
    assert_true(found(&a, &code)); /* all is as it was */
    assert_true(objects == ALL);
    graft_archive_fini(&a);
    free(program.bytes);
}

/* Enough to be known when a part of it is another; not so what is jumps only, to functions of other objects. */
static bool is_known_by_parts(const struct graft_object *o)
{
    return o->len >= LONG && o->len > 16 * o->functions;
}

static void alter(struct graft_archive *a, const struct graft_code *code, struct graft_object o, uint8_t *bytes)
{
    if (!is_known_by_parts(&o))
        return;
    for (uint64_t i = 0; i < POSITIONS; i++) {
        uint64_t at = i * (o.len - 1) / (POSITIONS - 1);
        while (!o.literal[at])
            at--;
        bytes[at] ^= 0x40;
        assert_false(found(a, code));
        bytes[at] ^= 0x40;
    }
}

static void test_graft_a_byte_is_another_refused(void **state)
{
    (void)state;
    for_each_object(alter);
}

static void leave_out(struct graft_archive *a, const struct graft_code *code, struct graft_object o, uint8_t *bytes)
{
    uint8_t kept[1 << 14];
    for (size_t f = 0; f < o.functions; f++) {
        uint64_t at = o.function[f].at, len = o.function[f].room;
        if (len * 2 > o.len || len > sizeof kept || !is_known_by_parts(&o))
            continue;
        memcpy(kept, bytes + at, len);
        memset(bytes + at, 0xcc, len);
        assert_false(found(a, code));
        memcpy(bytes + at, kept, len);
    }
}

static void test_graft_a_function_is_missing_refused(void **state)
{
    (void)state;
    for_each_object(leave_out);
}

static void put_twice(struct graft_archive *a, const struct graft_code *code, struct graft_object o, uint8_t *bytes)
{
    struct graft_code longer = *code;
    size_t begin = (code->len + 15) & ~(size_t)15;
    if (!is_known_by_parts(&o))
        return;
    uint8_t *all = calloc(1, begin + o.len + 16);
    assert_non_null(all);
    memcpy(all, code->bytes, code->len);
    memcpy(all + begin, bytes, o.len);
    longer.bytes = all;
    longer.len = begin + o.len;
    assert_true(code->address % 16 == 0);
    assert_false(found(a, &longer));
    all[begin + o.len / 2] ^= 0x40; /* nor is a second one welcome that is not the same */
    all[begin + o.len / 2 + 5] ^= 0x40;
    assert_false(found(a, &longer));
    free(all);
}

static void test_graft_an_object_is_there_twice_refused(void **state)
{
    (void)state;
    for_each_object(put_twice);
}

/* A call to another place than where all others call. */
static void misdirect(struct graft_archive *a, const struct graft_code *code, struct graft_object o, uint8_t *bytes)
{
    int done = 0;
    for (size_t i = 0; i < o.references && done < POSITIONS && is_known_by_parts(&o); i++) {
        int anchor = o.reference[i].anchor, same = 0;
        for (size_t k = 0; k < o.references; k++)
            same += o.reference[k].anchor == anchor;
        if (anchor < 0 || same < 2)
            continue;
        bytes[o.reference[i].at] ^= 0x10;
        assert_false(found(a, code));
        bytes[o.reference[i].at] ^= 0x10;
        done++;
    }
}

static void test_graft_a_call_leads_elsewhere_refused(void **state)
{
    (void)state;
    for_each_object(misdirect);
}

static void test_graft_code_without_armci_refused(void **state)
{
    (void)state;
    uint8_t *bytes = calloc(1, 1 << 16);
    struct graft_code code = {.bytes = bytes, .len = 1 << 16, .address = 0x1000};
    struct graft_archive a = read_library();
    char why[256];
    assert_false(graft_find(&a, &code, GRAFT_NEEDED, why, sizeof why));
    assert_non_null(strstr(why, "has no " GRAFT_NEEDED));
    graft_archive_fini(&a);
    free(bytes);
}

/* Whatever a file holds: it is read or refused, and looked for. */
static void test_graft_archive_is_spoilt_read_or_refused(void **state)
{
    (void)state;
    struct file program = read_file(program_path[0]);
    struct graft_code code = code_of(&program);
    struct file spoilt = {.bytes = malloc(library.len), .len = library.len};
    const char *text = getenv("KEEL_TEST_SEED"), *why;
    unsigned seed = text ? (unsigned)strtoul(text, NULL, 0) : (unsigned)getpid();
    printf("KEEL_TEST_SEED=%u\n", seed);
    srand(seed);
    for (int i = 0; i < 200; i++) {
        struct graft_archive a;
        char line[256];
        memcpy(spoilt.bytes, library.bytes, library.len);
        if (i % 2)
            spoilt.len = (size_t)rand() % library.len;
        for (int k = rand() % 40; k >= 0 && spoilt.len; k--)
            spoilt.bytes[(size_t)rand() % spoilt.len] = (uint8_t)rand();
        if (!graft_archive_read(&a, spoilt.bytes, spoilt.len, &why)) {
            assert_non_null(why);
            continue;
        }
        (void)graft_find(&a, &code, GRAFT_NEEDED, line, sizeof line);
        graft_archive_fini(&a);
    }
    free(spoilt.bytes);
    free(program.bytes);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graft_program_finds_what_its_names_say),
        cmocka_unit_test(test_graft_each_program_is_found),
        cmocka_unit_test(test_graft_calls_are_those_that_lead_there),
        cmocka_unit_test(test_graft_a_byte_is_another_refused),
        cmocka_unit_test(test_graft_a_function_is_missing_refused),
        cmocka_unit_test(test_graft_an_object_is_there_twice_refused),
        cmocka_unit_test(test_graft_a_call_leads_elsewhere_refused),
        cmocka_unit_test(test_graft_code_without_armci_refused),
        cmocka_unit_test(test_graft_archive_is_spoilt_read_or_refused),
    };
    if (argc < 3)
        return 1;
    library = read_file(argv[1]);
    program_path = (const char *const *)argv + 2;
    programs = argc - 2;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(library.bytes);
    return failed;
}
