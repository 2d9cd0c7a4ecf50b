/* partition --balance-nodes: reads the class numbers of nodes.
 *
 *   "TYPE=FILE.npy" -> the type of the graph -> uint8 [nodes], each below GW_PLAN_NUMBERS_MAX -> the number of classes
 *
 * Row i is the number of the input's node i. A file stays mapped until the numbers are freed.
 */
#include <inttypes.h>
#include <string.h>

#include "core/graph/npy.h"
#include "core/memory/alloc.h"
#include "tools/partition/plan.h"

struct gw_plan_number_files {
	struct gw_npy_file *files;       /* [ntypes] */
	struct gw_plan_numbers *numbers; /* [ntypes] */
	uint32_t num_ntypes;
};

gw_status gw_plan_type_of_word(const struct gw_graph_meta *meta, const char *word, const char **path, uint32_t *ntype)
{
	const char *equals = strchr(word, '=');
	size_t length = equals ? (size_t)(equals - word) : 0;
	*path = equals ? equals + 1 : word;
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		bool named = strlen(meta->ntypes[t].name) == length && memcmp(meta->ntypes[t].name, word, length) == 0;
		if (named || (!equals && meta->num_ntypes == 1)) {
			*ntype = t;
			return GW_OK;
		}
	}
	return equals ? gw_fail(GW_NOT_FOUND, "the graph has no node type \"%.*s\"", (int)length, word)
		      : gw_fail(GW_INVALID, "\"%.200s\": write TYPE=FILE in a graph of several node types", word);
}

static gw_status read_numbers(const struct gw_node_type *type, const char *path, struct gw_npy_file *file,
			      struct gw_plan_numbers *out)
{
	gw_status status = gw_npy_open(path, file);
	if (status != GW_OK)
		return status;
	if (file->npy.dtype != GW_UINT8 || file->npy.ndim != 1 || file->npy.shape[0] != type->count)
		return gw_fail(GW_INVALID, "%s: write one uint8 for each of the %" PRIu64 " nodes of type \"%s\"", path,
			       type->count, type->name);
	const uint8_t *of = file->data;
	out->count = 1;
	for (uint64_t v = 0; v < type->count; v++) {
		if (of[v] >= GW_PLAN_NUMBERS_MAX)
			return gw_fail(GW_RANGE, "%s: row %" PRIu64 " is %u: classes have the numbers 0 to %u", path, v,
				       of[v], GW_PLAN_NUMBERS_MAX - 1);
		if (of[v] >= out->count)
			out->count = of[v] + 1u;
	}
	out->of = of;
	return GW_OK;
}

gw_status gw_plan_numbers_read(const char *const *words, uint32_t count, const struct gw_graph_meta *meta,
			       struct gw_plan_number_files **out)
{
	*out = NULL;
	if (count == 0)
		return GW_OK;
	struct gw_plan_number_files *made = gw_calloc(1, sizeof(*made));
	if (!made)
		return GW_NO_MEMORY;
	made->num_ntypes = meta->num_ntypes;
	made->files = gw_calloc(meta->num_ntypes, sizeof(*made->files));
	made->numbers = gw_calloc(meta->num_ntypes, sizeof(*made->numbers));
	gw_status status = made->files && made->numbers ? GW_OK : GW_NO_MEMORY;
	for (uint32_t i = 0; i < count && status == GW_OK; i++) {
		const char *path;
		uint32_t t;
		status = gw_plan_type_of_word(meta, words[i], &path, &t);
		if (status == GW_OK && made->files[t].mapping)
			status = gw_fail(GW_INVALID, "two files for node type \"%s\"", meta->ntypes[t].name);
		if (status == GW_OK)
			status = read_numbers(&meta->ntypes[t], path, &made->files[t], &made->numbers[t]);
	}
	if (status == GW_OK) {
		*out = made;
		return GW_OK;
	}
	gw_plan_numbers_free(made);
	return gw_context(status, "--balance-nodes");
}

const struct gw_plan_numbers *gw_plan_numbers_of(const struct gw_plan_number_files *files)
{
	return files ? files->numbers : NULL;
}

void gw_plan_numbers_free(struct gw_plan_number_files *files)
{
	for (uint32_t t = 0; files && files->files && t < files->num_ntypes; t++) {
		if (files->files[t].mapping)
			gw_npy_close(&files->files[t]);
	}
	if (files) {
		gw_free(files->files);
		gw_free(files->numbers);
	}
	gw_free(files);
}
