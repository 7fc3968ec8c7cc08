/* doctor.c - every check that a new cluster needs, a line for each
 *
 *     ok    names     2 hosts resolve; this is n1, 10.0.0.1
 *     bad   memlock   8.0 MiB may be locked: set ulimit -l unlimited ...
 *
 * A check says what it found and, unless that is good, what to do.
 */
#include "tools/conf/conf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void (*const checks[])(struct doctor *) = {
    doctor_names, doctor_ports, doctor_key, doctor_memlock, doctor_limits,
    doctor_devices, doctor_mtu, doctor_gpu, doctor_slurm
};

void doctor_say(struct doctor *doctor, enum verdict verdict, const char *what,
                const char *remedy, const char *format, ...)
{
    static const char *const words[] = { "ok", "note", "bad" };
    va_list args;

    printf("%-4s  %-8s  ", words[verdict], what);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    if (remedy && verdict != DOCTOR_OK)
        printf(": %s", remedy);
    putchar('\n');
    doctor->nbad += verdict == DOCTOR_BAD;
}

/* The port that the file names, from its canonical text; -1 stands for none. */
static int port_of(const struct dtensor_cluster *cluster)
{
    char *text = NULL, *line;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    int port = 0;

    if (!stream)
        return 0;
    dtensor_cluster_show(cluster, DTENSOR_SHOW_DIGEST, -1, stream, NULL);
    fclose(stream);
    line = text ? strstr(text, "[transport] port = ") : NULL;
    if (line)
        port = atoi(strrchr(strtok(line, "\n"), ' '));
    free(text);
    return port > 0 ? port : 0;
}

static char *devices_text(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    struct dtensor_error err;

    if (!stream)
        return NULL;
    if (dtensor_devices_show(stream, &err) != 0)
        fprintf(stream, "%s\n", err.text);
    fclose(stream);
    return text;
}

bool conf_doctor(const struct dtensor_cluster *cluster)
{
    struct doctor doctor = { .cluster = cluster, .devices = devices_text() };

    if (cluster) {
        dtensor_cluster_info(cluster, &doctor.info);
        doctor.port = port_of(cluster);
    }
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        checks[i](&doctor);
    free(doctor.devices);
    return doctor.nbad == 0;
}
