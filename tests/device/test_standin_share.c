/* test_standin_share.c - memory of the stand-in in two processes, and graphs
 *
 * Two processes map each other's memory, add to it in turns that only their
 * streams know of, and find what they should.
 *
 * Without this test, tests of several ranks on the stand-in could pass on
 * memory that is not shared, or wait for values that no stream ever writes.
 */
#include "device/cuda/driver.h"
#include "dtensor.h"
#include "tests/support/standin.h"
#include "tests/support/tap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 20, GRANULE = 2 << 20, DATA = 4096 };

static const struct dtn_cuda_driver *cu;

static CUdeviceptr host(const void *mem)
{
    return (CUdeviceptr)(uintptr_t)mem;
}

static void begin(void)
{
    struct dtensor_error err;
    CUcontext context;

    if (dtn_cuda_driver_load(&cu, &err) != 0
        || cu->cuDevicePrimaryCtxRetain(&context, 0) != 0
        || cu->cuCtxPushCurrent(context) != 0)
        _exit(99);
}

/* Run fn(0, socket) and fn(1, socket) as processes; false: one failed. */
static bool two(int (*fn)(int me, int sock))
{
    int sock[2], status, bad = 0;

    fflush(stdout);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock) < 0)
        return false;
    for (int me = 0; me < 2; me++)
        if (fork() == 0) {
            close(sock[1 - me]);
            begin();
            _exit(fn(me, sock[me]));
        }
    close(sock[0]);
    close(sock[1]);
    for (int i = 0; i < 2; i++) {
        wait(&status);
        if (status != 0)
            note("a process ended with %#x", status);
        bad += status != 0;
    }
    return bad == 0;
}

/* Give the peer a descriptor and get its own. */
static int swap(int sock, int fd)
{
    char byte = 0, room[CMSG_SPACE(sizeof fd)] = { 0 };
    struct iovec iov = { &byte, 1 };
    struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1,
                              .msg_control = room,
                              .msg_controllen = sizeof room };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    if (sendmsg(sock, &message, 0) != 1 || recvmsg(sock, &message, 0) != 1)
        _exit(98);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

/* Map physical memory at addresses of this process. */
static CUdeviceptr mapped(CUmemGenericAllocationHandle handle)
{
    const CUmemAccessDesc access = {
        { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
        CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    };
    CUdeviceptr at;

    if (cu->cuMemAddressReserve(&at, GRANULE, 0, 0, 0)
        || cu->cuMemMap(at, GRANULE, 0, handle, 0)
        || cu->cuMemSetAccess(at, GRANULE, &access, 1))
        _exit(97);
    return at;
}

static CUmemGenericAllocationHandle created(void)
{
    const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 }
    };
    CUmemGenericAllocationHandle handle;

    if (cu->cuMemCreate(&handle, GRANULE, &prop, 0))
        _exit(96);
    return handle;
}

static void unmapped(CUdeviceptr at, CUmemGenericAllocationHandle handle)
{
    if (cu->cuMemUnmap(at, GRANULE) || cu->cuMemAddressFree(at, GRANULE)
        || cu->cuMemRelease(handle))
        _exit(95);
}

/* Each turn: write a number into the peer's data, tell its stream by a value,
 * wait by a value for the peer's, and read what it wrote.
 */
static int turns(int me, CUdeviceptr mine, CUdeviceptr peer)
{
    uint64_t *word, got = 0;
    CUstream stream;

    if (cu->cuMemHostAlloc((void **)&word, sizeof *word, 0)
        || cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))
        return 1;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        *word = round * 100 + (uint64_t)me;
        if (cu->cuMemcpyAsync(peer + DATA, host(word), 8, stream)
            || cu->cuStreamWriteValue64(stream, peer, round, 0)
            || cu->cuStreamWaitValue64(stream, mine, round, 0)
            || cu->cuMemcpyAsync(host(&got), mine + DATA, 8, stream)
            || cu->cuStreamWriteValue64(stream, peer + 64, round, 0)
            || cu->cuStreamWaitValue64(stream, mine + 64, round, 0)
            || cu->cuStreamSynchronize(stream))
            return 2;
        if (got != round * 100 + (uint64_t)(1 - me))
            return 3;
    }
    return cu->cuMemFreeHost(word) || cu->cuStreamDestroy(stream);
}

