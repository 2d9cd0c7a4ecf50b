/* The format's requirements on a part's arrays: which must exist, with which dtype and shape.
 *
 *   key -> slot (type, name) -> rule (dtypes, dimensions, rows) -> this array fits, or GW_INVALID naming the key
 *
 * The writer and the reader share it, so that the writer writes only what the reader accepts.
 */
#include <stdio.h>
#include <string.h>

#include "core/graph/book.h"
#include "core/graph/meta.h"
#include "core/graph/replicas.h"
#include "core/graph/times.h"
#include "core/memory/alloc.h"
#include "core/numbers/convert.h"
#include "core/numbers/time_key.h"

#define BITS(dtype) (1u << (dtype))
#define ANY_DTYPE   (BITS(GW_DTYPE_COUNT) - 1)
#define TIME_DTYPES (BITS(GW_INT32) | BITS(GW_INT64) | BITS(GW_FLOAT32) | BITS(GW_FLOAT64))
#define ANY_ROWS    UINT64_MAX
#define ANY_COLUMNS UINT64_MAX

static gw_status bad_key(const char *key, const char *why)
{
	return gw_fail(
		GW_INVALID,
		"\"%.200s\": %s; keys are node/TYPE/NAME, edge/SRC__REL__DST/NAME or edge/SRC__REL__DST/out/NAME", key,
		why);
}

/* GW_TYPE_NONE if no type has it. */
static uint32_t find_type(const struct gw_graph_meta *meta, bool edge, const char *text, size_t length)
{
	uint32_t count = edge ? meta->num_etypes : meta->num_ntypes;
	for (uint32_t t = 0; t < count; t++) {
		const char *name = edge ? meta->etypes[t].folder : meta->ntypes[t].name;
		if (strncmp(name, text, length) == 0 && name[length] == '\0')
			return t;
	}
	return GW_TYPE_NONE;
}

gw_status gw_array_key_parse(const struct gw_graph_meta *meta, const char *key, struct gw_array_key *out)
{
	memset(out, 0, sizeof(*out));
	out->edge = strncmp(key, "edge/", 5) == 0;
	if (!out->edge && strncmp(key, "node/", 5) != 0)
		return bad_key(key, "starts with neither node/ nor edge/");
	const char *type = key + 5;
	const char *slash = strchr(type, '/');
	if (!slash)
		return bad_key(key, "has no name after its type");
	out->type = find_type(meta, out->edge, type, (size_t)(slash - type));
	if (out->type == GW_TYPE_NONE)
		return bad_key(key,
			       out->edge ? "names no edge type of this graph" : "names no node type of this graph");
	out->name = slash + 1;
	if (out->edge && strncmp(out->name, "out/", 4) == 0) {
		out->out = true;
		out->name += 4;
	}
	gw_status status = gw_name_check("name", out->name);
	return status == GW_OK ? GW_OK : gw_context(status, "\"%.200s\"", key);
}

/* Whether the name is that of a split: one byte for each node, or one for each node and split. */
static bool is_mask(const char *name)
{
	return strcmp(name, "train_mask") == 0 || strcmp(name, "val_mask") == 0 || strcmp(name, "test_mask") == 0;
}

struct rule {
	uint32_t dtypes;  /* a bit for each */
	uint32_t ndim;    /* 0: one or more */
	uint64_t rows;    /* or ANY_ROWS */
	uint64_t columns; /* shape[1], if ndim is 2; or ANY_COLUMNS */
};

/* Strings of nodes or edges are two arrays: offsets and bytes. Returns true if the name is one of them. */
static bool string_rule(const char *name, uint64_t rows, struct rule *rule)
{
	if (gw_name_ends_in(name, ".offsets")) {
		bool names = gw_name_ends_in(name, ".names.offsets");
		*rule = (struct rule){BITS(GW_UINT64), 1, names ? ANY_ROWS : rows + 1, 0};
		return true;
	}
	if (gw_name_ends_in(name, ".bytes")) {
		*rule = (struct rule){BITS(GW_UINT8), 1, ANY_ROWS, 0};
		return true;
	}
	return false;
}

