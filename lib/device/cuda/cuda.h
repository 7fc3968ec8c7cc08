/* cuda.h - the kind `cuda`: memory of a GPU
 *
 * cuda.c       the device of a rank, opened and closed
 * ops.c        the operations of the kind
 * copies.c     copies, and bytes that are set
 * pass.c       who does an operation: a kernel, or the CPU
 * upload.c     operations by kernels, with pieces of what the host has
 * bounce.c     operations that the CPU does on copies, piece by piece
 * boxes.c      strided boxes, by either
 * kernels.c    the kernels, loaded and launched
 * blas.c       products of matrices by cuBLAS
 * queue.c      the stream, waiting for it, errors
 * values.c     words that streams write and wait for
 * graphs.c     operations that are recorded and launched again
 * points.c     points in the stream, with the time of the device
 * pointer.c    what kind of memory an address is
 * arena.c      device memory of an arena
 * exporter.c   device memory for network cards and for peers of the host
 */
#ifndef DTN_DEVICE_CUDA_CUDA_H
#define DTN_DEVICE_CUDA_CUDA_H

#include "cuda/kernels.h"
#include "device/cuda/driver.h"
#include "device/memory.h"
#include "transport/arena.h"
#include "transport/exporter.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dtn_log;

/* What a rank asks for. */
struct dtn_cuda_want {
    const int *gpus;              /* [ngpus] devices of its host's ranks      */
    int ngpus;                    /* 0: all devices; -1: none                 */
    int local_rank;               /* of this rank, on its host                */
    int local_size;               /* ranks on its host                        */
    const char *host;             /* name of its host, for messages           */
    int64_t timeout_ns;           /* longest wait for the device              */
    struct dtn_log *log;          /* where choices go                         */
};

/* Open the device of a rank; *memoryp is the kind, for its close().
 * Errors: ENODEV, ENOMEM, with the remedy
 */
int dtn_cuda_open(const struct dtn_cuda_want *want,
                  struct dtn_memory **memoryp, struct dtensor_error *err);

/* Is this memory of some GPU?  Asks the driver that the program has loaded, if
 * it has initialised it: nothing is opened.
 */
bool dtn_cuda_is_device(const void *mem);

/* EINVAL, if the program is capturing this stream of its own into a graph. */
int dtn_cuda_check_stream(const struct dtn_memory *memory, void *stream,
                          struct dtensor_error *err);

/* ------------------------------------------------ private to the folder --- */

enum { DTN_CUDA_SLOTS = 2 };      /* pieces on their way at the same time     */

/* One of the two queues. */
struct dtn_cuda_queue {
    CUstream stream;              /* NULL: it is not needed yet               */
    bool launched, to_host;       /* as below                                 */
    const char *running;          /* as below                                 */
};

struct dtn_cuda {
    struct dtn_memory memory;     /* the kind; first                          */
    struct dtn_arena arena;       /* device memory of tensors                 */
    struct dtn_exporter exporter; /* the same for network cards               */
    struct dtensor_error unexported;       /* why an export failed last       */
    const struct dtn_cuda_driver *driver;     /* of this machine              */
    CUdevice device;              /* its handle                               */
    int number;                   /* its number                               */
    char name[80];                /* "GPU 0 (NVIDIA H100)"                    */
    CUcontext context;            /* the primary context of the device        */
    CUstream stream;              /* where operations go                      */
    struct dtn_cuda_queue other;  /* the queue that is not used now           */
    bool turned;                  /* the queue of started calls is            */
    struct dtn_graph *recording;  /* NULL: operations are done                */
    CUstream aside;               /* passes what `stream` waits for; NULL:    */
                                  /* not needed yet                           */
    CUevent end;                  /* of what the program enqueued, or of ours */
    bool follows;                 /* dtensor_stream() was called              */
    CUstream caller;              /* the program's stream, if it follows      */
    bool launched;                /* some operations may not have completed   */
    uint64_t waits;               /* times the host waited for the device     */
    int64_t timeout_ns;           /* longest wait for the device              */
    struct dtn_log *log;          /* where choices go                         */
    unsigned char *slot[DTN_CUDA_SLOTS]; /* pinned memory of a piece, or NULL */
    CUevent moved[DTN_CUDA_SLOTS]; /* the last copy to or from the slot       */
    struct cublasContext *blas;   /* cuBLAS; NULL: own kernels multiply       */
    bool blas_tried;              /* it was looked for                        */
    CUlibrary library;            /* the kernels; NULL: none can be launched  */
    CUfunction kernel[DTN_NKERNELS]; /* each of them                          */
    unsigned most_blocks;         /* of a launch                              */
    CUdeviceptr room;             /* memory for pieces, and then for a word;  */
                                  /* 0: not yet allocated                     */
    char no_kernels[200];         /* why there are none; "": they are loaded  */
    const char *running;          /* the last kernel launched, or NULL        */
    bool to_host;                 /* launched operations write host memory    */
    const void **table;           /* [capacity] addresses of arrays in pieces */
    int capacity;                 /* room in `table`                          */
    struct dtensor_error failure; /* of the last operation that failed        */
};

