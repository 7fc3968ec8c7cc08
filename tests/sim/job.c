/* job.c - the ranks of a simulated job: their cluster file and environment */
#include "tests/sim/job.h"
#include "tests/sim/sim.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sim_job sim_job;

const char *sim_job_env(int rank, const char *name)
{
    static char text[32];
    const char *host = "";
    int value;

    if (strcmp(name, "DTN_HOST") == 0)
        host = "n", value = 1 + rank / sim_job.per_host;
    else if (strcmp(name, "DTN_RANK") == 0)
        value = rank;
    else if (strcmp(name, "DTN_WORLD_SIZE") == 0)
        value = sim_job.n;
    else if (strcmp(name, "DTN_LOCAL_RANK") == 0)
        value = rank % sim_job.per_host;
    else if (strcmp(name, "DTN_LOCAL_SIZE") == 0)
        value = sim_job.per_host;
    else if (strcmp(name, "DTN_JOB") == 0)
        return "simulated";
    else if (strcmp(name, "DTN_LOG") == 0)
        return getenv("DTN_SIM_LOG") ? "debug" : "off";
    else
        return NULL;
    snprintf(text, sizeof text, "%s%d", host, value);
    return text;
}

void sim_job_write(void)
{
    FILE *file;

    snprintf(sim_job.path, sizeof sim_job.path, "simulation-%d-%dx%d.ini",
             (int)getpid(), sim_job.hosts, sim_job.per_host);
    file = fopen(sim_job.path, "w");
    if (!file)
        exit(99);
    fprintf(file, "[cluster]\nversion = 1\nauth = none\n[nodes \"all\"]\n"
            "hosts = n[1-%d]\naddresses = 127.0.0.[1-%d]\nranks = %d\n"
            "hca = none\n[transport]\nintra_node = %s\ninter_node = tcp\n"
            "connect_timeout = 8s\nop_timeout = 6s\narena = 16M\n"
            "heartbeat = 100ms\ndead_after = 1s\n",
            sim_job.hosts, sim_job.hosts, sim_job.per_host,
            sim_job.shm ? "shm" : "tcp");
    fclose(file);
}

void sim_job_play(int hosts, int per_host, struct sim_options *options,
                  struct sim_result *result)
{
    options->seed = 1;
    options->latency_ns = 100000;
    options->limit_ns = INT64_C(60000000000);
    options->env = sim_job_env;
    options->nranks = hosts * per_host;
    options->ranks_per_host = per_host;
    sim_job.hosts = hosts;
    sim_job.per_host = per_host;
    sim_job.n = hosts * per_host;
    sim_job_write();
    sim_run(options, result);
    unlink(sim_job.path);
}

static bool leader_lost(int host)
{
    return sim_lost(host * sim_job.per_host);
}

int sim_job_part(int rank)
{
    int host = rank / sim_job.per_host;

    while (!leader_lost(host) && host > 0 && !leader_lost((host - 1) / 2))
        host = (host - 1) / 2;
    return host;
}

bool sim_job_alone(int host)
{
    for (int h = 0; h < sim_job.hosts; h++)
        if (h != host && !leader_lost(h))
            return false;
    return sim_job.hosts > 1;
}
