/* lru.c - a cache of 256 entries that drops the least recently used
 *
 * Entries are in buckets by hash, and in a list by last use.  A hit costs one
 * hash, one comparison and six pointer writes; a hit of the newest entry costs
 * one comparison.  The entry at the end of the list is evicted first.  Nothing
 * is allocated, because each entry holds its own links.
 */
#include "base/lru.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static void lru_unlink(struct dtn_lru *lru, struct dtn_lru_entry *entry)
{
    *(entry->newer ? &entry->newer->older : &lru->newest) = entry->older;
    *(entry->older ? &entry->older->newer : &lru->oldest) = entry->newer;
}

static void lru_push(struct dtn_lru *lru, struct dtn_lru_entry *entry)
{
    entry->newer = NULL;
    entry->older = lru->newest;
    *(lru->newest ? &lru->newest->newer : &lru->oldest) = entry;
    lru->newest = entry;
}

void dtn_lru_renew(struct dtn_lru *lru, struct dtn_lru_entry *entry)
{
    lru_unlink(lru, entry);
    lru_push(lru, entry);
}

struct dtn_lru_entry *dtn_lru_search(struct dtn_lru *lru,
                                     const struct dtn_lru_kind *kind,
                                     const void *key)
{
    const uint64_t hash = kind->hash(key);
    struct dtn_lru_entry *entry = lru->bucket[hash % DTN_LRU_BUCKETS];

    while (entry && !(entry->hash == hash && kind->is(entry, key)))
        entry = entry->next;
    if (entry)
        dtn_lru_renew(lru, entry);
    return entry;
}

static void lru_remove(struct dtn_lru *lru, const struct dtn_lru_kind *kind,
                       struct dtn_lru_entry *entry)
{
    struct dtn_lru_entry **link = &lru->bucket[entry->hash % DTN_LRU_BUCKETS];

    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
    lru_unlink(lru, entry);
    lru->n--;
    lru->bytes -= entry->bytes;
    kind->destroy(entry);
}

static struct dtn_lru_entry *lru_oldest(const struct dtn_lru *lru)
{
    struct dtn_lru_entry *entry = lru->oldest;

    while (entry && entry->holders > 0)
        entry = entry->newer;
    return entry;
}

void dtn_lru_add(struct dtn_lru *lru, const struct dtn_lru_kind *kind,
                 const void *key, struct dtn_lru_entry *entry,
                 size_t max_bytes)
{
    struct dtn_lru_entry **bucket, *oldest;

    lru->bytes += entry->bytes;
    while ((lru->n >= DTN_LRU_LIMIT || lru->bytes > max_bytes)
           && (oldest = lru_oldest(lru))) {
        lru_remove(lru, kind, oldest);
        lru->dropped++;
    }
    entry->hash = kind->hash(key);
    bucket = &lru->bucket[entry->hash % DTN_LRU_BUCKETS];
    entry->next = *bucket;
    *bucket = entry;
    lru_push(lru, entry);
    lru->n++;
}

void dtn_lru_clear(struct dtn_lru *lru, const struct dtn_lru_kind *kind)
{
    while (lru->newest)
        lru_remove(lru, kind, lru->newest);
}