static int share(int me, int sock)
{
    CUmemGenericAllocationHandle own = created(), other;
    CUdeviceptr mine = mapped(own), peer;
    char text[200];
    int fd, theirs, rc;

    if (cu->cuMemsetD8Async(mine, 0, GRANULE, NULL)
        || cu->cuStreamSynchronize(NULL)
        || cu->cuMemExportToShareableHandle(
            &fd, own, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0))
        return 10;
    theirs = swap(sock, fd);
    if (cu->cuMemImportFromShareableHandle(
            &other, (void *)(intptr_t)theirs,
            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        return 11;
    close(fd);
    close(theirs);
    peer = mapped(other);
    rc = turns(me, mine, peer);
    unmapped(mine, own);
    unmapped(peer, other);
    if (rc == 0 && cu->cuDevicePrimaryCtxRelease(0))
        rc = 12;
    if (rc == 0 && standin_left(text, sizeof text) != 0) {
        note("left: %s", text);
        rc = 13;
    }
    return rc;
}

/* What must not be possible with memory that is shared. */
static int refused(int me, int sock)
{
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 }
    };
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;
    int fd;

    if (cu->cuMemCreate(&handle, 4096, &prop, 0) != CUDA_ERROR_INVALID_VALUE
        || cu->cuMemCreate(&handle, GRANULE, &prop, 0)
        || cu->cuMemExportToShareableHandle(&fd, handle, 1, 0)
        != CUDA_ERROR_INVALID_VALUE)
        return 1;
    if (cu->cuMemAddressReserve(&at, GRANULE, 0, 0, 0)
        || cu->cuMemMap(at, GRANULE, 0, handle, 0)
        || cu->cuMemsetD8Async(at, 0, 1, NULL) != CUDA_ERROR_INVALID_VALUE
        || cu->cuMemAddressFree(at, GRANULE) != CUDA_ERROR_INVALID_VALUE)
        return 2;
    unmapped(at, handle);
    return cu->cuMemsetD8Async(at, 0, 1, NULL) != CUDA_ERROR_INVALID_VALUE;
}

/* A recorded copy is done by each launch, and not by recording it. */
static int graph(int me, int sock)
{
    unsigned char *pinned, out = 0;
    CUdeviceptr at;
    CUstream stream;
    CUgraphExec exec;
    CUgraph recorded;
    CUevent event;

    if (cu->cuMemAlloc(&at, 1) || cu->cuMemHostAlloc((void **)&pinned, 1, 0)
        || cu->cuStreamCreate(&stream, 1) || cu->cuEventCreate(&event, 2)
        || cu->cuMemsetD8Async(at, 1, 1, stream)
        || cu->cuStreamSynchronize(stream))
        return 1;
    if (cu->cuStreamBeginCapture(stream, 1)
        || cu->cuMemcpyAsync(at, host(pinned), 1, stream)
        || cu->cuStreamEndCapture(stream, &recorded)
        || cu->cuGraphInstantiateWithFlags(&exec, recorded, 0)
        || cu->cuGraphDestroy(recorded)
        || cu->cuMemcpyAsync(host(&out), at, 1, stream) || out != 1)
        return 2;
    for (int i = 5; i < 8; i++) {
        *pinned = (unsigned char)i;
        if (cu->cuGraphLaunch(exec, stream)
            || cu->cuMemcpyAsync(host(&out), at, 1, stream) || out != i)
            return 3;
    }
    if (cu->cuGraphExecDestroy(exec) || cu->cuStreamBeginCapture(stream, 1)
        || cu->cuEventRecord(event, stream)
        || cu->cuEventQuery(event) != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
        || cu->cuStreamEndCapture(stream, &recorded)
        != CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
        return 4;
    return cu->cuStreamSynchronize(stream);
}

/* Words in a graph: their values change from launch to launch, what they are
 * does not.
 */
static CUstreamBatchMemOpParams ops[2] = {
    { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_64 },
    { .operation = CU_STREAM_MEM_OP_WAIT_VALUE_64 } };
static CUDA_BATCH_MEM_OP_NODE_PARAMS params = { .count = 2, .paramArray = ops };

static int words_recorded(CUstream stream, CUdeviceptr at, CUgraph *recorded,
                          CUgraphNode *node)
{
    CUstreamCaptureStatus status;
    const CUgraphNode *nodes;
    size_t n;

    if (cu->cuStreamGetCaptureInfo(stream, &status, NULL, NULL, NULL, NULL)
        || status != CU_STREAM_CAPTURE_STATUS_NONE)
        return 1;
    ops[0].address = ops[1].address = at;
    if (cu->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED)
        || cu->cuStreamBatchMemOp(stream, 2, ops, 0)
        || cu->cuStreamBatchMemOp(stream, 256, ops, 0)
           != CUDA_ERROR_INVALID_VALUE
        || cu->cuStreamBatchMemOp(stream, 2, ops, 1)
           != CUDA_ERROR_INVALID_VALUE
        || cu->cuStreamGetCaptureInfo(stream, &status, NULL, NULL, &nodes, &n)
        || status != CU_STREAM_CAPTURE_STATUS_ACTIVE || n != 1)
        return 2;
    *node = nodes[0];
    return cu->cuMemsetD8Async(at + 8, 1, 8, stream)
        || cu->cuStreamEndCapture(stream, recorded) ? 3 : 0;
}

