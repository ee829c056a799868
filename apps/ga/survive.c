/* A matrix product in Global Arrays that goes on when processes and nodes die: tasks are Keel's, so that what a dead
 * process had drawn is done again and each block counts once; everything else is plain GA. Exit 0 if every element of C
 * is right.
 *
 *   ga-survive [N [BLOCK [ROUNDS [quiet]]]]  matrices of N x N doubles in blocks of BLOCK, the product ROUNDS times
 *   over;
 *                                            quiet: without saying that it goes on
 *
 * Run it with KEEL_ARMCI_REDUNDANCY=shadow. It tells its event log when each phase begins, for tests that kill. */
#include <mpi.h>

#include <ga.h>
#include <keel/keel.h>
#include <macdecls.h>
#include <stdio.h>
#include <stdlib.h>

struct work {
    int n, size, side; /* of the matrices, of a block, blocks in a row */
    int a, b, c;
    double *x, *y, *z; /* blocks */
    int *map, *owners; /* of a block: first and last indices of each owner's part, and the owners */
};

static double a_of(int i, int j)
{
    return i + 2.0 * j;
}

static double b_of(int i, int j)
{
    return i - (double)j;
}

static double c_of(int n, int i, int j)
{
    double s0 = n, s1 = n * (n - 1.0) / 2, s2 = (n - 1.0) * n * (2 * n - 1.0) / 6;
    return i * s1 - (double)i * j * s0 + 2 * s2 - 2.0 * j * s1;
}

static void check(keel_status status)
{
    if (status != KEEL_OK)
        GA_Error((char *)(size_t)keel_status_text(status), (int)status);
}

static int create(const char *name, int n)
{
    int dims[2] = {n, n};
    return NGA_Create(C_DBL, 2, dims, (char *)(size_t)name, NULL);
}

/* Everybody writes everything, beginning at another row: whoever lives to the end has written all of it. */
static void fill(const struct work *w, int g, double (*value)(int, int))
{
    double *row = malloc((size_t)w->n * sizeof *row);
    for (int k = 0; row && k < w->n; k++) {
        int i = (k + GA_Nodeid() * w->n / GA_Nnodes()) % w->n, lo[2] = {i, 0}, hi[2] = {i, w->n - 1}, ld = w->n;
        for (int j = 0; j < w->n; j++)
            row[j] = value(i, j);
        NGA_Put(g, lo, hi, row, &ld);
    }
    if (!row)
        GA_Error("out of memory", 1);
    free(row);
}

static int upper(const struct work *w, int lo)
{
    return lo + w->size <= w->n ? lo + w->size - 1 : w->n - 1;
}

/* Add a block to C, owner by owner: GA itself takes those of the caller's last, and a task must make the same
 * accumulates in the same order whoever runs it. */
static void add(const struct work *w, int lo[2], int hi[2])
{
    double one = 1;
    int n = NGA_Locate_region(w->c, lo, hi, w->map, w->owners), ld = w->size;
    for (int k = 0; k < n; k++) {
        int *from = w->map + (size_t)k * 4, *to = from + 2;
        double *at = w->z + (size_t)(from[0] - lo[0]) * (size_t)ld + (from[1] - lo[1]);
        NGA_Acc(w->c, from, to, at, &ld, &one);
    }
}

/* A block of A times a block of B, added to a block of C. */
static void multiply(const struct work *w, long task)
{
    int i = (int)(task / w->side / w->side), j = (int)(task / w->side % w->side), l = (int)(task % w->side);
    int alo[2] = {i * w->size, l * w->size}, blo[2] = {l * w->size, j * w->size}, clo[2] = {i * w->size, j * w->size};
    int ahi[2] = {upper(w, alo[0]), upper(w, alo[1])}, bhi[2] = {upper(w, blo[0]), upper(w, blo[1])};
    int chi[2] = {upper(w, clo[0]), upper(w, clo[1])}, ld = w->size;
    NGA_Get(w->a, alo, ahi, w->x, &ld);
    NGA_Get(w->b, blo, bhi, w->y, &ld);
    for (int r = 0; r <= chi[0] - clo[0]; r++)
        for (int s = 0; s <= chi[1] - clo[1]; s++) {
            double sum = 0;
            for (int t = 0; t <= ahi[1] - alo[1]; t++)
                sum += w->x[r * ld + t] * w->y[t * ld + s];
            w->z[r * ld + s] = sum;
        }
    add(w, clo, chi);
}

