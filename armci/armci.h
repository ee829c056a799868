/* ARMCI on Keel. The same calls, constants and layouts as Debian's libarmci-mpi-dev 0.3.1, so that programs and
 * archives that were compiled with it (libga-mpich.a) link with this library; docs/global-arrays.md says how.
 *
 * Calls that move data return 0. What no ARMCI program looks at ends the job with a line that says what was lost: an
 * address in no memory of that process, negative counts, memory that died with its node (ARMCI_Error). */
#ifndef ARMCI_H
#define ARMCI_H

#include <stddef.h>

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ARMCI_Acc_e { ARMCI_ACC_INT, ARMCI_ACC_LNG, ARMCI_ACC_FLT, ARMCI_ACC_DBL, ARMCI_ACC_CPL, ARMCI_ACC_DCP };
enum ARMCI_Rmw_e { ARMCI_FETCH_AND_ADD, ARMCI_FETCH_AND_ADD_LONG, ARMCI_SWAP, ARMCI_SWAP_LONG };
enum armci_scope_e { SCOPE_ALL, SCOPE_NODE, SCOPE_MASTERS };
enum armci_type_e { ARMCI_INT, ARMCI_LONG, ARMCI_LONG_LONG, ARMCI_FLOAT, ARMCI_DOUBLE };
enum armci_domain_e { ARMCI_DOMAIN_SMP };

typedef long armci_size_t;
typedef int armci_domain_t;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wlong-long" /* C89 and C++98 have none of their own */
typedef long long armci_long_long;
#pragma GCC diagnostic pop

/* A non-blocking operation, or several of an aggregate. The caller's memory; begins with ARMCI_INIT_HANDLE. */
typedef struct armci_hdl_s {
    int target; /* the library's */
    int aggregate;
} armci_hdl_t;

/* ptr_array_len pieces of bytes each. */
typedef struct {
    void **src_ptr_array;
    void **dst_ptr_array;
    int bytes;
    int ptr_array_len;
} armci_giov_t;

typedef struct {
    MPI_Comm comm; /* of the world: MPI_COMM_WORLD */
    MPI_Comm noncoll_pgroup_comm;
    int *grp_to_abs;
    int *abs_to_grp;
    int rank;
    int size;
} ARMCI_Group;

/* Memory that one process has made: sent to another as it is. */
typedef struct armci_meminfo_ds {
    char *armci_addr; /* at its maker; NULL: given back */
    char *addr;       /* the same */
    size_t size;
    int cpid;         /* who has made it */
    long idlist[128]; /* the library's */
} armci_meminfo_t;

/* ---- start and end ---- */
int ARMCI_Init(void);
int ARMCI_Init_args(int *argc, char ***argv);
/* For the processes of a communicator, in its order: all of them call, MPI runs, and the communicator stays until
 * ARMCI_Finalize. Under keelrun it is of all processes in MPI_COMM_WORLD's order; with another one it returns 1 on
 * all, with a line. */
int ARMCI_Init_mpi_comm(MPI_Comm comm);
int ARMCI_Initialized(void);
int ARMCI_Finalize(void);
void ARMCI_Cleanup(void);
void ARMCI_Error(const char *msg, int code);

/* ---- memory ---- */
int ARMCI_Malloc(void **base_ptrs, armci_size_t size);
int ARMCI_Free(void *ptr);
int ARMCI_Malloc_group(void **base_ptrs, armci_size_t size, ARMCI_Group *group);
int ARMCI_Free_group(void *ptr, ARMCI_Group *group);
int ARMCI_Malloc_memdev(void **base_ptrs, armci_size_t size, const char *device);
int ARMCI_Malloc_group_memdev(void **base_ptrs, armci_size_t size, ARMCI_Group *group, const char *device);
int ARMCI_Free_memdev(void *ptr);
void *ARMCI_Malloc_local(armci_size_t size);
int ARMCI_Free_local(void *ptr);
void ARMCI_Set_shm_limit(unsigned long shmemlimit);
int ARMCI_Uses_shm(void);
int ARMCI_Uses_shm_grp(ARMCI_Group *group);
/* By this process alone: bytes of memory (zeroed, at least one) that others reach once they have the description.
 * memflg is 0. */
void ARMCI_Memget(size_t bytes, armci_meminfo_t *meminfo, int memflg);
/* Where this process finds it, plus offset bytes (the maker: without): the remote address for the calls below with cpid
 * as the process. On cpid's node it can be touched. As often as Memat was called, Memdt ends it; nothing is given back
 * by it. All others end it before the maker calls Memctl, which gives the memory back; at another process it forgets
 * the description. */
void *ARMCI_Memat(armci_meminfo_t *meminfo, long offset);
void ARMCI_Memdt(armci_meminfo_t *meminfo, long offset);
void ARMCI_Memctl(armci_meminfo_t *meminfo);
void ARMCI_Access_begin(void *ptr);
void ARMCI_Access_end(void *ptr);