/* The arrays that lead from original ids to nodes. Returns true if the name is one of them. */
static bool node_ids_rule(const struct gw_graph_meta *meta, uint32_t part, const struct gw_array_key *key,
			  struct rule *rule)
{
	const uint32_t ids = BITS(GW_UINT32) | BITS(GW_UINT64);
	uint64_t count = meta->ntypes[key->type].count;
	if (meta->minor < GW_FORMAT_MINOR_IDS || !gw_name_is_node_ids(key->name))
		return false;
	if (strcmp(key->name, GW_INVERSE_NAME) == 0)
		*rule = (struct rule){ids, 1,
				      gw_dense_start(count, part + 1, meta->num_parts) -
					      gw_dense_start(count, part, meta->num_parts),
				      0};
	else if (strcmp(key->name, GW_ID_INDEX_NAME) == 0)
		*rule = (struct rule){BITS(GW_UINT64), 2, ANY_ROWS, ANY_COLUMNS};
	else
		*rule = (struct rule){ids, 1, ANY_ROWS, 0};
	return true;
}

/* The arrays that are made of times. Returns true if the name is one of them. */
static bool times_rule(const struct gw_graph_meta *meta, const struct gw_array_key *key, uint64_t rows,
		       struct rule *rule)
{
	const uint32_t ids = BITS(GW_UINT32) | BITS(GW_UINT64);
	if (meta->minor < GW_FORMAT_MINOR_TIMES || !gw_name_is_of_times(key->edge, key->name))
		return false;
	if (gw_name_ends_in(key->name, GW_TIME_FENCE_TAIL))
		*rule = (struct rule){BITS(GW_INT64), 1, gw_fence_entries(rows), 0};
	else if (gw_name_ends_in(key->name, GW_TIME_SOURCE_TAIL))
		*rule = (struct rule){TIME_DTYPES, 1, rows, 0};
	else
		*rule = (struct rule){gw_name_ends_in(key->name, GW_TIMES_TAIL) ? BITS(GW_INT64) : ids, 1, rows, 0};
	return true;
}

/* The replicas of rows. Returns true if the name is one of their arrays. */
static bool replicas_rule(const struct gw_graph_meta *meta, const struct gw_array_key *key, struct rule *rule)
{
	if (meta->minor < GW_FORMAT_MINOR_REPLICAS || !gw_name_is_of_replicas(key->name))
		return false;
	if (strcmp(key->name, GW_REPLICA_INDEX_NAME) == 0)
		*rule = (struct rule){BITS(GW_UINT64), 2, gw_replica_blocks(meta->ntypes[key->type].count),
				      GW_REPLICA_COLUMNS};
	else
		*rule = (struct rule){ANY_DTYPE, 0, ANY_ROWS, 0};
	return true;
}

static gw_status node_rule(const struct gw_graph_meta *meta, uint32_t part, const struct gw_array_key *key,
			   const char *text, struct rule *rule)
{
	const struct gw_node_type *type = &meta->ntypes[key->type];
	uint64_t rows = type->starts[part + 1] - type->starts[part];
	const uint32_t ids = BITS(GW_UINT32) | BITS(GW_UINT64);
	bool out = strcmp(key->name, "out_indptr") == 0;
	if (out || strcmp(key->name, "indptr") == 0) {
		uint32_t columns = out ? type->out_columns : type->columns;
		if (columns == 0)
			return gw_fail(GW_INVALID, "\"%s\": no edge type %s", text,
				       out ? "that starts there is stored transposed" : "ends there");
		*rule = (struct rule){ids, 2, rows + 1, columns};
	} else if (!node_ids_rule(meta, part, key, rule) && !times_rule(meta, key, rows, rule) &&
		   !replicas_rule(meta, key, rule) && !string_rule(key->name, rows, rule)) {
		*rule = (struct rule){ANY_DTYPE, 0, rows, 0};
		if (strcmp(key->name, "orig_id") == 0)
			*rule = (struct rule){BITS(GW_INT64), 1, rows, 0};
		else if (is_mask(key->name))
			*rule = (struct rule){BITS(GW_BOOL) | BITS(GW_UINT8) | BITS(GW_INT8),
					      meta->minor < GW_FORMAT_MINOR_SPLITS, rows, 0};
	}
	return GW_OK;
}

