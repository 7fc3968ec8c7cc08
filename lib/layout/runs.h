/* runs.h - which elements of one list are which of another */
#ifndef DTN_LAYOUT_RUNS_H
#define DTN_LAYOUT_RUNS_H

#include <stdbool.h>
#include <stdint.h>

struct dtn_shard;
struct dtn_part;

/* Elements of one list that are elements of another list: `len` contiguous
 * elements, repeated `count` times.  In list 0 they begin every step[0]
 * elements from at[0] on, in list 1 every step[1] from at[1] on.
 */
struct dtn_run {
    int64_t len;                               /* elements of each repetition */
    int64_t count;                             /* repetitions                 */
    int64_t at[2];                             /* first element, in each list */
    int64_t step[2];                           /* between repetitions; 0 when */
                                               /* count is 1                  */
};

/* A relation between two lists.  Up to three runs need no allocation.  If
 * memory runs out, `failed` is set; the caller checks it once at the end.
 */
struct dtn_runs {
    int n;                                     /* runs                        */
    int capacity;                              /* room in `list`              */
    bool failed;                               /* out of memory               */
    struct dtn_run *list;                      /* [n]; `few` at first         */
    struct dtn_run few[3];                     /* for short lists             */
};

void dtn_runs_init(struct dtn_runs *runs);
void dtn_runs_fini(struct dtn_runs *runs);
void dtn_runs_flip(struct dtn_runs *runs);     /* list 0 becomes list 1       */

void dtn_runs_span(const struct dtn_runs *runs, int64_t *startp, int64_t *endp);
                                       /* of list 0; start >= end: none       */

/* Cut list 0 of `runs`.  List 0 of `out`, which must be initialised, is what
 * the cut leaves.
 */
void dtn_runs_shard(const struct dtn_runs *runs, const struct dtn_shard *shard,
                    struct dtn_runs *out);

/* The relation between a rank's part along a dimension and the whole. */
void dtn_part_runs(const struct dtn_part *part, int dim,
                   struct dtn_runs *runs);

#endif
