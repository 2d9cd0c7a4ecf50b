/* Compares the names of a header with known names of ends.
 *
 *   "sourceNodeId" -> lower case, letters and digits only -> "sourcenodeid" -> without "node id" -> "source"
 *
 * Pairs are compared first: "from" and "to" are the ends even if a third column is called "source". Without a pair, one
 * name of a source and one of a destination suffice. Neo4j's names have their own form: ":START_ID(Person)".
 */
#include "tools/import/names.h"

#include <string.h>
#include <strings.h>

#define NAME_BYTES_MAX 63u
#define COUNT(of)      (sizeof(of) / sizeof((of)[0]))

static const char *const pairs[][2] = {
	{"src", "dst"},
	{"source", "target"},
	{"source", "destination"},
	{"source", "dest"},
	{"from", "to"},
	{"startid", "endid"},
	{"u", "v"},
	{"head", "tail"},
	{"h", "t"},
	{"subject", "object"},
	{"user", "item"},
	{"follower", "followee"},
	{"follower", "followed"},
	{"citing", "cited"},
	{"sender", "receiver"},
};
static const char *const sources[] = {"src", "source", "from"};
static const char *const destinations[] = {"dst", "target", "destination", "dest", "to"};
static const char *const relations[] = {"relation", "rel",      "predicate",    "relationship", "type",
					"r",        "edgetype", "relationtype", "label"};
static const char *const others[] = {"index", "idx",       "id",       "edge", "eid",      "row",   "rownum", "number",
				     "time",  "timestamp", "ts",       "date", "datetime", "year",  "weight", "w",
				     "label", "type",      "relation", "rel",  "rating",   "score", "value"};

/* A name in lower case, without signs. bytes: all of it; stem: without a final "id" or "node id" that is a word. */
struct column_name {
	char text[NAME_BYTES_MAX + 1];
	uint32_t bytes, stem;
};

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_sign(char c)
{
	return !(is_upper(c) || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (unsigned char)c >= 0x80);
}

/* Drops a final word that says "id" or "node" from the stem. starts: where words start in the text. */
static uint32_t stem_of(const struct column_name *name, const uint32_t *starts, uint32_t words)
{
	static const char *const endings[][2] = {{"id", "ids"}, {"node", "vertex"}};
	uint32_t stem = name->bytes;
	for (size_t e = 0; e < COUNT(endings) && words > 1; e++) {
		for (int i = 0; i < 2; i++) {
			size_t bytes = strlen(endings[e][i]);
			if (words > 1 && stem - starts[words - 1] == bytes &&
			    memcmp(name->text + starts[words - 1], endings[e][i], bytes) == 0)
				stem = starts[--words];
		}
	}
	return stem;
}

static struct column_name name_of(struct gw_text_span field)
{
	struct column_name name = {0};
	uint32_t starts[NAME_BYTES_MAX], words = 0;
	bool word = false;
	for (uint64_t i = 0; i < field.bytes; i++) {
		char c = field.at[i];
		if (is_sign(c)) {
			word = false;
			continue;
		}
		if (name.bytes == NAME_BYTES_MAX)
			return (struct column_name){0};
		bool turns = i > 0 && is_upper(c) && !is_upper(field.at[i - 1]);
		if (!word || turns)
			starts[words++] = name.bytes;
		word = true;
		name.text[name.bytes++] = is_upper(c) ? (char)(c + 'a' - 'A') : c;
	}
	name.stem = stem_of(&name, starts, words);
	return name;
}

/* Whether the name is the known one, with or without a final "id" or "node id". A known name of one letter needs the
 * "id" as a word: "uid" is another name than "u_id". */
static bool means(const struct column_name *name, const char *known)
{
	static const char *const endings[] = {"", "id", "node", "nodeid", "vertex", "vertexid"};
	size_t bytes = strlen(known);
	if (name->stem == bytes && memcmp(name->text, known, bytes) == 0)
		return true;
	if (name->bytes < bytes || memcmp(name->text, known, bytes) != 0)
		return false;
	for (size_t i = 0; i < (bytes > 1 ? COUNT(endings) : 1); i++) {
		if (strcmp(name->text + bytes, endings[i]) == 0)
			return true;
	}
	return false;
}

static struct column_name known_name(const char *text)
{
	return name_of((struct gw_text_span){.at = text, .bytes = strlen(text)});
}

/* Neo4j's ":START_ID", "name:START_ID" and ":START_ID(Type)". */
static bool is_neo4j(struct gw_text_span field, const char *what)
{
	size_t bytes = strlen(what);
	for (uint64_t i = 0; i + bytes <= field.bytes; i++) {
		if (field.at[i] == ':' && strncasecmp(field.at + i, what, bytes) == 0 &&
		    (i + bytes == field.bytes || field.at[i + bytes] == '('))
			return true;
	}
	return false;
}

typedef bool name_test(struct gw_text_span field, const void *known);

static bool is_known(struct gw_text_span field, const void *known)
{
	const struct column_name name = name_of(field);
	return means(&name, known);
}

static bool is_type(struct gw_text_span field, const void *type)
{
	if (!type)
		return false;
	const struct column_name name = name_of(field), of = known_name(type);
	return of.bytes && ((name.bytes == of.bytes && memcmp(name.text, of.text, of.bytes) == 0) ||
			    (name.stem == of.bytes && memcmp(name.text, of.text, of.bytes) == 0) ||
			    (name.bytes == of.bytes + 2 && memcmp(name.text, of.text, of.bytes) == 0 &&
			     strcmp(name.text + of.bytes, "id") == 0));
}

