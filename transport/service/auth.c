/* Mutual challenge-response with HMAC-SHA256 (RFC 2104, FIPS 198-1). A proof covers the role of its maker, so the proof
 * cannot be sent back to its maker. It covers both nonces, so an old proof cannot be used again. It covers version and
 * incarnation, so it is valid for this protocol and this server only. Fails only when OpenSSL or the kernel's random
 * source fails.
 *
 * OpenSSL does not protect its locks over a fork. If another thread of the parent holds such a lock, the lock stays
 * locked in the child for ever. So OpenSSL runs under a lock of this file, and a fork waits for that lock. OpenSSL's
 * thread-local data is freed after each use, since freeing it at the thread's end takes OpenSSL's locks. */
#include "transport/service/auth.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#include "core/system/fork.h"

static pthread_mutex_t openssl = PTHREAD_MUTEX_INITIALIZER;
static struct gw_fork_guard guard = {.lock = &openssl,
				     .order = 9}; /* the last in the lock order: no lock is taken under it */

gw_status gw_nonce_make(uint8_t nonce[GW_NONCE_BYTES])
{
	if (getrandom(nonce, GW_NONCE_BYTES, 0) != GW_NONCE_BYTES)
		return gw_fail_errno(GW_IO, errno, "no random bytes for a nonce");
	return GW_OK;
}

gw_status gw_proof_make(const struct gw_auth *auth, enum gw_auth_role role, uint8_t proof[GW_PROOF_BYTES])
{
	uint8_t message[16 + 2 * GW_NONCE_BYTES + 4 + 8 + 16];
	uint8_t *at = message;
	memset(message, 0, 16);
	memcpy(at, role == GW_AUTH_CLIENT ? "graphwire client" : "graphwire server", 16);
	at += 16;
	memcpy(at, auth->client_nonce, GW_NONCE_BYTES);
	at += GW_NONCE_BYTES;
	memcpy(at, auth->server_nonce, GW_NONCE_BYTES);
	at += GW_NONCE_BYTES;
	memcpy(at, &auth->version, 4);
	at += 4;
	memcpy(at, &auth->incarnation, 8);
	at += 8;
	memcpy(at, auth->client_uuid, 16);
	unsigned bytes = 0;
	gw_fork_guard(&guard);
	pthread_mutex_lock(&openssl);
	const uint8_t *made =
		HMAC(EVP_sha256(), auth->key, (int)auth->key_bytes, message, sizeof(message), proof, &bytes);
	OPENSSL_thread_stop();
	pthread_mutex_unlock(&openssl);
	return made && bytes == GW_PROOF_BYTES ? GW_OK : gw_fail(GW_IO, "HMAC-SHA256 failed in OpenSSL");
}

bool gw_proof_check(const struct gw_auth *auth, enum gw_auth_role role, const uint8_t proof[GW_PROOF_BYTES])
{
	uint8_t expected[GW_PROOF_BYTES];
	return gw_proof_make(auth, role, expected) == GW_OK && CRYPTO_memcmp(expected, proof, GW_PROOF_BYTES) == 0;
}
