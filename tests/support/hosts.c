/* hosts.c - ranks on several hosts, which are addresses of the loopback */
#include "base/seal.h"
#include "tests/support/hosts.h"
#include "tests/support/port.h"
#include "tests/support/ranks.h"

#include <stdio.h>

/* A rank has its own number, so the first call is before the fork. */
int hosts_port(void)
{
    static int port;

    if (port == 0)
        port = port_own();
    return port;
}

void hosts_write(const struct hosts *hosts, const char *path,
                 const char *cluster, const char *transport)
{
    FILE *file = fopen(path, "w");

    if (!file)
        exit(99);
    fprintf(file, "[cluster]\nversion = 1\nauth = %s\n%s",
            dtn_seal_present() ? "key" : "none", cluster);
    for (int h = 0; h < hosts->n; h++)
        fprintf(file, "[nodes \"n%d\"]\nhosts = h%d\naddresses = 127.0.0.%d\n"
                "ranks = %d\n", h, h, h + 2, hosts->ranks[h]);
    fprintf(file, "[transport]\ninter_node = tcp\nconnect_timeout = 20s\n"
            "port = %d\n%s", hosts_port(), transport);
    fclose(file);
}

int hosts_be(const struct hosts *hosts, int rank)
{
    char host[16];
    int h = 0, local = rank;

    for (; local >= hosts->ranks[h]; h++)
        local -= hosts->ranks[h];
    snprintf(host, sizeof host, "h%d", h);
    setenv("DTN_HOST", host, 1);
    ranks_setenv("DTN_LOCAL_RANK", local);
    ranks_setenv("DTN_LOCAL_SIZE", hosts->ranks[h]);
    return hosts->ranks[h];
}
