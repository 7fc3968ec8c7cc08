/* bare.c - writes by libibverbs alone: is a failure ours or the device's?
 *
 *     bare FILE ME BYTES REQUEST SECONDS
 *
 * It runs on two hosts, ME = 1 and 2, which share the folder of FILE.  Each
 * writes messages of BYTES into the other's memory, one after the other, in
 * requests of at most REQUEST bytes.  So 65536 and 4096 make 16 requests, of
 * which the last asks for a completion.  The device repeats without limit, so
 * no lost packet is an error.  In the end it prints
 *
 *     messages=118 status=9 remote invalid request error
 */
#include "tests/rdma/end.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct bare {
    struct end end;
    size_t bytes, request;
};

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* Write one message; returns the status of its completion. */
static enum ibv_wc_status bare_write(const struct bare *bare)
{
    const struct end *end = &bare->end;
    struct ibv_send_wr wr[END_DEPTH], *bad;
    struct ibv_sge sge[END_DEPTH];
    struct ibv_wc wc;
    size_t n = 0;
    int got;

    for (size_t at = 0; at < bare->bytes; at += bare->request, n++) {
        size_t left = bare->bytes - at;

        sge[n] = (struct ibv_sge){
            .addr = (uintptr_t)end->from->addr + at, .lkey = end->from->lkey,
            .length = (uint32_t)(left < bare->request ? left : bare->request)
        };
        wr[n] = (struct ibv_send_wr){
            .sg_list = &sge[n], .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
            .wr.rdma = { end->other.address + at, end->other.key },
            .next = &wr[n + 1]
        };
    }
    wr[n - 1].next = NULL;
    wr[n - 1].send_flags = IBV_SEND_SIGNALED;
    end_need(ibv_post_send(end->qp, wr, &bad) == 0, "ibv_post_send");
    while ((got = ibv_poll_cq(end->cq, 1, &wc)) == 0)
        ;
    end_need(got == 1, "ibv_poll_cq");
    return wc.status;
}

int main(int argc, char **argv)
{
    struct bare bare = { 0 };
    enum ibv_wc_status status = IBV_WC_SUCCESS;
    long messages = 0;
    double until;

    if (argc < 6)
        return 64;
    bare.bytes = strtoul(argv[3], NULL, 10);
    bare.request = strtoul(argv[4], NULL, 10);
    if (bare.request == 0 || bare.bytes > END_DEPTH * bare.request)
        return 64;
    end_open(&bare.end, argv[1], atoi(argv[2]), bare.bytes, 7);
    for (until = now() + atof(argv[5]); now() < until && status ==
         0; messages++)
        status = bare_write(&bare);
    printf("messages=%ld status=%d %s\n", messages, (int)status,
           ibv_wc_status_str(status));
    fflush(stdout);
    sleep(1);                     /* for what the other still has to write    */
    return 0;
}
