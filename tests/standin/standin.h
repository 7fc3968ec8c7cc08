/* standin.h - a CUDA driver for tests, over the memory of the host
 *
 * It is a libcuda.so.1 with the calls of lib/device/cuda/calls.h.  Its device
 * memory cannot be touched by the CPU, its streams are threads, and it reports
 * wrong use that a real driver would not notice.  It is never installed.
 *
 * faults.c    environment variables, errors that are asked for, complaints
 * devices.c   devices, contexts, the version
 * space.c     addresses of device memory and the memory behind them
 * memory.c    cuMemAlloc and its kin, attributes of pointers
 * pinned.c    host memory that streams may reach
 * vmm.c       reserved addresses, physical memory, export and import
 * dmabuf.c    export to RDMA cards
 * stream.c    queues and their threads
 * tasks.c     copies, values, host functions: what streams do
 * events.c    points in streams
 * words.c     several words written and waited for at once
 * graphs.c    recording and launching
 * kernels.c   kernels by name
 * window.c    device memory that the CPU may touch for a while
 * find.c      the two symbols that a program looks for
 *
 * DTN_STANDIN_VERSION=12020      of CUDA, 12.2
 * DTN_STANDIN_WITHOUT=cuX,cuY    calls that this driver does not have
 * DTN_STANDIN_DEVICES=2          devices; 0: cuInit finds none
 * DTN_STANDIN_MEMORY=1048576     bytes of each device
 * DTN_STANDIN_MEMORY_IS=managed  what attributes say of addresses: managed, or
 *                                foreign (of another context)
 * DTN_STANDIN_ATTRIBUTES=124=0   attributes of devices, by number
 * DTN_STANDIN_LATE_US=200        before each thing that a stream does
 * DTN_STANDIN_FAIL=cuX:3=2,cuY:1=-700
 *                                the third cuX returns error 2; what the first
 *                                cuY enqueues fails later, with error 700; 0th:
 *                                each.  Counting restarts when this changes.
 */
#ifndef TESTS_STANDIN_H
#define TESTS_STANDIN_H

#include "base/compiler.h"
#include "device/cuda/calls.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STANDIN_CALL(name, since, skill, params) CUresult standin_##name params;
DTN_CUDA_CALLS(STANDIN_CALL)
#undef STANDIN_CALL

/* ---------------------------------------------------------------- faults -- */

/* Each call begins with one of these and returns what they return, if it is not
 * 0.  The second one asks for a current context.  *laterp (NULL: the call
 * enqueues nothing): the error of what is enqueued.
 */
CUresult standin_enter(const char *call);
CUresult standin_enter_context(const char *call);
CUresult standin_enter_stream(const char *call, CUresult *laterp);

/* The error that every call returns from now on. */
void standin_stick(CUresult rc);
CUresult standin_stuck(void);

/* Say what was wrong with the use of a call. */
void standin_complain(const char *fmt, ...) DTN_PRINTF(1, 2);

/* A number of the environment, or `otherwise`. */
unsigned long standin_number(const char *variable, unsigned long otherwise);

/* Does the list in this variable have the word? */
bool standin_listed(const char *variable, const char *word);

/* Things that a program creates and has to destroy. */
enum standin_thing {
    STANDIN_RANGE, STANDIN_BLOCK, STANDIN_PINNED, STANDIN_STREAM,
    STANDIN_EVENT, STANDIN_GRAPH, STANDIN_LIBRARY, STANDIN_CONTEXT,
    STANDIN_THINGS
};
void standin_count(enum standin_thing thing, int more);

/* How often that call was made, NULL: any call; for tests, by dlsym(). */
unsigned long standin_made(const char *call);

/* How many are left, in words; for tests, by dlsym(). */
int standin_left(char *text, size_t size);

/* --------------------------------------------------------------- devices -- */

enum { STANDIN_DEVICES_MAX = 8, STANDIN_VERSION = 13000 };

int standin_version(void);
bool standin_initialised(void);
bool standin_device_exists(CUdevice device);
size_t standin_device_bytes(void);

/* The device of the current context, -1: there is none. */
int standin_current(void);
CUcontext standin_context(int device);

/* ----------------------------------------------------------------- space -- */

#define STANDIN_PAGE ((size_t)4096)
#define STANDIN_GRANULE ((size_t)2 << 20)

/* Physical memory: a memfd. */
struct standin_block {
    int fd;                       /* owned                                    */
    int refs;                     /* handles and mappings                     */
    int device;                   /* number of the device                     */
    size_t size;                  /* bytes, whole pages                       */
    bool exportable;              /* as a file descriptor                     */
    bool rdma;                    /* RDMA cards may reach it                  */
    bool own;                     /* made here, not imported                  */
};

/* A part of a range with memory behind it. */
struct standin_mapping {
    uint64_t at;                  /* its first address                        */
    size_t size;                  /* bytes                                    */
    size_t offset;                /* bytes, in the block                      */
    struct standin_block *block;  /* one reference                            */
    bool access;                  /* was access given?                        */
    struct standin_mapping *next; /* of the range                             */
};

