/* program.h - the schedules of all ranks, as short as a simulation needs */
#ifndef DTN_SCHED_PLAY_PROGRAM_H
#define DTN_SCHED_PLAY_PROGRAM_H

#include "sched/play.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

struct dtn_sched;

/* What a line does. */
enum dtn_line_op {
    DTN_LINE_PUT,                 /* bytes to the receiver of the channel     */
    DTN_LINE_SIGNAL,              /* tell it; bytes: the data that goes along */
    DTN_LINE_WAIT,                /* its next signal; bytes are copied out    */
    DTN_LINE_FLUSH,               /* until all bytes have left for it         */
    DTN_LINE_LOAD,                /* bytes from memory of ranks of this host  */
    DTN_LINE_FOLD,                /* bytes of terms                           */
    DTN_LINE_COPY,                /* bytes in own memory                      */
    DTN_NLINES
};

/* A step without places: 16 bytes where a step has 150. */
struct dtn_play_line {
    uint64_t bytes;               /* moved, folded or copied                  */
    uint32_t channel;             /* PUT, SIGNAL, WAIT, FLUSH: its index;     */
                                  /* LOAD: the rank that has the bytes        */
    uint32_t op : 3;              /* enum dtn_line_op                         */
    uint32_t step : 29;           /* of the schedule                          */
};

/* The way from one rank to another. */
struct dtn_channel {
    int from, to;                 /* parts; `to` may stand for another rank   */
                                  /* of its class                             */
    int from_rank, to_rank;       /* in the world                             */
    int flying;                   /* messages that have not landed            */
    uint32_t first, last;         /* notices on their way, DTN_NOTICE_NONE    */
    uint32_t posting, posted;     /* first and last message with pieces that  */
                                  /* are not at the port, DTN_NOTICE_NONE     */
    bool begun;                   /* a signal was taken                       */
    double left_ns;               /* until when bytes leave the sender        */
    double landed_ns;             /* when the last bytes land                 */
};

/* One rank in one job. */
struct dtn_play_part {
    int job;                      /* its job                                  */
    int position;                 /* in the group of the job                  */
    int rank;                     /* in the world                             */
    int at, end;                  /* its next line, and the last one + 1      */
    uint32_t waits;               /* channel on which it waits, or NONE       */
    bool sent;                    /* it has sent to a rank of its host        */
    double clock_ns;              /* when its last line was done              */
    double slow;                  /* how much longer its CPU takes            */
    int waited;                   /* its last wait that took time, or -1      */
    struct dtn_sched *sched;      /* its schedule, if it is kept, or NULL     */
};
#define DTN_NOTICE_NONE UINT32_MAX

/* The most lines, 4 GiB of them. */
#define DTN_LINES_MAX (1 << 28)

struct dtn_program {
    struct dtn_play_part *part;   /* [nparts]                                 */
    int nparts, parts_capacity;   /* used and allocated                       */
    struct dtn_play_line *line;   /* [nlines] part by part                    */
    int nlines, lines_capacity;   /* used and allocated                       */
    struct dtn_channel *channel;  /* [nchannels]                              */
    int nchannels, channels_capacity; /* used and allocated                   */
    uint64_t longest;             /* bytes of the longest put                 */
};

/* Make the schedules of all jobs, one rank at a time, and keep their lines.
 * The schedules, too, if keeps.  _fini() in any case.
 * Errors: EINVAL  a period that does not divide the ranks; more than
 *         DTN_LINES_MAX steps;  ENOMEM;  those of emit
 */
int dtn_program_make(struct dtn_program *program,
                     const struct dtn_play_job jobs[], int njobs, bool keeps,
                     struct dtensor_error *err);
void dtn_program_fini(struct dtn_program *program);

#endif
