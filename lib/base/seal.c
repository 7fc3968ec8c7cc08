/* seal.c - secret keys: proofs that one is known, and sealed bytes
 *
 * A proof is BLAKE2b of a purpose and some bytes, with the key.  The purpose
 * keeps uses of one key apart: the proof that opens a connection can never be
 * taken for the key of its first direction.
 *
 * Each sealed piece has a number, its nonce.  A key seals one direction of one
 * connection, so no number is used twice with a key.
 */
#include "config.h"
#include "base/seal.h"

#include <stdbool.h>
#include <string.h>
#include <sys/random.h>

#ifdef HAVE_SODIUM
#include <sodium.h>
#endif

bool dtn_secret_random(void *bytes, size_t size)
{
    return getrandom(bytes, size, 0) == (ssize_t)size;
}

bool dtn_secret_same(const void *a, const void *b, size_t size)
{
    const volatile unsigned char *p = a, *q = b;
    unsigned char differ = 0;

    for (size_t i = 0; i < size; i++)
        differ |= (unsigned char)(p[i] ^ q[i]);
    return differ == 0;
}

void dtn_secret_forget(void *bytes, size_t size)
{
    explicit_bzero(bytes, size);
}

#ifdef HAVE_SODIUM

bool dtn_seal_present(void)
{
    return sodium_init() >= 0;
}

void dtn_secret_prove(unsigned char proof[DTN_SECRET_BYTES],
                      const unsigned char key[DTN_SECRET_BYTES],
                      const char *purpose, const void *bytes, size_t size)
{
    unsigned char name[16] = { 0 };
    crypto_generichash_state state;

    memcpy(name, purpose, strnlen(purpose, sizeof name));
    crypto_generichash_init(&state, key, DTN_SECRET_BYTES, DTN_SECRET_BYTES);
    crypto_generichash_update(&state, name, sizeof name);
    crypto_generichash_update(&state, bytes, size);
    crypto_generichash_final(&state, proof, DTN_SECRET_BYTES);
    dtn_secret_forget(&state, sizeof state);
}

static void seal_nonce(struct dtn_seal *seal,
                       unsigned char nonce[static 12])
{
    memset(nonce, 0, 12);
    memcpy(nonce, &seal->count, sizeof seal->count);
    seal->count++;
}

void dtn_seal(struct dtn_seal *seal, unsigned char *sealed,
              const unsigned char *bytes, size_t size)
{
    unsigned char nonce[crypto_aead_chacha20poly1305_IETF_NPUBBYTES];

    seal_nonce(seal, nonce);
    crypto_aead_chacha20poly1305_ietf_encrypt(sealed, NULL, bytes, size, NULL,
                                              0, NULL, nonce, seal->key);
}

bool dtn_unseal(struct dtn_seal *seal, unsigned char *bytes,
                const unsigned char *sealed, size_t size)
{
    unsigned char nonce[crypto_aead_chacha20poly1305_IETF_NPUBBYTES];

    seal_nonce(seal, nonce);
    return crypto_aead_chacha20poly1305_ietf_decrypt(
               bytes, NULL, NULL, sealed, size + DTN_SEAL_BYTES, NULL, 0,
               nonce, seal->key) == 0;
}

#else

bool dtn_seal_present(void)
{
    return false;
}

/* The key itself: who does not have it is found, who listens gets it. */
void dtn_secret_prove(unsigned char proof[DTN_SECRET_BYTES],
                      const unsigned char key[DTN_SECRET_BYTES],
                      const char *purpose, const void *bytes, size_t size)
{
    memcpy(proof, key, DTN_SECRET_BYTES);
}

/* Nobody gets here: who needs sealing is refused before. */
void dtn_seal(struct dtn_seal *seal, unsigned char *sealed,
              const unsigned char *bytes, size_t size)
{
    memset(sealed, 0, size + DTN_SEAL_BYTES);
}

bool dtn_unseal(struct dtn_seal *seal, unsigned char *bytes,
                const unsigned char *sealed, size_t size)
{
    return false;
}

#endif