static gw_status edge_rule(const struct gw_graph_meta *meta, uint32_t part, const struct gw_array_key *key,
			   const char *text, struct rule *rule)
{
	const struct gw_edge_type *type = &meta->etypes[key->type];
	uint64_t rows = type->starts[part + 1] - type->starts[part];
	const uint32_t ids = BITS(GW_UINT32) | BITS(GW_UINT64);
	const uint32_t relations = BITS(GW_UINT8) | BITS(GW_UINT16) | BITS(GW_UINT32);
	if (key->out) {
		bool eid = strcmp(key->name, "eid") == 0;
		if (type->out_column == GW_TYPE_NONE)
			return gw_fail(GW_INVALID, "\"%s\": the edge type is not stored transposed", text);
		if (!eid && strcmp(key->name, "indices") != 0)
			return gw_fail(GW_INVALID, "\"%s\": a transpose has indices and eid", text);
		*rule = (struct rule){eid ? BITS(GW_UINT64) : ids, 1, ANY_ROWS, 0};
	} else if (strcmp(key->name, "indices") == 0) {
		*rule = (struct rule){ids, 1, rows, 0};
	} else if (strcmp(key->name, "rel") == 0 && type->relations > 0) {
		*rule = (struct rule){relations, 1, rows, 0};
	} else if (strcmp(key->name, "orig_id") == 0) {
		*rule = (struct rule){BITS(GW_UINT32) | BITS(GW_INT64), 1, rows, 0};
	} else if (strcmp(key->name, GW_INVERSE_NAME) == 0) {
		if (meta->num_parts > 1 && meta->minor < GW_FORMAT_MINOR_IDS)
			return gw_fail(GW_INVALID, "\"%s\": only a graph in one part has it before minor version %d",
				       text, GW_FORMAT_MINOR_IDS);
		*rule = (struct rule){ids, 1, ANY_ROWS, 0};
	} else if (times_rule(meta, key, rows, rule)) {
		return GW_OK;
	} else if (type->order == GW_ORDER_TIME_SRC && strcmp(key->name, type->time_name) == 0) {
		const uint32_t whole = BITS(GW_INT64) | BITS(GW_INT32);
		*rule = (struct rule){meta->minor < GW_FORMAT_MINOR_TIMES ? whole : TIME_DTYPES, 1, rows, 0};
	} else if (gw_name_ends_in(key->name, ".alias")) {
		*rule = (struct rule){BITS(GW_UINT32), 2, rows, 2};
	} else if (!string_rule(key->name, rows, rule)) {
		*rule = (struct rule){ANY_DTYPE, 0, rows, 0};
	}
	return GW_OK;
}

gw_status gw_meta_check_size(const struct gw_array_meta *array)
{
	uint64_t bytes = gw_dtype_bytes(array->dtype);
	for (uint32_t i = 1; i < array->ndim; i++) {
		if (array->shape[i] == 0)
			return gw_fail(GW_INVALID, "\"%s\": dimension %u of its shape is 0", array->key, i);
		if (__builtin_mul_overflow(bytes, array->shape[i], &bytes) || bytes > UINT32_MAX)
			return gw_fail(GW_LIMIT, "\"%s\": a row has more than 4 GiB", array->key);
	}
	if (__builtin_mul_overflow(bytes, array->shape[0], &bytes) || bytes > INT64_MAX / 2)
		return gw_fail(GW_LIMIT, "\"%s\": its shape has more bytes than any memory", array->key);
	if (array->dtype == GW_INT8_ROW &&
	    (array->ndim != 2 || array->shape[1] <= GW_INT8_ROW_HEAD || array->shape[1] % 4 != 0))
		return gw_fail(GW_INVALID,
			       "\"%s\": an int8_row is {float32 scale, float32 offset, int8[d]}, padded to 4 bytes",
			       array->key);
	return GW_OK;
}

