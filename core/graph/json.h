/* Reads values by key from Graphwire's JSON files (of graphs and checkpoints), and handles the digest that each file
 * carries of itself.
 *
 * The digest is the XXH3-64 of all bytes of the file, with zeros in place of the digest's own 16 digits. It detects any
 * flipped bit, also in keys that this program does not know. It detects accidents, not tampering.
 *
 * Failures are GW_FORMAT and name the key, unless stated otherwise.
 */
#ifndef GW_GRAPH_JSON_H
#define GW_GRAPH_JSON_H

#include <graphwire/digests.h>
#include <jansson.h>
#include <stdbool.h>

#include "core/errors/status.h"
#include "core/files/owned.h"

#define GW_JSON_DIGEST_KEY  "json_digest"
#define GW_JSON_DIGEST_NONE "0000000000000000" /* the zeros that the digest is computed over (FORMAT.md) */

/* The value of a key, which must exist and have this type: JSON_OBJECT, JSON_ARRAY, JSON_STRING or JSON_INTEGER. The
 * object owns it. */
gw_status gw_json_get(const json_t *object, const char *key, json_type type, json_t **out);

/* Both functions read an integer from 0 to max: gw_json_count from a value (key is for the error text), gw_json_number
 * from the value of a key. */
gw_status gw_json_count(const json_t *value, const char *key, uint64_t max, uint64_t *out);
gw_status gw_json_number(const json_t *object, const char *key, uint64_t max, uint64_t *out);

/* A string of at most max bytes. The object owns it. */
gw_status gw_json_text(const json_t *object, const char *key, size_t max, const char **out);

/* A digest or an id: 16 lower-case hexadecimal digits. gw_json_hex_value reads a value (key is for the error
 * text), gw_json_hex reads the value of a key. */
gw_status gw_json_hex_value(const json_t *value, const char *key, uint64_t *out);
gw_status gw_json_hex(const json_t *object, const char *key, uint64_t *out);

/* The optional "minor"; 0 if it is missing. */
gw_status gw_json_minor(const json_t *object, uint64_t *out);

/* Checks that the object has only these keys. what: the object's name for the error text. */
gw_status gw_json_only(const json_t *object, const char *what, const char *const *keys, size_t count);

/* Whether the path is that of an .npy file below the JSON's folder: relative, without "..", and only of the characters
 * [A-Za-z0-9_.+-/]. */
bool gw_json_file_is_inside(const char *file);

/* Lists the files that belong to the JSON <folder>/<name>, of any version: the JSON itself, each "file" that it names,
 * and that file's digests (.xxh). GW_FORMAT: the file is no JSON; GW_NOT_FOUND, GW_LIMIT (longer than bytes_max),
 * GW_IO, GW_NO_MEMORY. */
gw_status gw_json_owned(const char *folder, const char *name, uint64_t bytes_max, struct gw_owned **out);

/* gw_json_digest_set and gw_json_digest_check are in the public header, for programs that write files of their own. */

#endif
