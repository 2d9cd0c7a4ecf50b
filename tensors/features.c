/* Makes features mutable: see features.h. key -> plan -> a shard; at parts other than 0, the first client that names
 * the leader (the shard epoch at part 0) sets it. Fails if a tensor cannot have the feature's dtype or name, and with
 * the errors of gw_tensor_table_expect. */
#include "tensors/features.h"

#include <string.h>
#include <time.h>

#include "core/system/clock.h"

#define LOAD_STEP_NS (GW_NS_PER_MS)

/* Arrays that describe the graph's structure, or that do not consist of rows of fixed length. */
static bool is_structure(const struct gw_graph_meta *meta, bool of_edges, const char *name)
{
	if (!of_edges && meta->minor >= GW_FORMAT_MINOR_IDS && gw_name_is_node_ids(name))
		return true;
	if (meta->minor >= GW_FORMAT_MINOR_TIMES && gw_name_is_of_times(of_edges, name))
		return true;
	if (!of_edges && meta->minor >= GW_FORMAT_MINOR_REPLICAS && gw_name_is_of_replicas(name))
		return true;
	static const char *const exact[2][2] = {{"indptr", "out_indptr"}, {"indices", GW_INVERSE_NAME}};
	static const char *const endings[] = {".alias", ".offsets", ".bytes"};
	for (size_t i = 0; i < 2; i++) {
		if (strcmp(name, exact[of_edges][i]) == 0)
			return true;
	}
	size_t length = strlen(name);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t ending = strlen(endings[i]);
		if (length >= ending && strcmp(name + length - ending, endings[i]) == 0)
			return true;
	}
	return strchr(name, '/') != NULL;
}

/* The name of an array of a type; NULL: the key has another form. */
static const char *key_parse(const struct gw_graph_meta *meta, const char *key, bool *of_edges, uint32_t *type)
{
	const char *first = strchr(key, '/'), *second = first ? strchr(first + 1, '/') : NULL;
	*of_edges = strncmp(key, "edge/", 5) == 0;
	if (!second)
		return NULL;
	size_t length = (size_t)(second - first - 1);
	uint32_t types = *of_edges ? meta->num_etypes : meta->num_ntypes;
	for (*type = 0; *type < types; (*type)++) {
		const char *folder = *of_edges ? meta->etypes[*type].folder : meta->ntypes[*type].name;
		if (strlen(folder) == length && memcmp(folder, first + 1, length) == 0)
			return second + 1;
	}
	return NULL;
}

bool gw_feature_parse(const struct gw_graph_meta *meta, const char *key, bool *of_edges, uint32_t *type,
		      const char **name)
{
	*name = key_parse(meta, key, of_edges, type);
	return *name && !is_structure(meta, *of_edges, *name);
}

bool gw_feature_parse_source(const struct gw_graph_meta *meta, const char *key, bool *of_edges, uint32_t *type,
			     const char **name)
{
	*name = key_parse(meta, key, of_edges, type);
	return *name && *of_edges && meta->minor >= GW_FORMAT_MINOR_TIMES &&
	       gw_name_ends_in(*name, GW_TIME_SOURCE_TAIL) && !strchr(*name, '/');
}

static bool is_end_of(const char *key, const char *word)
{
	size_t all = strlen(key), length = strlen(word);
	if (length == 0 || length > all || strcmp(key + all - length, word) != 0)
		return false;
	return length == all || key[all - length - 1] == '/';
}

bool gw_feature_is_meant(const struct gw_graph_meta *meta, const char *key, const char *word)
{
	char text[GW_EDGE_FOLDER_MAX + 1];
	bool of_edges;
	uint32_t type;
	const char *name;
	if (is_end_of(key, word))
		return true;
	name = key_parse(meta, key, &of_edges, &type);
	if (!name || !of_edges)
		return false;
	size_t length = strlen(gw_meta_etype_text(meta, type, text));
	return strncmp(word, text, length) == 0 && word[length] == '/' && strcmp(word + length + 1, name) == 0;
}

gw_status gw_feature_plan(const struct gw_graph_meta *meta, const struct gw_array_meta *array,
			  struct gw_tensor_plan *plan)
{
	bool of_edges;
	uint32_t type;
	const char *name;
	if (array->ndim == 0 || !gw_feature_parse(meta, array->key, &of_edges, &type, &name) ||
	    strcmp(name, "orig_id") == 0)
		return gw_fail(GW_INVALID, "\"%s\" is not a feature that can be mutable", array->key);
	if (gw_meta_original(meta, array))
		return gw_fail(
			GW_UNSUPPORTED,
			"feature \"%s\" cannot be mutable: its rows are stored narrow, and what is written to them "
			"would be rounded; partition without --store, or give the feature the type itself",
			array->key);
	if (!gw_tensor_name_valid(array->key))
		return gw_fail(GW_INVALID,
			       "feature \"%s\" cannot be mutable: the name of a tensor consists of letters, "
			       "digits and \"._-:/+\", at most %d",
			       array->key, GW_TENSOR_NAME_MAX);
	*plan = (struct gw_tensor_plan){.dtype = (uint32_t)array->dtype,
					.ndim = array->ndim,
					.placement = of_edges ? GW_PLACE_EDGES : GW_PLACE_NODES,
					.type = type,
					.initial = GW_INITIAL_COPY};
	memcpy(plan->name, array->key, strlen(array->key) + 1);
	memcpy(plan->source, array->key, strlen(array->key) + 1);
	memcpy(plan->shape, array->shape, sizeof(plan->shape));
	plan->shape[0] = of_edges ? meta->etypes[type].count : meta->ntypes[type].count;
	return gw_tensor_plan_check(meta, plan);
}

gw_status gw_feature_load(struct gw_tensor_table *table, const struct gw_array_meta *array)
{
	struct gw_tensor_create_call call = {0};
	struct gw_tensor_state state = {0};
	gw_status status = gw_feature_plan(gw_tensor_table_options(table)->meta, array, &call.plan);
	if (status == GW_OK)
		status = gw_tensor_table_expect(table, &call.plan);
	while (status == GW_OK && !state.ready) {
		struct timespec step = {.tv_nsec = LOAD_STEP_NS};
		const uint64_t *epochs = NULL;
		struct gw_shard *shard = NULL;
		call.open = 1;
		status = gw_tensor_table_make(table, &call, &state, &epochs, &shard);
		gw_shard_unref(table, shard);
		if (status == GW_OK && !state.ready)
			nanosleep(&step, NULL);
	}
	return status;
}
