/* job.h - the ranks of a simulated job: their cluster file and environment */
#ifndef TESTS_SIM_JOB_H
#define TESTS_SIM_JOB_H

extern struct sim_job {
    int hosts, per_host, n;       /* ranks of a host, of all                  */
    char path[64];                /* of the cluster file                      */
} sim_job;

/* Hosts and ranks are set: write the file.  It is the caller's to unlink. */
void sim_job_write(void);

const char *sim_job_env(int rank, const char *name);

#endif
