/* JSON files of ours: values by key, held against what they may be; and the digest that a file carries of itself.
 *
 *   text -> the one place of `"json_digest": "` -> the digest of what lies before, of zeros, of what lies behind
 *
 * The digest is found by these bytes, so that neither the order of keys nor those of a newer version matter. They are
 * nowhere else: within a string, their quotes would be escaped. Fails for what a file holds.
 */
#include "core/graph/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/digest.h"

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

gw_status gw_json_hex(const json_t *object, const char *key, uint64_t *out)
{
	const char *text;
	*out = 0;
	gw_status status = gw_json_text(object, key, DIGITS, &text);
	if (status != GW_OK)
		return status;
	if (strlen(text) != DIGITS || strspn(text, "0123456789abcdef") != DIGITS)
		return gw_fail(GW_FORMAT, "\"%.200s\": \"%s\" is not 16 hexadecimal digits", key, text);
	*out = strtoull(text, NULL, 16);
	return GW_OK;
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

/* --- The file's own digest. --- */

/* Where the digits are; NULL: nowhere. *again: there is a second place. */
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
		return gw_fail(GW_FORMAT, "\"" GW_JSON_DIGEST_KEY "\" is there twice");
	json_digest_make(text, bytes, digits, digest);
	if (memcmp(digest, digits, DIGITS) != 0)
		return gw_fail(GW_DIGEST,
			       "\"" GW_JSON_DIGEST_KEY "\" is %.16s, but the text gives %s: it is not what was written",
			       digits, digest);
	return GW_OK;
}
