/* A dynamically load-balanced matrix product in plain Global Arrays: blocks of C are drawn from a shared counter, A and
 * B are fetched, C is accumulated. Exit 0 if every element of C is right.
 *
 *   ga-matmul [N [BLOCK]]      matrices of N x N doubles in blocks of BLOCK */
#include <mpi.h>

#include <ga-mpi.h>
#include <ga.h>
#include <macdecls.h>
#include <stdio.h>
#include <stdlib.h>

/* A(i, j) = i + 2 j, B(i, j) = i - j: the product is known in closed form, and all its values are whole numbers. */
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

static int create(const char *name, int n)
{
    int dims[2] = {n, n};
    return NGA_Create(C_DBL, 2, dims, (char *)(size_t)name, NULL);
}

/* Each process writes its own patch, through the pointer that GA gives to it. */
static void fill(int g, double (*value)(int, int))
{
    int lo[2], hi[2], ld[1];
    double *patch;
    NGA_Distribution(g, GA_Nodeid(), lo, hi);
    if (lo[0] < 0 || hi[0] < lo[0])
        return;
    NGA_Access(g, lo, hi, (void *)&patch, ld);
    for (int i = lo[0]; i <= hi[0]; i++)
        for (int j = lo[1]; j <= hi[1]; j++)
            patch[(size_t)(i - lo[0]) * (size_t)ld[0] + (size_t)(j - lo[1])] = value(i, j);
    NGA_Release_update(g, lo, hi);
}

struct blocks {
    int n, size, per_side;
    double *a, *b, *c;
};

static int upper(const struct blocks *k, int lo)
{
    return lo + k->size <= k->n ? lo + k->size - 1 : k->n - 1;
}

/* One task: a block of A times a block of B, added to a block of C. */
static void multiply(const struct blocks *k, long task, int ga, int gb, int gc)
{
    int side = k->per_side, i = (int)(task / side / side), j = (int)(task / side % side), l = (int)(task % side);
    int alo[2] = {i * k->size, l * k->size}, blo[2] = {l * k->size, j * k->size}, clo[2] = {i * k->size, j * k->size};
    int ahi[2] = {upper(k, alo[0]), upper(k, alo[1])}, bhi[2] = {upper(k, blo[0]), upper(k, blo[1])};
    int chi[2] = {upper(k, clo[0]), upper(k, clo[1])}, ld = k->size;
    double one = 1;
    NGA_Get(ga, alo, ahi, k->a, &ld);
    NGA_Get(gb, blo, bhi, k->b, &ld);
    for (int r = 0; r <= chi[0] - clo[0]; r++)
        for (int s = 0; s <= chi[1] - clo[1]; s++) {
            double sum = 0;
            for (int t = 0; t <= ahi[1] - alo[1]; t++)
                sum += k->a[r * ld + t] * k->b[t * ld + s];
            k->c[r * ld + s] = sum;
        }
    NGA_Acc(gc, clo, chi, k->c, &ld, &one);
}

static long wrong_elements(int g, int n)
{
    double *row = malloc((size_t)n * sizeof *row);
    long wrong = row ? 0 : 1;
    for (int i = GA_Nodeid(); row && i < n; i += GA_Nnodes()) {
        int lo[2] = {i, 0}, hi[2] = {i, n - 1}, ld = n;
        NGA_Get(g, lo, hi, row, &ld);
        for (int j = 0; j < n; j++)
            wrong += row[j] != c_of(n, i, j);
    }
    free(row);
    GA_Lgop(&wrong, 1, "+");
    return wrong;
}

/* The processes of even and of odd number, each with an array of its own, at the same time; and their communicators.
 * How much of it is wrong. */
static long groups(void)
{
    int me = GA_Nodeid(), n = 0, *list = malloc((size_t)GA_Nnodes() * sizeof *list), sum = 1, lo, hi;
    long wrong = 0;
    if (!list) {
        GA_Error("out of memory", 1);
        abort();
    }
    for (int p = me % 2; p < GA_Nnodes(); p += 2)
        list[n++] = p;
    if (n == 0)
        abort(); /* this process is in it */
    int group = GA_Pgroup_create(list, n), array = GA_Create_handle(), size = 10 * n, one = 1;
    GA_Set_data(array, 1, &size, C_DBL);
    GA_Set_pgroup(array, group);
    if (!GA_Allocate(array))
        GA_Error("an array on a group cannot be created", 1);
    lo = 10 * ((me / 2 + 1) % n); /* of the next member's tens */
    hi = lo + 9;
    double values[10];
    for (int i = 0; i < 10; i++)
        values[i] = 1000 * (me % 2) + lo + i;
    NGA_Put(array, &lo, &hi, values, &one);
    GA_Pgroup_sync(group);
    for (lo = 0; lo < size; lo += 10) {
        hi = lo + 9;
        NGA_Get(array, &lo, &hi, values, &one);
        for (int i = 0; i < 10; i++)
            wrong += values[i] != 1000 * (me % 2) + lo + i;
    }
    GA_Pgroup_igop(group, &sum, 1, "+");
    wrong += sum != n;
    MPI_Comm comm = GA_MPI_Comm_pgroup(group);
    if (comm == MPI_COMM_NULL || MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS ||
        sum != n * n)
        wrong++;
    GA_Pgroup_sync(group);
    GA_Destroy(array);
    GA_Pgroup_destroy(group);
    free(list);
    GA_Lgop(&wrong, 1, "+");
    return wrong;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    GA_Initialize();
    MA_init(C_DBL, 200000, 200000);
    int n = argc > 1 ? atoi(argv[1]) : 100, size = argc > 2 ? atoi(argv[2]) : 16, one = 1;
    if (n < 1 || size < 1 || n > 5000)
        GA_Error("usage: ga-matmul [N [BLOCK]]", 1);
    struct blocks k = {.n = n, .size = size, .per_side = (n + size - 1) / size};
    size_t block = (size_t)size * (size_t)size * sizeof(double);
    double *memory = malloc(3 * block);
    if (!memory) {
        GA_Error("out of memory", 1);
        return 1;
    }
    k.a = memory;
    k.b = k.a + block / sizeof(double);
    k.c = k.b + block / sizeof(double);
    int a = create("A", n), b = create("B", n), c = create("C", n);
    int counter = NGA_Create(C_LONG, 1, &one, "counter", NULL), first = 0;
    fill(a, a_of);
    fill(b, b_of);
    GA_Zero(c);
    GA_Zero(counter);
    GA_Sync();
    long tasks = (long)k.per_side * k.per_side * k.per_side, mine = 0;
    for (long t = NGA_Read_inc(counter, &first, 1); t < tasks; t = NGA_Read_inc(counter, &first, 1), mine++)
        multiply(&k, t, a, b, c);
    GA_Sync();
    long wrong = wrong_elements(c, n) + groups();
    GA_Lgop(&mine, 1, "+");
    if (GA_Nodeid() == 0)
        printf("ga-matmul: %d x %d on %d processes, %ld tasks, %ld wrong elements\n", n, n, GA_Nnodes(), mine, wrong);
    free(memory);
    GA_Destroy(counter);
    GA_Destroy(c);
    GA_Destroy(b);
    GA_Destroy(a);
    GA_Terminate();
    MPI_Finalize();
    return wrong != 0 || mine != tasks;
}
