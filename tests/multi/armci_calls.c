/* armci-calls [list]: every call of ARMCI's before ARMCI_Init and after ARMCI_Finalize, and every call that can be
 * wrong with what can be wrong with it. A wrong call ends its process with exit code 1 and a line that names call and
 * reason, and has not touched any process's memory. Each is made in a child of its own, which has the parent's
 * memory and no way to the others. Two processes. list: the names of the calls, one a line. */
#include <armci.h>

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 512, LIMIT_S = 60 };
static void *base[64], *freed[64], *mine_only;
static double value[64];
static int me, other = 1, flag, got, up, left, right;
static long wide;
static int list2[2] = {0, 1}, list_bad[2] = {0, 2}, list_twice[2], here;
static armci_hdl_t handle;
static ARMCI_Group world, gone, made;
static armci_meminfo_t info, given_back, damaged, not_mine_to_give;
static int stride[2] = {16, 64}, count[3] = {8, 2, 2}, down[2] = {-16, 64}, close_by[2] = {4, 4},
           far[2] = {INT_MAX, INT_MAX}, negative[3] = {8, -2, 2}, cut[3] = {12, 2, 2}, many[3] = {8, INT_MAX, INT_MAX};
static void *to[2], *from[2], *outside[2], *nowhere[2];
static armci_giov_t good, length_bad, number_bad, no_places, ends_outside, in_none;
static char buffer[256];

/* ---- at the wrong moment ---- */

