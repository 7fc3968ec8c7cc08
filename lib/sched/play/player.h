/* player.h - the state of a simulation */
#ifndef DTN_SCHED_PLAY_PLAYER_H
#define DTN_SCHED_PLAY_PLAYER_H

#include "sched/play.h"
#include "sched/play/events.h"
#include "sched/play/noise.h"
#include "sched/play/program.h"
#include "sched/play/topology.h"

#include <stdbool.h>
#include <stdint.h>

/* A put or signal that is on its way. */
struct dtn_play_message {
    uint32_t line;                /* of the sender; free: next free message   */
    uint8_t links, at;            /* of the path, and the next one            */
    double bytes;                 /* of data, stretched, not yet at its port  */
    double piece;                 /* bytes that take the port at a time       */
    bool last;                    /* no piece of its message comes after it   */
    uint32_t next;                /* posted after it to the same peer, or     */
                                  /* DTN_NOTICE_NONE                          */
    double sent_ns;               /* when its sender was done with it         */
    double tail_ns;               /* when its last byte comes to the next     */
    uint32_t path[DTN_ROUTE_MAX]; /* links                                    */
};

/* A signal that has not been taken. */
struct dtn_play_notice {
    double sent_ns, seen_ns;      /* when it was sent, and can be taken       */
    uint32_t line;                /* of the sender                            */
    uint32_t next;                /* of its channel, or of the free ones      */
};

/* A wait that took time. */
struct dtn_play_waited {
    int before;                   /* the one before of this part, or -1       */
    uint32_t line, sent_line;     /* the wait, and the signal                 */
    double sent_ns, seen_ns;      /* of the signal                            */
};

struct dtn_player {
    const struct dtn_play_machine *machine;    /* what it runs on             */
    const struct dtn_play_job *jobs;           /* what runs                   */
    const struct dtn_play_watch *watch;        /* what is told, or NULL       */
    struct dtn_topology topology; /* links                                    */
    struct dtn_program program;   /* steps, ranks, channels                   */
    struct dtn_events events;     /* what comes next                          */
    struct dtn_noise_at *noise;   /* [nparts] or NULL                         */
    double *free_ns;              /* [links] when the link is free            */
    double *busy_ns;              /* [links] while bytes were on it           */
    int *port;                    /* [ranks of the world]                     */
    int *pieces;                  /* [ports] channels with pieces to come     */
    bool shared;                  /* some port has several parts              */
    struct dtn_play_message *message;          /* pool                        */
    int nmessages, messages_capacity;          /* used and allocated          */
    uint32_t free_message;        /* first free one, or DTN_NOTICE_NONE       */
    struct dtn_play_notice *notice;            /* pool                        */
    int nnotices, notices_capacity;            /* used and allocated          */
    uint32_t free_notice;         /* first free one, or DTN_NOTICE_NONE       */
    struct dtn_play_waited *waited;            /* waits that took time        */
    int nwaited, waited_capacity; /* used and allocated                       */
    bool failed;                  /* out of memory                            */
    const struct dtn_channel *cut;             /* there is no way for it      */
    uint64_t messages;            /* so far                                   */
};

#define DTN_MESSAGE_EVENT 0x80000000u          /* events of messages have it  */
#define DTN_PIECE_EVENT 0x40000000u            /* next piece of a message     */

static inline int dtn_play_host(const struct dtn_play_machine *machine,
                                int rank)
{
    return machine->host ? machine->host[rank] : rank / machine->per_host;
}

/* messages.c: take the next signal of a channel; false: there is none. */
bool dtn_notice_take(struct dtn_player *p, struct dtn_channel *channel,
                     struct dtn_play_notice *notice);

/* A message of the line, posted at now_ns, leaves through a port. */
void dtn_message_far(struct dtn_player *p, const struct dtn_play_line *line,
                     double now_ns);

/* The CPU moves one inside a host from start_ns to end_ns: as long as so many
 * bytes take.
 */
void dtn_message_near(struct dtn_player *p, const struct dtn_play_line *line,
                      double bytes, double start_ns, double end_ns);

/* Its head is at the next link of its path. */
void dtn_message_go(struct dtn_player *p, uint32_t number, double head_ns);

/* A piece of it has left the port: the next one takes it. */
void dtn_message_next(struct dtn_player *p, uint32_t number, double now_ns);

/* path.c: what the part that was done last had waited for; 0 or ENOMEM. */
int dtn_play_path(const struct dtn_player *p, struct dtn_play_result *result,
                  struct dtensor_error *err);

/* report.c: when each job is done; 0 or ENOMEM. */
int dtn_play_ends(const struct dtn_player *p, int njobs,
                  struct dtn_play_result *result, struct dtensor_error *err);

/* The busiest links of each level. */
void dtn_play_links(const struct dtn_player *p, struct dtn_play_result *result);

/* Tell the watcher about an event. */
void dtn_play_tell(const struct dtn_player *p,
                   const struct dtensor_simulated_event *event);

#endif
