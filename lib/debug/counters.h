/* counters.h - private to this room: what is counted, and where
 *
 * control.c  begins and ends, scopes of the program, queries
 * activity.c what the watcher of the context does
 * scopes.c   the tree of scopes
 * kinds.c    as which collectives a redistribute counts
 * lines.c    operators, redistributes and collectives, by scope and tensors
 * wire.c     the bytes that transports take
 * laps.c     the time of the device
 * text.c     as text
 * json.c     as JSON
 * events.c   what began and ended when
 * trace.c    the same as a file
 */
#ifndef DTN_DEBUG_COUNTERS_H
#define DTN_DEBUG_COUNTERS_H

#include "job/ctx.h"
#include "job/watcher.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DTN_SCOPE_NAME = 96, DTN_OPEN_MAX = 256, DTN_LAPS = 1024 };

struct dtn_scope {
    char name[DTN_SCOPE_NAME];    /* a module's path, maybe cut; or given     */
    char type[DTENSOR_NAME_MAX + 1]; /* of a module; "": the program's        */
    int parent;                   /* the scope around it; -1: none            */
    int first, last;              /* of its children, by `next`; -1: none     */
    int next;                     /* child of the same parent; -1: none       */
    int line, line_last;          /* its lines, by `next`; -1: none           */
    struct dtn_side_counts {
        uint64_t runs;            /* how often it was entered; backward:      */
                                  /* noted calls                              */
        int64_t ns;               /* in it, and in those in it; backward:     */
                                  /* only of itself                           */
        int64_t device_ns;        /* the same, of the device                  */
        struct dtensor_debug_count kind[DTENSOR_DEBUG_NKINDS]; /* of itself   */
    } side[DTENSOR_NDIRECTIONS];  /* forward and backward                     */
};

/* Equal activities of one scope. */
struct dtn_line {
    uint64_t hash;                /* of all that makes it a line of its own   */
    enum dtn_watched kind;        /* OP, REDIST, BATCH, CALL or BACKWARD      */
    enum dtensor_direction direction; /* when it runs                         */
    int scope;                    /* its scope                                */
    int next;                     /* line of the scope; -1: the last          */
    char name[48];                /* operator or algorithm, maybe cut         */
    char tensors[256];            /* "f32[8,4](S(0)) -> ...", maybe cut       */
    char op[48];                  /* REDIST: for whom; "": the program asked  */
    int operand;                  /* which of its tensors                     */
    const char *why;              /* static                                   */
    int what;                     /* REDIST, CALL: the kind as which it       */
                                  /* counts first; -1: none                   */
    struct dtensor_debug_count count; /* of all times                         */
};

/* An event of the trace. */
enum dtn_event_kind {
    DTN_EVENT_BEGIN, DTN_EVENT_END, DTN_EVENT_DEVICE, DTN_EVENT_FLIGHT
};

struct dtn_event {
    int64_t ns;                   /* when, by dtn_now_ns()                    */
    uint64_t bytes;               /* END: sent since its begin                */
    int64_t long_ns;              /* DEVICE, FLIGHT: how long                 */
    int what;                     /* line >= 0, or -1 - scope; END: -1        */
    enum dtn_event_kind kind;     /* begin or end of the CPU's; what the      */
                                  /* device did; what was started             */
};

/* What has begun and not ended. */
struct dtn_open {
    enum dtn_watched kind;        /* what it is                               */
    enum dtensor_direction direction; /* before it                            */
    int scope;                    /* before it                                */
    int counted;                  /* before it: index of the open activity    */
                                  /* that counts what is moved; -1: none      */
    int what;                     /* its kind there; -1: not counted          */
    int line;                     /* of it; -1: none                          */
    int lap;                      /* its time of the device; -1: none         */
    int64_t since_ns;             /* when it began                            */
    uint64_t moved;               /* bytes before it                          */
    const char *backward_of;      /* before it                                */
    struct dtn_activity op;       /* OP: what it is                           */
    int operand;                  /* OP: the next that may be redistributed   */
    bool event;                   /* its begin is in the trace                */
};

/* A transport whose bytes are counted, in place of its functions. */
struct dtn_wired {
    struct dtn_transport_ops ops; /* first, so that tp->ops leads here        */
    const struct dtn_transport_ops *inner; /* the transport's own             */
    struct dtn_transport *tp;     /* whose; NULL: not in use                  */
    uint64_t bytes;               /* that it took                             */
};

/* What an activity gave the device, which it may still be doing. */
struct dtn_lap {
    struct dtn_point *begin, *end;        /* noted in the device's queue      */
    uint64_t given;               /* memory->given when it began              */
    struct dtn_open open;         /* the activity                             */
    int scope;                    /* its scope                                */
    enum dtensor_direction direction;     /* and direction                    */
    int next;                     /* of those that ended, or that are free    */
};

struct dtn_counters {
    struct dtn_watcher watcher;   /* first, so that it leads here             */
    struct dtensor_ctx *ctx;      /* the context that keeps these             */
    bool on;                      /* it counts                                */
    uint64_t epoch;               /* how often counting began                 */
    struct dtn_wired wired[DTN_MAX_TRANSPORTS]; /* the context's transports   */

