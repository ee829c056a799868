/* The manifest of a save: what is written is read, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/save/save.h"

static const uint8_t secret[SAVE_SECRET] = {7, 2, 9};
static const struct save_job this_job = {.number = 0x1234, .secret = secret};
static const struct save_job former_job = {.number = 0x4321, .secret = secret};

/* Of a job that is named so; of four calls. */
static const char *name_of(const struct save_job *job, uint64_t version, uint64_t rank)
{
    static char names[4][SAVE_NAME];
    static int next;
    char *name = names[next++ % 4];
    save_name(name, job, version, rank);
    return name;
}

static char *text_of(uint64_t ranks, size_t *len)
{
    struct save_manifest m;
    assert_true(save_manifest_room(&m, ranks));
    m.version = 41;
    for (uint64_t r = 0; r < ranks; r++) {
        save_name(m.rank[r].name, &this_job, 41, r);
        m.rank[r].bytes = 1000 + r;
        memset(m.rank[r].sum, (int)r + 1, SAVE_SUM);
    }
    char *text = save_manifest_text(&m, len);
    save_manifest_free(&m);
    assert_non_null(text);
    return text;
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    for (uint64_t ranks = 1; ranks < 200; ranks += 66) {
        char why[SAVE_WHY];
        struct save_manifest m;
        size_t len;
        char *text = text_of(ranks, &len);
        assert_true(save_manifest_parse(text, len, &m, why));
        assert_int_equal(m.ranks, ranks);
        assert_int_equal(m.version, 41);
        char name[SAVE_NAME];
        save_name(name, &this_job, 41, ranks - 1);
        assert_string_equal(m.rank[ranks - 1].name, name);
        assert_int_equal(m.rank[ranks - 1].bytes, 1000 + ranks - 1);
        assert_int_equal(m.rank[0].sum[SAVE_SUM - 1], 1);
        save_manifest_free(&m);
        free(text);
    }
}

static void one_bit_more_or_less_is_found(void **state)
{
    (void)state;
    char why[SAVE_WHY];
    struct save_manifest m;
    size_t len;
    char *text = text_of(3, &len);
    for (size_t bit = 0; bit < 8 * len; bit++) {
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        assert_false(save_manifest_parse(text, len, &m, why));
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
    }
    for (size_t n = 0; n < len; n++)
        assert_false(save_manifest_parse(text, n, &m, why));
    free(text);
}

/* With a right digest behind it: not by accident. */
static void expect_refused(const char *body)
{
    char text[1024], why[SAVE_WHY], hex[2 * SAVE_SUM + 1];
    uint8_t sum[SAVE_SUM];
    struct save_manifest m;
    crypto_generichash(sum, sizeof sum, (const uint8_t *)body, strlen(body), NULL, 0);
    sodium_bin2hex(hex, sizeof hex, sum, sizeof sum);
    int n = snprintf(text, sizeof text, "%sdigest %s\n", body, hex);
    assert_false(save_manifest_parse(text, (size_t)n, &m, why));
}

static void what_is_no_manifest_is_refused(void **state)
{
    (void)state;
#define SUM "0101010101010101010101010101010101010101010101010101010101010101"
    expect_refused("keel-save 2\nranks 1 version 1\na 1 " SUM "\n");
    expect_refused("keel-save 1\nranks 0 version 1\n");
    expect_refused("keel-save 1\nranks 99999999999 version 1\n");
    expect_refused("keel-save 1\nranks 2 version 1\na 1 " SUM "\n");
    expect_refused("keel-save 1\nranks 1 version 1\na 1 " SUM "\nb 1 " SUM "\n");
    expect_refused("keel-save 1\nranks 1 version 1\n../a 1 " SUM "\n");
    expect_refused("keel-save 1\nranks 1 version 1\na -1 " SUM "\n");
    expect_refused("keel-save 1\nranks 1 version 1\na 1 0" SUM "\n");
    expect_refused("keel-save 1\nranks 1 version 1 x\na 1 " SUM "\n");
}