static int graph_of_words(int me, int sock)
{
    CUgraphExec exec, other;
    CUgraph recorded;
    CUgraphNode node;
    CUdeviceptr at;
    CUstream stream;
    uint64_t out = 1;
    int rc;

    if (cu->cuMemAlloc(&at, 16) || cu->cuStreamCreate(&stream, 1)
        || cu->cuCtxGetCurrent(&params.ctx)
        || cu->cuMemsetD8Async(at, 0, 16, stream)
        || cu->cuStreamSynchronize(stream))
        return 8;
    rc = words_recorded(stream, at, &recorded, &node);
    if (rc || cu->cuGraphInstantiateWithFlags(&exec, recorded, 0)
        || cu->cuGraphInstantiateWithFlags(&other, recorded, 0))
        return rc ? rc : 9;
    /* The first launch has the values from before the change. */
    ops[0].value64 = ops[1].value64 = 7;
    if (cu->cuGraphLaunch(exec, stream)
        || cu->cuGraphExecBatchMemOpNodeSetParams(exec, node, &params)
        || cu->cuStreamSynchronize(stream)
        || cu->cuMemcpyAsync(host(&out), at, 8, stream) || out != 0
        || cu->cuGraphLaunch(exec, stream)
        || cu->cuMemcpyAsync(host(&out), at, 8, stream) || out != 7
        || cu->cuGraphLaunch(other, stream)
        || cu->cuMemcpyAsync(host(&out), at, 8, stream) || out != 0)
        return 4;
    params.count = 1;
    if (cu->cuGraphExecBatchMemOpNodeSetParams(exec, node, &params)
        != CUDA_ERROR_INVALID_VALUE)
        return 5;
    params.count = 2;
    ops[1].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    if (cu->cuGraphExecBatchMemOpNodeSetParams(exec, node, &params)
        != CUDA_ERROR_INVALID_VALUE)
        return 6;
    ops[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
    if (cu->cuGraphDestroy(recorded)
        || cu->cuGraphExecBatchMemOpNodeSetParams(exec, node, &params)
           != CUDA_ERROR_INVALID_VALUE
        || cu->cuGraphLaunch((CUgraphExec)(void *)recorded, stream)
           != CUDA_ERROR_INVALID_VALUE
        || cu->cuGraphExecDestroy(exec) || cu->cuGraphExecDestroy(other)
        || cu->cuGraphExecDestroy(exec) != CUDA_ERROR_INVALID_VALUE)
        return 7;
    return cu->cuStreamSynchronize(stream);
}

int main(void)
{
    const char *why = standin_use();

    if (why || !standin_used())
        return skip_all(why ? why : "this is not for a real driver");
    ok(two(share), "two processes map each other's memory, in turns that their "
       "streams keep, and nothing is left");
    ok(two(refused), "memory that is not whole, exportable or mapped with "
       "access is refused");
    ok(two(graph), "a recorded copy is done by each launch of its graph");
    ok(two(graph_of_words), "values of words change between launches; another "
       "number or kind of words, and a graph that is gone, are refused");
    return done();
}
