/* test_lru.c - the cache keeps what was used last
 *
 * Without it an entry that is in use, or the wrong one, could be dropped, and
 * nothing but time would tell: a plan that is gone is made again.  The keys
 * collide in buckets (8 hashes) so that the chains are walked and cut.
 */
#include "base/lru.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct number {
    struct dtn_lru_entry entry;
    int value;
};

static int nhashed, nalive;

static uint64_t number_hash(const void *key)
{
    nhashed++;
    return (uint64_t)*(const int *)key % 8;
}

static bool number_is(const struct dtn_lru_entry *entry, const void *key)
{
    return ((const struct number *)entry)->value == *(const int *)key;
}

static void number_destroy(struct dtn_lru_entry *entry)
{
    nalive--;
    free(entry);
}

static const struct dtn_lru_kind kind = { number_hash, number_is,
                                          number_destroy };

static struct number *add(struct dtn_lru *lru, int value, size_t bytes,
                          size_t max_bytes)
{
    struct number *number = calloc(1, sizeof *number);

    if (!number)
        abort();
    number->value = value;
    number->entry.bytes = bytes;
    nalive++;
    dtn_lru_add(lru, &kind, &value, &number->entry, max_bytes);
    return number;
}

static bool has(struct dtn_lru *lru, int value)
{
    const struct number *found =
        (const struct number *)dtn_lru_find(lru, &kind, &value);

    return found && found->value == value;
}

static void test_limit(void)
{
    struct dtn_lru lru = { 0 };
    int missing = 0;

    for (int i = 0; i < DTN_LRU_LIMIT; i++)
        add(&lru, i, 0, 0);
    for (int i = 0; i < DTN_LRU_LIMIT; i++)
        missing += !has(&lru, i);
    ok(missing == 0 && lru.dropped == 0, "so many are kept");
    ok(has(&lru, 0), "the oldest is used");
    add(&lru, 1000, 0, 0);
    ok(!has(&lru, 1) && has(&lru, 0) && lru.n == DTN_LRU_LIMIT
       && lru.dropped == 1, "one more drops the one not used for longest");
    nhashed = 0;
    ok(has(&lru, 0) && nhashed == 0, "the newest is found without a hash");
    dtn_lru_clear(&lru, &kind);
    ok(nalive == 0 && lru.n == 0 && !lru.newest && !lru.oldest
       && !has(&lru, 0), "all are destroyed");
}

static void test_bytes(void)
{
    struct dtn_lru lru = { 0 };
    struct number *held = add(&lru, 1, 60, 100);

    held->entry.holders = 1;
    add(&lru, 2, 30, 100);
    ok(lru.n == 2 && lru.bytes == 90, "what fits is kept");
    add(&lru, 3, 40, 100);
    ok(has(&lru, 1) && !has(&lru, 2) && has(&lru, 3) && lru.bytes == 100,
       "one with a holder is not dropped, a newer one is");
    add(&lru, 4, 500, 100);
    ok(has(&lru, 1) && !has(&lru, 3) && has(&lru, 4),
       "one that is too large itself is kept until the next");
    held->entry.holders = 0;
    add(&lru, 5, 1, 100);
    ok(!has(&lru, 1) && !has(&lru, 4) && has(&lru, 5) && lru.bytes == 1,
       "which drops it");
    dtn_lru_clear(&lru, &kind);
    ok(nalive == 0 && lru.bytes == 0, "all are destroyed");
}

int main(void)
{
    test_limit();
    test_bytes();
    return done();
}