/* Addresses, which are never given out again. */
struct standin_range {
    uint64_t at;                  /* the first                                */
    size_t size;                  /* bytes that were asked for                */
    bool reserved;                /* by cuMemAddressReserve                   */
    bool freed;                   /* nobody may use it any more               */
    struct standin_mapping *mappings; /* in any order                         */
};

/* Under this lock is everything of the process that two threads may change. */
extern pthread_mutex_t standin_lock;

/* These are called with the lock. */
struct standin_block *standin_block_new(size_t size, int device);
struct standin_block *standin_block_of(int fd);
void standin_block_drop(struct standin_block *block);
struct standin_range *standin_range_new(size_t size);
struct standin_range *standin_range_at(uint64_t at);
struct standin_mapping *standin_mapping_at(const struct standin_range *range,
                                           uint64_t at);
bool standin_map(struct standin_range *range, uint64_t at, size_t size,
                 struct standin_block *block, size_t offset);
bool standin_unmap(struct standin_range *range, uint64_t at, size_t size);

/* Is it an address of device memory, or one that was or could be? */
bool standin_is_device(uint64_t at);

/* Where the stand-in itself reaches [at, at + size).  NULL: it is no memory
 * that may be touched, and *whyp says why.  The second one says it aloud, with
 * `what`, and makes it the error of all later calls.
 */
void *standin_look(uint64_t at, size_t size, const char **whyp);
void *standin_reach(uint64_t at, size_t size, const char *what);

/* ---------------------------------------------------------------- pinned -- */

/* Is this host memory pinned, all of it? */
bool standin_is_pinned(uint64_t at, size_t size);

/* --------------------------------------------------------------- streams -- */

struct standin_stream;
struct standin_graph;

/* What a stream does.  `run` returns an error, which then sticks; the task is
 * freed by `drop` (NULL: free()).  A task can be copied.
 */
struct standin_task {
    CUresult (*run)(struct standin_task *task);
    CUresult later;               /* error that was asked for, 0: none        */
    unsigned late_us;             /* microseconds before it is run            */
    bool waits;                   /* perhaps, for others: only by the thread  */
                                  /* of its stream                            */
    uint64_t dst, src;            /* addresses                                */
    bool dst_pinned, src_pinned;  /* host memory that was pinned at the call  */
    uint64_t value;               /* of a set, write or wait                  */
    size_t size;                  /* bytes                                    */
    unsigned flags;               /* of a wait; blocks of a kernel            */
    void (*call)(void *arg);      /* host function                            */
    void *arg;                    /* of it                                    */
    const void *twin;             /* kernel                                   */
    const struct standin_task *node; /* in a graph to launch: the node it is  */
    unsigned char *bytes;         /* owned: source or arguments, `nbytes`     */
    size_t nbytes;                /* bytes                                    */
    struct standin_stream *other; /* stream that is waited for ...            */
    uint64_t ticket;              /* ... up to its task of this number        */
    struct standin_task *next;    /* in the queue or graph                    */
};

/* A stream, by its handle; NULL is the legacy stream.  NULL: no such stream,
 * which was complained of.
 */
struct standin_stream *standin_stream_of(CUstream handle, const char *call);

/* A call that gives a stream a task begins with this. */
CUresult standin_enter_task(const char *call, CUstream handle,
                            struct standin_task *task,
                            struct standin_stream **streamp);

/* Append a copy of the task to the stream, or to the graph that it records.
 * Takes `bytes`.  *ticketp (may be NULL): its number.
 */
CUresult standin_push(struct standin_stream *stream,
                      const struct standin_task *task, uint64_t *ticketp);

/* Has the task of that number been done?  Wait until it has. */
bool standin_is_done(struct standin_stream *stream, uint64_t ticket);
void standin_wait_done(struct standin_stream *stream, uint64_t ticket);

/* Number of the last task. */
uint64_t standin_last(struct standin_stream *stream);

/* The graph that the stream records, or NULL, and the end of recording. */
struct standin_graph *standin_recorded(const struct standin_stream *stream);
void standin_record_in(struct standin_stream *stream,
                       struct standin_graph *graph);
void standin_record_ends(struct standin_graph *graph);

/* Append a copy to a graph; takes `bytes`. */
void standin_graph_add(struct standin_graph *graph,
                       const struct standin_task *task);

/* How often a kernel was launched; for tests, by dlsym(). */
int standin_launches(void);

/* May a stream or a node have these words?  Are they, but for addresses and
 * values, those of the task?
 */
bool standin_words_good(const char *call, const CUstreamBatchMemOpParams ops[],
                        unsigned n);
bool standin_words_alike(const struct standin_task *task,
                         const CUstreamBatchMemOpParams ops[], unsigned n);

/* May a call write a word there, or wait for it?  Do it. */
bool standin_word_good(const char *call, uint64_t at);
CUresult standin_word_write(uint64_t at, uint64_t value);
CUresult standin_word_wait(uint64_t at, uint64_t value, unsigned flags);

/* A call that is not allowed while a stream records: the recording is void. */
CUresult standin_graph_spoil(struct standin_graph *graph, const char *call);

#endif
