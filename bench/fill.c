/* What it costs a program of Global Arrays that its stores are found out and brought to the copies: an array that is
 * filled and summed. Run it without and with copies (bench/copies.py). Medians of the rounds, of the first process.
 *
 *   bench-fill [MIB [ROUNDS]]   MiB of doubles a process */
#include <mpi.h>

#include <ga-mpi.h>
#include <ga.h>
#include <macdecls.h>
#include <stdio.h>
#include <stdlib.h>

enum { NEW, SAME, SUM, PHASES, ROUNDS_MAX = 1000 };
static const char *const names[PHASES] = {"fill with new values", "fill with the same values", "sum"};
static double taken[PHASES][ROUNDS_MAX];

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double time_of_fill(int g, double value)
{
    double began = MPI_Wtime();
    GA_Fill(g, &value);
    GA_Sync();
    return MPI_Wtime() - began;
}

int main(int argc, char **argv)
{
    const int mib = argc > 1 ? atoi(argv[1]) : 8, rounds = argc > 2 ? atoi(argv[2]) : 21;
    int wrong = 0;
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS || mib < 1 || rounds < 1 || rounds > ROUNDS_MAX)
        return 2;
    GA_Initialize();
    int n = GA_Nnodes() * mib * (1024 * 1024 / (int)sizeof(double)), dims[1] = {n};
    int g = NGA_Create(C_DBL, 1, dims, "values", NULL);
    (void)time_of_fill(g, 1); /* the first touch of the memory */
    for (int r = 0; r < rounds; r++) {
        taken[NEW][r] = time_of_fill(g, r + 2);
        taken[SAME][r] = time_of_fill(g, r + 2);
        double began = MPI_Wtime(), sum = GA_Ddot(g, g);
        taken[SUM][r] = MPI_Wtime() - began;
        wrong += sum != (double)(r + 2) * (r + 2) * n;
    }
    for (int k = 0; k < PHASES && GA_Nodeid() == 0; k++) {
        qsort(taken[k], (size_t)rounds, sizeof taken[k][0], by_size);
        printf("%s: %.1f us\n", names[k], 1e6 * taken[k][rounds / 2]);
    }
    GA_Destroy(g);
    GA_Terminate();
    (void)MPI_Finalize();
    return wrong != 0;
}