static inline struct dtn_cuda *dtn_cuda_of(const struct dtn_memory *memory)
{
    return (struct dtn_cuda *)(uintptr_t)memory;
}

/* The stream has been given an operation. */
static inline void dtn_cuda_given(struct dtn_cuda *cuda)
{
    cuda->launched = true;
    cuda->memory.given++;
}

/* ops.c */
extern const struct dtn_memory_ops dtn_cuda_ops;

/* queue.c.  enter and leave: make the context of the device current for the
 * calls between them, and then the one that was.  end: leave; returns `rc`.
 */
int dtn_cuda_enter(struct dtn_cuda *cuda);
void dtn_cuda_leave(struct dtn_cuda *cuda);
int dtn_cuda_end(struct dtn_cuda *cuda, int rc);

/* Note why a call of the driver failed, and return the code of the library; 0
 * and nothing is noted, if it did not.
 */
int dtn_cuda_result(struct dtn_cuda *cuda, const char *call, CUresult result,
                    const char *fmt, ...) DTN_PRINTF(4, 5);

/* Wait for an event.  Errors: ETIME, ENODEV */
int dtn_cuda_await(struct dtn_cuda *cuda, CUevent event);

/* Wait for all launched operations.  The second one waits only if some of them
 * write host memory, which the CPU is about to use.
 */
int dtn_cuda_drain(struct dtn_cuda *cuda);
int dtn_cuda_land(struct dtn_cuda *cuda);

/* Of the kind. */
int dtn_cuda_begin(const struct dtn_memory *memory);
int dtn_cuda_settle(const struct dtn_memory *memory, bool waits);
int dtn_cuda_follow(const struct dtn_memory *memory, void *stream,
                    struct dtensor_error *err);

void dtn_cuda_turn(const struct dtn_memory *memory, bool started);
int dtn_cuda_join(const struct dtn_memory *memory);

/* Note in the event of slot `slot` what was enqueued so far. */
int dtn_cuda_mark(struct dtn_cuda *cuda, int slot);

/* Enqueue a copy between device memory and any memory. */
int dtn_cuda_copy(struct dtn_cuda *cuda, void *dst, const void *src,
                  size_t bytes);

/* copies.c.  Of the kind; and bytes of device memory, in its context. */
int dtn_cuda_move(const struct dtn_memory *memory, void *dst, const void *src,
                  size_t bytes);
int dtn_cuda_set(const struct dtn_memory *memory, void *dst, int byte,
                 size_t bytes);
int dtn_cuda_set_device(struct dtn_cuda *cuda, void *dst, int byte,
                        size_t bytes);

/* values.c.  Of the kind. */
bool dtn_cuda_signals(const struct dtn_memory *memory);
int dtn_cuda_post(const struct dtn_memory *memory, void *word, uint64_t value);
int dtn_cuda_hold(const struct dtn_memory *memory, void *word, uint64_t value);
int dtn_cuda_look(const struct dtn_memory *memory, uint64_t to[],
                  const void *words, size_t bytes);
int dtn_cuda_unhold(const struct dtn_memory *memory, void *words, size_t bytes);

/* graphs.c.  Of the kind. */
int dtn_cuda_record(const struct dtn_memory *memory);
int dtn_cuda_batch(const struct dtn_memory *memory,
                   const struct dtn_word_op ops[], int n);
int dtn_cuda_recorded(const struct dtn_memory *memory,
                      struct dtn_graph **graphp);
int dtn_cuda_replay(const struct dtn_memory *memory, struct dtn_graph *graph,
                    const struct dtn_word_op ops[]);
void dtn_cuda_forget(const struct dtn_memory *memory, struct dtn_graph *graph);

/* points.c */
extern const struct dtn_clock dtn_cuda_clock;

/* pointer.c */
bool dtn_cuda_holds(const struct dtn_memory *memory, const void *mem);
int dtn_cuda_check(const struct dtn_memory *memory, const char *what,
                   const void *mem, size_t bytes, struct dtensor_error *err);
bool dtn_cuda_rdma_capable(struct dtn_cuda *cuda, const void *mem);

/* arena.c.  Address space for all memory of the device; memory as blocks need
 * it.   Errors: ENODEV, ENOMEM
 */
#define DTN_CUDA_PAGE_BYTES ((size_t)64 << 10)     /* of large blocks         */
int dtn_cuda_arena_open(struct dtn_cuda *cuda, struct dtensor_error *err);

/* arena.c, with the context of the device current.  piece: bytes of a part of
 * the arena that has a file of its own; 0: they cannot be shared.  share: that
 * file, which stays the arena's.  join: map such a file of a peer.
 */
size_t dtn_cuda_arena_piece(const struct dtn_cuda *cuda);
int dtn_cuda_arena_share(struct dtn_cuda *cuda, int i, int *fdp);
int dtn_cuda_arena_join(struct dtn_cuda *cuda, CUdeviceptr at, size_t bytes,
                        int fd);

