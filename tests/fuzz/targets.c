/* targets.c - the list of targets, and their one entry for libFuzzer
 *
 * libFuzzer knows one function of a program; DTN_FUZZ=NAME says which target it
 * runs.
 */
#include "tests/fuzz/targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct fuzz_target fuzz_targets[] = {
    { "cluster", fuzz_cluster },
    { "hosts", fuzz_hosts },
    { "placements", fuzz_placements },
    { "styles", fuzz_styles },
    { "strangers", fuzz_strangers },
    { "members", fuzz_members },
    { "sealed", fuzz_sealed },
    { "news", fuzz_news },
    { "stream", fuzz_stream },
    { "baseline", fuzz_baseline },
    { NULL, NULL }
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct fuzz_target *target;
    const char *name = getenv("DTN_FUZZ");

    for (size_t i = 0; !target && name && fuzz_targets[i].name; i++)
        if (strcmp(fuzz_targets[i].name, name) == 0)
            target = &fuzz_targets[i];
    if (!target) {
        fprintf(stderr, "DTN_FUZZ=NAME must say which target\n");
        exit(2);
    }
    target->run(data, size);
    return 0;
}
