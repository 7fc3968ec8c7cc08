/* settings.h - what a cluster file makes a job and a plan do, as text
 *
 * Each of these takes the path of a cluster file and writes what it saw to
 * `said`.  An error is text, too.
 */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "tests/cluster/said.h"

typedef void look_f(const char *path, char said[SAID]);

/* What reading the file reports, its ranks and its hosts. */
look_f look_read;

/* Without ranks: the meshes; a module "up" cut by [plan "a"]; a redistribution
 * and its cost; which algorithm each collective takes; the nanoseconds that are
 * predicted for one call.
 */
look_f look_meshes, look_parallel, look_plan, look_ways, look_allreduce_ns,
       look_allgather_ns, look_all_to_all_ns;

/* A job of all ranks of the file, with what they log.  In look_started rank 1
 * starts late, in look_called it calls late.
 */
look_f look_job, look_started, look_called;

/* The attributes that a queue pair would get. */
look_f look_queue;

#endif
