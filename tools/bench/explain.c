/* explain.c - what a case does, in pictures and bytes */
#include "tools/bench/explain.h"
#include "tools/bench/cross.h"
#include "tools/bench/job.h"
#include "tools/bench/options.h"
#include "tools/bench/pattern.h"
#include "tools/bench/redistribute.h"
#include "tools/bench/report.h"
#include "tools/bench/session.h"
#include "tools/bench/tests.h"
#include "tools/draw/change.h"
#include "tools/draw/picture.h"
#include "tools/draw/schedule.h"
#include "tools/draw/write.h"

#include <stdio.h>

struct dtensor_call explain_call(const struct bench *b,
                                 const struct bench_case *c)
{
    return (struct dtensor_call){
        .coll = c->test->coll, .root = (int)b->opt->root, .dtype = c->dtype,
        .op = c->redop == PATTERN_NO_OP ? DTENSOR_SUM : c->redop,
        .count = c->count };
}

static int explain_change(struct report *report, struct bench *b,
                          const struct bench_case *c,
                          struct dtensor_error *err)
{
    struct dtensor_plan *plan = NULL;
    struct dtensor_spec from, to;
    double total, busiest;
    struct picture pic;
    int rc = redistribute_specs(b, c, &from, &to, err);

    if (rc)
        return rc;
    cross_bytes(&from, &to, &total, &busiest);
    if (b->opt->draw)
        rc = dtensor_plan_create(&from, &to, NULL, &plan, err);
    if (rc)
        return rc;
    picture_init(&pic);
    if (plan)
        draw_change(&pic, plan, &from, &to, draw_room_of(false, "# ", stdout));
    report_picture(report, &pic);
    picture_fini(&pic);
    dtensor_plan_destroy(plan);
    if (b->opt->draw || b->opt->shape)
        report_note(report, "%.0f bytes must cross ranks, %.0f into "
                    "the rank that gets most", total, busiest);
    return 0;
}

/* More ranks than a picture has room for are said, and are no error. */
static int explain_schedule(struct report *report, struct bench *b,
                            const struct bench_case *c)
{
    const struct dtensor_call call = explain_call(b, c);
    struct dtensor_error why;
    struct picture pic;
    char title[120];
    int rc;

    snprintf(title, sizeof title, "%s of %llu bytes over %d ranks",
             c->test->name, (unsigned long long)c->bytes, b->group);
    picture_init(&pic);
    rc = draw_schedule(&pic, &(struct draw_call){ title, b->mesh, &call, NULL },
                       draw_room_of(false, "# ", stdout), &why);
    if (rc == 0)
        report_picture(report, &pic);
    else
        report_note(report, "not drawn: %s", why.text);
    picture_fini(&pic);
    return 0;
}

int explain_case(struct report *report, struct bench *b,
                 const struct bench_case *c, struct dtensor_error *err)
{
    if (c->test->open == redistribute_open)
        return explain_change(report, b, c, err);
    if (b->opt->draw && c->test->coll != DTENSOR_NCOLLECTIVES
        && b->position >= 0)
        return explain_schedule(report, b, c);
    return 0;
}
