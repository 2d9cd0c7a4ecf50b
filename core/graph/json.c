/* Graphwire's JSON files: checked values by key, and the digest that a file carries of itself.
 *
 *   text -> the one place of `"json_digest": "` -> the digest of the bytes before, of zeros, of the bytes after
 *
 * The digest is found by these bytes, so the order of keys and the keys of newer versions do not matter. The bytes
 * occur nowhere else: inside a string, their quotes would be escaped. Fails for faults in a file's content.
 */
#include "core/graph/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/files/regular.h"
#include "core/memory/alloc.h"
#include "core/numbers/digest.h"

#define MEMBER "\"" GW_JSON_DIGEST_KEY "\": \""
#define DIGITS 16

gw_status gw_json_get(const json_t *object, const char *key, json_type type, json_t **out)
{
	static const char *const type_names[] = {"an object", "an array", "a string", "a whole number"};
	*out = json_object_get(object, key);
	if (!*out)
		return gw_fail(GW_FORMAT, "there is no key \"%.200s\"", key);
	if (json_typeof(*out) != type)
		return gw_fail(GW_FORMAT, "\"%.200s\" is not %s", key, type_names[type]);
	return GW_OK;
}

gw_status gw_json_count(const json_t *value, const char *key, uint64_t max, uint64_t *out)
{
	*out = 0;
	if (!json_is_integer(value))
		return gw_fail(GW_FORMAT, "\"%.200s\" is not a whole number", key);
	json_int_t number = json_integer_value(value);
	if (number < 0 || (uint64_t)number > max)
		return gw_fail(GW_FORMAT, "\"%.200s\": %" JSON_INTEGER_FORMAT " is out of range (0 to %" PRIu64 ")",
			       key, number, max);
	*out = (uint64_t)number;
	return GW_OK;
}

gw_status gw_json_number(const json_t *object, const char *key, uint64_t max, uint64_t *out)
{
	json_t *value;
	*out = 0;
	gw_status status = gw_json_get(object, key, JSON_INTEGER, &value);
	return status == GW_OK ? gw_json_count(value, key, max, out) : status;
}

gw_status gw_json_text(const json_t *object, const char *key, size_t max, const char **out)
{
	json_t *value;
	*out = "";
	gw_status status = gw_json_get(object, key, JSON_STRING, &value);
	if (status != GW_OK)
		return status;
	if (json_string_length(value) > max)
		return gw_fail(GW_FORMAT, "\"%.200s\": longer than %zu bytes", key, max);
	*out = json_string_value(value);
	return GW_OK;
}

gw_status gw_json_hex_value(const json_t *value, const char *key, uint64_t *out)
{
	const char *text = json_string_value(value);
	*out = 0;
	if (!text || strlen(text) != DIGITS || strspn(text, "0123456789abcdef") != DIGITS)
		return gw_fail(GW_FORMAT, "\"%.200s\": \"%.200s\" is not 16 hexadecimal digits", key, text ? text : "");
	*out = strtoull(text, NULL, 16);
	return GW_OK;
}

gw_status gw_json_hex(const json_t *object, const char *key, uint64_t *out)
{
	const char *text;
	*out = 0;
	gw_status status = gw_json_text(object, key, DIGITS, &text);
	return status == GW_OK ? gw_json_hex_value(json_object_get(object, key), key, out) : status;
}

gw_status gw_json_minor(const json_t *object, uint64_t *out)
{
	*out = 0;
	return json_object_get(object, "minor") ? gw_json_number(object, "minor", UINT32_MAX, out) : GW_OK;
}

gw_status gw_json_only(const json_t *object, const char *what, const char *const *keys, size_t count)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)object, key, value)
	{
		bool known = false;
		for (size_t k = 0; k < count; k++)
			known |= strcmp(key, keys[k]) == 0;
		if (!known)
			return gw_fail(GW_FORMAT, "\"%.200s\" is a key that %s does not have", key, what);
	}
	return GW_OK;
}

/* --- Files that a JSON names. --- */

bool gw_json_file_is_inside(const char *file)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-/";
	size_t length = strlen(file);
	bool good = length > 4 && strcmp(file + length - 4, ".npy") == 0 && strspn(file, alphabet) == length;
	for (const char *part = file; good; part++) {
		size_t bytes = strcspn(part, "/");
		good = bytes > 0 && !(bytes == 1 && part[0] == '.') && !(bytes == 2 && memcmp(part, "..", 2) == 0);
		part += bytes;
		if (*part == '\0')
			break;
	}
	return good;
}