/* ---- contiguous ---- */
int ARMCI_Put(void *src, void *dst, int bytes, int proc);
int ARMCI_Get(void *src, void *dst, int bytes, int proc);
int ARMCI_Acc(int datatype, void *scale, void *src, void *dst, int bytes, int proc);
int ARMCI_Put_flag(void *src, void *dst, int bytes, int *flag, int value, int proc);
int ARMCI_NbPut(void *src, void *dst, int bytes, int proc, armci_hdl_t *handle);
int ARMCI_NbGet(void *src, void *dst, int bytes, int proc, armci_hdl_t *handle);
int ARMCI_NbAcc(int datatype, void *scale, void *src, void *dst, int bytes, int proc, armci_hdl_t *handle);
void ARMCI_Copy(void *src, void *dst, int bytes);

/* ---- strided ---- */
int ARMCI_PutS(void *src, int *src_stride, void *dst, int *dst_stride, int *count, int levels, int proc);
int ARMCI_GetS(void *src, int *src_stride, void *dst, int *dst_stride, int *count, int levels, int proc);
int ARMCI_AccS(int datatype, void *scale, void *src, int *src_stride, void *dst, int *dst_stride, int *count,
               int levels, int proc);
int ARMCI_PutS_flag(void *src, int *src_stride, void *dst, int *dst_stride, int *count, int levels, int *flag,
                    int value, int proc);
int ARMCI_NbPutS(void *src, int *src_stride, void *dst, int *dst_stride, int *count, int levels, int proc,
                 armci_hdl_t *handle);
int ARMCI_NbGetS(void *src, int *src_stride, void *dst, int *dst_stride, int *count, int levels, int proc,
                 armci_hdl_t *handle);
int ARMCI_NbAccS(int datatype, void *scale, void *src, int *src_stride, void *dst, int *dst_stride, int *count,
                 int levels, int proc, armci_hdl_t *handle);
/* From strided memory into a buffer, and back. */
void armci_write_strided(void *ptr, int levels, int *stride, int *count, char *buf);
void armci_read_strided(void *ptr, int levels, int *stride, int *count, char *buf);

/* ---- vector ---- */
int ARMCI_PutV(armci_giov_t *iov, int n, int proc);
int ARMCI_GetV(armci_giov_t *iov, int n, int proc);
int ARMCI_AccV(int datatype, void *scale, armci_giov_t *iov, int n, int proc);
int ARMCI_NbPutV(armci_giov_t *iov, int n, int proc, armci_hdl_t *handle);
int ARMCI_NbGetV(armci_giov_t *iov, int n, int proc, armci_hdl_t *handle);
int ARMCI_NbAccV(int datatype, void *scale, armci_giov_t *iov, int n, int proc, armci_hdl_t *handle);

/* ---- values ---- */
int ARMCI_PutValueInt(int src, void *dst, int proc);
int ARMCI_PutValueLong(long src, void *dst, int proc);
int ARMCI_PutValueFloat(float src, void *dst, int proc);
int ARMCI_PutValueDouble(double src, void *dst, int proc);
int ARMCI_NbPutValueInt(int src, void *dst, int proc, armci_hdl_t *handle);
int ARMCI_NbPutValueLong(long src, void *dst, int proc, armci_hdl_t *handle);
int ARMCI_NbPutValueFloat(float src, void *dst, int proc, armci_hdl_t *handle);
int ARMCI_NbPutValueDouble(double src, void *dst, int proc, armci_hdl_t *handle);
int ARMCI_GetValueInt(void *src, int proc);
long ARMCI_GetValueLong(void *src, int proc);
float ARMCI_GetValueFloat(void *src, int proc);
double ARMCI_GetValueDouble(void *src, int proc);

/* ---- completion ---- */
void ARMCI_INIT_HANDLE(armci_hdl_t *handle);
void ARMCI_SET_AGGREGATE_HANDLE(armci_hdl_t *handle);
void ARMCI_UNSET_AGGREGATE_HANDLE(armci_hdl_t *handle);
int ARMCI_Wait(armci_hdl_t *handle);
int ARMCI_Test(armci_hdl_t *handle); /* 0: complete, 1: not yet, as Global Arrays takes it */
int ARMCI_WaitProc(int proc);
int ARMCI_WaitAll(void);
void ARMCI_Fence(int proc);
void ARMCI_GroupFence(ARMCI_Group *group); /* of its members */
void ARMCI_AllFence(void);
void ARMCI_Barrier(void);

/* ---- atomics and mutexes ---- */
int ARMCI_Rmw(int op, void *ploc, void *prem, int value, int proc);
int ARMCI_Create_mutexes(int count);
int ARMCI_Destroy_mutexes(void);
void ARMCI_Lock(int mutex, int proc);
void ARMCI_Unlock(int mutex, int proc);

