/* How launchers are called: Hydra's calls as they were seen with 4.0.2, and ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pm/launch/words.h"

#define REST(name)                                                                                                     \
    "--control-port", "127.0.0.1:33989", "--rmk", "user", "--launcher", name, "--launcher-exec", "/x/keel-launch",     \
        "--demux", "poll", "--pgid", "0", "--proxy-id", "0", NULL

static int count(char *const *argv)
{
    int n = 0;
    while (argv[n])
        n++;
    return n;
}

/* Our words for Hydra's, with a space behind each. */
static void expect(char *const *hydras, const char *launcher, const char *host, const char *ours, bool may_be_here)
{
    struct words w;
    char text[1000] = "";
    assert_true(words_are_hydras(count(hydras), hydras));
    assert_true(words_make(&w, count(hydras), hydras, launcher, host));
    for (int i = 0; w.argv[i]; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s ", w.argv[i]);
    assert_string_equal(text, ours);
    assert_int_equal(w.may_be_here, may_be_here);
}

static void test_words_of_each_launcher(void **state)
{
    (void)state;
    char *ssh[] = {"/x/keel-launch", "-x", "127.0.0.1", "\"/usr/bin/hydra_pmi_proxy\"", REST("ssh")};
    char *rsh[] = {"/x/keel-launch", "127.0.0.1", "\"/usr/bin/hydra_pmi_proxy\"", REST("rsh")};
    char *lsf[] = {"/x/keel-launch", "-n", "127.0.0.1", "\"/usr/bin/hydra_pmi_proxy\"", REST("lsf")};
    char *sge[] = {"/x/keel-launch", "-inherit", "-V", "127.0.0.1", "\"/usr/bin/hydra_pmi_proxy\"", REST("sge")};
    char *slurm[] = {"/x/keel-launch",           "--nodelist", "127.0.0.1", "-N", "1", "-n", "1", "--input", "none",
                     "/usr/bin/hydra_pmi_proxy", REST("slurm")};
    unsetenv("LSF_BINDIR");
    unsetenv("SGE_ROOT");
    expect(ssh, "", "n1", "ssh -x n1 '/x/keel-launch' ", true);
    expect(ssh, "/y/my ssh", "me@fd00::2", "/y/my ssh -x me@fd00::2 '/x/keel-launch' ", true);
    expect(rsh, "", "n1", "rsh n1 '/x/keel-launch' ", true);
    expect(lsf, "", "n1", "blaunch n1 '/x/keel-launch' ", true);
    expect(sge, "", "n1", "qrsh -inherit -V n1 '/x/keel-launch' ", true);
    expect(slurm, "", "n1", "srun --nodelist n1 -N 1 -n 1 --input all /x/keel-launch ", false);
    setenv("LSF_BINDIR", "/lsf", 1);
    setenv("SGE_ROOT", "/sge", 1);
    setenv("ARC", "lx", 1);
    expect(lsf, "", "n1", "/lsf/blaunch n1 '/x/keel-launch' ", true);
    expect(sge, "", "n1", "/sge/bin/lx/qrsh -inherit -V n1 '/x/keel-launch' ", true);
}

/* HYDRA_LAUNCHER_EXTRA_ARGS stand before the host, for Slurm before the command. */
static void test_words_extra_arguments_stay(void **state)
{
    (void)state;
    char *ssh[] = {"/x/keel-launch", "-x", "-p", "22", "127.0.0.1", "\"/usr/bin/hydra_pmi_proxy\"", REST("ssh")};
    char *slurm[] = {
        "/x/keel-launch",           "--nodelist", "127.0.0.1", "-N", "1", "-n", "1", "--input", "none", "--no-kill",
        "/usr/bin/hydra_pmi_proxy", REST("slurm")};
    expect(ssh, "", "n1", "ssh -x -p 22 n1 '/x/keel-launch' ", true);
    expect(slurm, "", "n1", "srun --nodelist n1 -N 1 -n 1 --input all --no-kill /x/keel-launch ", false);
}

static void test_words_path_is_quoted_for_the_shell_there(void **state)
{
    (void)state;
    char *ssh[] = {"/x y/it's/keel-launch", "-x", "127.0.0.1", "\"/usr/bin/hydra_pmi_proxy\"", REST("ssh")};
    expect(ssh, "", "n1", "ssh -x n1 '/x y/it'\\''s/keel-launch' ", true);
}

static void test_words_of_a_launcher_that_is_not_known_are_refused(void **state)
{
    (void)state;
    struct words w;
    char *cobalt[] = {"/x/keel-launch", "127.0.0.1", "\"/usr/bin/hydra_pmi_proxy\"", REST("cobalt")};
    assert_false(words_make(&w, count(cobalt), cobalt, "", "n1"));
    assert_non_null(strstr(w.why, "cobalt"));
    char *far[] = {"/x/keel-launch", NULL}, *not_asked[] = {"/x/keel-launch", "--not-asked", NULL};
    assert_false(words_are_hydras(count(far), far));
    assert_false(words_are_hydras(count(not_asked), not_asked));
}

static void test_words_hosts_that_are_this_one(void **state)
{
    (void)state;
    assert_true(words_host_is_here("localhost"));
    assert_true(words_host_is_here("127.0.0.1"));
    assert_true(words_host_is_here("127.0.1.1"));
    assert_false(words_host_is_here("127.0.1.2"));
    assert_false(words_host_is_here("no-such-host.invalid"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_of_each_launcher),
        cmocka_unit_test(test_words_extra_arguments_stay),
        cmocka_unit_test(test_words_path_is_quoted_for_the_shell_there),
        cmocka_unit_test(test_words_of_a_launcher_that_is_not_known_are_refused),
        cmocka_unit_test(test_words_hosts_that_are_this_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
