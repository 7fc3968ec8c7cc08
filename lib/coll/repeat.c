/* repeat.c - calls that repeat
 *
 * A program that calls the same collective on the same buffers again needs no
 * check and no hash: the arguments are compared with those of the last call at
 * the same place of a table, and the executable is there.  A call with lists of
 * counts is not kept, because the lists may change, nor one with a reduction
 * made at run time, because it may be destroyed.
 */
#include "coll/repeat.h"
#include "coll/recorded.h"
#include "coll/state.h"
#include "dtensor.h"

#include <stddef.h>
#include <string.h>

static void repeat_group_forget(struct dtn_recorded *recorded,
                                const struct dtn_cached_exec *cached)
{
    if (recorded && recorded->run.cached == cached)
        recorded->nlast = 0;
}

void dtn_repeats_forget(struct dtn_coll_state *coll,
                        const struct dtn_cached_exec *cached)
{
    for (int i = 0; i < DTN_REPEATS; i++)
        if (coll->repeats[i].cached == cached)
            coll->repeats[i] = (struct dtn_repeat){ .group = NULL };
    for (int i = 0; i < coll->nkept; i++)
        repeat_group_forget(coll->kept[i], cached);
    repeat_group_forget(coll->recorded, cached);
}

void dtn_repeats_clear(struct dtn_coll_state *coll)
{
    memset(coll->repeats, 0, sizeof coll->repeats);
}