/* X(call, arguments): the job ends. */
#define CALLS_THAT_END(X)                                                                                              \
    X(ARMCI_Malloc, (base, 8))                                                                                         \
    X(ARMCI_Malloc_group, (base, 8, &world))                                                                           \
    X(ARMCI_Malloc_memdev, (base, 8, NULL))                                                                            \
    X(ARMCI_Malloc_group_memdev, (base, 8, &world, NULL))                                                              \
    X(ARMCI_Free, (base[me]))                                                                                          \
    X(ARMCI_Free_group, (base[me], &world))                                                                            \
    X(ARMCI_Free_memdev, (base[me]))                                                                                   \
    X(ARMCI_Memget, (8, &info, 0))                                                                                     \
    X(ARMCI_Memat, (&info, 0))                                                                                         \
    X(ARMCI_Memdt, (&info, 0))                                                                                         \
    X(ARMCI_Memctl, (&info))                                                                                           \
    X(ARMCI_GroupFence, (&world))                                                                                      \
    X(armci_msg_clus_brdcst, (value, 8))                                                                               \
    X(armci_msg_clus_igop, (&got, 1, "+"))                                                                             \
    X(armci_msg_clus_lgop, (&wide, 1, "+"))                                                                            \
    X(armci_msg_clus_llgop, ((long long *)(void *)&wide, 1, "+"))                                                      \
    X(armci_msg_clus_fgop, ((float *)(void *)value, 1, "+"))                                                           \
    X(armci_msg_clus_dgop, (value, 1, "+"))                                                                            \
    X(armci_exchange_address, (base, 1))                                                                               \
    X(armci_exchange_address_grp, (base, 1, &world))                                                                   \
    X(ARMCI_Put, (value, base[me], 8, me))                                                                             \
    X(ARMCI_Get, (base[me], value, 8, me))                                                                             \
    X(ARMCI_Acc, (ARMCI_ACC_DBL, value, value, base[me], 8, me))                                                       \
    X(ARMCI_NbPut, (value, base[me], 8, me, &handle))                                                                  \
    X(ARMCI_NbGet, (base[me], value, 8, me, &handle))                                                                  \
    X(ARMCI_NbAcc, (ARMCI_ACC_DBL, value, value, base[me], 8, me, &handle))                                            \
    X(ARMCI_Put_flag, (value, base[me], 8, &flag, 1, me))                                                              \
    X(ARMCI_PutS, (value, stride, base[me], stride, count, 1, me))                                                     \
    X(ARMCI_GetS, (base[me], stride, value, stride, count, 1, me))                                                     \
    X(ARMCI_AccS, (ARMCI_ACC_DBL, value, value, stride, base[me], stride, count, 1, me))                               \
    X(ARMCI_NbPutS, (value, stride, base[me], stride, count, 1, me, &handle))                                          \
    X(ARMCI_NbGetS, (base[me], stride, value, stride, count, 1, me, &handle))                                          \
    X(ARMCI_NbAccS, (ARMCI_ACC_DBL, value, value, stride, base[me], stride, count, 1, me, &handle))                    \
    X(ARMCI_PutS_flag, (value, stride, base[me], stride, count, 1, &flag, 1, me))                                      \
    X(ARMCI_PutV, (&good, 1, me))                                                                                      \
    X(ARMCI_GetV, (&good, 1, me))                                                                                      \
    X(ARMCI_AccV, (ARMCI_ACC_DBL, value, &good, 1, me))                                                                \
    X(ARMCI_NbPutV, (&good, 1, me, &handle))                                                                           \
    X(ARMCI_NbGetV, (&good, 1, me, &handle))                                                                           \
    X(ARMCI_NbAccV, (ARMCI_ACC_DBL, value, &good, 1, me, &handle))                                                     \
    X(ARMCI_PutValueInt, (1, base[me], me))                                                                            \
    X(ARMCI_PutValueLong, (1, base[me], me))                                                                           \
    X(ARMCI_PutValueFloat, (1, base[me], me))                                                                          \
    X(ARMCI_PutValueDouble, (1, base[me], me))                                                                         \
    X(ARMCI_NbPutValueInt, (1, base[me], me, &handle))                                                                 \
    X(ARMCI_NbPutValueLong, (1, base[me], me, &handle))                                                                \
    X(ARMCI_NbPutValueFloat, (1, base[me], me, &handle))                                                               \
    X(ARMCI_NbPutValueDouble, (1, base[me], me, &handle))                                                              \
    X(ARMCI_GetValueInt, (base[me], me))                                                                               \
    X(ARMCI_GetValueLong, (base[me], me))                                                                              \
    X(ARMCI_GetValueFloat, (base[me], me))                                                                             \
    X(ARMCI_GetValueDouble, (base[me], me))                                                                            \
    X(ARMCI_WaitProc, (me))                                                                                            \
    X(ARMCI_WaitAll, ())                                                                                               \
    X(ARMCI_Fence, (me))                                                                                               \
    X(ARMCI_AllFence, ())                                                                                              \
    X(ARMCI_Barrier, ())                                                                                               \
    X(ARMCI_Rmw, (ARMCI_SWAP, &got, base[me], 1, me))                                                                  \
    X(ARMCI_Create_mutexes, (1))                                                                                       \
    X(ARMCI_Destroy_mutexes, ())                                                                                       \
    X(ARMCI_Lock, (0, me))                                                                                             \
    X(ARMCI_Unlock, (0, me))                                                                                           \
    X(ARMCI_Group_create, (1, &here, &made))                                                                           \
    X(ARMCI_Group_create_child, (1, &here, &made, &world))                                                             \
    X(ARMCI_Group_free, (&world))                                                                                      \
    X(ARMCI_Group_rank, (&world, &got))                                                                                \
    X(ARMCI_Group_size, (&world, &got))                                                                                \
    X(ARMCI_Group_set_default, (&world))                                                                               \
    X(ARMCI_Group_get_default, (&made))                                                                                \
    X(ARMCI_Group_get_world, (&made))                                                                                  \
    X(ARMCI_Absolute_id, (&world, 0))                                                                                  \
    X(armci_domain_nprocs, (ARMCI_DOMAIN_SMP, 0))                                                                      \
    X(armci_domain_id, (ARMCI_DOMAIN_SMP, 0))                                                                          \
    X(armci_domain_glob_proc_id, (ARMCI_DOMAIN_SMP, 0, 0))                                                             \
    X(armci_domain_my_id, (ARMCI_DOMAIN_SMP))                                                                          \
    X(armci_domain_count, (ARMCI_DOMAIN_SMP))                                                                          \
    X(armci_domain_same_id, (ARMCI_DOMAIN_SMP, 0))                                                                     \
    X(ARMCI_Same_node, (0))                                                                                            \
    X(armci_msg_snd, (1, value, 8, me))                                                                                \
    X(armci_msg_rcv, (1, value, 8, NULL, me))                                                                          \
    X(armci_msg_rcvany, (1, value, 8, NULL))                                                                           \
    X(armci_notify, (me))                                                                                              \
    X(armci_notify_wait, (me, NULL))                                                                                   \
    X(armci_msg_barrier, ())                                                                                           \
    X(armci_msg_group_barrier, (&world))                                                                               \
    X(armci_msg_bintree, (SCOPE_ALL, &got, &up, &left, &right))                                                        \
    X(armci_msg_bcast, (value, 8, 0))                                                                                  \
    X(armci_msg_brdcst, (value, 8, 0))                                                                                 \
    X(armci_msg_bcast_scope, (SCOPE_NODE, value, 8, 0))                                                                \
    X(armci_msg_group_bcast_scope, (SCOPE_ALL, value, 8, 0, &world))                                                   \
    X(armci_msg_sel, (value, 8, "max", ARMCI_DOUBLE, 1))                                                               \
    X(armci_msg_sel_scope, (SCOPE_ALL, value, 8, "max", ARMCI_DOUBLE, 1))                                              \
    X(armci_msg_gop_scope, (SCOPE_ALL, value, 1, "+", ARMCI_DOUBLE))                                                   \
    X(armci_msg_reduce, (value, 1, "+", ARMCI_DOUBLE))                                                                 \
    X(armci_msg_reduce_scope, (SCOPE_ALL, value, 1, "+", ARMCI_DOUBLE))                                                \
    X(armci_msg_igop, (&got, 1, "+"))                                                                                  \
    X(armci_msg_lgop, (&wide, 1, "+"))                                                                                 \
    X(armci_msg_llgop, ((long long *)(void *)&wide, 1, "+"))                                                           \
    X(armci_msg_fgop, ((float *)(void *)value, 1, "+"))                                                                \
    X(armci_msg_dgop, (value, 1, "+"))                                                                                 \
    X(armci_msg_group_gop_scope, (SCOPE_ALL, value, 1, "+", ARMCI_DOUBLE, &world))                                     \
    X(armci_msg_group_igop, (&got, 1, "+", &world))                                                                    \
    X(armci_msg_group_lgop, (&wide, 1, "+", &world))                                                                   \
    X(armci_msg_group_llgop, ((long long *)(void *)&wide, 1, "+", &world))                                             \
    X(armci_msg_group_fgop, ((float *)(void *)value, 1, "+", &world))                                                  \
    X(armci_msg_group_dgop, (value, 1, "+", &world))