static bool is_neo4j_name(struct gw_text_span field, const void *known)
{
	return is_neo4j(field, known);
}

static uint32_t matches(const struct gw_text_span *fields, uint32_t count, name_test *test, const void *known,
			uint32_t *first)
{
	uint32_t found = 0;
	for (uint32_t i = count; i-- > 0;) {
		if (!test(fields[i], known))
			continue;
		found++;
		*first = i;
	}
	return found;
}

static void add_pair(const struct gw_text_span *fields, uint32_t count, name_test *test, const char *const names[2],
		     enum gw_names_found *found, uint32_t *src, uint32_t *dst)
{
	uint32_t from = 0, to = 0;
	uint32_t sources_found = matches(fields, count, test, names[0], &from);
	uint32_t destinations_found = matches(fields, count, test, names[1], &to);
	if (sources_found == 0 || destinations_found == 0)
		return;
	bool again = *found == GW_NAMES_FOUND && from == *src && to == *dst;
	if (*found == GW_NAMES_NONE || again)
		*found = sources_found == 1 && destinations_found == 1 ? GW_NAMES_FOUND : GW_NAMES_SEVERAL;
	else
		*found = GW_NAMES_SEVERAL;
	*src = from;
	*dst = to;
}

/* "node1" and "node2", "id_1" and "id_2" as the first two columns that have names. */
static bool numbered_ends(const struct gw_text_span *fields, uint32_t count, uint32_t *src, uint32_t *dst)
{
	uint32_t first = 0;
	while (first < count && gw_names_is_unnamed(fields[first]))
		first++;
	if (first + 1 >= count)
		return false;
	const struct column_name a = name_of(fields[first]), b = name_of(fields[first + 1]);
	bool word = a.text[0] >= 'a' && a.text[0] <= 'z';
	if (!word || a.stem < 2 || a.stem != b.stem || a.text[a.stem - 1] != '1' || b.text[b.stem - 1] != '2' ||
	    memcmp(a.text, b.text, a.stem - 1) != 0)
		return false;
	*src = first;
	*dst = first + 1;
	return true;
}

static bool names_differ(const char *src_type, const char *dst_type)
{
	if (!src_type || !dst_type)
		return false;
	const struct column_name a = known_name(src_type), b = known_name(dst_type);
	return a.bytes && b.bytes && (a.bytes != b.bytes || memcmp(a.text, b.text, a.bytes) != 0);
}

enum gw_names_found gw_names_ends(const struct gw_text_span *fields, uint32_t count, const char *src_type,
				  const char *dst_type, uint32_t *src, uint32_t *dst)
{
	static const char *const neo4j[] = {":start_id", ":end_id"};
	enum gw_names_found found = GW_NAMES_NONE;
	if (names_differ(src_type, dst_type))
		add_pair(fields, count, is_type, (const char *const[2]){src_type, dst_type}, &found, src, dst);
	if (found == GW_NAMES_NONE)
		add_pair(fields, count, is_neo4j_name, neo4j, &found, src, dst);
	if (found != GW_NAMES_NONE)
		return found;
	for (size_t i = 0; i < COUNT(pairs); i++)
		add_pair(fields, count, is_known, pairs[i], &found, src, dst);
	if (found != GW_NAMES_NONE)
		return found;
	uint32_t from = 0, to = 0, number_from = 0, number_to = 0;
	for (uint32_t i = count; i-- > 0;) {
		if (gw_names_is_source(fields[i], NULL, NULL)) {
			from = i;
			number_from++;
		} else if (gw_names_is_destination(fields[i], NULL, NULL)) {
			to = i;
			number_to++;
		}
	}
	if (number_from == 1 && number_to == 1) {
		*src = from;
		*dst = to;
		return GW_NAMES_FOUND;
	}
	return numbered_ends(fields, count, src, dst) ? GW_NAMES_FOUND : GW_NAMES_NONE;
}

static bool is_one_of(struct gw_text_span field, const char *const *known, size_t count)
{
	const struct column_name name = name_of(field);
	for (size_t i = 0; i < count; i++) {
		if (means(&name, known[i]))
			return true;
	}
	return false;
}

enum gw_names_found gw_names_relation(const struct gw_text_span *fields, uint32_t count, uint32_t *relation)
{
	/* The first known name that occurs: a triple may have a type and a label. */
	if (matches(fields, count, is_neo4j_name, ":type", relation) == 1)
		return GW_NAMES_FOUND;
	for (size_t i = 0; i < COUNT(relations); i++) {
		uint32_t found = matches(fields, count, is_known, relations[i], relation);
		if (found)
			return found == 1 ? GW_NAMES_FOUND : GW_NAMES_SEVERAL;
	}
	return GW_NAMES_NONE;
}

bool gw_names_is_source(struct gw_text_span field, const char *src_type, const char *dst_type)
{
	return is_one_of(field, sources, COUNT(sources)) ||
	       (names_differ(src_type, dst_type) && is_type(field, src_type));
}

bool gw_names_is_destination(struct gw_text_span field, const char *src_type, const char *dst_type)
{
	return is_one_of(field, destinations, COUNT(destinations)) ||
	       (names_differ(src_type, dst_type) && is_type(field, dst_type));
}

bool gw_names_is_unnamed(struct gw_text_span field)
{
	return field.bytes == 0 || (field.bytes > 8 && strncasecmp(field.at, "unnamed:", 8) == 0);
}

bool gw_names_is_other(struct gw_text_span field)
{
	return gw_names_is_unnamed(field) || is_one_of(field, others, COUNT(others));
}
