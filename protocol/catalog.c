/* The catalog's JSON: {"part": 0, "graph_name": "mygraph", "graph_id": "<16 digits>", "book_digest": "<16 digits>",
 * "arrays": [[key, region, offset, dtype, [shape], "<digest>"], ...]}, and "book": "<the text of the graph's JSON,
 * without its parts>" if the client asks for it. Region -1: the array is served as rows that change, which are
 * tensors, or not at all; -2: it stays on disk. "holds_lists": true is a member if the server holds lists of other
 * parts. Their places are a document of their own: {"lists": [{"part": 1, "arrays": [...]}, ...]}. */
#include "protocol/catalog.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/json.h"
#include "core/memory/alloc.h"

#define REGION_CHANGES (-1)
#define REGION_ON_DISK (-2)

static int compare_to_key(const void *key, const void *array)
{
	return strcmp(key, ((const struct gw_catalog_array *)array)->meta->key);
}

static json_t *hex_of(uint64_t value)
{
	return json_sprintf("%016llx", (unsigned long long)value);
}

static json_t *shape_of(const struct gw_array_meta *array)
{
	json_t *shape = json_array();
	for (uint32_t i = 0; shape && i < array->ndim; i++) {
		if (json_array_append_new(shape, json_integer((json_int_t)array->shape[i])) != 0) {
			json_decref(shape);
			return NULL;
		}
	}
	return shape;
}

/* lists: only the arrays that the part has in memory. */
static json_t *catalog_places(const struct gw_part *part, uint32_t region, bool lists)
{
	json_t *arrays = json_array();
	const struct gw_array *array;
	for (uint32_t i = 0; arrays && (array = gw_part_array_at(part, i)); i++) {
		if (lists && array->apart)
			continue;
		json_int_t where = array->apart == GW_ARRAY_HERE      ? (json_int_t)region
				   : array->apart == GW_ARRAY_ON_DISK ? REGION_ON_DISK
								      : REGION_CHANGES;
		json_t *entry = json_pack("[s, I, I, s, o, o]", array->meta->key, where, (json_int_t)array->offset,
					  gw_dtype_name(array->meta->dtype), shape_of(array->meta),
					  hex_of(array->meta->digest));
		if (!entry || json_array_append_new(arrays, entry) != 0) {
			json_decref(arrays);
			return NULL;
		}
	}
	return arrays;
}

/* Releases the document. */
static gw_status catalog_text(json_t *root, char **text)
{
	char *printed = root ? json_dumps(root, JSON_COMPACT) : NULL;
	*text = printed ? gw_strdup(printed) : NULL;
	free(printed);
	json_decref(root);
	return *text ? GW_OK : gw_fail(GW_NO_MEMORY, "no memory for the catalog");
}

gw_status gw_catalog_print(const struct gw_part *part, uint32_t region, enum gw_catalog_form form, bool holds_lists,
			   char **text)
{
	const struct gw_graph_meta *meta = gw_part_meta(part);
	char *book = NULL;
	uint64_t digest;
	*text = NULL;
	gw_status status = gw_meta_book_digest(meta, &digest);
	if (status == GW_OK && form == GW_CATALOG_WITH_BOOK)
		status = gw_meta_print_book(meta, &book);
	if (status != GW_OK)
		return status;

	json_t *root = json_pack(
		"{s: I, s: s, s: o, s: o, s: o, s: s*, s: o*}", "part", (json_int_t)gw_part_number(part), "graph_name",
		meta->graph_name, "graph_id", hex_of(meta->graph_id), "book_digest", hex_of(digest), "arrays",
		catalog_places(part, region, false), "book", book, "holds_lists", holds_lists ? json_true() : NULL);
	gw_free(book);
	return catalog_text(root, text);
}

gw_status gw_catalog_lists_print(struct gw_part *const *parts, uint32_t count, uint32_t region, char **text)
{
	json_t *lists = json_array();
	for (uint32_t i = 0; lists && i < count; i++) {
		json_t *one = json_pack("{s: I, s: o}", "part", (json_int_t)gw_part_number(parts[i]), "arrays",
					catalog_places(parts[i], region, true));
		if (!one || json_array_append_new(lists, one) != 0) {
			json_decref(lists);
			lists = NULL;
		}
	}
	return catalog_text(json_pack("{s: o}", "lists", lists), text);
}

static gw_status catalog_shape(const json_t *shape, struct gw_array_meta *array)
{
	size_t dimensions = json_array_size(shape); /* 0: it is no array */
	if (dimensions == 0 || dimensions > GW_DIMS_MAX)
		return gw_fail(GW_PROTOCOL, "its shape has not 1 to %d dimensions", GW_DIMS_MAX);
	array->ndim = (uint32_t)dimensions;
	gw_status status = GW_OK;
	for (uint32_t i = 0; status == GW_OK && i < array->ndim; i++)
		status = gw_json_count(json_array_get(shape, i), "shape", GW_NONE - 1, &array->shape[i]);
	return status == GW_OK ? gw_meta_check_size(array) : status;
}

