/* Proofs: the same key and the same exchange give the same proof, and any changed bit gives another one. A fork waits
 * while a proof is computed. */
#include <openssl/crypto.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/fork_midst.h"
#include "transport/service/auth.h"

static uint8_t key[40];

static struct gw_auth exchange(void)
{
	struct gw_auth auth = {.key = key, .key_bytes = sizeof(key), .version = 3, .incarnation = 77};
	for (uint8_t i = 0; i < GW_NONCE_BYTES; i++) {
		auth.client_nonce[i] = i;
		auth.server_nonce[i] = (uint8_t)(100 + i);
	}
	memcpy(auth.client_uuid, "0123456789abcdef", 16);
	return auth;
}

static void a_proof_is_of_one_role(void **state)
{
	struct gw_auth auth = exchange();
	uint8_t client[GW_PROOF_BYTES], again[GW_PROOF_BYTES], server[GW_PROOF_BYTES];
	(void)state;
	assert_int_equal(gw_proof_make(&auth, GW_AUTH_CLIENT, client), GW_OK);
	assert_int_equal(gw_proof_make(&auth, GW_AUTH_CLIENT, again), GW_OK);
	assert_int_equal(gw_proof_make(&auth, GW_AUTH_SERVER, server), GW_OK);
	assert_memory_equal(client, again, GW_PROOF_BYTES);
	assert_true(gw_proof_check(&auth, GW_AUTH_CLIENT, client));
	assert_true(gw_proof_check(&auth, GW_AUTH_SERVER, server));
	assert_false(gw_proof_check(&auth, GW_AUTH_SERVER, client));
	assert_false(gw_proof_check(&auth, GW_AUTH_CLIENT, server));
}

static void every_bit_of_a_proof_counts(void **state)
{
	struct gw_auth auth = exchange();
	uint8_t proof[GW_PROOF_BYTES];
	(void)state;
	assert_int_equal(gw_proof_make(&auth, GW_AUTH_CLIENT, proof), GW_OK);
	for (uint32_t bit = 0; bit < 8 * GW_PROOF_BYTES; bit++) {
		proof[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(gw_proof_check(&auth, GW_AUTH_CLIENT, proof));
		proof[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_true(gw_proof_check(&auth, GW_AUTH_CLIENT, proof));
}

static void every_bit_of_the_exchange_counts(void **state)
{
	const struct gw_auth good = exchange();
	const struct {
		size_t at, bytes;
	} parts[] = {{offsetof(struct gw_auth, version), 4},
		     {offsetof(struct gw_auth, client_nonce), GW_NONCE_BYTES},
		     {offsetof(struct gw_auth, server_nonce), GW_NONCE_BYTES},
		     {offsetof(struct gw_auth, incarnation), 8},
		     {offsetof(struct gw_auth, client_uuid), 16}};
	uint8_t proof[GW_PROOF_BYTES];
	(void)state;
	assert_int_equal(gw_proof_make(&good, GW_AUTH_SERVER, proof), GW_OK);
	for (size_t part = 0; part < sizeof(parts) / sizeof(parts[0]); part++)
		for (size_t bit = 0; bit < 8 * parts[part].bytes; bit++) {
			struct gw_auth other = good;
			((uint8_t *)&other)[parts[part].at + bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_false(gw_proof_check(&other, GW_AUTH_SERVER, proof));
		}
	for (size_t bit = 0; bit < 8 * sizeof(key); bit++) {
		key[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(gw_proof_check(&good, GW_AUTH_SERVER, proof));
		key[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	struct gw_auth shorter = good;
	key[sizeof(key) - 1] = 1;
	assert_int_equal(gw_proof_make(&good, GW_AUTH_SERVER, proof), GW_OK);
	shorter.key_bytes--;
	assert_false(gw_proof_check(&shorter, GW_AUTH_SERVER, proof));
}

static void nonces_differ(void **state)
{
	uint8_t nonces[100][GW_NONCE_BYTES];
	(void)state;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(gw_nonce_make(nonces[i]), GW_OK);
		for (int j = 0; j < i; j++)
			assert_memory_not_equal(nonces[i], nonces[j], GW_NONCE_BYTES);
	}
}

static struct gw_midst midst;
static atomic_bool stands; /* blocked in OpenSSL's next allocation */

static void *openssl_allocate(size_t bytes, const char *file, int line)
{
	(void)file;
	(void)line;
	if (atomic_exchange(&stands, false))
		gw_midst_stand(&midst);
	return gw_midst_allocate(bytes);
}

static void *openssl_reallocate(void *old, size_t bytes, const char *file, int line)
{
	(void)file;
	(void)line;
	return gw_midst_reallocate(old, bytes);
}

static void openssl_release(void *memory, const char *file, int line)
{
	(void)file;
	(void)line;
	gw_midst_release(memory);
}

static void *prove(void *argument)
{
	struct gw_auth auth = exchange();
	uint8_t proof[GW_PROOF_BYTES];
	(void)argument;
	atomic_store(&stands, true);
	gw_status status = gw_proof_make(&auth, GW_AUTH_CLIENT, proof);
	gw_midst_outlast(&midst);
	return status == GW_OK ? NULL : &midst;
}

/* The child must not inherit OpenSSL's locks from a thread that does not exist in it. */
static void a_fork_waits_for_a_proof(void **state)
{
	struct gw_auth auth = exchange();
	uint8_t proof[GW_PROOF_BYTES];
	pthread_t thread;
	void *failed = NULL;
	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, prove, NULL), 0);
	pid_t child = gw_midst_fork(&midst);
	if (child == 0)
		gw_midst_exit(atomic_load(&midst.released) && gw_proof_make(&auth, GW_AUTH_SERVER, proof) == GW_OK);
	pthread_join(thread, &failed);
	assert_null(failed);
	assert_true(gw_midst_child_well(child));
}

int main(void)
{
	if (!CRYPTO_set_mem_functions(openssl_allocate, openssl_reallocate, openssl_release))
		return 1; /* before OpenSSL allocates anything */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_proof_is_of_one_role),           cmocka_unit_test(every_bit_of_a_proof_counts),
		cmocka_unit_test(every_bit_of_the_exchange_counts), cmocka_unit_test(nonces_differ),
		cmocka_unit_test(a_fork_waits_for_a_proof),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