/* They have to do with nobody else: nothing is said. */
#define CALLS_THAT_RETURN(X)                                                                                           \
    X(ARMCI_Initialized, ())                                                                                           \
    X(ARMCI_Finalize, ())                                                                                              \
    X(ARMCI_Cleanup, ())                                                                                               \
    X(ARMCI_Malloc_local, (8))                                                                                         \
    X(ARMCI_Free_local, (ARMCI_Malloc_local(8)))                                                                       \
    X(ARMCI_Set_shm_limit, (1))                                                                                        \
    X(ARMCI_Uses_shm, ())                                                                                              \
    X(ARMCI_Uses_shm_grp, (&world))                                                                                    \
    X(ARMCI_Access_begin, (base[me]))                                                                                  \
    X(ARMCI_Access_end, (base[me]))                                                                                    \
    X(ARMCI_Copy, (value, buffer, 8))                                                                                  \
    X(armci_write_strided, (value, 1, stride, count, buffer))                                                          \
    X(armci_read_strided, (value, 1, stride, count, buffer))                                                           \
    X(ARMCI_INIT_HANDLE, (&handle))                                                                                    \
    X(ARMCI_SET_AGGREGATE_HANDLE, (&handle))                                                                           \
    X(ARMCI_UNSET_AGGREGATE_HANDLE, (&handle))                                                                         \
    X(ARMCI_Wait, (&handle))                                                                                           \
    X(ARMCI_Test, (&handle))                                                                                           \
    X(armci_msg_me, ())                                                                                                \
    X(armci_msg_nproc, ())                                                                                             \
    X(armci_msg_init, (NULL, NULL))                                                                                    \
    X(armci_msg_finalize, ())                                                                                          \
    X(armci_timer, ())

/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define FUNCTION(NAME, ARGUMENTS)                                                                                      \
    static void call_##NAME(void)                                                                                      \
    {                                                                                                                  \
        (void)NAME ARGUMENTS;                                                                                          \
    }