/* ---- groups ---- */
void ARMCI_Group_create(int n, int *pid_list, ARMCI_Group *group);
void ARMCI_Group_create_child(int n, int *pid_list, ARMCI_Group *group, ARMCI_Group *parent);
void ARMCI_Group_free(ARMCI_Group *group);
int ARMCI_Group_rank(ARMCI_Group *group, int *rank);
void ARMCI_Group_size(ARMCI_Group *group, int *size);
void ARMCI_Group_set_default(ARMCI_Group *group);
void ARMCI_Group_get_default(ARMCI_Group *group);
void ARMCI_Group_get_world(ARMCI_Group *group);
int ARMCI_Absolute_id(ARMCI_Group *group, int group_rank);

/* ---- where processes are: a domain is a node ---- */
int armci_domain_nprocs(armci_domain_t kind, int id);
int armci_domain_id(armci_domain_t kind, int proc);
int armci_domain_glob_proc_id(armci_domain_t kind, int id, int proc_in_domain);
int armci_domain_my_id(armci_domain_t kind);
int armci_domain_count(armci_domain_t kind);
int armci_domain_same_id(armci_domain_t kind, int proc);
int ARMCI_Same_node(int proc);

/* ---- messages and collectives: also in message.h ---- */
/* MPI's own, if the program has it: they need no ARMCI_Init. */
void armci_msg_init(int *argc, char ***argv);
void armci_msg_finalize(void);
int armci_msg_me(void);
int armci_msg_nproc(void);
void armci_msg_abort(int code);
double armci_timer(void);
void armci_msg_snd(int tag, void *buffer, int len, int to);
void armci_msg_rcv(int tag, void *buffer, int buflen, int *msglen, int from);
/* The oldest with the tag from any process, or from this one; returns who has sent it. */
int armci_msg_rcvany(int tag, void *buffer, int buflen, int *msglen);
/* A counter for each pair of processes: notify adds one, and fences first; wait waits for one more than before. Both
 * return how many the notifier has sent; *pval (NULL is allowed) gets how many were waited for. */
int armci_notify(int proc);
int armci_notify_wait(int proc, int *pval);
void armci_msg_barrier(void);
void armci_msg_group_barrier(ARMCI_Group *group);
void armci_msg_bintree(int scope, int *root, int *up, int *left, int *right);
void armci_msg_bcast(void *buffer, int len, int root);
void armci_msg_brdcst(void *buffer, int len, int root);
void armci_msg_bcast_scope(int scope, void *buffer, int len, int root);
/* The root is a number among all processes, as Global Arrays gives it. */
void armci_msg_group_bcast_scope(int scope, void *buffer, int len, int root, ARMCI_Group *group);
/* Within the node, from its first process. */
void armci_msg_clus_brdcst(void *buffer, int len);
void armci_msg_sel(void *x, int n, char *op, int type, int contribute);
void armci_msg_sel_scope(int scope, void *x, int n, char *op, int type, int contribute);
void armci_msg_gop_scope(int scope, void *x, int n, char *op, int type);
/* The same as these for all processes: everybody has the result, not armci_msg_bintree's root alone. */
void armci_msg_reduce(void *x, int n, char *op, int type);
void armci_msg_reduce_scope(int scope, void *x, int n, char *op, int type);
void armci_msg_igop(int *x, int n, char *op);
void armci_msg_lgop(long *x, int n, char *op);
void armci_msg_llgop(armci_long_long *x, int n, char *op);
void armci_msg_fgop(float *x, int n, char *op);
void armci_msg_dgop(double *x, int n, char *op);
/* Within the node. */
void armci_msg_clus_igop(int *x, int n, char *op);
void armci_msg_clus_lgop(long *x, int n, char *op);
void armci_msg_clus_llgop(armci_long_long *x, int n, char *op);
void armci_msg_clus_fgop(float *x, int n, char *op);
void armci_msg_clus_dgop(double *x, int n, char *op);
/* n addresses, of which each process gives some and NULL for the rest: all get all. */
void armci_exchange_address(void *addresses[], int n);
void armci_exchange_address_grp(void *addresses[], int n, ARMCI_Group *group);
void armci_msg_group_gop_scope(int scope, void *x, int n, char *op, int type, ARMCI_Group *group);
void armci_msg_group_igop(int *x, int n, char *op, ARMCI_Group *group);
void armci_msg_group_lgop(long *x, int n, char *op, ARMCI_Group *group);
void armci_msg_group_llgop(armci_long_long *x, int n, char *op, ARMCI_Group *group);
void armci_msg_group_fgop(float *x, int n, char *op, ARMCI_Group *group);
void armci_msg_group_dgop(double *x, int n, char *op, ARMCI_Group *group);

#ifdef __cplusplus
}
#endif
#endif