    struct dtn_scope *scopes;     /* [nscopes] the first is all               */
    int nscopes, scopes_room;     /* in use; allocated                        */
    struct dtn_line *lines;       /* [nlines]                                 */
    int nlines, lines_room;       /* in use; allocated                        */
    int *by_hash;                 /* [hash_mask + 1] index of a line, or -1   */
    uint64_t hash_mask;           /* a power of two, less one                 */
    struct dtn_event *events;     /* [nevents]                                */
    int nevents, events_room;     /* in use; allocated                        */
    uint64_t scopes_lost;         /* entered without room for one             */
    uint64_t lines_lost;          /* activities without room for a line       */
    uint64_t events_lost;         /* begins without room in the trace         */

    const struct dtn_memory *device; /* whose time is counted; NULL: none     */
    struct dtn_lap *laps;         /* [DTN_LAPS]                               */
    int lap_free;                 /* the first that is free; -1: none         */
    int lap_first, lap_last;      /* of those that ended, in order; -1: none  */
    struct dtn_point *origin;     /* that the device passed ...               */
    int64_t origin_ns;            /* ... at this time, by dtn_now_ns()        */
    uint64_t laps_lost;           /* activities without a time of the device  */

    enum dtensor_direction direction; /* of what begins                       */
    int scope;                    /* the open one                             */
    int counted;                  /* see struct dtn_open                      */
    const char *backward_of;      /* the noted call whose backward runs; NULL */
    int events_open;              /* begins in the trace without an end       */
    int depth;                    /* open activities; the first DTN_OPEN_MAX  */
    struct dtn_open open[DTN_OPEN_MAX]; /* are here                           */
    int deeper;                   /* more that are open, and not counted      */
};

/* The counters of a context, or NULL. */
static inline struct dtn_counters *dtn_counters_of(
    const struct dtensor_ctx *ctx)
{
    return ctx->slots[DTN_ROOM_DEBUG].state;
}

/* laps.c: the counters for a query `what`, with what the device has done by
 * now; NULL: nothing was counted, and `err` says so.
 */
const struct dtn_counters *dtn_counters_asked(const struct dtensor_ctx *ctx,
                                              const char *what,
                                              struct dtensor_error *err);

/* The functions of the watcher; and: end the last one that has begun. */
void dtn_counters_begin(struct dtn_watcher *watcher,
                        const struct dtn_activity *activity);
void dtn_counters_end(struct dtn_watcher *watcher);
void dtn_counters_landed(struct dtn_watcher *watcher,
                         const struct dtn_flight *flight);
void dtn_counters_close(struct dtn_counters *counters);

/* scopes.c.  enter: the child of `parent` of that name, made if it is new; if
 * there is no room, `parent`.  find: a scope by its path, or -1.  sum: add up
 * what was counted in a scope and those in it; kind DTENSOR_DEBUG_ALL: all.
 */
int dtn_scope_enter(struct dtn_counters *counters, int parent,
                    const char *name, const char *type);
int dtn_scope_find(const struct dtn_counters *counters, const char *path);
struct dtensor_debug_count dtn_scope_sum(const struct dtn_counters *counters,
                                         int scope,
                                         enum dtensor_direction direction,
                                         int kind);

/* lines.c: the line of an activity in the open scope, made if it is new; -1:
 * there is no room.
 */
int dtn_line_of(struct dtn_counters *counters,
                const struct dtn_activity *activity);

/* kinds.c: bit k: a redistribute or a collective counts as one of kind k. */
unsigned dtn_activity_kinds(const struct dtn_activity *activity);

/* trace.c: what a line is, as a word. */
const char *dtn_watched_word(enum dtn_watched kind);

/* wire.c: count what transports take, from now on, or not any more; the bytes
 * so far.
 */
void dtn_wire_count(struct dtn_counters *counters);
void dtn_wire_release(struct dtn_counters *counters);
uint64_t dtn_wire_bytes(const struct dtn_counters *counters);

/* laps.c.  open: the time of the device of the context counts from now on, if
 * one is open and has a clock.  begin: of the activity that begins; -1: none.
 * end: of `open`, which ends.  read: add the times of what the device has done;
 * with `waits`, of all that it was given.  close: not any more.
 */
void dtn_laps_open(struct dtn_counters *counters);
int dtn_lap_begin(struct dtn_counters *counters);
void dtn_lap_end(struct dtn_counters *counters, const struct dtn_open *open);
void dtn_laps_read(struct dtn_counters *counters, bool waits);
void dtn_laps_close(struct dtn_counters *counters);

/* events.c: add an event.  begin: false if there is no room for it and its end.
 * add: of the device, or of what was started.
 */
bool dtn_trace_begin(struct dtn_counters *counters, int what, int64_t now_ns);
void dtn_trace_end(struct dtn_counters *counters, uint64_t bytes,
                   int64_t now_ns);
void dtn_trace_add(struct dtn_counters *counters,
                   const struct dtn_event *event);

#endif
