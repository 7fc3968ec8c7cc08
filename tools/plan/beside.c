/* beside.c - what else runs while a collective or redistribute is simulated
 *
 *   --beside "allreduce:64M:ring broadcast:1M@50 S(0)>R:4096x4096"
 *
 * Three words: a ring at the same time, a broadcast that begins 50 us later,
 * and a redistribute; all over the same mesh.
 */
#include "tools/plan/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "@50" at the end of a word, which is cut off there; in ns, -1: no number. */
static double beside_start(char *word)
{
    char *at = strrchr(word, '@'), *end;
    double us;

    if (!at)
        return 0;
    us = strtod(at + 1, &end);
    if (end == at + 1 || *end || !isfinite(us) || us < 0)
        return -1;
    *at = '\0';
    return us * 1e3;
}

/* "allreduce:64M:ring" */
static int beside_call(const struct plan_options *opt,
                       const struct plan_job *job, char *word,
                       struct plan_beside *one)
{
    char *size = strchr(word, ':');
    char *algorithm = size ? strchr(size + 1, ':') : NULL;
    uint64_t bytes;

    if (size)
        *size++ = '\0';
    if (algorithm)
        *algorithm++ = '\0';
    if (plan_collective(word) < 0 || (!size && strcmp(word, "barrier") != 0))
        return plan_usage("--beside \"%s\": expected COLLECTIVE:SIZE, such as "
                          "allreduce:1M", word);
    one->asked.mesh = job->mesh;
    one->asked.call = &one->call;
    one->asked.algorithm = algorithm;
    return plan_call(opt, job->mesh, word, size, &one->call, &bytes);
}

/* "S(0),R>R,S(1):8192x8192"; a placement may have a ':', too. */
static int beside_plan(const struct plan_options *opt,
                       const struct plan_job *job, char *word,
                       struct plan_beside *one)
{
    char *to = strchr(word, '>'), *shape = strrchr(to, ':');
    struct plan_options asked = *opt;
    int status;

    if (!shape)
        return plan_usage("--beside \"%s\": expected FROM>TO:SHAPE, such as "
                          "S(0)>R:4096x4096", word);
    *to++ = *shape++ = '\0';
    asked.from = word;
    asked.to = to;
    asked.shape = shape;
    asked.route = "auto";
    status = plan_redistribute(&asked, job->mesh, &one->plan);
    one->asked.plan = one->plan;
    return status;
}

static int beside_word(const struct plan_options *opt, struct plan_job *job,
                       char *word)
{
    struct plan_beside *one = &job->beside[job->nbeside];

    if (job->nbeside == PLAN_BESIDE_MAX)
        return plan_usage("--beside: more than %d words", PLAN_BESIDE_MAX);
    job->nbeside++;
    one->asked.start_ns = beside_start(word);
    if (one->asked.start_ns < 0)
        return plan_usage("--beside \"%s\": expected a number of us after @",
                          word);
    return strchr(word, '>') ? beside_plan(opt, job, word, one)
                             : beside_call(opt, job, word, one);
}

int plan_beside_open(const struct plan_options *opt, struct plan_job *job)
{
    int status = PLAN_GOOD;
    char *word, *rest;

    if (!opt->beside)
        return PLAN_GOOD;
    job->beside_text = strdup(opt->beside);
    if (!job->beside_text)
        return plan_usage("--beside: out of memory");
    for (word = strtok_r(job->beside_text, " ", &rest);
         word && status == PLAN_GOOD; word = strtok_r(NULL, " ", &rest))
        status = beside_word(opt, job, word);
    if (status == PLAN_GOOD && job->nbeside == 0)
        return plan_usage("--beside \"%s\": expected calls such as "
                          "\"allreduce:1M broadcast:64K@50\"", opt->beside);
    return status;
}

void plan_beside_close(struct plan_job *job)
{
    for (int i = 0; i < job->nbeside; i++)
        dtensor_plan_destroy(job->beside[i].plan);
    free(job->beside_text);
}
