/* seal.h - secret keys: proofs that one is known, and sealed bytes
 *
 * The cryptography is libsodium's: BLAKE2b with a key for proofs, and
 * ChaCha20-Poly1305 for sealed bytes, which nobody without the key can read or
 * change.  A build without libsodium has none of it (dtn_seal_present()).
 */
#ifndef DTN_BASE_SEAL_H
#define DTN_BASE_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DTN_SECRET_BYTES 32       /* of a key, a nonce and a proof            */
#define DTN_SEAL_BYTES 16         /* that sealing adds                        */

/* Has this build libsodium?  Without it nothing may be sealed, and a proof is
 * the key itself.
 */
bool dtn_seal_present(void);

/* Random bytes for a key or a nonce; false: errno says why there are none. */
bool dtn_secret_random(void *bytes, size_t size);

/* Do these bytes agree?  Takes as long if the first one differs. */
bool dtn_secret_same(const void *a, const void *b, size_t size);

/* Overwrite what is no longer needed. */
void dtn_secret_forget(void *bytes, size_t size);

/* proof: of the key, for this purpose and these bytes.  It may be a key of its
 * own.  `purpose` has at most 16 characters.
 */
void dtn_secret_prove(unsigned char proof[DTN_SECRET_BYTES],
                      const unsigned char key[DTN_SECRET_BYTES],
                      const char *purpose, const void *bytes, size_t size);

/* One direction of a sealed connection: both ends count what is sealed, so
 * nothing can be left out, repeated or put elsewhere.
 */
struct dtn_seal {
    unsigned char key[DTN_SECRET_BYTES]; /* of this direction                 */
    uint64_t count;               /* pieces sealed, or opened                 */
};

/* sealed[size + DTN_SEAL_BYTES] = bytes[size]; they may begin at one address.
 */
void dtn_seal(struct dtn_seal *seal, unsigned char *sealed,
              const unsigned char *bytes, size_t size);

/* The reverse; `size` is that of bytes.  False: it was not sealed by the other
 * end, or not as its next piece.
 */
bool dtn_unseal(struct dtn_seal *seal, unsigned char *bytes,
                const unsigned char *sealed, size_t size);

#endif