/* What is not as it must be after so many rounds. Everybody looks at everything: who lives has seen all. */
static long wrong_elements(const struct work *w, int rounds)
{
    double *row = malloc((size_t)w->n * sizeof *row);
    long wrong = row ? 0 : 1;
    for (int i = 0; row && i < w->n; i++) {
        int lo[2] = {i, 0}, hi[2] = {i, w->n - 1}, ld = w->n;
        NGA_Get(w->c, lo, hi, row, &ld);
        for (int j = 0; j < w->n; j++)
            wrong += row[j] != rounds * c_of(w->n, i, j);
    }
    free(row);
    return wrong;
}

/* A group of those who live, which synchronises without the dead: 0 if its sum is over living members only. All agree
 * on who lives before they make it. */
static long group_of_living(void)
{
    int all = GA_Nnodes(), n = 0, *list = malloc((size_t)all * sizeof *list);
    long *lives = malloc((size_t)all * sizeof *lives), sum = 1;
    if (!list || !lives)
        GA_Error("out of memory", 1);
    for (int p = 0; lives && p < all; p++)
        lives[p] = keel_rank_alive(p);
    GA_Lgop(lives, all, "min");
    for (int p = 0; list && lives && p < all; p++)
        if (lives[p])
            list[n++] = p;
    int group = GA_Pgroup_create(list, n);
    GA_Pgroup_sync(group);
    GA_Pgroup_lgop(group, &sum, 1, "+");
    GA_Pgroup_destroy(group);
    free(list);
    free(lives);
    return sum < 1 || sum > n;
}

static void phase(int number)
{
    if (keel_rank() == 0 || !keel_rank_alive(0))
        (void)keel_event("phase", number, NULL);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    GA_Initialize();
    if (argc < 5)
        keel_survive();
    MA_init(C_DBL, 200000, 200000);
    struct work w = {.n = argc > 1 ? atoi(argv[1]) : 60, .size = argc > 2 ? atoi(argv[2]) : 10};
    int rounds = argc > 3 ? atoi(argv[3]) : 3, one = 1, first = 0;
    if (w.n < 1 || w.size < 1 || w.n > 5000 || rounds < 1)
        GA_Error("usage: ga-survive [N [BLOCK [ROUNDS [quiet]]]]", 1);
    w.side = (w.n + w.size - 1) / w.size;
    size_t block = (size_t)w.size * (size_t)w.size;
    w.x = malloc(3 * block * sizeof(double));
    w.map = malloc((size_t)GA_Nnodes() * 5 * sizeof(int));
    if (!w.x || !w.map)
        GA_Error("out of memory", 1);
    w.owners = w.map + (size_t)GA_Nnodes() * 4;
    w.y = w.x + block;
    w.z = w.y + block;
    w.a = create("A", w.n);
    w.b = create("B", w.n);
    w.c = create("C", w.n);
    int counter = NGA_Create(C_LONG, 1, &one, "counter", NULL);
    long zero = 0, total = (long)w.side * w.side * w.side;
    phase(1);
    fill(&w, w.a, a_of);
    fill(&w, w.b, b_of);
    NGA_Put(counter, &first, &first, &zero, NULL);
    GA_Sync();
    keel_taskpool *pool;
    check(keel_taskpool_create(total, &pool));
    for (int round = 0; round < rounds; round++) {
        int64_t task;
        phase(2 + round);
        if (round)
            check(keel_taskpool_reset(pool));
        for (check(keel_task_next(pool, &task)); task >= 0; check(keel_task_next(pool, &task))) {
            multiply(&w, task);
            check(keel_task_commit(pool, task));
            (void)NGA_Read_inc(counter, &first, 1);
        }
        GA_Sync();
    }
    phase(2 + rounds);
    long wrong = wrong_elements(&w, rounds), done = NGA_Read_inc(counter, &first, 0), bad_group = group_of_living();
    GA_Lgop(&wrong, 1, "+");
    int living = 0;
    for (int p = 0; p < GA_Nnodes(); p++)
        living += keel_rank_alive(p);
    /* who died between its commit and its count is missing there, one each at most */
    if (done > total * rounds || done < total * rounds - (GA_Nnodes() - living))
        wrong++;
    phase(3 + rounds);
    printf("ga-survive: rank %d of %d, %ld wrong elements, %ld tasks counted, group %s\n", GA_Nodeid(), GA_Nnodes(),
           wrong, done, bad_group ? "wrong" : "right");
    fflush(stdout);
    check(keel_taskpool_free(pool));
    free(w.x);
    free(w.map);
    GA_Destroy(counter);
    GA_Destroy(w.c);
    GA_Destroy(w.b);
    GA_Destroy(w.a);
    GA_Terminate();
    MPI_Finalize();
    return wrong != 0 || bad_group;
}