#define ENTRY(NAME, ARGUMENTS) {#NAME, call_##NAME},
CALLS_THAT_END(FUNCTION)
CALLS_THAT_RETURN(FUNCTION)

static const struct {
    const char *name;
    void (*call)(void);
} ending[] = {CALLS_THAT_END(ENTRY)}, returning[] = {CALLS_THAT_RETURN(ENTRY)};
enum { ENDING = sizeof ending / sizeof *ending, RETURNING = sizeof returning / sizeof *returning };

/* ---- wrong arguments ---- */

#define NO_PROCESS "no such process"
#define NO_MEMORY "the remote address is in no memory of that process"
#define RANGE "an argument is out of range"
#define SIGN "a negative count or stride"
#define LEVELS "more stride levels than 8, or less than none"
#define NO_DESCRIPTION "no description of memory, or it was given back"
#define NO_TYPE "no such type of accumulate"

/* X(number, call, arguments, what is said). */
#define CALLS_THAT_ARE_WRONG(X)                                                                                        \
    X(1, ARMCI_Put, (value, base[other], 8, 2), NO_PROCESS)                                                            \
    X(2, ARMCI_Put, (value, base[other], 8, -1), NO_PROCESS)                                                           \
    X(3, ARMCI_Put, (value, base[other], -8, other), SIGN)                                                             \
    X(4, ARMCI_Put, (value, value, 8, other), NO_MEMORY)                                                               \
    X(5, ARMCI_Put, (value, NULL, 8, me), NO_MEMORY)                                                                   \
    X(6, ARMCI_Put, (value, (char *)base[other] + BYTES - 4, 8, other), RANGE)                                         \
    X(7, ARMCI_Put, (NULL, base[other], 8, other), RANGE)                                                              \
    X(8, ARMCI_Put, (value, freed[other], 8, other), NO_MEMORY)                                                        \
    X(9, ARMCI_Put, (value, mine_only, 8, other), NO_MEMORY)                                                           \
    X(10, ARMCI_Get, (base[other], value, 8, INT_MAX), NO_PROCESS)                                                     \
    X(11, ARMCI_Get, (base[other], value, INT_MIN, other), SIGN)                                                       \
    X(12, ARMCI_Get, ((char *)base[other] - 8, value, 8, other), NO_MEMORY)                                            \
    X(13, ARMCI_Get, (base[other], value, INT_MAX, other), RANGE)                                                      \
    X(14, ARMCI_Acc, (ARMCI_ACC_DCP + 1, value, value, base[other], 8, other), NO_TYPE)                                \
    X(15, ARMCI_Acc, (-1, value, value, base[other], 8, other), NO_TYPE)                                               \
    X(16, ARMCI_Acc, (ARMCI_ACC_DBL, value, value, base[other], 12, other), RANGE)                                     \
    X(17, ARMCI_Acc, (ARMCI_ACC_DBL, value, value, (char *)base[other] + 4, 8, other), RANGE)                          \
    X(18, ARMCI_Acc, (ARMCI_ACC_DBL, value, value, value, 8, me), NO_MEMORY)                                           \
    X(19, ARMCI_NbPut, (value, base[other], 8, 2, &handle), NO_PROCESS)                                                \
    X(20, ARMCI_NbPut, (value, value, 8, other, NULL), NO_MEMORY)                                                      \
    X(21, ARMCI_NbGet, (base[other], value, -1, other, &handle), SIGN)                                                 \
    X(22, ARMCI_NbAcc, (99, value, value, base[other], 8, other, &handle), NO_TYPE)                                    \
    X(23, ARMCI_Copy, (value, buffer, -8), "a negative length")                                                        \
    X(24, ARMCI_PutS, (value, down, base[other], down, count, 1, other), SIGN)                                         \
    X(25, ARMCI_PutS, (value, far, base[other], far, many, 2, other), RANGE)                                           \
    X(26, ARMCI_PutS, (value, stride, base[other], stride, negative, 1, other), SIGN)                                  \
    X(27, ARMCI_PutS, (value, stride, base[other], stride, count, 9, other), LEVELS)                                   \
    X(28, ARMCI_PutS, (value, stride, base[other], stride, count, -1, other), LEVELS)                                  \
    X(29, ARMCI_PutS, (value, stride, base[other], close_by, count, 1, other), RANGE)                                  \
    X(30, ARMCI_PutS, (value, NULL, base[other], NULL, count, 1, other), "no counts or strides")                       \
    X(31, ARMCI_GetS, (base[other], stride, value, close_by, count, 1, other), RANGE)                                  \
    X(32, ARMCI_GetS, (base[other], far, value, stride, count, 1, other), RANGE)                                       \
    X(33, ARMCI_GetS, (base[other], stride, value, stride, count, 1, 7), NO_PROCESS)                                   \
    X(34, ARMCI_AccS, (ARMCI_ACC_DBL, value, value, stride, base[other], stride, cut, 1, other), RANGE)                \
    X(35, ARMCI_AccS, (12, value, value, stride, base[other], stride, count, 1, other), NO_TYPE)                       \
    X(36, ARMCI_NbPutS, (value, stride, base[other], close_by, count, 1, other, &handle), RANGE)                       \
    X(37, ARMCI_NbGetS, (base[other], stride, value, stride, negative, 1, other, &handle), SIGN)                       \
    X(38, ARMCI_NbAccS, (ARMCI_ACC_DBL, value, value, stride, base[other], stride, count, 77, other, &handle), LEVELS) \
    X(39, armci_write_strided, (value, 1, stride, negative, buffer), "a negative count")                               \
    X(40, armci_read_strided, (value, 9, stride, count, buffer), LEVELS)                                               \
    X(41, ARMCI_PutV, (&length_bad, 1, other), "a negative length")                                                    \
    X(42, ARMCI_PutV, (&number_bad, 1, other), "a negative length")                                                    \
    X(43, ARMCI_PutV, (&good, -1, other), "a negative number of vectors")                                              \
    X(44, ARMCI_PutV, (NULL, 1, other), "a negative number of vectors")                                                \
    X(45, ARMCI_PutV, (&no_places, 1, other), "no addresses")                                                          \
    X(46, ARMCI_PutV, (&in_none, 1, other), NO_MEMORY)                                                                 \
    X(47, ARMCI_PutV, (&ends_outside, 1, other), RANGE)                                                                \
    X(48, ARMCI_PutV, (&good, 1, 2), NO_PROCESS)                                                                       \
    X(49, ARMCI_GetV, (&length_bad, 1, other), "a negative length")                                                    \
    X(50, ARMCI_AccV, (-3, value, &good, 1, other), NO_TYPE)                                                           \
    X(51, ARMCI_NbPutV, (&ends_outside, 1, other, &handle), RANGE)                                                     \
    X(52, ARMCI_NbGetV, (&good, -1, other, &handle), "a negative number of vectors")                                   \
    X(53, ARMCI_NbAccV, (ARMCI_ACC_DBL, value, &number_bad, 1, other, &handle), "a negative length")                   \
    X(54, ARMCI_PutValueInt, (1, base[other], 2), NO_PROCESS)                                                          \
    X(55, ARMCI_PutValueDouble, (1, value, other), NO_MEMORY)                                                          \
    X(56, ARMCI_NbPutValueLong, (1, (char *)base[other] + BYTES - 4, other, &handle), RANGE)                           \
    X(57, ARMCI_GetValueFloat, (base[other], -1), NO_PROCESS)                                                          \
    X(58, ARMCI_GetValueLong, (value, other), NO_MEMORY)                                                               \
    X(59, ARMCI_Rmw, (4, &got, base[other], 1, other), "no such operation")                                            \
    X(60, ARMCI_Rmw, (ARMCI_SWAP, &got, base[other], 1, 2), "in no memory of that process")                            \
    X(61, ARMCI_Rmw, (ARMCI_SWAP, &got, value, 1, other), "in no memory of that process")                              \
    X(62, ARMCI_Rmw, (ARMCI_SWAP_LONG, &wide, (char *)base[other] + 4, 1, other), RANGE)                               \
    X(63, ARMCI_Rmw, (ARMCI_FETCH_AND_ADD, NULL, base[other], 1, other), "no place for the value")                     \
    X(64, ARMCI_Fence, (2), RANGE)                                                                                     \
    X(65, ARMCI_WaitProc, (-2), RANGE)                                                                                 \
    X(66, ARMCI_Malloc, (freed, -1), "negative size")                                                                  \
    X(67, ARMCI_Malloc, (NULL, 8), "no place for the addresses")                                                       \
    X(68, ARMCI_Malloc_group, (freed, 8, &gone), "the group does not exist, or was freed")                             \
    X(69, ARMCI_Free, ((char *)base[me] + 8), "not the address of this process's part, or it was freed")               \
    X(70, ARMCI_Free, (freed[me]), "not the address of this process's part, or it was freed")                          \
    X(71, ARMCI_Free, (base[other]), "not the address of this process's part, or it was freed")                        \
    X(72, ARMCI_Free_memdev, (freed[me]), "not the address of this process's part, or it was freed")                   \
    X(73, ARMCI_Free_group, (base[me], &gone), "the group does not exist, or was freed")                               \
    X(74, ARMCI_Create_mutexes, (1), "there are mutexes already")                                                      \
    X(75, ARMCI_Lock, (1, other), "no such mutex")                                                                     \
    X(76, ARMCI_Lock, (0, 2), "no such mutex")                                                                         \
    X(77, ARMCI_Unlock, (-1, other), "no such mutex")                                                                  \
    X(78, ARMCI_Unlock, (0, other), "the mutex is not held by this process")                                           \
    X(79, ARMCI_Group_create, (2, list_bad, &made), "no member of the parent group")                                   \
    X(80, ARMCI_Group_create, (2, list_twice, &made), RANGE)                                                           \
    X(81, ARMCI_Group_create, (-1, list2, &made), "a negative size")                                                   \
    X(82, ARMCI_Group_create, (1, NULL, &made), "no list")                                                             \
    X(83, ARMCI_Group_free, (&gone), "the group does not exist, or was freed")                                         \
    X(84, ARMCI_Group_set_default, (&gone), "the group does not exist, or was freed")                                  \
    X(85, ARMCI_Absolute_id, (&gone, 0), "the group does not exist, or was freed")                                     \
    X(86, armci_msg_snd, (1, value, 8, 2), NO_PROCESS)                                                                 \
    X(87, armci_msg_snd, (1, value, -8, other), "a negative length")                                                   \
    X(88, armci_msg_rcv, (1, value, 8, NULL, -1), NO_PROCESS)                                                          \
    X(89, armci_notify, (2), NO_PROCESS)                                                                               \
    X(90, armci_notify_wait, (-1, NULL), NO_PROCESS)                                                                   \
    X(91, armci_msg_bcast, (value, -8, 0), "a negative length")                                                        \
    X(92, armci_msg_bcast, (value, 8, 2), "no such process in the group")                                              \
    X(93, armci_msg_brdcst, (value, 8, -1), "no such process in the group")                                            \
    X(94, armci_msg_bcast_scope, (3, value, 8, 0), "no such scope")                                                    \
    X(95, armci_msg_group_bcast_scope, (SCOPE_ALL, value, 8, 2, &world), "no such process in the group")               \
    X(96, armci_msg_group_barrier, (&gone), "the group does not exist, or was freed")                                  \
    X(97, armci_msg_bintree, (-1, &got, &up, &left, &right), "no such scope")                                          \
    X(98, armci_msg_sel, (value, 4, "max", ARMCI_DOUBLE, 1), "less than what is compared")                             \
    X(99, armci_msg_sel, (value, -8, "max", ARMCI_DOUBLE, 1), "a negative length")                                     \
    X(100, armci_msg_sel_scope, (SCOPE_ALL, value, 8, "median", ARMCI_DOUBLE, 1), "no such type or operation")         \
    X(101, armci_msg_gop_scope, (SCOPE_ALL, value, 1, "+", 9), "no such type")                                         \
    X(102, armci_msg_dgop, (value, -1, "+"), "a negative length")                                                      \
    X(103, armci_msg_dgop, (value, 1, "median"), "no such operation")                                                  \
    X(104, armci_msg_dgop, (value, 1, "or"), "not for this type")                                                      \
    X(105, armci_msg_igop, (&got, 1, NULL), "no operation")                                                            \
    X(106, armci_msg_group_lgop, (&wide, 1, "+", &gone), "the group does not exist, or was freed")                     \
    X(107, armci_msg_group_gop_scope, (9, value, 1, "+", ARMCI_DOUBLE, &world), "no such scope")                       \
    X(108, armci_msg_rcv, (1, value, -8, NULL, other), "a negative length")                                            \
    X(109, armci_msg_rcvany, (1, value, -8, NULL), "a negative length")                                                \
    X(110, armci_msg_reduce, (value, -1, "+", ARMCI_DOUBLE), "a negative length")                                      \
    X(111, armci_msg_reduce, (value, 1, "median", ARMCI_DOUBLE), "no such operation")                                  \
    X(112, armci_msg_reduce, (value, 1, "+", 5), "no such type")                                                       \
    X(113, armci_msg_reduce_scope, (3, value, 1, "+", ARMCI_DOUBLE), "no such scope")                                  \
    X(114, armci_msg_reduce_scope, (SCOPE_NODE, value, 1, "or", ARMCI_DOUBLE), "not for this type")                    \
    X(115, ARMCI_Memget, (0, &info, 0), "no bytes")                                                                    \
    X(116, ARMCI_Memget, (8, NULL, 0), "no place for the description")                                                 \
    X(117, ARMCI_Memget, (8, &info, 1), "flags that are not 0")                                                        \
    X(118, ARMCI_Memat, (NULL, 0), NO_DESCRIPTION)                                                                     \
    X(119, ARMCI_Memat, (&given_back, 0), NO_DESCRIPTION)                                                              \
    X(120, ARMCI_Memat, (&damaged, 0), RANGE)                                                                          \
    X(121, ARMCI_Memdt, (&damaged, 0), "this process has not attached the memory")                                     \
    X(122, ARMCI_Memctl, (&given_back), NO_DESCRIPTION)                                                                \
    X(123, ARMCI_Memctl, (&not_mine_to_give), "not the address of this process's part")                                \
    X(124, ARMCI_GroupFence, (&gone), "the group does not exist, or was freed")                                        \
    X(125, armci_msg_clus_brdcst, (value, -8), "a negative length")                                                    \
    X(126, armci_msg_clus_dgop, (value, -1, "+"), "a negative length")                                                 \
    X(127, armci_exchange_address, (base, -1), "a negative length")                                                    \
    X(128, armci_exchange_address_grp, (base, 1, &gone), "the group does not exist, or was freed")

