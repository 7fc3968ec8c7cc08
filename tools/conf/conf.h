/* conf.h - the parts of dtensor-conf */
#ifndef DTN_TOOLS_CONF_H
#define DTN_TOOLS_CONF_H

#include "dtensor.h"

#include <stdbool.h>

/* The file of --template. */
extern const char conf_template[];

/* --env: each variable that library and tools read, its value or default. */
void conf_env(void);

/* --topology: NUMA nodes, CPUs, GPUs and network cards of this machine, and the
 * way from each GPU to each card.  Returns false if that is not known: says why
 * on standard error.
 */
bool conf_topology(void);

/* What the checks of --doctor know. */
struct doctor {
    const struct dtensor_cluster *cluster;     /* NULL: without a file        */
    struct dtensor_cluster_info info;          /* of it; all 0 without        */
    char *devices;                 /* what --show devices says                */
    int port;                      /* [transport] port; 0: by the job         */
    int nbad;                      /* lines that began with "bad"             */
};

/* How a check ends: what it found will do, may be slow or fail, will fail. */
enum verdict { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_BAD };

/* One line: the verdict, what was checked, the fact, and what to do. */
void doctor_say(struct doctor *doctor, enum verdict verdict, const char *what,
                const char *remedy, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* --doctor: run every check.  Returns whether none is bad. */
bool conf_doctor(const struct dtensor_cluster *cluster);

/* The checks, by what they ask. */
void doctor_names(struct doctor *doctor);
void doctor_ports(struct doctor *doctor);
void doctor_key(struct doctor *doctor);
void doctor_memlock(struct doctor *doctor);
void doctor_limits(struct doctor *doctor);
void doctor_devices(struct doctor *doctor);
void doctor_mtu(struct doctor *doctor);
void doctor_gpu(struct doctor *doctor);
void doctor_slurm(struct doctor *doctor);

#endif
