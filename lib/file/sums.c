/* sums.c - checksums at the end of a file
 *
 * After the elements of a .npy file, which NumPy does not read further, come
 * the checksums of pieces of at most 4 MiB, then a record of 64 bytes:
 *
 *   0  magic, "DTNSUMS1"          32  bytes of the elements
 *   8  dtype, 4 bytes             40  hash of the checksums
 *   12 zero, 4 bytes              48  hash of the header
 *   16 bytes of the header        56  hash of the 56 bytes before
 *   24 number of checksums
 *
 * All numbers are little-endian, hashes are XXH3_64bits().  A piece is within
 * what one rank wrote: f32[2,512,1024] from 4 ranks has 8 pieces of 512 KiB.
 * Each rank writes checksums of its own; the place of each follows from the
 * shape.
 */
#include "file/sums.h"
#include "file/slabs.h"

#include <endian.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

static const char sums_magic[8] = "DTNSUMS1";

uint64_t dtn_file_hash(const void *bytes, size_t n)
{
    return XXH3_64bits(bytes, n);
}

uint64_t dtn_sums_count(const struct dtn_slabs *slabs)
{
    return (uint64_t)slabs->count *
           ((slabs->bytes + DTN_SUM_PIECE_BYTES - 1) / DTN_SUM_PIECE_BYTES);
}

uint64_t dtn_sums_at(const struct dtn_file_map *map)
{
    return (map->header_bytes + map->data_bytes + 7) / 8 * 8;
}

uint64_t dtn_sums_end_at(const struct dtn_file_map *map)
{
    return dtn_sums_at(map) + map->sums * sizeof(struct dtn_sum);
}

struct dtn_sum dtn_sum_make(uint64_t at, const void *piece, uint64_t bytes)
{
    return (struct dtn_sum){ htole64(at), htole64(bytes),
                             htole64(XXH3_64bits(piece, bytes)) };
}

bool dtn_sum_fits(const struct dtn_sum *sum, const void *piece)
{
    return le64toh(sum->hash) == XXH3_64bits(piece, le64toh(sum->bytes));
}

struct dtn_sum dtn_sum_decode(const struct dtn_sum *sum)
{
    return (struct dtn_sum){ le64toh(sum->at), le64toh(sum->bytes),
                             le64toh(sum->hash) };
}

/* The record: its last hash apart. */
struct sums_end {
    char magic[8];                /* sums_magic                               */
    uint32_t dtype;               /* enum dtensor_dtype                       */
    uint32_t zero;                /* for other versions                       */
    uint64_t number[5];           /* as in the comment above                  */
    uint64_t hash;                /* of the bytes before                      */
};

_Static_assert(sizeof(struct sums_end) == DTN_SUMS_END_BYTES, "64 bytes");

enum { END_HASHED = DTN_SUMS_END_BYTES - 8 };

void dtn_sums_end_format(const struct dtn_file_map *map,
                         unsigned char buf[DTN_SUMS_END_BYTES])
{
    struct sums_end end = {
        .dtype = htole32((uint32_t)map->dtype),
        .number = { htole64(map->header_bytes), htole64(map->sums),
                    htole64(map->data_bytes), htole64(map->sums_hash),
                    htole64(map->header_hash) } };

    memcpy(end.magic, sums_magic, sizeof end.magic);
    end.hash = htole64(XXH3_64bits(&end, END_HASHED));
    memcpy(buf, &end, sizeof end);
}

bool dtn_sums_end_parse(const unsigned char buf[DTN_SUMS_END_BYTES],
                        struct dtn_file_map *map)
{
    struct sums_end end;

    memcpy(&end, buf, sizeof end);
    if (memcmp(end.magic, sums_magic, sizeof end.magic) != 0 ||
        le64toh(end.hash) != XXH3_64bits(&end, END_HASHED) ||
        le32toh(end.dtype) >= DTENSOR_NDTYPES || end.zero != 0)
        return false;
    map->dtype = (enum dtensor_dtype)le32toh(end.dtype);
    map->header_bytes = le64toh(end.number[0]);
    map->sums = le64toh(end.number[1]);
    map->data_bytes = le64toh(end.number[2]);
    map->sums_hash = le64toh(end.number[3]);
    map->header_hash = le64toh(end.number[4]);
    return true;
}