/* ---- in a folder ---- */

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/keel-test-save-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static const char *in_folder(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int remove_folder(void **state)
{
    (void)state;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        if (unlinkat(dirfd(d), e->d_name, 0) != 0)
            (void)unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
    if (d)
        closedir(d);
    return rmdir(folder);
}

static bool write_version(uint64_t version, const struct save_job *job, struct save_manifest *m)
{
    struct save_file f;
    char why[SAVE_WHY];
    assert_true(save_manifest_room(m, 1));
    m->version = version;
    save_name(m->rank[0].name, job, version, 0);
    assert_true(save_create(&f, folder, m->rank[0].name, why) && save_finish(&f, m->rank[0].sum, why));
    return save_manifest_write(folder, job, m, why);
}

static uint64_t version_there(void)
{
    char path[SAVE_PATH], why[SAVE_WHY];
    struct save_manifest m;
    if (!save_find(folder, path, why) || !save_verify(path, 1, why) || !save_manifest_read(path, &m, why))
        return 0;
    save_manifest_free(&m);
    return m.version;
}

static bool is_there(const char *name)
{
    return access(in_folder(name), F_OK) == 0;
}

/* Who stood still while a later version was saved changes nothing of that, whenever it goes on. */
static void who_comes_late_leaves_the_later_save(void **state)
{
    (void)state;
    struct save_manifest six, nine;
    char why[SAVE_WHY];
    assert_true(write_version(6, &this_job, &six));
    assert_int_equal(version_there(), 6);
    assert_true(write_version(9, &this_job, &nine));
    assert_int_equal(version_there(), 9);
    save_sweep(folder, &six);
    assert_int_equal(version_there(), 9);
    assert_true(save_manifest_write(folder, &this_job, &six, why));
    assert_int_equal(version_there(), 9);
    save_sweep(folder, &nine);
    assert_int_equal(version_there(), 9);
    assert_true(save_manifest_write(folder, &this_job, &six, why)); /* its files are gone */
    assert_int_equal(version_there(), 9);
    save_sweep(folder, &six);
    assert_int_equal(version_there(), 9);
    assert_false(is_there(name_of(&this_job, 6, 0)));
    save_manifest_free(&six);
    save_manifest_free(&nine);
}

static void another_job_begins_anew_whatever_its_version(void **state)
{
    (void)state;
    struct save_manifest old, new;
    char why[SAVE_WHY];
    assert_true(write_version(12, &former_job, &old));
    assert_true(write_version(6, &this_job, &new));
    assert_int_equal(version_there(), 12); /* the new save has not ended */
    save_sweep(folder, &new);
    assert_int_equal(version_there(), 6);
    assert_false(is_there(name_of(&former_job, 12, 0)));
    assert_true(save_manifest_write(folder, &former_job, &old, why)); /* somebody of the former job stood still */
    save_sweep(folder, &old);
    assert_int_equal(version_there(), 6);
    save_manifest_free(&old);
    save_manifest_free(&new);
}

/* Two that both think that they are to write it: each writes a file of its own, and what has the name is whole. */
static void two_write_the_same_file(void **state)
{
    (void)state;
    struct save_file a, b;
    struct save_entry e = {.bytes = 6};
    char why[SAVE_WHY];
    uint8_t sum[SAVE_SUM];
    save_name(e.name, &this_job, 6, 0);
    assert_true(save_create(&a, folder, e.name, why) && save_append(&a, "abc", 3, why));
    assert_true(save_create(&b, folder, e.name, why) && save_append(&b, "abcdef", 6, why));
    assert_true(save_append(&a, "def", 3, why) && save_finish(&a, e.sum, why));
    for (int i = 0; i < 2; i++) {
        struct save_file f;
        char got[6];
        assert_true(save_open(&f, folder, e.name, why) && save_next(&f, got, sizeof got, why));
        assert_memory_equal(got, "abcdef", 6);
        assert_true(save_check(&f, &e, why));
        if (i == 0)
            assert_true(save_finish(&b, sum, why));
    }
}

/* What is still being written of the same version stays; of earlier ones it goes. */
static void what_is_being_written_stays(void **state)
{
    (void)state;
    struct save_manifest six;
    struct save_file now, before;
    char why[SAVE_WHY];
    uint8_t sum[SAVE_SUM];
    assert_true(save_create(&now, folder, name_of(&this_job, 6, SAVE_MANIFEST), why));
    assert_true(save_create(&before, folder, name_of(&this_job, 5, 0), why));
    assert_true(write_version(6, &this_job, &six));
    save_sweep(folder, &six);
    assert_true(save_finish(&now, sum, why));
    assert_false(save_finish(&before, sum, why));
    save_manifest_free(&six);
}

static void nobody_waits_for_a_pipe(void **state)
{
    (void)state;
    char why[SAVE_WHY], path[SAVE_PATH];
    alarm(20);
    assert_int_equal(mkfifo(in_folder(name_of(&this_job, 6, SAVE_MANIFEST)), 0600), 0);
    assert_true(save_find(folder, path, why));
    assert_false(save_verify(path, 1, why));
    assert_non_null(strstr(why, "it is no file"));
    alarm(0);
}

/* ---- in a folder that others may write to ---- */

static int plant(const char *name, uid_t owner)
{
    int fd = open(in_folder(name), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    assert_true(fd >= 0 && fchmod(fd, 0666) == 0 && (!owner || fchown(fd, owner, owner) == 0));
    return fd;
}

/* So many bytes are in the file that somebody holds open. */
static off_t bytes_in(int fd)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    return st.st_size;
}

static bool verify(char *why)
{
    char path[SAVE_PATH];
    return save_find(folder, path, why) && save_verify(path, 1, why);
}

/* Of whoever knows how files are called: nothing is written to what he has open. */
static void test_save_file_that_was_there_before_is_not_written_to(void **state)
{
    (void)state;
    struct save_manifest m;
    char why[SAVE_WHY];
    uid_t owner = geteuid() == 0 ? 65534 : 0;
    int file = plant(name_of(&this_job, 6, 0), owner), manifest = plant(name_of(&this_job, 6, SAVE_MANIFEST), owner);
    assert_true(write_version(6, &this_job, &m));
    assert_int_equal(bytes_in(file) + bytes_in(manifest), 0);
    struct stat st;
    assert_true(stat(in_folder(name_of(&this_job, 6, SAVE_MANIFEST)), &st) == 0 && (st.st_mode & 07777) == 0600);
    assert_true(st.st_uid == geteuid() && verify(why));
    save_manifest_free(&m);
    close(file);
    close(manifest);
}

/* It sees all names that there are, and what is being written. */
static void test_save_name_cannot_be_told_before_the_file_is_there(void **state)
{
    (void)state;
    static const uint8_t guess[SAVE_SECRET];
    const struct save_job guessed = {.number = this_job.number, .secret = guess};
    struct save_file f;
    char why[SAVE_WHY], mark[17], planted[SAVE_NAME];
    uint8_t sum[SAVE_SUM];
    const char *const name = name_of(&this_job, 6, 0);
    snprintf(mark, sizeof mark, "%s", name + strlen("6.0000000000001234."));
    assert_true(save_create(&f, folder, name, why));
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        assert_null(strstr(e->d_name, mark));
    closedir(d);
    assert_true(save_finish(&f, sum, why) && is_there(name));
    assert_null(strstr(name_of(&guessed, 6, 0), mark));
    assert_null(strstr(name_of(&this_job, 6, 1), mark));
    assert_null(strstr(name_of(&this_job, 6, SAVE_MANIFEST), mark));
    for (int i = 0; i < 4; i++) { /* as names were, and as if the mark were that of before */
        snprintf(planted, sizeof planted, "7.0000000000001234%s%s.%s", i & 1 ? "." : "", i & 1 ? mark : "",
                 i & 2 ? "rank0" : "manifest");
        assert_int_equal(mkdir(in_folder(planted), 0700), 0);
        (void)!chown(in_folder(planted), 65534, 65534);
    }
    struct save_manifest m;
    assert_true(write_version(7, &this_job, &m));
    save_manifest_free(&m);
    if (geteuid() == 0) /* else they are this user's, whose manifest is not passed by */
        assert_int_equal(version_there(), 7);
}

static void write_file(const char *name, const char *text, size_t len, uint8_t sum[SAVE_SUM])
{
    struct save_file f;
    char why[SAVE_WHY];
    assert_true(save_create(&f, folder, name, why) && save_append(&f, text, len, why) && save_finish(&f, sum, why));
}

/* As they were written before names had marks. */
static void test_save_without_marks_is_read_and_taken_away(void **state)
{
    (void)state;
    struct save_manifest six, three;
    uint8_t sum[SAVE_SUM];
    size_t len;
    assert_true(save_manifest_room(&six, 1));
    six.version = 6;
    six.rank[0].bytes = 3;
    strcpy(six.rank[0].name, "6.0000000000004321.rank0");
    write_file(six.rank[0].name, "abc", 3, six.rank[0].sum);
    char *text = save_manifest_text(&six, &len);
    write_file("6.0000000000004321.manifest", text, len, sum);
    free(text);
    save_manifest_free(&six);
    assert_int_equal(version_there(), 6);
    assert_true(write_version(3, &this_job, &three));
    save_sweep(folder, &three);
    assert_int_equal(version_there(), 3);
    assert_false(is_there("6.0000000000004321.rank0") || is_there("6.0000000000004321.manifest"));
    save_manifest_free(&three);
}

static void test_save_manifest_of_a_third_user_is_passed_by(void **state)
{
    (void)state;
    struct save_manifest m;
    char why[SAVE_WHY];
    if (geteuid() != 0)
        skip();
    assert_true(write_version(6, &this_job, &m));
    save_manifest_free(&m);
    assert_int_equal(chmod(folder, 01777), 0);
    close(plant("99.aaaaaaaaaaaaaaaa.manifest", 65534));
    assert_int_equal(mkfifo(in_folder("98.aaaaaaaaaaaaaaaa.manifest"), 0600), 0);
    assert_int_equal(chown(in_folder("98.aaaaaaaaaaaaaaaa.manifest"), 65534, 65534), 0);
    assert_true(verify(why));
}

static void test_save_link_in_the_way_is_not_followed(void **state)
{
    (void)state;
    struct save_manifest m;
    char why[SAVE_WHY];
    int aim = plant("aim", 0);
    assert_int_equal(symlink("aim", in_folder(name_of(&this_job, 6, SAVE_MANIFEST))), 0);
    assert_true(write_version(6, &this_job, &m) && verify(why));
    assert_int_equal(bytes_in(aim), 0);
    save_manifest_free(&m);
    close(aim);
}

static void test_save_folder_that_everybody_may_change_is_refused(void **state)
{
    (void)state;
    struct save_manifest m;
    struct save_file f;
    char why[SAVE_WHY];
    assert_true(write_version(6, &this_job, &m));
    save_manifest_free(&m);
    assert_int_equal(chmod(folder, 0777), 0);
    assert_false(save_create(&f, folder, name_of(&this_job, 9, 0), why));
    assert_non_null(strstr(why, "everybody may write"));
    assert_false(verify(why));
    assert_int_equal(chmod(folder, 01777), 0); /* there everybody may write, and take away what is his own */
    assert_true(verify(why) && write_version(9, &this_job, &m));
    save_manifest_free(&m);
    assert_int_equal(chmod(folder, 0770), 0);
    assert_true(verify(why));
    if (geteuid() != 0)
        return;
    assert_true(chmod(folder, 01777) == 0 && chown(folder, 65534, 65534) == 0); /* but whose folder it is, all of it */
    assert_false(verify(why));
}

static void test_save_of_another_user_is_not_what_was_saved_here(void **state)
{
    (void)state;
    struct save_manifest m;
    char why[SAVE_WHY];
    if (geteuid() != 0)
        skip();
    const char *const names[] = {name_of(&this_job, 6, SAVE_MANIFEST), name_of(&this_job, 6, 0)};
    assert_true(write_version(6, &this_job, &m));
    save_manifest_free(&m);
    for (size_t i = 0; i < 2; i++) {
        assert_true(verify(why) && chown(in_folder(names[i]), 65534, 65534) == 0);
        assert_false(verify(why));
        assert_non_null(strstr(why, "belongs to user 65534"));
        assert_int_equal(chown(in_folder(names[i]), 0, 0), 0);
    }
    assert_true(chown(in_folder(names[0]), 65534, 65534) == 0 && chown(folder, 65534, 65534) == 0);
    assert_true(verify(why)); /* of him whose folder was named */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(one_bit_more_or_less_is_found),
        cmocka_unit_test(what_is_no_manifest_is_refused),
        cmocka_unit_test_setup_teardown(who_comes_late_leaves_the_later_save, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(another_job_begins_anew_whatever_its_version, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(two_write_the_same_file, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(what_is_being_written_stays, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(nobody_waits_for_a_pipe, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_save_file_that_was_there_before_is_not_written_to, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_save_name_cannot_be_told_before_the_file_is_there, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_save_without_marks_is_read_and_taken_away, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_save_manifest_of_a_third_user_is_passed_by, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_save_link_in_the_way_is_not_followed, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_save_folder_that_everybody_may_change_is_refused, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_save_of_another_user_is_not_what_was_saved_here, make_folder,
                                        remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
