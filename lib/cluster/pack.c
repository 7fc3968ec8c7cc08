/* pack.c - names of hosts in one piece of memory
 *
 * An allocation has at least 32 bytes, and most names fewer than ten.  Of
 * 16,384 hosts n0 to n16383, with addresses like their names, 1 MiB becomes
 * 105 KiB.
 */
#include "cluster/pack.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <stdlib.h>
#include <string.h>

static size_t host_bytes(const struct dtn_host *host)
{
    return strlen(host->name) + 1
         + (host->address == host->name ? 0 : strlen(host->address) + 1);
}

/* Copy the text to *at, and move on behind it. */
static char *pack_text(char **at, char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = memcpy(*at, text, size);

    *at += size;
    return copy;
}

bool dtn_cluster_pack(struct dtensor_cluster *cluster)
{
    size_t bytes = 0;
    char *at;

    for (int h = 0; h < cluster->nhosts; h++)
        bytes += host_bytes(&cluster->hosts[h]);
    cluster->names = at = malloc(bytes + 1);
    for (int h = 0; at && h < cluster->nhosts; h++) {
        struct dtn_host *host = &cluster->hosts[h];
        char *name = host->name, *address = host->address;

        host->name = pack_text(&at, name);
        host->address = address == name ? host->name : pack_text(&at, address);
        if (address != name)
            free(address);
        free(name);
    }
    return cluster->names != NULL;
}
