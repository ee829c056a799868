/* What this machine can do without Keel: memory, a cache line, libfabric. */
#include "bench/rawlib.h"

#include <stdio.h>

static void print_memory(void)
{
    printf("call of a function that stores 8 bytes   %8.2f ns\n", raw_store_call_ns());
    printf("cache line there and back                %8.0f ns\n", raw_pingpong_ns());
    printf("memcpy, bytes                 hot ns      cold ns    hot GB/s   cold GB/s\n");
    for (size_t size = 8; size <= 4u << 20; size *= 8) {
        double hot = raw_memcpy_ns(size, false), cold = raw_memcpy_ns(size, true);
        printf("%12zu           %12.1f %12.1f %11.2f %11.2f\n", size, hot, cold, (double)size / hot,
               (double)size / cold);
    }
}

static void print_transfers(struct raw *raw)
{
    printf("libfabric tcp, FI_EP_MSG; writes with FI_DELIVERY_COMPLETE; target spins; medians of %d batches\n",
           RAW_BATCHES);
    printf("       bytes     write us      read us  write GB/s   read GB/s\n");
    for (size_t size = 8; size <= 4u << 20; size *= 8) {
        int iters = raw_iters(size < 65536 ? 10 : (double)size / 4000);
        double write = raw_write_us(raw, size, iters), read = raw_read_us(raw, size, iters);
        printf("%12zu %12.2f %12.2f %11.3f %11.3f\n", size, write, read, (double)size / write / 1e3,
               (double)size / read / 1e3);
    }
    double write = raw_write_us(raw, 1u << 20, 50), read = raw_read_us(raw, 1u << 20, 50);
    printf("%12u %12.2f %12.2f %11.3f %11.3f\n", 1u << 20, write, read, 1048.576 / write, 1048.576 / read);
    printf("request and answer of 100 bytes          %8.2f us\n", raw_message_us(raw, 100, 1000));
    printf("writes of 8 bytes, 64 outstanding        %8.0f thousand/s\n", raw_write_kops(raw, 8, 64, 5000));
}

int main(void)
{
    struct raw *two = raw_start("127.0.0.1", "tcp", 2, 8u << 20);
    struct raw *one = raw_start("127.0.0.1", "tcp", 1, 8u << 20);
    if (!one || !two)
        return 1;
    print_memory();
    print_transfers(one);
    printf("two writes to two targets, 8 bytes       %8.2f us\n", raw_pair_us(two, 8, 500));
    printf("two writes to two targets, 1 MiB         %8.2f us\n", raw_pair_us(two, 1u << 20, 20));
    raw_stop(one);
    raw_stop(two);
    return 0;
}