#define WRONG(NUMBER, NAME, ARGUMENTS, TEXT)                                                                           \
    static void wrong_##NUMBER(void)                                                                                   \
    {                                                                                                                  \
        (void)NAME ARGUMENTS;                                                                                          \
    }
#define WRONG_ENTRY(NUMBER, NAME, ARGUMENTS, TEXT) {NUMBER, #NAME, wrong_##NUMBER, TEXT},
/* NOLINTEND(bugprone-macro-parentheses) */
CALLS_THAT_ARE_WRONG(WRONG)

static const struct {
    int number;
    const char *name;
    void (*call)(void);
    const char *text;
} wrong[] = {CALLS_THAT_ARE_WRONG(WRONG_ENTRY)};
enum { WRONGS = sizeof wrong / sizeof *wrong };

/* ---- a child for each ---- */

/* What it says goes to said; its exit code, or 128 + signal. */
static int in_a_child(void (*call)(void), char *said, size_t max)
{
    int ends[2], status = 0;
    if (pipe(ends) != 0)
        abort();
    fflush(NULL);
    pid_t child = _Fork(); /* unseen by the library: the child calls as the process itself would */
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close_range(STDERR_FILENO + 1, ~0U, 0); /* it ends the job of nobody */
        alarm(LIMIT_S);
        call();
        _exit(0);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t more; n + 1 < max && (more = read(ends[0], said + n, max - 1 - n)) > 0;)
        n += (size_t)more;
    said[n] = 0;
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int expect(const char *when, const char *name, void (*call)(void), int wanted, const char *text)
{
    char said[1024];
    int code = in_a_child(call, said, sizeof said);
    bool named = strstr(said, name);
    if (code == wanted && (text ? named && strstr(said, text) : !*said))
        return 0;
    fprintf(stderr, "armci-calls, %s: %s: exit code %d, not %d; it said \"%s\", not \"%s\"\n", when, name, code, wanted,
            said, text ? text : "");
    return 1;
}

