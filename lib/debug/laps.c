/* laps.c - how long the device works on an activity
 *
 * An activity enqueues work, and the device does it later, in the order of its
 * queue.  A lap is two points in that queue: one enqueued when the activity
 * begins and one when it ends.  Between them the device does the work of the
 * activity; if it was idle before, the lap also includes its wait for this
 * work.  The CPU does not wait for the points.  Their times are read when no
 * free lap is left, when the program asks for the counters, and at the end.
 *
 * The origin relates the clock of the device to that of the CPU.  It is a point
 * that the device passes while it is idle, at a time that the CPU knows.
 */
#include "base/error.h"
#include "base/wait.h"
#include "debug/counters.h"
#include "device/memory.h"

#include <stdlib.h>

/* ------------------------------------------------------- open and close --- */

static void lap_put(struct dtn_counters *counters, int lap)
{
    counters->laps[lap].next = counters->lap_free;
    counters->lap_free = lap;
}

static bool points_create(struct dtn_counters *counters)
{
    const struct dtn_memory *device = counters->device;

    for (int i = DTN_LAPS - 1; i >= 0; i--) {
        struct dtn_lap *lap = &counters->laps[i];

        if (device->ops->clock->create(device, &lap->begin) != 0 ||
            device->ops->clock->create(device, &lap->end) != 0)
            return false;
        lap_put(counters, i);
    }
    return device->ops->clock->create(device, &counters->origin) == 0;
}

/* The device is idle, so that it passes the origin at once. */
static bool origin_note(struct dtn_counters *counters)
{
    const struct dtn_memory *device = counters->device;

    if (device->ops->settle(device, true) != 0 ||
        device->ops->clock->note(device, counters->origin) != 0)
        return false;
    counters->origin_ns = dtn_now_ns();
    return true;
}

void dtn_laps_open(struct dtn_counters *counters)
{
    const struct dtn_memory *device = counters->ctx->device;

    counters->lap_free = counters->lap_first = counters->lap_last = -1;
    if (!device || !device->ops->clock)
        return;
    counters->device = device;
    counters->laps = calloc(DTN_LAPS, sizeof counters->laps[0]);
    if (!counters->laps || !points_create(counters) || !origin_note(counters))
        dtn_laps_close(counters);
}

void dtn_laps_close(struct dtn_counters *counters)
{
    const struct dtn_memory *device = counters->device;

    for (int i = counters->lap_first; i >= 0; i = counters->laps[i].next)
        counters->laps_lost++;
    for (int i = 0; counters->laps && i < DTN_LAPS; i++) {
        if (counters->laps[i].begin)
            device->ops->clock->destroy(device, counters->laps[i].begin);
        if (counters->laps[i].end)
            device->ops->clock->destroy(device, counters->laps[i].end);
    }
    if (counters->origin)
        device->ops->clock->destroy(device, counters->origin);
    free(counters->laps);
    counters->laps = NULL;
    counters->origin = NULL;
    counters->device = NULL;
    counters->lap_first = -1;
}

/* ------------------------------------------------------- begin and end --- */

int dtn_lap_begin(struct dtn_counters *counters)
{
    const struct dtn_memory *device = counters->device;
    const int lap = counters->lap_free;

    if (!device)
        return -1;
    if (lap < 0) {
        dtn_laps_read(counters, false);
        counters->laps_lost += counters->lap_free < 0;
        return counters->lap_free < 0 ? -1 : dtn_lap_begin(counters);
    }
    if (device->ops->clock->note(device, counters->laps[lap].begin) != 0)
        return -1;
    counters->lap_free = counters->laps[lap].next;
    counters->laps[lap].given = device->given;
    return lap;
}

void dtn_lap_end(struct dtn_counters *counters, const struct dtn_open *open)
{
    const struct dtn_memory *device = counters->device;
    struct dtn_lap *lap;

    if (!device || open->lap < 0)
        return;
    lap = &counters->laps[open->lap];
    if (lap->given == device->given ||
        device->ops->clock->note(device, lap->end) != 0) {
        lap_put(counters, open->lap);
        return;
    }
    lap->open = *open;
    lap->scope = counters->scope;
    lap->direction = counters->direction;
    lap->next = -1;
    if (counters->lap_last >= 0)
        counters->laps[counters->lap_last].next = open->lap;
    else
        counters->lap_first = open->lap;
    counters->lap_last = open->lap;
}

/* -------------------------------------------------------------- reading --- */

static void lap_trace(struct dtn_counters *counters, const struct dtn_lap *lap,
                      int64_t ns)
{
    const struct dtn_memory *device = counters->device;
    const int line = lap->open.line;
    int64_t at_ns;

    if (lap->open.event &&
        device->ops->clock->between(device, counters->origin, lap->begin,
                                   &at_ns) == 0)
        dtn_trace_add(counters, &(struct dtn_event){
            .ns = counters->origin_ns + at_ns, .long_ns = ns,
            .what = line >= 0 ? line : -1 - lap->scope,
            .kind = DTN_EVENT_DEVICE });
}

static void lap_add(struct dtn_counters *counters, const struct dtn_lap *lap,
                    int64_t ns)
{
    struct dtn_side_counts *side =
        &counters->scopes[lap->scope].side[lap->direction];
    const struct dtn_open *open = &lap->open;

    if (open->what >= 0)
        side->kind[open->what].device_ns += ns;
    if (open->kind <= DTN_WATCHED_BACKWARD)
        side->device_ns += ns;
    if (open->line >= 0)
        counters->lines[open->line].count.device_ns += ns;
    lap_trace(counters, lap, ns);
}

/* The first that ended is free again. */
static void lap_done(struct dtn_counters *counters)
{
    const int first = counters->lap_first;

    counters->lap_first = counters->laps[first].next;
    if (counters->lap_first < 0)
        counters->lap_last = -1;
    lap_put(counters, first);
}

/* Two queues of a device are not in one order: no time is less than none. */
void dtn_laps_read(struct dtn_counters *counters, bool waits)
{
    const struct dtn_memory *device = counters->device;
    int64_t ns;
    int rc;

    if (device && waits)
        device->ops->settle(device, true);
    while (device && counters->lap_first >= 0) {
        struct dtn_lap *lap = &counters->laps[counters->lap_first];

        rc = device->ops->clock->between(device, lap->begin, lap->end, &ns);
        if (rc == DTENSOR_EAGAIN)
            return;
        counters->laps_lost += rc != 0;
        if (rc == 0)
            lap_add(counters, lap, ns > 0 ? ns : 0);
        lap_done(counters);
    }
}

const struct dtn_counters *dtn_counters_asked(const struct dtensor_ctx *ctx,
                                              const char *what,
                                              struct dtensor_error *err)
{
    struct dtn_counters *counters = ctx ? dtn_counters_of(ctx) : NULL;

    if (counters)
        dtn_laps_read(counters, false);
    else
        dtn_fail(err, DTENSOR_EINVAL, "%s: nothing was counted (call "
                 "dtensor_debug_begin() first)", what);
    return counters;
}
