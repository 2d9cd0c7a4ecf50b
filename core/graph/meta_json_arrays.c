/* Reads what mygraph.json says of single arrays besides their form: the units of times, what narrow rows were, and
 * which rows have replicas. A
 * newer minor version may say more of them, which is skipped. Errors: see meta_json.c. */
#include <jansson.h>

#include "core/graph/json.h"
#include "core/graph/meta.h"
#include "core/graph/meta_json_private.h"

/* Reads {"node/paper/published": "D", ...}. A newer minor version may have other units. */
gw_status meta_json_units(const json_t *root, struct gw_graph_meta *meta)
{
	json_t *object = json_object_get(root, "units"), *value;
	const char *key;
	if (object && (!json_is_object(object) || meta->minor < GW_FORMAT_MINOR_TIMES))
		return gw_fail(GW_FORMAT, json_is_object(object) ? "\"units\" is a key of minor version 4"
								 : "\"units\" is not an object");
	json_object_foreach(object, key, value)
	{
		struct gw_array_key parsed;
		enum gw_time_unit unit = GW_UNIT_NONE;
		gw_status status = gw_array_key_parse(meta, key, &parsed);
		if (status == GW_OK && (!json_is_string(value) || !gw_time_unit_parse(json_string_value(value), &unit)))
			status =
				gw_fail(GW_FORMAT, "\"%.200s\": a unit is \"D\", \"s\", \"ms\", \"us\" or \"ns\"", key);
		if (status == GW_OK)
			status = gw_meta_set_unit(meta, key, unit);
		else if (status != GW_NO_MEMORY && meta->minor > GW_FORMAT_MINOR)
			status = GW_OK;
		if (status != GW_OK)
			return gw_context(meta_json_as_format(status), "\"units\"");
	}
	return GW_OK;
}

/* Reads {"dtype": "float32"} or, of an int8_row, {"dtype": "float32", "columns": 13}. newer: other keys are allowed. */
static gw_status read_original(const json_t *value, bool newer, gw_dtype *dtype, uint64_t *columns)
{
	const char *name;
	gw_status status =
		json_is_object(value) ? gw_json_text(value, "dtype", 32, &name) : gw_fail(GW_FORMAT, "not an object");
	if (status == GW_OK)
		status = meta_json_as_format(gw_dtype_parse(name, dtype));
	*columns = 0;
	if (status == GW_OK && json_object_get(value, "columns"))
		status = gw_json_number(value, "columns", UINT32_MAX, columns);
	if (status == GW_OK && !newer && json_object_size(value) != 1u + (*columns > 0))
		status = gw_fail(GW_FORMAT, "a key besides dtype and columns");
	return status;
}

/* Reads {"node/paper/feat": {"dtype": "float32"}, ...}. A newer minor version may have more of them. */
gw_status meta_json_originals(const json_t *root, struct gw_graph_meta *meta)
{
	json_t *object = json_object_get(root, "originals"), *value;
	const char *key;
	if (object && (!json_is_object(object) || meta->minor < GW_FORMAT_MINOR_ORIGINALS))
		return gw_fail(GW_FORMAT, json_is_object(object) ? "\"originals\" is a key of minor version 5"
								 : "\"originals\" is not an object");
	json_object_foreach(object, key, value)
	{
		struct gw_array_key parsed;
		gw_dtype dtype = GW_FLOAT32;
		uint64_t columns = 0;
		gw_status status = gw_array_key_parse(meta, key, &parsed);
		if (status == GW_OK) {
			status = read_original(value, meta->minor > GW_FORMAT_MINOR, &dtype, &columns);
			if (status != GW_OK)
				gw_context(status, "\"%.200s\"", key);
		}
		if (status == GW_OK)
			status = gw_meta_set_original(meta, key, dtype, columns);
		else if (status != GW_NO_MEMORY && meta->minor > GW_FORMAT_MINOR)
			status = GW_OK;
		if (status != GW_OK)
			return gw_context(meta_json_as_format(status), "\"originals\"");
	}
	return GW_OK;
}

static gw_status read_replicas(const json_t *value, bool newer, const char **by, uint64_t *of)
{
	gw_status status = json_is_object(value) ? gw_json_text(value, "by", GW_REPLICA_BY_MAX, by)
						 : gw_fail(GW_FORMAT, "not an object");
	if (status == GW_OK)
		status = gw_json_hex(value, "of", of);
	if (status == GW_OK && !newer && json_object_size(value) != 2)
		status = gw_fail(GW_FORMAT, "a key besides by and of");
	return status;
}

/* Reads {"node/paper/feat": {"by": "vip", "of": "0123456789abcdef"}, ...}. A newer minor version may have more of
 * them. */
gw_status meta_json_replicas(const json_t *root, struct gw_graph_meta *meta)
{
	json_t *object = json_object_get(root, "replicas"), *value;
	const char *key;
	if (object && (!json_is_object(object) || meta->minor < GW_FORMAT_MINOR_REPLICAS))
		return gw_fail(GW_FORMAT, json_is_object(object) ? "\"replicas\" is a key of minor version 5"
								 : "\"replicas\" is not an object");
	json_object_foreach(object, key, value)
	{
		struct gw_array_key parsed;
		const char *by = "";
		uint64_t of = 0;
		gw_status status = gw_array_key_parse(meta, key, &parsed);
		if (status == GW_OK) {
			status = read_replicas(value, meta->minor > GW_FORMAT_MINOR, &by, &of);
			if (status != GW_OK)
				gw_context(status, "\"%.200s\"", key);
		}
		if (status == GW_OK)
			status = gw_meta_set_replicas(meta, key, by, of);
		else if (status != GW_NO_MEMORY && meta->minor > GW_FORMAT_MINOR)
			status = GW_OK;
		if (status != GW_OK)
			return gw_context(meta_json_as_format(status), "\"replicas\"");
	}
	return GW_OK;
}