static gw_status check_parsed(const struct gw_graph_meta *meta, uint32_t part, const struct gw_array_meta *array,
			      const struct gw_array_key *key)
{
	struct rule rule = {0};
	gw_status status = key->edge ? edge_rule(meta, part, key, array->key, &rule)
				     : node_rule(meta, part, key, array->key, &rule);
	if (status != GW_OK)
		return status;
	if ((unsigned)array->dtype >= GW_DTYPE_COUNT || !(rule.dtypes & BITS(array->dtype)))
		return gw_fail(GW_INVALID, "\"%s\": its dtype cannot be %s", array->key, gw_dtype_name(array->dtype));
	if (array->ndim == 0 || array->ndim > GW_DIMS_MAX || (rule.ndim != 0 && array->ndim != rule.ndim))
		return gw_fail(GW_INVALID, "\"%s\": it has %u dimensions; %u expected", array->key, array->ndim,
			       rule.ndim ? rule.ndim : 1);
	if (rule.rows != ANY_ROWS && array->shape[0] != rule.rows)
		return gw_fail(GW_INVALID, "\"%s\": it has %llu rows; part %u has %llu there", array->key,
			       (unsigned long long)array->shape[0], part, (unsigned long long)rule.rows);
	if (gw_name_ends_in(key->name, ".offsets") && array->shape[0] == 0)
		return gw_fail(GW_INVALID, "\"%s\": it has no rows; offsets have one more than there are strings",
			       array->key);
	if (rule.ndim == 2 && rule.columns != ANY_COLUMNS && array->shape[1] != rule.columns)
		return gw_fail(GW_INVALID, "\"%s\": it has %llu columns; %llu expected", array->key,
			       (unsigned long long)array->shape[1], (unsigned long long)rule.columns);
	return gw_meta_check_size(array);
}

uint32_t gw_meta_minor_of(const struct gw_graph_meta *meta, const char *key, uint32_t ndim)
{
	struct gw_array_key parsed;
	bool splits =
		ndim > 1 && gw_array_key_parse(meta, key, &parsed) == GW_OK && !parsed.edge && is_mask(parsed.name);
	return splits ? GW_FORMAT_MINOR_SPLITS : 0;
}

gw_status gw_meta_check_array(const struct gw_graph_meta *meta, uint32_t part, const struct gw_array_meta *array)
{
	struct gw_array_key key;
	if (part >= meta->num_parts)
		return gw_fail(GW_INVALID, "part %u: the graph has %u parts", part, meta->num_parts);
	gw_status status = gw_array_key_parse(meta, array->key, &key);
	return status == GW_OK ? check_parsed(meta, part, array, &key) : status;
}

static gw_status schema_require(const struct gw_graph_meta *meta, uint32_t part, bool edge, uint32_t type,
				const char *name, const struct gw_array_meta **out)
{
	char key[GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 16];
	snprintf(key, sizeof(key), "%s/%s/%s", edge ? "edge" : "node",
		 edge ? meta->etypes[type].folder : meta->ntypes[type].name, name);
	const struct gw_array_meta *array = gw_meta_array(meta, part, key);
	if (out)
		*out = array;
	if (!array)
		return gw_fail(GW_INVALID, "part %u: there is no \"%s\"", part, key);
	return GW_OK;
}

