/* picture.c - pictures of meshes, tensors, redistributes and collectives
 *
 *   $ dtensor-plan --mesh 2x4 --svg >mesh.svg
 *   $ dtensor-plan --mesh 4 --from P --to R --shape 8x8 --draw
 *   $ dtensor-plan allreduce --size 1M --mesh 8 --algorithm ring --svg >a.svg
 *
 * The picture is SVG or text.  It shows a mesh alone, a tensor, a redistribute
 * before and after, or the schedule of a collective.
 */
#include "tools/draw/bytes.h"
#include "tools/draw/change.h"
#include "tools/draw/hosts.h"
#include "tools/draw/mesh.h"
#include "tools/draw/picture.h"
#include "tools/draw/schedule.h"
#include "tools/draw/spec.h"
#include "tools/draw/write.h"
#include "tools/plan/plan.h"

#include <stdlib.h>

/* The algorithm that a collective is drawn by. */
static const char *picture_way(const struct plan_job *job,
                               const struct plan_options *opt)
{
    for (int i = 0; i < job->nways && !opt->algorithm; i++)
        if (job->ways[i].taken)
            return job->ways[i].name;
    return opt->algorithm;
}

static int picture_schedule(struct picture *pic, const struct plan_job *job,
                            const struct plan_options *opt,
                            struct draw_room room)
{
    const char *way = picture_way(job, opt);
    struct dtensor_error err;
    char title[200], bytes[32];

    draw_bytes((double)job->size, bytes, sizeof bytes);
    snprintf(title, sizeof title, "%s by %s%s%s over %d ranks",
             plan_collectives[job->call.coll], way, job->size ? ", " : "",
             job->size ? bytes : "", dtensor_mesh_size(job->mesh));
    if (draw_schedule(pic, &(struct draw_call){ title, job->mesh, &job->call,
                                                way }, room, &err) == 0)
        return PLAN_GOOD;
    fprintf(stderr, "%s: %s\n", plan_program, err.text);
    return PLAN_BAD;
}

static int picture_draw(struct picture *pic, const struct plan_job *job,
                        const struct plan_options *opt, const int host[],
                        struct draw_room room)
{
    if (opt->collective)
        return picture_schedule(pic, job, opt, room);
    if (job->plan)
        draw_change(pic, job->plan, &job->from, &job->to, room);
    else if (opt->from)
        draw_spec(pic, "", &job->from, 0, 0, room);
    else
        draw_mesh(pic, job->mesh, host, room);
    return PLAN_GOOD;
}

int plan_picture(const struct plan_job *job, const struct plan_options *opt,
                 FILE *stream)
{
    const struct draw_room room = draw_room_of(opt->svg, "", stream);
    int *host = draw_hosts(job->mesh, opt->cluster, job->per_host);
    int status = PLAN_BAD;
    struct picture pic;

    picture_init(&pic);
    if (host)
        status = picture_draw(&pic, job, opt, host, room);
    if (!host || (status == PLAN_GOOD &&
                  draw_write(&pic, opt->svg, "dtensor-plan", "", stream))) {
        fprintf(stderr, "%s: out of memory\n", plan_program);
        status = PLAN_BAD;
    }
    picture_fini(&pic);
    free(host);
    return status;
}
