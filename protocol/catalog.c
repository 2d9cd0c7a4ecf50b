/* The catalog's JSON: {"part": 0, "graph": "<the text of the graph's JSON>", "arrays": [[key, region, offset], ...]}.
 * Region -1: the array is served as rows that change, which are tensors. */
#include "protocol/catalog.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct gw_catalog_array *)a)->key, ((const struct gw_catalog_array *)b)->key);
}

static json_t *catalog_places(const struct gw_part *part, uint32_t region)
{
	json_t *arrays = json_array();
	const struct gw_array *array;
	for (uint32_t i = 0; arrays && (array = gw_part_array_at(part, i)); i++) {
		json_int_t where = array->apart ? -1 : (json_int_t)region;
		json_t *entry = json_pack("[s, I, I]", array->meta->key, where, (json_int_t)array->offset);
		if (!entry || json_array_append_new(arrays, entry) != 0) {
			json_decref(arrays);
			return NULL;
		}
	}
	return arrays;
}

gw_status gw_catalog_print(const struct gw_part *part, uint32_t region, char **text)
{
	*text = NULL;
	char *graph = NULL;
	gw_status status = gw_meta_print(gw_part_meta(part), &graph);
	if (status != GW_OK)
		return status;

	status = gw_fail(GW_NO_MEMORY, "no memory for the catalog");
	json_t *arrays = catalog_places(part, region);
	json_t *root = arrays ? json_pack("{s: I, s: s, s: o}", "part", (json_int_t)gw_part_number(part), "graph",
					  graph, "arrays", arrays)
			      : NULL;
	if (root) {
		char *printed = json_dumps(root, JSON_COMPACT);
		*text = printed ? gw_strdup(printed) : NULL;
		free(printed);
		json_decref(root);
		if (*text)
			status = GW_OK;
	}
	gw_free(graph);
	return status;
}

static gw_status parse_arrays(json_t *arrays, struct gw_catalog *out)
{
	const struct gw_part_meta *expected = &out->meta->parts[out->part];
	if (!json_is_array(arrays) || json_array_size(arrays) != expected->count)
		return gw_fail(GW_PROTOCOL, "catalog: \"arrays\" does not list the %u arrays of part %u",
			       expected->count, out->part);
	out->arrays = gw_calloc(expected->count, sizeof(*out->arrays));
	if (!out->arrays)
		return GW_NO_MEMORY;
	for (size_t i = 0; i < json_array_size(arrays); i++) {
		const char *key;
		json_int_t region, offset;
		if (json_unpack(json_array_get(arrays, i), "[s, I, I]", &key, &region, &offset) != 0 || region < -1 ||
		    region > UINT32_MAX || offset < 0)
			return gw_fail(GW_PROTOCOL, "catalog: arrays[%zu] is not [key, region, offset]", i);
		struct gw_catalog_array *array = &out->arrays[i];
		array->key = gw_strdup(key);
		if (!array->key)
			return GW_NO_MEMORY;
		array->changes = region < 0;
		array->region = array->changes ? 0 : (uint32_t)region;
		array->offset = (uint64_t)offset;
		out->count++;
	}
	qsort(out->arrays, out->count, sizeof(*out->arrays), by_key);
	for (uint32_t i = 0; i < expected->count; i++) {
		if (!gw_catalog_find(out, expected->arrays[i].key))
			return gw_fail(GW_PROTOCOL, "catalog: \"%s\" has no region and offset",
				       expected->arrays[i].key);
	}
	return GW_OK;
}

gw_status gw_catalog_parse(const void *text, size_t bytes, struct gw_catalog *out)
{
	memset(out, 0, sizeof(*out));
	json_error_t error;
	json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
	json_int_t part;
	const char *graph;
	json_t *arrays;
	gw_status status;
	if (!root)
		return gw_fail(GW_PROTOCOL, "catalog: not JSON at byte %d: %s", error.position, error.text);
	if (json_unpack(root, "{s: I, s: s, s: o}", "part", &part, "graph", &graph, "arrays", &arrays) != 0) {
		status = gw_fail(GW_PROTOCOL,
				 "catalog: \"part\", \"graph\" or \"arrays\" is missing or of another type");
		goto out;
	}
	status = gw_meta_parse(graph, strlen(graph), "catalog", &out->meta);
	if (status != GW_OK) {
		status = status == GW_NO_MEMORY ? status : GW_PROTOCOL;
		goto out;
	}
	if (part < 0 || part >= out->meta->num_parts) {
		status = gw_fail(GW_PROTOCOL, "catalog: part %lld of %u", (long long)part, out->meta->num_parts);
		goto out;
	}
	out->part = (uint32_t)part;
	status = parse_arrays(arrays, out);
out:
	json_decref(root);
	if (status != GW_OK)
		gw_catalog_free(out);
	return status;
}

void gw_catalog_free(struct gw_catalog *catalog)
{
	for (uint32_t i = 0; i < catalog->count; i++)
		gw_free(catalog->arrays[i].key);
	gw_free(catalog->arrays);
	gw_meta_destroy(catalog->meta);
	memset(catalog, 0, sizeof(*catalog));
}

const struct gw_catalog_array *gw_catalog_find(const struct gw_catalog *catalog, const char *key)
{
	struct gw_catalog_array wanted = {.key = (char *)(uintptr_t)key};
	return bsearch(&wanted, catalog->arrays, catalog->count, sizeof(wanted), by_key);
}

bool gw_catalog_same_places(const struct gw_catalog *a, const struct gw_catalog *b)
{
	if (a->part != b->part || a->count != b->count || !gw_meta_same(a->meta, b->meta))
		return false;
	for (uint32_t i = 0; i < a->count; i++) {
		const struct gw_catalog_array *x = &a->arrays[i], *y = &b->arrays[i];
		if (strcmp(x->key, y->key) != 0 || x->changes != y->changes || x->region != y->region ||
		    x->offset != y->offset)
			return false;
	}
	return true;
}
