/* job.h - the ranks of a simulated job: their cluster file and environment */
#ifndef TESTS_SIM_JOB_H
#define TESTS_SIM_JOB_H

#include <stdbool.h>

struct sim_options;
struct sim_result;

extern struct sim_job {
    int hosts, per_host, n;       /* ranks of a host, of all                  */
    bool shm;                     /* ranks of a host talk over shm, not tcp   */
    char path[64];                /* of the cluster file                      */
} sim_job;

/* Hosts, ranks and shm are set: write the file.  The caller unlinks it. */
void sim_job_write(void);

/* Run such a job with what `options` has of it: programs, end and faults.  Its
 * seed is 1, and it has a minute.
 */
void sim_job_play(int hosts, int per_host, struct sim_options *options,
                  struct sim_result *result);

const char *sim_job_env(int rank, const char *name);

/* The uppermost host of which news reaches this rank along the tree of the
 * leaders of hosts, through those between them.  Behind a lost leader a rank
 * hears only of the ranks of its host.
 */
int sim_job_part(int rank);

/* Are the leaders of all other hosts lost? */
bool sim_job_alone(int host);

#endif
