/* slurm.c - settings of Slurm that jobs of the library depend on
 *
 * They are what "scontrol show config" prints, a line "Name = value" for each.
 */
#include "tools/conf/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* The value of a setting, cut; "" if there is none. */
static char *setting(const char *config, const char *name, char *buf,
                     size_t size)
{
    const size_t length = strlen(name);

    buf[0] = '\0';
    for (const char *line = config; *line; line += strcspn(line, "\n"),
         line += *line == '\n') {
        const char *value = line + length;

        if (strncmp(line, name, length) != 0 || !strchr(" =", *value))
            continue;
        value += strspn(value, " =");
        snprintf(buf, size, "%.*s", (int)strcspn(value, "\n"), value);
        break;
    }
    return buf;
}

static bool memlock_excepted(const char *config)
{
    char except[200], propagated[200];

    setting(config, "PropagateResourceLimitsExcept", except, sizeof except);
    setting(config, "PropagateResourceLimits", propagated, sizeof propagated);
    return strstr(except, "MEMLOCK") || strcmp(propagated, "NONE") == 0;
}

static void judge(struct doctor *doctor, const char *config)
{
    char value[200];

    if (memlock_excepted(config))
        doctor_say(doctor, DOCTOR_OK, "slurm", NULL, "tasks get the memlock "
                   "limit of their node");
    else
        doctor_say(doctor, DOCTOR_NOTE, "slurm", "PropagateResourceLimitsExcept"
                   "=MEMLOCK in slurm.conf, or srun --propagate=NONE", "tasks "
                   "get the memlock limit of the shell that calls sbatch");
    if (strcmp(setting(config, "KillOnBadExit", value, sizeof value), "1") == 0)
        doctor_say(doctor, DOCTOR_OK, "slurm", NULL, "a task that fails ends "
                   "its step");
    else
        doctor_say(doctor, DOCTOR_NOTE, "slurm", "srun --kill-on-bad-exit=1, or "
                   "KillOnBadExit=1 in slurm.conf", "a task that fails leaves "
                   "its step running");
    setting(config, "TaskPlugin", value, sizeof value);
    if (strstr(value, "affinity") || strstr(value, "cgroup"))
        doctor_say(doctor, DOCTOR_OK, "slurm", NULL, "tasks are bound to their "
                   "CPUs by %s", value);
    else
        doctor_say(doctor, DOCTOR_NOTE, "slurm", "TaskPlugin=task/affinity,task/"
                   "cgroup in slurm.conf, or cpus in [nodes]", "tasks are not "
                   "bound to CPUs (TaskPlugin=%s)", value);
}

/* All that a command prints; NULL: it failed. */
static char *output_of(const char *command)
{
    char *text = NULL, line[4096];
    size_t size = 0, got;
    FILE *in = popen(command, "r"), *out = open_memstream(&text, &size);
    int status;

    while (in && out && (got = fread(line, 1, sizeof line, in)) > 0)
        fwrite(line, 1, got, out);
    status = in ? pclose(in) : -1;
    if (out)
        fclose(out);
    if (status == 0)
        return text;
    free(text);
    return NULL;
}

void doctor_slurm(struct doctor *doctor)
{
    const bool told = getenv("SLURM_JOB_ID") != NULL;
    char *config;

    if (system("command -v scontrol >/dev/null 2>&1") != 0) {
        doctor_say(doctor, told ? DOCTOR_BAD : DOCTOR_OK, "slurm", "unset it, "
                   "or put Slurm's commands in PATH", "scontrol is not found%s",
                   told ? ", but SLURM_JOB_ID is set" : ", so there is no Slurm "
                   "here");
        return;
    }
    config = output_of("scontrol show config 2>/dev/null");
    if (config)
        judge(doctor, config);
    else
        doctor_say(doctor, told ? DOCTOR_BAD : DOCTOR_NOTE, "slurm",
                   "see scontrol ping, and is slurm.conf readable?",
                   "scontrol show config fails");
    free(config);
}
