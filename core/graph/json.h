/* JSON files of ours, a graph's and a checkpoint's: values by key, and the digest that a file carries of itself.
 *
 * The digest is the XXH3-64 of all bytes of the file, with zeros in the place of the digest's own 16 digits. A flipped
 * bit anywhere is noticed, in keys that this program does not know too. It guards against accident, not against
 * tampering.
 *
 * What fails is GW_FORMAT and names the key, unless said otherwise.
 */
#ifndef GW_GRAPH_JSON_H
#define GW_GRAPH_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "core/errors/status.h"
#include "core/files/owned.h"

#define GW_JSON_DIGEST_KEY  "json_digest"
#define GW_JSON_DIGEST_NONE "0000000000000000" /* what a writer puts there before gw_json_digest_set */

/* The value of a key, which is there and of this type: JSON_OBJECT, JSON_ARRAY, JSON_STRING or JSON_INTEGER. It stays
 * the object's. */
gw_status gw_json_get(const json_t *object, const char *key, json_type type, json_t **out);

/* A whole number from 0 to max: a value, where key is for the error's text; and the value of a key. */
gw_status gw_json_count(const json_t *value, const char *key, uint64_t max, uint64_t *out);
gw_status gw_json_number(const json_t *object, const char *key, uint64_t max, uint64_t *out);

/* A string of at most max bytes, which stays the object's. */
gw_status gw_json_text(const json_t *object, const char *key, size_t max, const char **out);

/* A digest or an id: 16 hexadecimal digits, in lower case. */
gw_status gw_json_hex(const json_t *object, const char *key, uint64_t *out);

/* The optional "minor", 0 where it is missing. */
gw_status gw_json_minor(const json_t *object, uint64_t *out);

/* Has the object no keys but these? what: whose they are, for the error's text. */
gw_status gw_json_only(const json_t *object, const char *what, const char *const *keys, size_t count);

/* Is the path that of an .npy file below the JSON's folder: relative, without steps that climb or odd characters? */
bool gw_json_file_is_inside(const char *file);

/* What belongs to the JSON <folder>/<name>: itself, and each "file" that it names, whatever its version, with its
 * digests. GW_FORMAT: it is no JSON; GW_NOT_FOUND, GW_LIMIT (longer than bytes_max), GW_IO, GW_NO_MEMORY. */
gw_status gw_json_owned(const char *folder, const char *name, uint64_t bytes_max, struct gw_owned **out);

/* Puts the digest in its place: the text has the member "json_digest": "…" once, written so, with 16 characters in it.
 * False where it has not; the text is unchanged then. */
bool gw_json_digest_set(char *text, size_t bytes);

/* Is the text what was written? One without a digest is taken unless it is demanded. GW_DIGEST: it is not; GW_FORMAT:
 * the digest is missing, or there twice. */
gw_status gw_json_digest_check(const char *text, size_t bytes, bool demanded);

#endif
