/* topology.c - the links between hosts, and which of them a message takes
 *
 * A level is a set of like links, a route is a list of links.  With 4 ranks on
 * 4 hosts of one port links 0 to 3 are the memories of the ranks, 4 to 7 leave
 * the ports and 8 to 11 enter them; a message from host 1 to host 3 takes links
 * 5 and 11, and links between switches after 5, if there are any.
 */
#include "sched/play/topology.h"
#include "base/error.h"
#include "base/units.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* From one switch to the next and through it.  An estimate. */
#define INNER_LATENCY_NS 150.0

/* -------------------------------------------------------------- reading --- */

/* "32/16x64" into sizes and links; false: it is not so. */
static bool sizes_read(const char *text, struct dtn_topology *topology)
{
    char *end = (char *)(uintptr_t)text;

    do {
        long size = strtol(text, &end, 10), links = 0;
        bool slash = end != text && *end == '/';

        if (slash) {
            text = end + 1;
            links = strtol(text, &end, 10);
        }
        if (end == text || size < 1 || size > 1 << 20 || links < slash
            || links > 1 << 20 || topology->nsizes == DTN_SIZES_MAX)
            return false;
        topology->size[topology->nsizes] = (int)size;
        topology->links[topology->nsizes++] = (int)links;
        text = end + 1;
    } while (*end == 'x');
    return *end == '\0';
}

/* "bandwidth=25G" or "latency=150" */
static int option_read(const char *text, const char *option,
                       struct dtn_topology *topology, struct dtensor_error *err)
{
    uint64_t number;

    if (strncmp(option, "bandwidth=", 10) == 0
        && dtn_parse_size(option + 10, &number)) {
        if (number == 0)
            return dtn_fail(err, DTENSOR_EINVAL, "topology \"%s\": a bandwidth "
                            "of 0 (expected bytes per second, such as 25G)",
                            text);
        topology->inner_byte_ns = 1e9 / (double)number;
        return 0;
    }
    if (strncmp(option, "latency=", 8) == 0
        && dtn_parse_u64(option + 8, false, 1000000000, &number)) {
        topology->inner_latency_ns = (double)number;
        return 0;
    }
    return dtn_fail(err, DTENSOR_EINVAL, "topology \"%s\": \"%s\" (expected "
                    "bandwidth=SIZE per second or latency=NANOSECONDS)", text,
                    option);
}

static int kind_find(const char *text, const char *name,
                     struct dtn_topology *topology, struct dtensor_error *err)
{
    const struct dtn_topology_kind *kind = dtn_topology_kinds;

    while (kind->name && strcmp(kind->name, name) != 0)
        kind++;
    if (!kind->name)
        return dtn_fail(err, DTENSOR_EINVAL, "topology \"%s\": no such kind "
                        "(expected %s, %s or %s)", text,
                        dtn_topology_kinds[0].form, dtn_topology_kinds[1].form,
                        dtn_topology_kinds[2].form);
    topology->kind = kind;
    return 0;
}

/* Kind, sizes and options; text is copied, since it is cut. */
static int text_read(const char *text, char *copy,
                     struct dtn_topology *topology, struct dtensor_error *err)
{
    char *rest, *name = strtok_r(copy, ",", &rest), *option;
    char *sizes = name ? strchr(name, ':') : NULL;
    int rc;

    if (sizes)
        *sizes++ = '\0';
    rc = kind_find(text, name ? name : "", topology, err);
    if (rc != 0)
        return rc;
    if ((sizes && !sizes_read(sizes, topology))
        || topology->nsizes < topology->kind->sizes_min
        || topology->nsizes > topology->kind->sizes_max)
        return dtn_fail(err, DTENSOR_EINVAL, "topology \"%s\": wrong sizes "
                        "(expected %s, each from 1 to 1048576)", text,
                        topology->kind->form);
    while (rc == 0 && (option = strtok_r(NULL, ",", &rest)))
        rc = option_read(text, option, topology, err);
    return rc;
}

/* ---------------------------------------------------------------- ports --- */