/* The key of the result belongs to the entry. */
static gw_status catalog_entry(json_t *entry, struct gw_array_meta *array, struct gw_catalog_array *place)
{
	const char *key, *dtype;
	json_int_t region, offset;
	json_t *shape;
	if (json_array_size(entry) != 6 ||
	    json_unpack(entry, "[s, I, I, s, o]", &key, &region, &offset, &dtype, &shape) != 0 ||
	    region < REGION_ON_DISK || region > UINT32_MAX || offset < 0 || (region == REGION_ON_DISK && offset > 0))
		return gw_fail(GW_PROTOCOL, "not [key, region, offset, dtype, shape, digest]");
	*array = (struct gw_array_meta){.key = (char *)(uintptr_t)key};
	gw_status status = gw_dtype_parse(dtype, &array->dtype);
	if (status == GW_OK)
		status = gw_json_hex_value(json_array_get(entry, 5), "digest", &array->digest);
	if (status == GW_OK)
		status = catalog_shape(shape, array);
	if (status != GW_OK)
		return status;
	place->changes = region == REGION_CHANGES;
	place->on_disk = region == REGION_ON_DISK;
	place->region = region < 0 ? 0 : (uint32_t)region;
	place->offset = (uint64_t)offset;
	return GW_OK;
}

static gw_status parse_arrays(json_t *arrays, struct gw_catalog *out)
{
	size_t count = json_array_size(arrays);
	if (!json_is_array(arrays) || count > GW_ARRAYS_MAX)
		return gw_fail(GW_PROTOCOL, "catalog: \"arrays\" is no list of at most %d arrays", GW_ARRAYS_MAX);
	out->own.arrays = gw_calloc(count, sizeof(*out->own.arrays));
	out->arrays = gw_calloc(count, sizeof(*out->arrays));
	if (!out->own.arrays || !out->arrays)
		return GW_NO_MEMORY;
	for (uint32_t i = 0; i < count; i++) {
		struct gw_array_meta *array = &out->own.arrays[i];
		gw_status status = catalog_entry(json_array_get(arrays, i), array, &out->arrays[i]);
		if (status == GW_OK && i > 0 && strcmp(array[-1].key, array->key) >= 0)
			status = gw_fail(GW_PROTOCOL, "\"%.200s\" does not follow \"%.200s\"", array->key,
					 array[-1].key);
		array->key = status == GW_OK ? gw_strdup(array->key) : NULL;
		if (status != GW_OK)
			return gw_context(status == GW_NO_MEMORY ? status : GW_PROTOCOL, "catalog: arrays[%u]", i);
		if (!array->key)
			return GW_NO_MEMORY;
		out->arrays[i].meta = array;
		out->own.count = out->count = i + 1;
	}
	return GW_OK;
}

static gw_status parse_book(json_t *root, struct gw_catalog *out)
{
	const char *text = json_string_value(json_object_get(root, "book"));
	if (!json_object_get(root, "book"))
		return GW_OK;
	if (!text)
		return gw_fail(GW_PROTOCOL, "catalog: \"book\" is not a text");
	uint64_t digest;
	gw_status status = gw_meta_parse_book(text, strlen(text), "catalog", &out->book);
	if (status == GW_OK)
		status = gw_meta_book_digest(out->book, &digest);
	if (status != GW_OK)
		return status == GW_NO_MEMORY ? status : GW_PROTOCOL;
	if (digest != out->book_digest || out->book->graph_id != out->graph_id ||
	    strcmp(out->book->graph_name, out->graph_name) != 0 || out->part >= out->book->num_parts)
		return gw_fail(GW_PROTOCOL, "catalog: its book is of another graph, or has no part %u", out->part);
	return GW_OK;
}

static gw_status parse_root(json_t *root, struct gw_catalog *out)
{
	uint64_t part;
	const char *name;
	json_t *arrays;
	gw_status status = gw_json_number(root, "part", GW_PARTS_MAX - 1, &part);
	if (status == GW_OK)
		status = gw_json_text(root, "graph_name", GW_NAME_MAX, &name);
	if (status == GW_OK)
		status = gw_name_check("graph", name);
	if (status == GW_OK)
		status = gw_json_hex(root, "graph_id", &out->graph_id);
	if (status == GW_OK)
		status = gw_json_hex(root, "book_digest", &out->book_digest);
	if (status == GW_OK)
		status = gw_json_get(root, "arrays", JSON_ARRAY, &arrays);
	if (status != GW_OK)
		return gw_context(GW_PROTOCOL, "catalog");
	out->part = (uint32_t)part;
	out->holds_lists = json_is_true(json_object_get(root, "holds_lists"));
	memcpy(out->graph_name, name, strlen(name) + 1);
	status = parse_arrays(arrays, out);
	return status == GW_OK ? parse_book(root, out) : status;
}