/* Checks that the transposed lists of all parts together have as many edges as the type. */
static gw_status schema_check_transpose(const struct gw_graph_meta *meta, uint32_t etype)
{
	uint64_t total = 0;
	bool over = false;
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		const struct gw_array_meta *indices, *eid;
		gw_status status = schema_require(meta, p, true, etype, "out/indices", &indices);
		if (status == GW_OK)
			status = schema_require(meta, p, true, etype, "out/eid", &eid);
		if (status != GW_OK)
			return status;
		if (indices->shape[0] != eid->shape[0])
			return gw_fail(GW_INVALID, "part %u: \"%s\" has %llu rows, \"%s\" %llu", p, indices->key,
				       (unsigned long long)indices->shape[0], eid->key,
				       (unsigned long long)eid->shape[0]);
		over |= __builtin_add_overflow(total, eid->shape[0], &total);
	}
	if (over || total != meta->etypes[etype].count)
		return gw_fail(GW_INVALID, "edge type \"%s\": its transposed lists hold another number of edges",
			       meta->etypes[etype].folder);
	return GW_OK;
}

static gw_status check_required(const struct gw_graph_meta *meta, uint32_t part)
{
	gw_status status = GW_OK;
	for (uint32_t t = 0; status == GW_OK && t < meta->num_ntypes; t++) {
		if (meta->ntypes[t].columns > 0)
			status = schema_require(meta, part, false, t, "indptr", NULL);
		if (status == GW_OK && meta->ntypes[t].out_columns > 0)
			status = schema_require(meta, part, false, t, "out_indptr", NULL);
	}
	for (uint32_t t = 0; status == GW_OK && t < meta->num_etypes; t++) {
		const struct gw_edge_type *type = &meta->etypes[t];
		status = schema_require(meta, part, true, t, "indices", NULL);
		if (status == GW_OK && type->relations > 0)
			status = schema_require(meta, part, true, t, "rel", NULL);
		if (status == GW_OK && type->order == GW_ORDER_TIME_SRC)
			status = schema_require(meta, part, true, t, type->time_name, NULL);
	}
	return status;
}

/* Fails for offsets without bytes, bytes without offsets, and ids that are both numbers and text. */
static gw_status schema_check_strings(const struct gw_graph_meta *meta, uint32_t part)
{
	for (uint32_t i = 0; i < meta->parts[part].count; i++) {
		const char *key = meta->parts[part].arrays[i].key;
		bool offsets = gw_name_ends_in(key, ".offsets");
		if (!offsets && !gw_name_ends_in(key, ".bytes"))
			continue;
		char other[GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 16];
		size_t stem = (size_t)(strrchr(key, '.') - key);
		snprintf(other, sizeof(other), "%.*s", (int)stem, key);
		if (gw_name_ends_in(other, "/orig_id") && gw_meta_array(meta, part, other))
			return gw_fail(GW_INVALID, "part %u: \"%s\" and \"%s\": ids are numbers or text, not both",
				       part, key, other);
		snprintf(other, sizeof(other), "%.*s%s", (int)stem, key, offsets ? ".bytes" : ".offsets");
		if (!gw_meta_array(meta, part, other))
			return gw_fail(GW_INVALID, "part %u: \"%s\" without \"%s\": strings are both", part, key,
				       other);
	}
	return GW_OK;
}

/* orig_id.inverse needs original ids, has at most one row for each edge, and is divided evenly over the parts. */
static gw_status schema_check_inverse(const struct gw_graph_meta *meta, uint32_t etype)
{
	char key[GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 16];
	snprintf(key, sizeof(key), "edge/%s/" GW_INVERSE_NAME, meta->etypes[etype].folder);
	uint64_t rows = 0;
	bool over = false;
	if (!gw_meta_array(meta, 0, key))
		return GW_OK;
	for (uint32_t p = 0; p < meta->num_parts; p++)
		over |= __builtin_add_overflow(rows, gw_meta_array(meta, p, key)->shape[0], &rows);
	if (over || rows > meta->etypes[etype].count)
		return gw_fail(GW_INVALID, "\"%s\": it has %llu rows, but there are %llu edges", key,
			       (unsigned long long)rows, (unsigned long long)meta->etypes[etype].count);
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		uint64_t wanted =
			gw_dense_start(rows, p + 1, meta->num_parts) - gw_dense_start(rows, p, meta->num_parts);
		if (gw_meta_array(meta, p, key)->shape[0] != wanted)
			return gw_fail(GW_INVALID, "part %u: \"%s\" has %llu rows; %llu expected", p, key,
				       (unsigned long long)gw_meta_array(meta, p, key)->shape[0],
				       (unsigned long long)wanted);
	}
	return schema_require(meta, 0, true, etype, "orig_id", NULL);
}

