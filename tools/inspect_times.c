/* See inspect_times.h. The first and the last time are those of the keys, which have the order of times. */
#include "tools/inspect_times.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/errors/options.h"
#include "core/graph/times.h"
#include "core/memory/alloc.h"
#include "core/numbers/time_key.h"

#define KEY_MAX        (GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 32)
#define VALUE_TEXT_MAX 32

struct seen_time {
	char key[KEY_MAX];       /* of the times */
	bool sorts;              /* lists are sorted by them; false: nodes have an index of them */
	uint64_t bytes;          /* of the arrays that are made of them, in all parts */
	bool any;                /* a part with times was added: */
	int64_t first, last;     /* ... their keys */
	uint8_t low[8], high[8]; /* ... the times themselves, of the array's dtype */
};

struct gw_times_seen {
	const struct gw_graph_meta *meta;
	struct seen_time *times; /* [count] */
	uint32_t count;
};

static uint64_t bytes_of(const struct gw_graph_meta *meta, const char *key, const char *tail)
{
	char name[KEY_MAX + 16];
	uint64_t bytes = 0;
	snprintf(name, sizeof(name), "%s%s", key, tail);
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		const struct gw_array_meta *array = gw_meta_array(meta, p, name);
		bytes += array ? gw_array_meta_bytes(array) : 0;
	}
	return bytes;
}

static void add_sorted(struct gw_times_seen *seen, uint32_t etype)
{
	const struct gw_edge_type *type = &seen->meta->etypes[etype];
	struct seen_time *time = &seen->times[seen->count++];
	time->sorts = true;
	snprintf(time->key, sizeof(time->key), "edge/%s/%s", type->folder, type->time_name);
	if (seen->meta->minor >= GW_FORMAT_MINOR_TIMES)
		time->bytes = bytes_of(seen->meta, time->key, GW_TIME_FENCE_TAIL);
	if (gw_times_are_of_sources(seen->meta, etype))
		time->bytes += bytes_of(seen->meta, time->key, "");
}

static void add_index(struct gw_times_seen *seen, const char *key)
{
	struct seen_time *time = &seen->times[seen->count++];
	snprintf(time->key, sizeof(time->key), "%.*s", (int)(strlen(key) - strlen(GW_TIMES_TAIL)), key);
	time->bytes =
		bytes_of(seen->meta, time->key, GW_TIMES_TAIL) + bytes_of(seen->meta, time->key, GW_TIMES_NODES_TAIL);
}

gw_status gw_times_seen_make(const struct gw_graph_meta *meta, struct gw_times_seen **out)
{
	uint32_t most = meta->num_etypes + meta->parts[0].count;
	struct gw_times_seen *seen = gw_calloc(1, sizeof(*seen));
	struct seen_time *times = gw_calloc(most, sizeof(*times));
	*out = NULL;
	if (!seen || !times) {
		gw_free(seen);
		gw_free(times);
		return GW_NO_MEMORY;
	}
	*seen = (struct gw_times_seen){.meta = meta, .times = times};
	for (uint32_t e = 0; e < meta->num_etypes; e++) {
		if (meta->etypes[e].order == GW_ORDER_TIME_SRC)
			add_sorted(seen, e);
	}
	for (uint32_t i = 0; meta->minor >= GW_FORMAT_MINOR_TIMES && i < meta->parts[0].count; i++) {
		const char *key = meta->parts[0].arrays[i].key;
		if (strncmp(key, "node/", 5) == 0 && gw_name_ends_in(key, GW_TIMES_TAIL))
			add_index(seen, key);
	}
	*out = seen;
	return GW_OK;
}

void gw_times_seen_free(struct gw_times_seen *seen)
{
	if (!seen)
		return;
	gw_free(seen->times);
	gw_free(seen);
}

static void take(struct seen_time *time, const struct gw_array *array)
{
	for (uint64_t i = 0; i < array->rows; i++) {
		const uint8_t *value = array->data + i * array->row_bytes;
		int64_t key = gw_time_key(array->meta->dtype, value);
		if (!time->any || key < time->first) {
			time->first = key;
			memcpy(time->low, value, array->row_bytes);
		}
		if (!time->any || key > time->last) {
			time->last = key;
			memcpy(time->high, value, array->row_bytes);
		}
		time->any = true;
	}
}

void gw_times_seen_add(struct gw_times_seen *seen, const struct gw_part *part)
{
	for (uint32_t i = 0; i < seen->count; i++)
		take(&seen->times[i], gw_part_array(part, seen->times[i].key));
}

static gw_dtype dtype_of(const struct gw_times_seen *seen, const struct seen_time *time)
{
	return gw_meta_array(seen->meta, 0, time->key)->dtype;
}

static json_t *value_of(gw_dtype dtype, const uint8_t *bytes)
{
	double real;
	float narrow;
	if (!gw_time_is_real(dtype))
		return json_integer(gw_time_key(dtype, bytes));
	memcpy(&real, bytes, sizeof(real));
	memcpy(&narrow, bytes, sizeof(narrow));
	return json_real(dtype == GW_FLOAT32 ? (double)narrow : real); /* NULL for an infinity */
}

static void time_text(gw_dtype dtype, const uint8_t *bytes, char text[VALUE_TEXT_MAX])
{
	double real;
	float narrow;
	memcpy(&real, bytes, sizeof(real));
	memcpy(&narrow, bytes, sizeof(narrow));
	if (gw_time_is_real(dtype))
		snprintf(text, VALUE_TEXT_MAX, "%.9g", dtype == GW_FLOAT32 ? (double)narrow : real);
	else
		snprintf(text, VALUE_TEXT_MAX, "%" PRId64, gw_time_key(dtype, bytes));
}

void gw_times_seen_print(const struct gw_times_seen *seen)
{
	if (seen->count)
		printf("\n%-56s %-9s %-4s %20s %20s %12s\n", "TIME", "DTYPE", "UNIT", "FIRST", "LAST", "ADDED");
	for (uint32_t i = 0; i < seen->count; i++) {
		const struct seen_time *time = &seen->times[i];
		gw_dtype dtype = dtype_of(seen, time);
		enum gw_time_unit unit = gw_meta_unit(seen->meta, time->key);
		char first[VALUE_TEXT_MAX] = "-", last[VALUE_TEXT_MAX] = "-", bytes[GW_UNIT_TEXT_MAX];
		if (time->any) {
			time_text(dtype, time->low, first);
			time_text(dtype, time->high, last);
		}
		printf("%-56s %-9s %-4s %20s %20s %12s\n", time->key, gw_dtype_name(dtype),
		       unit ? gw_time_unit_text(unit) : "-", first, last, gw_text_bytes(bytes, (double)time->bytes));
	}
}

json_t *gw_times_seen_json(const struct gw_times_seen *seen)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < seen->count; i++) {
		const struct seen_time *time = &seen->times[i];
		gw_dtype dtype = dtype_of(seen, time);
		enum gw_time_unit unit = gw_meta_unit(seen->meta, time->key);
		json_t *object = json_pack("{ss ss sb sI}", "array", time->key, "dtype", gw_dtype_name(dtype), "order",
					   time->sorts, "added_bytes", (json_int_t)time->bytes);
		if (unit)
			json_object_set_new(object, "unit", json_string(gw_time_unit_text(unit)));
		if (time->any) {
			json_object_set_new(object, "first", value_of(dtype, time->low));
			json_object_set_new(object, "last", value_of(dtype, time->high));
		}
		json_array_append_new(list, object);
	}
	return list;
}
