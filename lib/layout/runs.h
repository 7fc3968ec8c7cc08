/* runs.h - which elements of one list are which of another */
#ifndef DTN_LAYOUT_RUNS_H
#define DTN_LAYOUT_RUNS_H

#include <stdbool.h>
#include <stdint.h>

struct dtn_cut;
struct dtn_part;

/* Elements of one list that are elements of another: `len` neighbours, `count`
 * times; at[0], every step[0] in list 0 are at[1], every step[1] in list 1.
 */
struct dtn_run {
    int64_t len;
    int64_t count;
    int64_t at[2];
    int64_t step[2];                           /* 0 when count is 1            */
};

/* A relation between two lists.  Few entries need no memory.  Running out of
 * memory is remembered in `failed`, as it is by schedules.
 */
struct dtn_runs {
    int n, capacity;
    bool failed;
    struct dtn_run *list;
    struct dtn_run few[3];
};

void dtn_runs_init(struct dtn_runs *runs);
void dtn_runs_fini(struct dtn_runs *runs);
void dtn_runs_add(struct dtn_runs *runs, struct dtn_run run);
void dtn_runs_flip(struct dtn_runs *runs);     /* list 0 becomes list 1        */
void dtn_runs_take(struct dtn_runs *runs, struct dtn_runs *from);   /* moves   */

void dtn_runs_span(const struct dtn_runs *runs, int64_t *startp, int64_t *endp);
                                       /* of list 0; start >= end: none       */

/* Cut list 0 of `runs`: in `out`, which was initialised, list 0 is what the cut
 * leaves of it.
 */
void dtn_runs_cut(const struct dtn_runs *runs, const struct dtn_cut *cut,
                  struct dtn_runs *out);

/* The relation between a rank's part along a dimension and the whole. */
void dtn_part_runs(const struct dtn_part *part, int dim,
                   struct dtn_runs *runs);

#endif