static const struct gw_array_meta *schema_node_array(const struct gw_graph_meta *meta, uint32_t part, uint32_t ntype,
						     const char *name)
{
	char key[2 * GW_NAME_MAX + 16];
	snprintf(key, sizeof(key), "node/%s/%s", meta->ntypes[ntype].name, name);
	return gw_meta_array(meta, part, key);
}

/* The entries of an index: one for each node, over all parts, as wide as the original ids require. */
static gw_status schema_check_entries(const struct gw_graph_meta *meta, uint32_t ntype)
{
	uint64_t total = 0;
	bool over = false;
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		const struct gw_array_meta *index = schema_node_array(meta, p, ntype, GW_ID_INDEX_NAME);
		const struct gw_array_meta *buckets = schema_node_array(meta, p, ntype, GW_ID_BUCKETS_NAME);
		uint64_t columns = schema_node_array(meta, p, ntype, "orig_id") ? 2 : 3;
		if (!index || !buckets)
			return gw_fail(GW_INVALID,
				       "part %u: node type \"%s\": \"%s\" and \"%s\" are both there, or neither", p,
				       meta->ntypes[ntype].name, GW_ID_INDEX_NAME, GW_ID_BUCKETS_NAME);
		if (index->shape[1] != columns)
			return gw_fail(GW_INVALID, "part %u: \"%s\": it has %llu columns; %llu expected", p, index->key,
				       (unsigned long long)index->shape[1], (unsigned long long)columns);
		if (buckets->shape[0] < 2)
			return gw_fail(GW_INVALID, "part %u: \"%s\": it has no bucket", p, buckets->key);
		over |= __builtin_add_overflow(total, index->shape[0], &total);
	}
	if (over || total != meta->ntypes[ntype].count)
		return gw_fail(GW_INVALID, "node type \"%s\": the entries of \"%s\" are not as many as the nodes",
			       meta->ntypes[ntype].name, GW_ID_INDEX_NAME);
	return GW_OK;
}

/* The arrays that lead from original ids to nodes need original ids, and have one of the two forms. */
static gw_status schema_check_node_ids(const struct gw_graph_meta *meta, uint32_t ntype)
{
	bool dense = schema_node_array(meta, 0, ntype, GW_INVERSE_NAME) != NULL;
	bool index = schema_node_array(meta, 0, ntype, GW_ID_INDEX_NAME) ||
		     schema_node_array(meta, 0, ntype, GW_ID_BUCKETS_NAME);
	bool numbers = schema_node_array(meta, 0, ntype, "orig_id") != NULL;
	bool texts = schema_node_array(meta, 0, ntype, "orig_id.offsets") != NULL;
	if (meta->minor < GW_FORMAT_MINOR_IDS || (!dense && !index))
		return GW_OK;
	if (dense && index)
		return gw_fail(GW_INVALID, "node type \"%s\": it has both \"%s\" and \"%s\"", meta->ntypes[ntype].name,
			       GW_INVERSE_NAME, GW_ID_INDEX_NAME);
	if (!numbers && (dense || !texts))
		return gw_fail(GW_INVALID, "node type \"%s\": it has \"%s\", but no \"orig_id\"",
			       meta->ntypes[ntype].name, dense ? GW_INVERSE_NAME : GW_ID_INDEX_NAME);
	return dense ? GW_OK : schema_check_entries(meta, ntype);
}

/* A fence belongs to a type that is sorted by this time, and what is made of a node feature has its dtype. All parts
 * have the same arrays. */
