/* dtensor/debug.h - what a program moves: counters and traces
 *
 * While a context counts, it records each collective, redistribute and operator
 * of this rank with the scope in which it ran: a module that is called, or a
 * name that the program gave.  Forward and backward are counted separately: the
 * backward of a call counts for the scope in which the call was made.
 */
#ifndef DTENSOR_DEBUG_H
#define DTENSOR_DEBUG_H

#include "collective.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Limits of what is recorded; 0: the default.  Beyond a limit the totals stay
 * correct: only details are lost, and their number is reported.
 */
struct dtensor_debug_options {
    int scopes;                /* scopes in the tree: 1024.  More scopes      */
                               /* count for their parent                      */
    int lines;                 /* different operators, redistributes and      */
                               /* collectives, by scope and tensors: 4096     */
    int events;                /* begins and ends in the trace: 65536; -1: no */
                               /* trace                                       */
};

/* Begin to count, with all counters at zero; earlier counts are freed.
 * All memory is allocated here, by default 5 MiB; counting allocates nothing.
 * end: stop.  The counts stay until the next begin, or until the context
 * is freed.  A context that does not count pays one branch for each activity.
 * Times of the device appear when the device has completed the work.
 *
 * Collective: no - each rank counts for itself.
 * Blocks: until the device, if one is open, has done what it was given.
 * Errors: EINVAL  begin: it counts already, or an option is negative; end: it
 *                 does not count, or a scope or a call is open;  ENOMEM
 * Semantics: CommDebugMode of PyTorch.
 */
int dtensor_debug_begin(struct dtensor_ctx *ctx,
                        const struct dtensor_debug_options *options,
                        struct dtensor_error *err);
int dtensor_debug_end(struct dtensor_ctx *ctx, struct dtensor_error *err);

/* push: open a scope inside the innermost open one; if that already has one of
 * this name, enter it again.  pop: close the innermost open scope.  If the
 * context does not count, both do nothing.
 *
 * Collective: no.   Blocks: no.
 * Errors: EINVAL  the name is NULL, empty or longer than 95 bytes; pop: the
 *                 program has opened no scope here
 * Semantics: NVTX ranges.
 */
int dtensor_debug_push(struct dtensor_ctx *ctx, const char *name,
                       struct dtensor_error *err);
int dtensor_debug_pop(struct dtensor_ctx *ctx, struct dtensor_error *err);

enum dtensor_direction {
    DTENSOR_FORWARD,           /* calls of the program                        */
    DTENSOR_BACKWARD,          /* what dtensor_tape_backward() runs           */
    DTENSOR_NDIRECTIONS
};

/* Kinds that are counted in addition to those of enum dtensor_collective. */
enum {
    DTENSOR_DEBUG_MESSAGES = DTENSOR_NCOLLECTIVES, /* sends and receives      */
    DTENSOR_DEBUG_EXCHANGE,    /* redistributes between meshes, and slabs of  */
                               /* a scatter                                   */
    DTENSOR_DEBUG_NKINDS,
    DTENSOR_DEBUG_ALL = -1     /* the sum of all kinds                        */
};

/* Counts of this rank. */
struct dtensor_debug_count {
    uint64_t calls;            /* collectives                                 */
    uint64_t predicted_bytes;  /* that their schedules move; in a context     */
                               /* that only plans, of all ranks together      */
    uint64_t sent_bytes;       /* that transports accepted from this rank,    */
                               /* and that it read in mapped memory of peers  */
    int64_t time_ns;           /* that the CPU spent in these calls           */
    int64_t device_ns;         /* that the device spent on their work, after  */
                               /* all earlier work; 0: it had none            */
    double predicted_ns;       /* time_ns by the cost model                   */
};

/* Counts of a kind in a scope and the scopes inside it.  `scope` is the names
 * from the outermost scope on, joined by "/": "step 1/layers.0.up"; NULL: all.
 * A redistribute counts once for each kind of change along its mesh dimensions:
 * S to R all-gather, P to R allreduce, P to S reduce-scatter, S to another S
 * all-to-all; its bytes and time count for the first kind.  The collectives
 * that it runs do not count again.
 *
 * Collective: no.   Blocks: no.
 * Errors: EINVAL  nothing was counted, or there is no such scope or kind
 * Semantics: CommDebugMode.get_comm_counts, with bytes and times.
 */
int dtensor_debug_counts(const struct dtensor_ctx *ctx, const char *scope,
                         enum dtensor_direction direction, int kind,
                         struct dtensor_debug_count *count,
                         struct dtensor_error *err);

/* Totals of equal activities of this rank: there is one line for all operators,
 * redistributes or collectives that have the same scope, direction and
 * tensors.
 */
struct dtensor_debug_line {
    const char *scope;         /* name of the innermost scope; "all": none    */
    enum dtensor_direction direction; /* when it runs                         */
    const char *what;          /* "operator", "redistribute", "batch" of      */
                               /* them, "collective" that is run, "backward"  */
                               /* of an operator                              */
    const char *name;          /* of the operator or algorithm                */
    const char *tensors;       /* "f32[8,4](S(0)) -> f32[8,4](R)", may be     */
                               /* truncated; "": none                         */
    int kind;                  /* redistribute, collective: as what it counts */
                               /* first; -1: it does not count itself         */
    const char *op;            /* redistribute: for which operator or style;  */
                               /* "": the program asked                       */
    int operand;               /* which of its tensors                        */
    const char *why;           /* redistribute: the reason; NULL: another     */
    struct dtensor_debug_count count; /* of all times; calls: runs            */
};

/* Line `i`, in the order in which they were first run.
 *
 * Collective: no.   Blocks: no.
 * Owns:   texts are the context's, until counting begins again.
 * Errors: EINVAL  nothing was counted, or there is no such line
 * Semantics: its own.
 */
int dtensor_debug_line(const struct dtensor_ctx *ctx, int i,
                       struct dtensor_debug_line *line,
                       struct dtensor_error *err);

enum dtensor_debug_level {
    DTENSOR_DEBUG_COLLECTIVES, /* the collectives of all scopes               */
    DTENSOR_DEBUG_MODULES,     /* and of each scope, as a tree                */
    DTENSOR_DEBUG_OPERATORS,   /* and operators, and why each redistribute    */
    DTENSOR_DEBUG_TENSORS      /* and their tensors, with placements          */
};

/* Write the counts of this rank: as text with this level of detail; as JSON,
 * complete; or the begin and end of each activity as a trace, in Chrome's
 * trace event JSON, for ui.perfetto.dev.  There the process number is the rank.
 *
 * Collective: no.   Blocks: while the stream does.
 * Errors: EINVAL  nothing was counted, there is no such level, or no trace;
 *                 ESYS  the stream cannot be written
 * Semantics: CommDebugMode.generate_comm_debug_tracing_table and
 * generate_json_dump, and torch.profiler's export_chrome_trace.
 */
int dtensor_debug_print(const struct dtensor_ctx *ctx,
                        enum dtensor_debug_level level, FILE *stream,
                        struct dtensor_error *err);
int dtensor_debug_json(const struct dtensor_ctx *ctx, FILE *stream,
                       struct dtensor_error *err);
int dtensor_debug_trace(const struct dtensor_ctx *ctx, FILE *stream,
                        struct dtensor_error *err);

#ifdef __cplusplus
}
#endif
#endif
