/* test_corpora.c - what reads bytes of others, on the corpora and on mutants
 *
 * Each target of targets.h runs on the files of its folder in corpus, then for
 * a short time on files that were changed in one to four places, with the seed
 * it prints (or that of DTN_TEST_SEED).  It must not abort, crash or leak.
 * `make fuzz` runs the same functions under libFuzzer.
 *
 *     test_corpora [NAME [MS]]   that target only, for so long
 *
 * Without this test, a damaged file, a port scan or a member with another
 * version could crash every rank of a job, or be refused without a word.
 */
#include "base/compiler.h"
#include "base/wait.h"
#include "tests/fuzz/targets.h"
#include "tests/support/tap.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SEEDS = 64, ROOM = 64 << 10, CHANGES = 4, TIME_MS = 250 };

struct seed {
    uint8_t *bytes;
    size_t size;
};

static uint64_t state;

/* splitmix64 */
static uint64_t random_next(void)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static size_t below(size_t n)
{
    return (size_t)(random_next() % n);
}

/* What a file may hold where it hurts. */
static const char *const pieces[] = {
    "[", "]", "[mesh \"x\"]\n", "[nodes \"y\"]\n", "\"", "=", ":", ";", " #",
    "-", ",", "|", "@step", "localhost", "0", "1-", "[1-3]", "[9-1]", "inf",
    "999999999999999999999", "parent = world\n", "select = dp=0\n", "\n", "\r",
    "\t", "\xef\xbb\xbf", "\xc3", "hosts = n[1-65536]\n", "dims = a=1, b=1\n",
    "ranks = 0-7:2\n", "[[", "(x3)", "shard(9)", "*", "..", "K", "min"
};

/* Change `text` of n bytes, with room for 64 more, in one place. */
static size_t mutate(char *text, size_t n)
{
    const char *piece = pieces[below(DTN_COUNT(pieces))];
    size_t at = below(n), length = strlen(piece), count = 1 + below(12);

    switch (below(4)) {
    case 0:                                            /* another byte       */
        text[at] = (char)random_next();
        return n;
    case 1:                                            /* some bytes fewer   */
        count = count < n - at ? count : n - at;
        memmove(text + at, text + at + count, n - at - count);
        return n - count ? n - count : 1;
    case 2:                                            /* a piece over it    */
        length = length < n - at ? length : n - at;
        memcpy(text + at, piece, length);
        return n;
    default:                                           /* a piece more       */
        memmove(text + at + length, text + at, n - at);
        memcpy(text + at, piece, length);
        return n + length;
    }
}

/* ------------------------------------------------------------- corpora --- */

static bool seed_read(const char *folder, const char *name, struct seed *seed)
{
    char path[4400];
    FILE *stream;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    stream = name[0] == '.' ? NULL : fopen(path, "rb");
    if (!stream)
        return false;
    seed->bytes = malloc(ROOM);
    seed->size = seed->bytes ? fread(seed->bytes, 1, ROOM, stream) : 0;
    fclose(stream);
    return true;
}

/* The files of tests/fuzz/corpus/NAME; for cluster those of conf, too. */
static int seeds_read(const char *folder, struct seed seeds[], int n)
{
    char path[4000];
    const char *top = getenv("top_srcdir");
    struct dirent *entry;
    DIR *dir;

    snprintf(path, sizeof path, "%s/%s", top ? top : ".", folder);
    dir = opendir(path);
    while (dir && n < SEEDS && (entry = readdir(dir)))
        n += seed_read(path, entry->d_name, &seeds[n]);
    if (dir)
        closedir(dir);
    return n;
}

static int corpus_read(const char *name, struct seed seeds[])
{
    char folder[64];

    snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s", name);
    return seeds_read(folder, seeds, strcmp(name, "cluster") == 0
                                         ? seeds_read("conf", seeds, 0) : 0);
}

static uint64_t mutants_run(const struct fuzz_target *target,
                            const struct seed seeds[], int n, int64_t end)
{
    static char text[ROOM + CHANGES * 64];
    uint64_t runs = 0;

    for (; n > 0 && dtn_now_ns() < end; runs++) {
        const struct seed *seed = &seeds[below((size_t)n)];
        size_t size = seed->size;

        memcpy(text, seed->bytes, size);
        for (size_t k = 1 + below(CHANGES); size > 0 && k > 0; k--)
            size = mutate(text, size);
        target->run((const uint8_t *)text, size);
    }
    return runs;
}

/* In a process of its own, so that the next target runs after a crash. */
static void target_test(const struct fuzz_target *target, int ms)
{
    static struct seed seeds[SEEDS];
    const int n = corpus_read(target->name, seeds);
    int status = 0;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        for (int i = 0; i < n; i++)
            target->run(seeds[i].bytes, seeds[i].size);
        note("%s: %d files, %" PRIu64 " mutants", target->name, n,
             mutants_run(target, seeds, n, dtn_now_ns() + ms
                                           * INT64_C(1000000)));
        exit(0);
    }
    waitpid(pid, &status, 0);
    ok(n > 0 && status == 0, "%s: its corpus, and mutants of it",
       target->name);
    for (int i = 0; i < n; i++)
        free(seeds[i].bytes);
}

int main(int argc, char **argv)
{
    const char *seed = getenv("DTN_TEST_SEED");
    const int ms = argc > 2 ? atoi(argv[2]) : TIME_MS;

    state = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
    note("DTN_TEST_SEED=%" PRIu64, state);
    for (const struct fuzz_target *t = fuzz_targets; t->name; t++)
        if (argc < 2 || strcmp(t->name, argv[1]) == 0)
            target_test(t, ms);
    return done();
}
