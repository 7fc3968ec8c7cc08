/* bare.c - writes by libibverbs alone: is a failure ours or the device's?
 *
 *     bare FILE ME BYTES REQUEST SECONDS
 *
 * Run on hosts ME = 1 and 2, which share FILE's folder.  Each writes messages
 * of BYTES into the other's memory, one after the other, cut into requests of
 * at most REQUEST bytes: 65536 and 4096 make 16 requests, of which the last
 * asks for a completion.  It tries for ever, so that no loss is an error, and
 * says in the end
 *
 *     messages=118 status=9 remote invalid request error
 */
#include <infiniband/verbs.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 512, GID_INDEX = 1 };

/* What one end must know of the other. */
struct end {
    unsigned qpn, key;
    unsigned long long address;
    unsigned char gid[16];
};

struct bare {
    const char *file;
    int me;
    size_t bytes, request;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *from, *to;
    struct end other;
};

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static void need(int good, const char *what)
{
    if (good)
        return;
    perror(what);
    exit(1);
}

static struct ibv_mr *memory(struct ibv_pd *pd, size_t bytes)
{
    void *mem = calloc(1, bytes);
    struct ibv_mr *mr;

    need(mem != NULL, "calloc");
    mr = ibv_reg_mr(pd, mem, bytes, IBV_ACCESS_LOCAL_WRITE
                    | IBV_ACCESS_REMOTE_WRITE);
    need(mr != NULL, "ibv_reg_mr");
    return mr;
}

static void bare_open(struct bare *bare)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list && list[0] ? ibv_open_device(list[0])
                                : NULL;
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap = { .max_send_wr = DEPTH, .max_send_sge = 1, .max_recv_wr = 1,
                 .max_recv_sge = 1 }
    };

    need(context != NULL, "ibv_open_device");
    bare->pd = ibv_alloc_pd(context);
    bare->cq = ibv_create_cq(context, DEPTH, NULL, NULL, 0);
    need(bare->pd && bare->cq, "ibv_create_cq");
    init.send_cq = init.recv_cq = bare->cq;
    bare->qp = ibv_create_qp(bare->pd, &init);
    need(bare->qp != NULL, "ibv_create_qp");
    bare->from = memory(bare->pd, bare->bytes);
    bare->to = memory(bare->pd, bare->bytes);
}

/* FILE.1 and FILE.2 appear whole, by renaming. */
static void bare_meet(struct bare *bare)
{
    struct end mine = { .qpn = bare->qp->qp_num, .key = bare->to->rkey,
                        .address = (uintptr_t)bare->to->addr };
    char name[256], made[300];
    union ibv_gid gid;
    FILE *file;
    size_t n = 0;

    need(ibv_query_gid(bare->qp->context, 1, GID_INDEX, &gid) == 0, "GID");
    for (int i = 0; i < 16; i++)
        mine.gid[i] = gid.raw[i];
    snprintf(name, sizeof name, "%s.%d", bare->file, bare->me);
    snprintf(made, sizeof made, "%s.made", name);
    file = fopen(made, "wb");
    need(file && fwrite(&mine, sizeof mine, 1, file) == 1 && fclose(file) == 0
         && rename(made, name) == 0, name);
    snprintf(name, sizeof name, "%s.%d", bare->file, 3 - bare->me);
    while (n != 1) {
        file = fopen(name, "rb");
        n = file ? fread(&bare->other, sizeof bare->other, 1, file) : 0;
        if (file)
            fclose(file);
        usleep(10000);
    }
}

static void bare_join(struct bare *bare)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE, .path_mtu = IBV_MTU_4096,
        .dest_qp_num = bare->other.qpn, .min_rnr_timer = 1, .timeout = 12,
        .retry_cnt = 7, .rnr_retry = 7,
        .ah_attr = { .is_global = 1, .port_num = 1,
                     .grh = { .sgid_index = GID_INDEX, .hop_limit = 64 } }
    };
    int rc;

    for (int i = 0; i < 16; i++)
        attr.ah_attr.grh.dgid.raw[i] = bare->other.gid[i];
    rc = ibv_modify_qp(bare->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX
                       | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    attr.qp_state = IBV_QPS_RTR;
    if (rc == 0)
        rc = ibv_modify_qp(bare->qp, &attr, IBV_QP_STATE | IBV_QP_AV
                           | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                           | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr.qp_state = IBV_QPS_RTS;
    if (rc == 0)
        rc = ibv_modify_qp(bare->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT
                           | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY
                           | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    need(rc == 0, "ibv_modify_qp");
}

/* One message; the status of its completion. */
static enum ibv_wc_status bare_write(struct bare *bare)
{
    struct ibv_send_wr wr[DEPTH], *bad;
    struct ibv_sge sge[DEPTH];
    struct ibv_wc wc;
    size_t n = 0;
    int got;

    for (size_t at = 0; at < bare->bytes; at += bare->request, n++) {
        size_t left = bare->bytes - at;

        sge[n] = (struct ibv_sge){
            .addr = (uintptr_t)bare->from->addr + at, .lkey = bare->from->lkey,
            .length = (uint32_t)(left < bare->request ? left : bare->request)
        };
        wr[n] = (struct ibv_send_wr){
            .sg_list = &sge[n], .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
            .wr.rdma = { bare->other.address + at, bare->other.key },
            .next = &wr[n + 1]
        };
    }
    wr[n - 1].next = NULL;
    wr[n - 1].send_flags = IBV_SEND_SIGNALED;
    need(ibv_post_send(bare->qp, wr, &bad) == 0, "ibv_post_send");
    while ((got = ibv_poll_cq(bare->cq, 1, &wc)) == 0)
        ;
    need(got == 1, "ibv_poll_cq");
    return wc.status;
}

int main(int argc, char **argv)
{
    struct bare bare = { 0 };
    enum ibv_wc_status status = IBV_WC_SUCCESS;
    long messages = 0;
    double end;

    if (argc < 6)
        return 64;
    bare.file = argv[1];
    bare.me = atoi(argv[2]);
    bare.bytes = strtoul(argv[3], NULL, 10);
    bare.request = strtoul(argv[4], NULL, 10);
    if (bare.request == 0 || bare.bytes > DEPTH * bare.request)
        return 64;
    bare_open(&bare);
    bare_meet(&bare);
    bare_join(&bare);
    for (end = now() + atof(argv[5]); now() < end && status == 0; messages++)
        status = bare_write(&bare);
    printf("messages=%ld status=%d %s\n", messages, (int)status,
           ibv_wc_status_str(status));
    fflush(stdout);
    sleep(1);                     /* for what the other still has to write     */
    return 0;
}