static gw_status schema_check_edge_times(const struct gw_graph_meta *meta, const struct gw_array_meta *array,
					 const struct gw_array_key *key)
{
	const struct gw_edge_type *type = &meta->etypes[key->type];
	char name[GW_NAME_MAX + 1];
	if (gw_name_ends_in(key->name, GW_TIME_FENCE_TAIL)) {
		size_t length = strlen(key->name) - strlen(GW_TIME_FENCE_TAIL);
		if (strncmp(type->time_name, key->name, length) != 0 || type->time_name[length] != '\0')
			return gw_fail(GW_INVALID, "\"%s\": the lists are not sorted by this time", array->key);
		return GW_OK;
	}
	snprintf(name, sizeof(name), "%.*s", (int)(strlen(key->name) - strlen(GW_TIME_SOURCE_TAIL)), key->name);
	const struct gw_array_meta *of = schema_node_array(meta, 0, type->src, name);
	if (!of || of->ndim != 1 || of->dtype != array->dtype)
		return gw_fail(GW_INVALID, "\"%s\": node type \"%s\" has no feature \"%s\" of this dtype", array->key,
			       meta->ntypes[type->src].name, name);
	return GW_OK;
}

static gw_status schema_check_node_times(const struct gw_graph_meta *meta, const struct gw_array_meta *array,
					 const struct gw_array_key *key)
{
	bool keys = gw_name_ends_in(key->name, GW_TIMES_TAIL);
	char name[GW_NAME_MAX + 1], other[2 * GW_NAME_MAX];
	snprintf(name, sizeof(name), "%.*s",
		 (int)(strlen(key->name) - strlen(keys ? GW_TIMES_TAIL : GW_TIMES_NODES_TAIL)), key->name);
	snprintf(other, sizeof(other), "%s%s", name, keys ? GW_TIMES_NODES_TAIL : GW_TIMES_TAIL);
	const struct gw_array_meta *of = schema_node_array(meta, 0, key->type, name);
	if (!of || of->ndim != 1 || !gw_time_is_possible(of->dtype))
		return gw_fail(GW_INVALID, "\"%s\": \"%s\" is no feature of times", array->key, name);
	if (!schema_node_array(meta, 0, key->type, other))
		return gw_fail(GW_INVALID, "\"%s\" without \"%s\": an index of times is both", array->key, other);
	return GW_OK;
}

static gw_status schema_check_units(const struct gw_graph_meta *meta)
{
	for (uint32_t i = 0; i < meta->num_units; i++) {
		const struct gw_array_meta *array = gw_meta_array(meta, 0, meta->units[i].key);
		if (!array && meta->minor > GW_FORMAT_MINOR)
			continue; /* it may be unknown to this version */
		if (!array || (array->dtype != GW_INT64 && array->dtype != GW_INT32))
			return gw_fail(GW_INVALID, "\"units\": \"%.200s\" is no array of int64 or int32",
				       meta->units[i].key);
	}
	return GW_OK;
}

static gw_status schema_check_originals(const struct gw_graph_meta *meta)
{
	for (uint32_t i = 0; i < meta->num_originals; i++) {
		const struct gw_original_meta *original = &meta->originals[i];
		const struct gw_array_meta *array = gw_meta_array(meta, 0, original->key);
		if (meta->minor <= GW_FORMAT_MINOR && (!array || !gw_meta_original(meta, array)))
			return gw_fail(GW_INVALID,
				       "\"originals\": \"%.200s\" is no array of float16, bfloat16 or int8_row whose "
				       "rows can have been such rows",
				       original->key);
	}
	return GW_OK;
}

static gw_status schema_check_times(const struct gw_graph_meta *meta, const struct gw_array_key *keys)
{
	gw_status status = schema_check_units(meta);
	if (meta->minor < GW_FORMAT_MINOR_TIMES)
		return status;
	for (uint32_t i = 0; status == GW_OK && i < meta->parts[0].count; i++) {
		if (gw_name_is_of_times(keys[i].edge, keys[i].name) && !keys[i].out)
			status = (keys[i].edge ? schema_check_edge_times
					       : schema_check_node_times)(meta, &meta->parts[0].arrays[i], &keys[i]);
	}
	return status;
}

