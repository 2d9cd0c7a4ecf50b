/* Proof that both sides know the key, without sending the key. */
#ifndef GW_TRANSPORT_SERVICE_AUTH_H
#define GW_TRANSPORT_SERVICE_AUTH_H

#include <stdbool.h>

#include "core/errors/status.h"

#define GW_PROOF_BYTES 32
#define GW_NONCE_BYTES 32

/* The inputs of a proof. */
struct gw_auth {
	const uint8_t *key;
	uint32_t key_bytes;
	uint32_t version;
	uint8_t client_nonce[GW_NONCE_BYTES], server_nonce[GW_NONCE_BYTES];
	uint64_t incarnation;
	uint8_t client_uuid[16];
};

enum gw_auth_role { GW_AUTH_CLIENT, GW_AUTH_SERVER };

gw_status gw_nonce_make(uint8_t nonce[GW_NONCE_BYTES]);

/* proof = HMAC-SHA256(key, role, both nonces, version, incarnation, client uuid). GW_IO if the library fails. */
gw_status gw_proof_make(const struct gw_auth *auth, enum gw_auth_role role, uint8_t proof[GW_PROOF_BYTES]);

/* Compares in constant time. Also false when the library fails. */
bool gw_proof_check(const struct gw_auth *auth, enum gw_auth_role role, const uint8_t proof[GW_PROOF_BYTES]);

#endif