static int at_wrong_moment(const char *when)
{
    int bad = 0;
    for (int i = 0; i < ENDING; i++)
        bad += expect(when, ending[i].name, ending[i].call, 1, ": called before ARMCI_Init, or after ARMCI_Finalize");
    for (int i = 0; i < RETURNING; i++)
        bad += expect(when, returning[i].name, returning[i].call, 0, NULL);
    return bad;
}

static bool is_whole(int proc)
{
    unsigned char bytes[BYTES];
    (void)ARMCI_Get(base[proc], bytes, BYTES, proc);
    for (int i = 0; i < BYTES; i++)
        if (bytes[i] != (unsigned char)(7 * i + proc))
            return false;
    return true;
}

static int with_wrong_arguments(void)
{
    int bad = 0;
    for (int i = 0; i < WRONGS; i++) {
        char when[32];
        snprintf(when, sizeof when, "wrong call %d", wrong[i].number);
        bad += expect(when, wrong[i].name, wrong[i].call, 1, wrong[i].text);
        if (is_whole(0) && is_whole(1))
            continue;
        fprintf(stderr, "armci-calls, %s: %s has written\n", when, wrong[i].name);
        return bad + 1;
    }
    return bad;
}

static void describe_vectors(void)
{
    for (int i = 0; i < 2; i++) {
        from[i] = &value[i];
        to[i] = (void *)((uintptr_t)base[other] + 8 * (unsigned)i);
        outside[i] = (void *)((uintptr_t)base[other] + BYTES - 4 * (unsigned)(i + 1));
        nowhere[i] = &value[8 + i];
    }
    good = (armci_giov_t){from, to, 8, 2};
    length_bad = (armci_giov_t){from, to, -8, 2};
    number_bad = (armci_giov_t){from, to, 8, -2};
    no_places = (armci_giov_t){from, NULL, 8, 2};
    ends_outside = (armci_giov_t){from, outside, 8, 2};
    in_none = (armci_giov_t){from, nowhere, 8, 2};
}

