/* pulse.h - the page in which ranks of a host show that they run; private to
 * this room
 */
#ifndef DTN_BOOT_PULSE_H
#define DTN_BOOT_PULSE_H

#include "boot/boot.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

struct dtn_pulse_page;

/* What this rank has seen of another rank of its host. */
struct dtn_pulse_seen {
    uint64_t beats;               /* at the last look                         */
    int64_t silent_ns;            /* time of this rank without a new one      */
};

struct dtn_pulse {
    struct dtn_pulse_page *page;  /* NULL: this rank is alone on its host, or */
                                  /* no such file is allowed                  */
    int fd;                       /* of the page, in the leader until it is   */
                                  /* sent; or -1                              */
    int n;                        /* ranks of the host                        */
    int me;                       /* own position among them                  */
    struct dtn_pulse_seen *seen;  /* [n]                                      */
    int64_t looked_ns;            /* time of the last look; 0: none yet       */
    int nread;                    /* news of the page that was read           */
    void *robust;                 /* what the kernel reads when the beating   */
                                  /* thread dies                              */
};

/* Create the page (in the leader), or map that of the leader (fd >= 0).
 * create: none without an error where this process may have no such file.
 * Errors: ESYS, ENOMEM
 */
int dtn_pulse_create(struct dtn_pulse *pulse, struct dtensor_error *err);
int dtn_pulse_map(struct dtn_pulse *pulse, int fd, struct dtensor_error *err);
void dtn_pulse_close(struct dtn_pulse *pulse);

/* By the beating thread: from now on the kernel marks its death; it has made
 * another beat; it ends although the process lives.
 */
void dtn_pulse_begin(struct dtn_pulse *pulse);
void dtn_pulse_beat(struct dtn_pulse *pulse);
void dtn_pulse_end(struct dtn_pulse *pulse);

/* Look at all ranks of the host.  Time counts as silence only while this rank
 * runs: at most `most_ns` since the last look.  Returns what was counted.
 */
int64_t dtn_pulse_look(struct dtn_pulse *pulse, int64_t now, int64_t most_ns);

/* What the last look says of the rank at position i. */
enum dtn_loss dtn_pulse_loss(const struct dtn_pulse *pulse, int i,
                             int64_t dead_after_ns);

/* Did all other ranks that run, or seem to, make a beat within that time? */
bool dtn_pulse_beats(const struct dtn_pulse *pulse, int64_t within_ns);

/* Post for the other ranks of the host that a rank is lost, or, without a loss,
 * that it has given up because the culprit is; `how` has less than 16 bits.
 * read: the next such news.
 */
void dtn_pulse_post(struct dtn_pulse *pulse, int rank, int culprit,
                    unsigned how);
bool dtn_pulse_read(struct dtn_pulse *pulse, int *rank, int *culprit,
                    unsigned *how);

/* The rank that all ranks of the host name, and how it was lost: this one,
 * unless a rank of the host has named another.
 */
int dtn_pulse_agree(struct dtn_pulse *pulse, int rank, enum dtn_loss *loss);

/* The same without naming one; -1: no rank of the host has. */
int dtn_pulse_agreed(const struct dtn_pulse *pulse, enum dtn_loss *loss);

/* A rank of the host asks whom to name for this loss.  asked: the first loss
 * for which one has; -1: none.
 */
void dtn_pulse_ask(struct dtn_pulse *pulse, int rank);
int dtn_pulse_asked(const struct dtn_pulse *pulse);

#endif