gw_status gw_catalog_parse(const void *text, size_t bytes, struct gw_catalog *out)
{
	memset(out, 0, sizeof(*out));
	json_error_t error;
	json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		return gw_fail(GW_PROTOCOL, "catalog: not JSON at byte %d: %s", error.position, error.text);
	gw_status status = parse_root(root, out);
	json_decref(root);
	if (status != GW_OK)
		gw_catalog_free(out);
	return status;
}

static gw_status parse_list(json_t *entry, struct gw_catalog *out)
{
	uint64_t part;
	json_t *arrays;
	gw_status status = gw_json_number(entry, "part", GW_PARTS_MAX - 1, &part);
	if (status == GW_OK)
		status = gw_json_get(entry, "arrays", JSON_ARRAY, &arrays);
	if (status != GW_OK)
		return gw_context(GW_PROTOCOL, "catalog of lists");
	out->part = (uint32_t)part;
	return parse_arrays(arrays, out);
}

static gw_status parse_lists(const json_t *root, uint32_t num_parts, uint32_t own, struct gw_catalog_lists *out)
{
	const json_t *lists = json_object_get(root, "lists");
	size_t count = json_array_size(lists);
	if (!json_is_array(lists) || count >= num_parts)
		return gw_fail(GW_PROTOCOL, "catalog of lists: \"lists\" is no list of fewer than %u parts", num_parts);
	out->parts = gw_calloc(count + 1, sizeof(*out->parts));
	if (!out->parts)
		return GW_NO_MEMORY;
	for (uint32_t i = 0; i < count; i++) {
		out->count = i + 1;
		gw_status status = parse_list(json_array_get(lists, i), &out->parts[i]);
		if (status != GW_OK)
			return status;
		uint32_t part = out->parts[i].part;
		if (part >= num_parts || part == own || (i > 0 && part <= out->parts[i - 1].part))
			return gw_fail(GW_PROTOCOL, "catalog of lists: part %u is unknown, its own or out of order",
				       part);
	}
	return GW_OK;
}

gw_status gw_catalog_lists_parse(const void *text, size_t bytes, uint32_t num_parts, uint32_t own,
				 struct gw_catalog_lists *out)
{
	memset(out, 0, sizeof(*out));
	json_error_t error;
	json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		return gw_fail(GW_PROTOCOL, "catalog of lists: not JSON at byte %d: %s", error.position, error.text);
	gw_status status = parse_lists(root, num_parts, own, out);
	json_decref(root);
	if (status != GW_OK)
		gw_catalog_lists_free(out);
	return status;
}

static void free_own(struct gw_catalog *catalog)
{
	for (uint32_t i = 0; i < catalog->own.count; i++)
		gw_free(catalog->own.arrays[i].key);
	gw_free(catalog->own.arrays);
	catalog->own = (struct gw_part_meta){0};
}

void gw_catalog_free(struct gw_catalog *catalog)
{
	free_own(catalog);
	gw_free(catalog->arrays);
	gw_meta_destroy(catalog->book);
	memset(catalog, 0, sizeof(*catalog));
}

void gw_catalog_lists_free(struct gw_catalog_lists *lists)
{
	for (uint32_t i = 0; i < lists->count; i++)
		gw_catalog_free(&lists->parts[i]);
	gw_free(lists->parts);
	memset(lists, 0, sizeof(*lists));
}

gw_status gw_catalog_join(struct gw_catalog *catalog, struct gw_graph_meta *graph, uint64_t book_digest)
{
	struct gw_part_meta *part = catalog->part < graph->num_parts ? &graph->parts[catalog->part] : NULL;
	bool same = part && book_digest == catalog->book_digest && graph->graph_id == catalog->graph_id;
	if (same && part->count == 0 && catalog->own.count > 0) {
		gw_free(part->arrays);
		*part = catalog->own;
		catalog->own = (struct gw_part_meta){0};
		return GW_OK;
	}
	same = same && part->count == catalog->count;
	for (uint32_t i = 0; same && i < catalog->count; i++)
		same = gw_array_meta_same(catalog->arrays[i].meta, &part->arrays[i]);
	if (!same)
		return gw_fail(GW_PROTOCOL, "it describes another graph under the id of this one, %016llx",
			       (unsigned long long)graph->graph_id);
	for (uint32_t i = 0; i < catalog->count; i++)
		catalog->arrays[i].meta = &part->arrays[i];
	free_own(catalog);
	return GW_OK;
}

const struct gw_catalog_array *gw_catalog_find(const struct gw_catalog *catalog, const char *key)
{
	return bsearch(key, catalog->arrays, catalog->count, sizeof(*catalog->arrays), compare_to_key);
}

bool gw_catalog_same_places(const struct gw_catalog *a, const struct gw_catalog *b)
{
	if (a->part != b->part || a->graph_id != b->graph_id || a->book_digest != b->book_digest ||
	    a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++) {
		const struct gw_catalog_array *x = &a->arrays[i], *y = &b->arrays[i];
		if (!gw_array_meta_same(x->meta, y->meta) || x->changes != y->changes || x->on_disk != y->on_disk ||
		    x->region != y->region || x->offset != y->offset)
			return false;
	}
	return true;
}
