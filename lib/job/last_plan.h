/* last_plan.h - what the last call did, in words, for dtensor_last_plan()
 *
 * Each call stores a pointer to words that its plan or executable already has:
 * one store.  The words are copied when they are asked for, or when their owner
 * frees them.
 */
#ifndef DTN_JOB_LAST_PLAN_H
#define DTN_JOB_LAST_PLAN_H

#include <stdio.h>

enum { DTN_LAST_PLAN = 160 };     /* bytes of such words, with the final '\0' */

struct dtn_last_plan {
    const char *text;             /* the owner's, or `kept`; NULL: no call    */
    char kept[DTN_LAST_PLAN];     /* a copy of what its owner has freed       */
};

static inline void dtn_last_plan_is(struct dtn_last_plan *last,
                                    const char *text)
{
    last->text = text;
}

/* The words, "" before the first call. */
static inline const char *dtn_last_plan_text(const struct dtn_last_plan *last)
{
    return last->text ? last->text : "";
}

/* Keep a copy: the owner of `text` is about to free or change it. */
static inline void dtn_last_plan_keep(struct dtn_last_plan *last,
                                      const char *text)
{
    if (last->text != text)
        return;
    snprintf(last->kept, sizeof last->kept, "%s", text);
    last->text = last->kept;
}

#endif
