/* ga-again: GA_Initialize and GA_Terminate three times over in one process: libraries that use Global Arrays for a
 * part of their work do so. */
#include <ga.h>
#include <macdecls.h>
#include <mpi.h>
#include <stdio.h>

enum { N = 60, TIMES = 3 };

/* How many of a sum of squares are not what they are to be. */
static int once(int time)
{
    int dims[] = {N, N}, chunk[] = {-1, -1}, wrong;
    double value = time, scale = 2;
    GA_Initialize();
    if (!MA_initialized() && !MA_init(C_DBL, 100000, 100000))
        GA_Error("MA_init", 1);
    int a = NGA_Create(C_DBL, 2, dims, "a", chunk), b = GA_Duplicate(a, "b");
    GA_Fill(a, &value);
    GA_Copy(a, b);
    GA_Scale(b, &scale);
    GA_Sync();
    wrong = GA_Ddot(a, b) != 2.0 * time * time * N * N;
    if (time % 2)
        GA_Destroy(a); /* else the end does */
    GA_Terminate();
    return wrong;
}

int main(int argc, char **argv)
{
    int wrong = 0, me;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    for (int time = 1; time <= TIMES; time++)
        wrong += once(time);
    if (me == 0)
        printf("ga-again: %d times, %d wrong\n", TIMES, wrong);
    MPI_Finalize();
    return wrong != 0;
}