static void ports_add(struct dtn_topology *topology, int hosts,
                      const struct dtn_play_machine *machine)
{
    const struct dtn_play_wire *far = &machine->far;

    dtn_level_add(topology, (struct dtn_level){
        .name = "memory", .count = machine->ranks,
        .latency_ns = machine->near.latency_ns,
        .byte_ns = machine->near.byte_ns });
    dtn_level_add(topology, (struct dtn_level){
        .name = "out", .count = hosts * topology->rails,
        .latency_ns = far->latency_ns, .gap_ns = far->gap_ns,
        .byte_ns = far->byte_ns });
    dtn_level_add(topology, (struct dtn_level){
        .name = "in", .count = hosts * topology->rails,
        .gap_ns = far->gap_ns, .byte_ns = far->byte_ns });
}

int dtn_topology_read(const char *text, int hosts,
                      const struct dtn_play_machine *machine,
                      struct dtn_topology *topology, struct dtensor_error *err)
{
    struct dtn_topology made = { .hosts = hosts, .rails = machine->rails,
                                 .inner_latency_ns = INNER_LATENCY_NS,
                                 .inner_byte_ns = machine->far.byte_ns };
    char *copy = strdup(text ? text : "flat");
    int rc;

    if (!copy)
        return dtn_fail_nomem(err, "topology", strlen(text ? text : "flat"));
    rc = text_read(text ? text : "flat", copy, &made, err);
    free(copy);
    if (rc != 0)
        return rc;
    ports_add(&made, hosts, machine);
    if (made.kind->make(&made) != 0)
        return dtn_fail(err, DTENSOR_EINVAL, "topology \"%s\": too large (at "
                        "most 1048576 hosts)", text);
    if (made.hosts < hosts)
        return dtn_fail(err, DTENSOR_EINVAL, "topology \"%s\": holds %d hosts, "
                        "the cluster has %d (enlarge the topology)", text,
                        made.hosts, hosts);
    *topology = made;
    return 0;
}

/* ---------------------------------------------------------------- links --- */

/* "up1:3": its link is down from now on. */
static int link_fail(const char *word, struct dtn_topology *topology,
                     struct dtensor_error *err)
{
    const size_t n = strcspn(word, ":");
    uint64_t number;

    for (int l = DTN_LEVEL_OUT; l < topology->nlevels; l++) {
        const struct dtn_level *level = &topology->level[l];

        if (strlen(level->name) != n || strncmp(level->name, word, n) != 0
            || word[n] != ':')
            continue;
        if (!dtn_parse_u64(word + n + 1, false, INT32_MAX, &number)
            || number >= (uint64_t)level->count)
            return dtn_fail(err, DTENSOR_EINVAL, "failed link \"%s\": expected "
                            "a number from 0 to %d", word, level->count - 1);
        if (topology->nfailed == DTN_FAILED_MAX)
            return dtn_fail(err, DTENSOR_EINVAL, "failed link \"%s\": more "
                            "than %d links", word, DTN_FAILED_MAX);
        topology->failed[topology->nfailed++] =
            (uint32_t)level->first + (uint32_t)number;
        return 0;
    }
    return dtn_fail(err, DTENSOR_EINVAL, "failed link \"%s\": no such kind of "
                    "link in this topology (expected KIND:NUMBER, such as "
                    "out:0%s%s)", word, topology->nlevels > DTN_LEVEL_INNER
                    ? " or a link between switches, " : "",
                    topology->nlevels > DTN_LEVEL_INNER
                    ? topology->level[DTN_LEVEL_INNER].name : "");
}

int dtn_topology_fail(const char *text, struct dtn_topology *topology,
                      struct dtensor_error *err)
{
    char *copy = text ? strdup(text) : NULL, *rest;
    int rc = 0;

    if (!text)
        return 0;
    if (!copy)
        return dtn_fail_nomem(err, "topology", strlen(text));
    for (char *word = strtok_r(copy, ",", &rest); word && rc == 0;
         word = strtok_r(NULL, ",", &rest))
        rc = link_fail(word, topology, err);
    free(copy);
    return rc;
}

int dtn_topology_route(const struct dtn_topology *topology, int from, int to,
                       uint32_t path[DTN_ROUTE_MAX])
{
    int n;

    path[0] = dtn_topology_link(topology, DTN_LEVEL_OUT, from);
    n = topology->kind->route(topology, from / topology->rails,
                              to / topology->rails, path + 1);
    if (n < 0)
        return -1;
    path[n + 1] = dtn_topology_link(topology, DTN_LEVEL_IN, to);
    return dtn_topology_down(topology, path[0])
        || dtn_topology_down(topology, path[n + 1]) ? -1 : n + 2;
}