/* exporter.c.  Fill in cuda->exporter of a device that is open otherwise. */
void dtn_cuda_exporter_init(struct dtn_cuda *cuda);

/* kernels.c.  Load the kernels; if that fails, no_kernels says why, and so does
 * the log.
 */
void dtn_cuda_kernels_open(struct dtn_cuda *cuda);
void dtn_cuda_kernels_close(struct dtn_cuda *cuda);

/* Enqueue a kernel: 0 or a code. */
int dtn_cuda_launch(struct dtn_cuda *cuda, struct dtn_launch *launch);

/* Of the kind: kernels of other rooms. */
bool dtn_cuda_computes(const struct dtn_memory *memory);
int dtn_cuda_launch_one(const struct dtn_memory *memory,
                        struct dtn_launch *launch);

/* blas.c.  Of the kind; and its end, with the context current. */
bool dtn_cuda_multiplies(const struct dtn_memory *memory,
                         enum dtensor_dtype dtype);
int dtn_cuda_multiply(const struct dtn_memory *memory,
                      const struct dtn_gemm *product);
void dtn_cuda_blas_close(struct dtn_cuda *cuda);

/* Have the room: DTN_CUDA_SLOT_BYTES on the device, and a word behind them. */
#define DTN_CUDA_WORD_BYTES ((size_t)64)
bool dtn_cuda_room(struct dtn_cuda *cuda);

/* pass.c.  An operation on arrays, element by element.  `run` does elements
 * first ... first + n - 1 of dst from the same elements of src, at addresses
 * that the CPU reaches; `launch` the same by kernels, at addresses that the
 * device reaches: 0 or a code.
 */
struct dtn_cuda_pass;
struct dtn_cuda_part {
    size_t first, n;              /* elements                                 */
    void *dst;                    /* of the first of them; unspecified if the */
                                  /* pass has none                            */
    const void *const *src;       /* [nsrc] of the same                       */
    void *extra;                  /* n times extra_bytes                      */
};
typedef void dtn_cuda_pass_f(const struct dtn_cuda_pass *pass, size_t first,
                             size_t n, void *dst, const void *const src[]);
typedef int dtn_cuda_launch_f(struct dtn_cuda *cuda,
                              const struct dtn_cuda_pass *pass,
                              const struct dtn_cuda_part *part);

struct dtn_cuda_pass {
    dtn_cuda_pass_f *run;         /* does it, on the CPU                      */
    dtn_cuda_launch_f *launch;    /* by kernels; NULL: none does it           */
    const void *how;              /* arguments of both                        */
    void *dst;                    /* NULL: it writes no array                 */
    size_t dst_bytes;             /* of an element of dst                     */
    size_t extra_bytes;           /* for an element, on the device, `launch`  */
    int nsrc;                     /* sources                                  */
    const void *const *src;       /* [nsrc]                                   */
    size_t src_bytes[2];          /* of an element: of src[0], of all others  */
    size_t count;                 /* elements                                 */
    const void **here;            /* [nsrc] the source, if the CPU reaches    */
                                  /* it; set by dtn_cuda_run(), and so are    */
    bool dst_here;                /* whether it reaches dst, or there is none */
    const void **parts;           /* and [2 * nsrc] room for addresses        */
    size_t step;                  /* and elements of a piece                  */
};

/* 0, DTN_LAUNCHED, or a code. */
int dtn_cuda_run(struct dtn_cuda *cuda, struct dtn_cuda_pass *pass);

/* upload.c and bounce.c: the two ways to do it, as above. */
int dtn_cuda_upload(struct dtn_cuda *cuda, const struct dtn_cuda_pass *pass);
int dtn_cuda_bounce(struct dtn_cuda *cuda, const struct dtn_cuda_pass *pass);

/* bounce.c.  The memory of slot `i`, of DTN_CUDA_SLOT_BYTES.  NULL: there is
 * none.
 */
#define DTN_CUDA_SLOT_BYTES ((size_t)4 << 20)
unsigned char *dtn_cuda_slot(struct dtn_cuda *cuda, int i);

/* Bytes of a piece in a slot or the room, where each is aligned. */
#define DTN_CUDA_ALIGN ((size_t)64)
static inline size_t dtn_cuda_piece_bytes(size_t n, size_t elem_bytes)
{
    return (n * elem_bytes + DTN_CUDA_ALIGN - 1) / DTN_CUDA_ALIGN
         * DTN_CUDA_ALIGN;
}

/* boxes.c.  As of the kind; `elem` bytes of an element of dst and src. */
struct dtn_cuda_box {
    const struct dtn_box *box;    /* of elements                              */
    size_t dst_bytes, src_bytes;  /* of an element of each                    */
    const struct dtn_reduction *how; /* NULL: it is copied                    */
    unsigned partial;             /* see dtn_fold()                           */
    bool adds;                    /* to dst                                   */
};
int dtn_cuda_box(struct dtn_cuda *cuda, const struct dtn_cuda_box *op,
                 void *dst, const void *src);

#endif