static void have_everything(void)
{
    unsigned char bytes[BYTES];
    if (ARMCI_Malloc(base, BYTES) || ARMCI_Malloc(freed, BYTES) || ARMCI_Free(freed[me]))
        abort();
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(7 * i + me);
    (void)ARMCI_Put(bytes, base[me], BYTES, me);
    mine_only = base[me];
    ARMCI_Memget(8, &info, 0);
    given_back = damaged = not_mine_to_give = info;
    given_back.armci_addr = NULL;
    damaged.cpid = other;
    damaged.idlist[1] ^= 1;
    not_mine_to_give.addr = base[me];
    if (ARMCI_Create_mutexes(1))
        abort();
    ARMCI_Group_get_world(&world);
    ARMCI_Group_create(2, list2, &gone);
    ARMCI_Group copy = gone;
    ARMCI_Group_free(&gone);
    gone = copy;
    ARMCI_Barrier();
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "list") == 0) {
        for (int i = 0; i < ENDING; i++)
            puts(ending[i].name);
        for (int i = 0; i < RETURNING; i++)
            puts(returning[i].name);
        /* of armci, armci-comm and armci-bad */
        puts("ARMCI_Init\nARMCI_Init_args\nARMCI_Init_mpi_comm\nARMCI_Error\narmci_msg_abort\nMPI_Finalize");
        return 0;
    }
    ARMCI_INIT_HANDLE(&handle);
    describe_vectors();
    int bad = at_wrong_moment("before ARMCI_Init");
    int once = ARMCI_Init(), again = ARMCI_Init();
    if (once != 0 || again != 0 || armci_msg_nproc() != 2)
        return 2;
    me = here = list_twice[0] = list_twice[1] = armci_msg_me();
    other = 1 - me;
    if (armci_domain_count(ARMCI_DOMAIN_SMP) != 2 || armci_domain_id(ARMCI_DOMAIN_SMP, 1) != 1)
        bad++;
    have_everything();
    describe_vectors();
    for (int turn = 0; turn < 2; turn++) {
        if (turn == me)
            bad += with_wrong_arguments();
        ARMCI_Barrier();
    }
    (void)ARMCI_Finalize();
    bad += at_wrong_moment("after ARMCI_Finalize");
    if (!bad)
        printf("armci-calls: %d calls at the wrong moments, %d wrong ones\n", ENDING + RETURNING, WRONGS);
    return bad > 0;
}
