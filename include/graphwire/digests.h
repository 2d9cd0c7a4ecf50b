/* Digests of files, as graphs and checkpoints have them (docs/FORMAT.md). They reveal accidents, not tampering.
 * graphwire.h includes this header; its rules hold here too. */
#ifndef GRAPHWIRE_DIGESTS_H
#define GRAPHWIRE_DIGESTS_H

#include <stdbool.h>
#include <stddef.h>

#include <graphwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The digest of an array: the XXH3-64 of the XXH3-64s of each 4 MiB of its data. */
GW_API uint64_t gw_array_digest(const void *data, uint64_t bytes);

/* Writes the digest of a JSON text into the text. The text must have the member "json_digest" exactly once, with a
 * string of 16 characters. Otherwise it returns false and leaves the text unchanged. */
GW_API bool gw_json_digest_set(char *text, size_t bytes);

/* Checks that a JSON text is unchanged since it was written. A text without a digest passes unless `demanded`.
 * GW_DIGEST: the text was changed; GW_FORMAT: the digest is missing, or occurs twice. */
GW_API gw_status gw_json_digest_check(const char *text, size_t bytes, bool demanded);

#ifdef __cplusplus
}
#endif
#endif
