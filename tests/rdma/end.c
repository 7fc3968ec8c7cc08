/* end.c - see end.h */
#include "tests/rdma/end.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { GID_INDEX = 1 };

void end_need(int good, const char *what)
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

    end_need(mem != NULL, "calloc");
    mr = ibv_reg_mr(pd, mem, bytes, IBV_ACCESS_LOCAL_WRITE
                    | IBV_ACCESS_REMOTE_WRITE);
    end_need(mr != NULL, "ibv_reg_mr");
    return mr;
}

static void end_make(struct end *end, size_t bytes)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list && list[0] ? ibv_open_device(list[0])
                                : NULL;
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap = { .max_send_wr = END_DEPTH, .max_send_sge = END_PIECES,
                 .max_recv_wr = 1,
                 .max_recv_sge = 1, .max_inline_data = END_INLINE }
    };

    end_need(context != NULL, "ibv_open_device");
    end->pd = ibv_alloc_pd(context);
    end->cq = ibv_create_cq(context, END_DEPTH, NULL, NULL, 0);
    end_need(end->pd && end->cq, "ibv_create_cq");
    init.send_cq = init.recv_cq = end->cq;
    end->qp = ibv_create_qp(end->pd, &init);
    end_need(end->qp != NULL, "ibv_create_qp");
    end->from = memory(end->pd, bytes);
    end->to = memory(end->pd, bytes);
}

/* FILE.1 and FILE.2 are renamed when they are complete. */
static void end_meet(struct end *end)
{
    struct end_name mine = { .qpn = end->qp->qp_num, .key = end->to->rkey,
                             .address = (uintptr_t)end->to->addr };
    char name[256], made[300];
    union ibv_gid gid;
    FILE *file;
    size_t n = 0;

    end_need(ibv_query_gid(end->qp->context, 1, GID_INDEX, &gid) == 0, "GID");
    for (int i = 0; i < 16; i++)
        mine.gid[i] = gid.raw[i];
    snprintf(name, sizeof name, "%s.%d", end->file, end->me);
    snprintf(made, sizeof made, "%s.made", name);
    file = fopen(made, "wb");
    end_need(file && fwrite(&mine, sizeof mine, 1, file) == 1
             && fclose(file) == 0 && rename(made, name) == 0, name);
    snprintf(name, sizeof name, "%s.%d", end->file, 3 - end->me);
    while (n != 1) {
        file = fopen(name, "rb");
        n = file ? fread(&end->other, sizeof end->other, 1, file) : 0;
        if (file)
            fclose(file);
        usleep(10000);
    }
}

static void end_join(struct end *end, int retries)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE, .path_mtu = IBV_MTU_4096,
        .dest_qp_num = end->other.qpn, .min_rnr_timer = 1, .timeout = 12,
        .retry_cnt = (uint8_t)retries, .rnr_retry = 7,
        .ah_attr = { .is_global = 1, .port_num = 1,
                     .grh = { .sgid_index = GID_INDEX, .hop_limit = 64 } }
    };
    int rc;

    for (int i = 0; i < 16; i++)
        attr.ah_attr.grh.dgid.raw[i] = end->other.gid[i];
    rc = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX
                       | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    attr.qp_state = IBV_QPS_RTR;
    if (rc == 0)
        rc = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_AV
                           | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                           | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr.qp_state = IBV_QPS_RTS;
    if (rc == 0)
        rc = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT
                           | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY
                           | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    end_need(rc == 0, "ibv_modify_qp");
}

void end_open(struct end *end, const char *file, int me, size_t bytes,
              int retries)
{
    end->file = file;
    end->me = me;
    end_make(end, bytes);
    end_meet(end);
    end_join(end, retries);
}