static gw_status json_own_file(const char *file, struct gw_owned *owned)
{
	gw_status status = gw_owned_add(owned, file);
	char *digests = gw_format("%.*s.xxh", (int)strlen(file) - 4, file);
	if (status == GW_OK)
		status = digests ? gw_owned_add(owned, digests) : GW_NO_MEMORY;
	gw_free(digests);
	return status;
}

/* Adds every "file" of an object, at any depth; jansson has limited the depth. */
static gw_status json_own_files(const json_t *value, struct gw_owned *owned)
{
	gw_status status = GW_OK;
	const char *key;
	json_t *member;
	for (size_t i = 0; status == GW_OK && i < json_array_size(value); i++)
		status = json_own_files(json_array_get(value, i), owned);
	json_object_foreach((json_t *)value, key, member)
	{
		if (status != GW_OK)
			break;
		if (json_is_string(member) && strcmp(key, "file") == 0 &&
		    gw_json_file_is_inside(json_string_value(member)))
			status = json_own_file(json_string_value(member), owned);
		else if (!json_is_string(member))
			status = json_own_files(member, owned);
	}
	return status;
}

gw_status gw_json_owned(const char *folder, const char *name, uint64_t bytes_max, struct gw_owned **out)
{
	json_error_t error;
	json_t *root = NULL;
	size_t bytes = 0;
	char *text = NULL, *path = gw_format("%s/%s", folder, name);
	*out = NULL;
	gw_status status = path ? gw_regular_read(path, bytes_max, &text, &bytes) : GW_NO_MEMORY;
	if (status == GW_OK && !(root = json_loadb(text, bytes, 0, &error)))
		status = gw_fail(GW_FORMAT, "%s: line %d: %s", path, error.line, error.text);
	if (status == GW_OK)
		status = gw_owned_create(out);
	if (status == GW_OK)
		status = gw_owned_add(*out, name);
	if (status == GW_OK)
		status = json_own_files(root, *out);
	json_decref(root);
	gw_free(text);
	gw_free(path);
	if (status != GW_OK) {
		gw_owned_destroy(*out);
		*out = NULL;
	}
	return status;
}

/* --- The file's own digest. --- */

/* The position of the digits; NULL if the text has none. *again: they occur twice. */
static const char *json_digest_find(const char *text, size_t bytes, bool *again)
{
	const char *at = memmem(text, bytes, MEMBER, sizeof(MEMBER) - 1);
	*again = false;
	if (!at)
		return NULL;
	at += sizeof(MEMBER) - 1;
	size_t left = bytes - (size_t)(at - text);
	*again = memmem(at, left, MEMBER, sizeof(MEMBER) - 1) != NULL;
	return left > DIGITS && at[DIGITS] == '"' ? at : NULL;
}

static void json_digest_make(const char *text, size_t bytes, const char *digits, char out[DIGITS + 1])
{
	const char *behind = digits + DIGITS;
	const struct gw_digest_piece pieces[] = {{text, (size_t)(digits - text)},
						 {GW_JSON_DIGEST_NONE, DIGITS},
						 {behind, bytes - (size_t)(behind - text)}};
	snprintf(out, DIGITS + 1, "%016" PRIx64, gw_digest_pieces(pieces, 3));
}

bool gw_json_digest_set(char *text, size_t bytes)
{
	char digest[DIGITS + 1];
	bool again;
	const char *digits = json_digest_find(text, bytes, &again);
	if (!digits || again)
		return false;
	json_digest_make(text, bytes, digits, digest);
	memcpy(text + (digits - text), digest, DIGITS);
	return true;
}

gw_status gw_json_digest_check(const char *text, size_t bytes, bool demanded)
{
	char digest[DIGITS + 1];
	bool again;
	const char *digits = json_digest_find(text, bytes, &again);
	if (!digits && !demanded)
		return GW_OK;
	if (!digits)
		return gw_fail(GW_FORMAT, "there is no " MEMBER "...\" of 16 hexadecimal digits");
	if (again)
		return gw_fail(GW_FORMAT, "\"" GW_JSON_DIGEST_KEY "\" occurs twice");
	json_digest_make(text, bytes, digits, digest);
	if (memcmp(digest, digits, DIGITS) != 0)
		return gw_fail(GW_DIGEST,
			       "\"" GW_JSON_DIGEST_KEY "\" is %.16s, but the text gives %s: the text was changed",
			       digits, digest);
	return GW_OK;
}