/* Whether the key is that of a table of names. Its strings name the values of another array (classes, relations), not
 * nodes or edges. */
static bool is_names(const char *key)
{
	return gw_name_ends_in(key, ".names.offsets") || gw_name_ends_in(key, ".names.bytes");
}

/* Checks that all parts have the same keys, with the same dtype and row shape, because readers read a row without
 * checking its part. Offsets are an exception: a part may store them as uint32 while another part needs uint64. */
static gw_status check_same(const struct gw_graph_meta *meta, uint32_t part)
{
	const struct gw_part_meta *first = &meta->parts[0], *other = &meta->parts[part];
	for (uint32_t i = 0; i < first->count || i < other->count; i++) {
		const struct gw_array_meta *a = i < first->count ? &first->arrays[i] : NULL;
		const struct gw_array_meta *b = i < other->count ? &other->arrays[i] : NULL;
		int order = !a ? 1 : !b ? -1 : strcmp(a->key, b->key);
		if (order != 0)
			return gw_fail(GW_INVALID, "part %u: there is no \"%s\", which part %u has",
				       order < 0 ? part : 0, order < 0 ? a->key : b->key, order < 0 ? 0 : part);
		bool offsets = gw_name_ends_in(a->key, "/indptr") || gw_name_ends_in(a->key, "/out_indptr");
		if (a->ndim != b->ndim || (a->dtype != b->dtype && !offsets) ||
		    memcmp(a->shape + 1, b->shape + 1, (a->ndim - 1) * sizeof(a->shape[0])) != 0)
			return gw_fail(GW_INVALID, "part %u: \"%s\" has another dtype or row shape than in part 0",
				       part, a->key);
		if (is_names(a->key) && (a->shape[0] != b->shape[0] || a->digest != b->digest))
			return gw_fail(GW_INVALID,
				       "part %u: \"%s\" differs from part 0's: every part has the same names", part,
				       a->key);
	}
	return GW_OK;
}

static gw_status check_part(const struct gw_graph_meta *meta, uint32_t part, const struct gw_array_key *keys)
{
	gw_status status = part > 0 ? check_same(meta, part) : GW_OK;
	for (uint32_t i = 0; status == GW_OK && i < meta->parts[part].count; i++) {
		status = check_parsed(meta, part, &meta->parts[part].arrays[i], &keys[i]);
		if (status != GW_OK)
			gw_context(status, "part %u", part);
	}
	if (status == GW_OK)
		status = check_required(meta, part);
	return status == GW_OK ? schema_check_strings(meta, part) : status;
}

gw_status gw_meta_check_arrays(const struct gw_graph_meta *meta)
{
	/* Parsed once, for part 0: a part whose keys differ from part 0's is refused anyway. */
	struct gw_array_key *keys = gw_calloc(meta->parts[0].count, sizeof(*keys));
	gw_status status = keys ? GW_OK : GW_NO_MEMORY;
	for (uint32_t i = 0; status == GW_OK && i < meta->parts[0].count; i++) {
		status = gw_array_key_parse(meta, meta->parts[0].arrays[i].key, &keys[i]);
		if (status != GW_OK)
			gw_context(status, "part 0");
	}
	for (uint32_t p = 0; status == GW_OK && p < meta->num_parts; p++)
		status = check_part(meta, p, keys);
	for (uint32_t t = 0; status == GW_OK && t < meta->num_etypes; t++) {
		if (meta->etypes[t].out_column != GW_TYPE_NONE)
			status = schema_check_transpose(meta, t);
	}
	for (uint32_t t = 0; status == GW_OK && t < meta->num_etypes; t++)
		status = schema_check_inverse(meta, t);
	for (uint32_t t = 0; status == GW_OK && t < meta->num_ntypes; t++)
		status = schema_check_node_ids(meta, t);
	if (status == GW_OK)
		status = schema_check_times(meta, keys);
	if (status == GW_OK)
		status = schema_check_originals(meta);
	if (status == GW_OK)
		status = gw_replicas_check_schema(meta);
	gw_free(keys);
	return status;
}
