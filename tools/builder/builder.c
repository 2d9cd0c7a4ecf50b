/* Fills a builder: types, arrays and the memory that the builder owns. It reads no input, and copies only small data.
 * */
#include "tools/builder/builder.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/files/filemap.h"
#include "core/files/staging.h"
#include "core/memory/alloc.h"
#include "core/memory/memory.h"
#include "tools/builder/builder_private.h"
#include "tools/weights.h"

static gw_status builder_make_room(void **elements, uint32_t count, uint32_t *room, size_t bytes)
{
	if (count < *room)
		return GW_OK;
	uint32_t wanted = *room ? *room * 2 : 8;
	void *grown = gw_realloc(*elements, wanted, bytes);
	if (!grown)
		return GW_NO_MEMORY;
	*elements = grown;
	*room = wanted;
	return GW_OK;
}

static bool is_mapped_input(const struct stat *file, const void *context)
{
	(void)context;
	return gw_filemap_has(file);
}

/* Refuses to replace a graph if one of its files is an input. */
static gw_status check_owned(const char *folder, bool (*is_input)(const struct stat *file, const void *context),
			     const void *context)
{
	struct gw_owned *owned;
	gw_status status = gw_meta_check_replaceable(folder, &owned);
	const char *input = status == GW_OK && owned ? gw_owned_first(owned, folder, is_input, context) : NULL;
	if (input)
		status = gw_fail(GW_INVALID, "%s/%s: is an input, which --replace would remove; choose another --out",
				 folder, input);
	gw_owned_destroy(owned);
	return status;
}

gw_status gw_builder_target_check(const char *folder, bool replace)
{
	if (!replace && access(folder, F_OK) == 0)
		return gw_fail(GW_EXISTS, "%s exists already: remove it, choose another --out, or pass --replace",
			       folder);
	gw_status status = gw_staging_check_parent(folder);
	return status == GW_OK && replace ? check_owned(folder, is_mapped_input, NULL) : status;
}

static bool is_this_file(const struct stat *file, const void *input)
{
	const struct stat *other = input;
	return file->st_dev == other->st_dev && file->st_ino == other->st_ino;
}

gw_status gw_builder_input_check(const char *folder, const char *input)
{
	struct stat in, out;
	if (stat(input, &in) != 0 || stat(folder, &out) != 0)
		return GW_OK;
	if (is_this_file(&out, &in))
		return gw_fail(GW_INVALID, "%s: is the input graph; choose another --out", folder);
	return check_owned(folder, is_this_file, &in);
}

gw_status gw_builder_create(const char *graph_name, struct gw_builder **out)
{
	*out = NULL;
	gw_status status = gw_name_check("graph", graph_name);
	if (status != GW_OK)
		return status;
	struct gw_builder *builder = gw_calloc(1, sizeof(*builder));
	if (!builder)
		return GW_NO_MEMORY;
	snprintf(builder->name, sizeof(builder->name), "%s", graph_name);
	*out = builder;
	return GW_OK;
}

gw_status gw_builder_rename(struct gw_builder *builder, const char *graph_name)
{
	gw_status status = gw_name_check("graph", graph_name);
	if (status == GW_OK)
		snprintf(builder->name, sizeof(builder->name), "%s", graph_name);
	return status;
}

const char *gw_builder_name(const struct gw_builder *builder)
{
	return builder->name;
}

void gw_builder_destroy(struct gw_builder *builder)
{
	if (!builder)
		return;
	for (uint32_t i = builder->num_owned; i-- > 0;)
		builder->owned[i].release(builder->owned[i].memory);
	for (uint32_t i = 0; i < builder->num_ntypes; i++)
		gw_free(builder->ntypes[i].arrays.items);
	for (uint32_t i = 0; i < builder->num_etypes; i++)
		gw_free(builder->etypes[i].arrays.items);
	gw_spill_close(&builder->spill);
	gw_free(builder->owned);
	gw_free(builder->ntypes);
	gw_free(builder->etypes);
	gw_free(builder);
}

gw_status gw_builder_own(struct gw_builder *builder, void *memory, void (*release)(void *memory))
{
	gw_status status = builder_make_room((void **)&builder->owned, builder->num_owned, &builder->owned_room,
					     sizeof(*builder->owned));
	if (status != GW_OK) {
		release(memory);
		return status;
	}
	builder->owned[builder->num_owned++] = (struct builder_owned){.memory = memory, .release = release};
	return GW_OK;
}

/* A quarter is for arrays that stay, a half for sorting, and the rest for what the kernel keeps of files. */
gw_status gw_builder_limit(struct gw_builder *builder, const char *out, uint64_t bytes, bool quiet)
{
	if (bytes == 0) {
		struct gw_memory memory;
		gw_memory_read("", -1, &memory);
		bytes = memory.available / 10 * 7;
	}
	builder->run_bytes = bytes > 1 ? bytes / 2 : 1; /* 0 would be no limit */
	gw_status status = gw_spill_open(&builder->spill, out, bytes / 4);
	builder->spill.reports = !quiet;
	return status;
}

struct gw_spill *gw_builder_spill(struct gw_builder *builder, uint64_t *step_bytes)
{
	*step_bytes = builder->run_bytes;
	return &builder->spill;
}

void *gw_builder_take(struct gw_builder *builder, uint64_t count, size_t bytes, gw_status *status)
{
	void *memory = NULL;
	if (*status != GW_OK)
		return NULL;
	if (count > SIZE_MAX / bytes)
		*status = gw_fail(GW_NO_MEMORY, "out of memory for %llu elements", (unsigned long long)count);
	else
		memory = gw_spill_take(&builder->spill, count * bytes, status);
	if (*status == GW_OK)
		*status = gw_builder_own(builder, memory, gw_spill_give);
	return *status == GW_OK ? memory : NULL;
}

gw_status gw_builder_ntype(struct gw_builder *builder, const char *name, uint32_t *out)
{
	for (uint32_t i = 0; i < builder->num_ntypes; i++) {
		if (strcmp(builder->ntypes[i].name, name) == 0) {
			*out = i;
			return GW_OK;
		}
	}
	gw_status status = gw_name_check("node type", name);
	if (status != GW_OK)
		return status;
	if (builder->num_ntypes == GW_TYPES_MAX)
		return gw_fail(GW_LIMIT, "more than %u node types", GW_TYPES_MAX);
	status = builder_make_room((void **)&builder->ntypes, builder->num_ntypes, &builder->ntype_room,
				   sizeof(*builder->ntypes));
	if (status != GW_OK)
		return status;
	struct builder_ntype *type = &builder->ntypes[builder->num_ntypes];
	memset(type, 0, sizeof(*type));
	snprintf(type->name, sizeof(type->name), "%s", name);
	*out = builder->num_ntypes++;
	return GW_OK;
}

void gw_builder_ntype_count(struct gw_builder *builder, uint32_t ntype, uint64_t count)
{
	builder->ntypes[ntype].count = count;
}

gw_status gw_builder_etype(struct gw_builder *builder, uint32_t src, const char *rel, uint32_t dst,
			   const struct gw_builder_edges *edges, uint32_t *out)
{
	gw_status status = gw_name_check("edge type", rel);
	if (status == GW_OK && edges->time)
		status = gw_time_name_check(edges->time_name);
	if (status == GW_OK && edges->time && edges->rel)
		status = gw_fail(
			GW_UNSUPPORTED,
			"edge type \"%s\": lists with relations are sorted by relation, and cannot also be sorted by a "
			"time column: import each relation as an edge type, or leave the time column out",
			rel);
	if (status != GW_OK)
		return status;
	for (uint32_t i = 0; i < builder->num_etypes; i++) {
		const struct builder_etype *other = &builder->etypes[i];
		if (other->src == src && other->dst == dst && strcmp(other->rel, rel) == 0)
			return gw_fail(GW_EXISTS, "edge type %s:%s:%s is given twice", builder->ntypes[src].name, rel,
				       builder->ntypes[dst].name);
	}
	if (builder->num_etypes >= GW_TYPES_MAX / 2)
		return gw_fail(GW_LIMIT, "more than %u edge types", GW_TYPES_MAX / 2);
	status = builder_make_room((void **)&builder->etypes, builder->num_etypes, &builder->etype_room,
				   sizeof(*builder->etypes));
	if (status != GW_OK)
		return status;
	struct builder_etype *type = &builder->etypes[builder->num_etypes];
	memset(type, 0, sizeof(*type));
	snprintf(type->rel, sizeof(type->rel), "%s", rel);
	if (edges->time)
		snprintf(type->time_name, sizeof(type->time_name), "%s", edges->time_name);
	type->src = src;
	type->dst = dst;
	type->edges = *edges;
	type->edges.time_name = NULL; /* it points into the caller's struct, and is not needed any more */
	*out = builder->num_etypes++;
	return GW_OK;
}

gw_status gw_builder_mirror(struct gw_builder *builder, struct gw_builder_edges *edges)
{
	uint64_t loops = 0, count = edges->count;
	for (uint64_t i = 0; i < count; i++)
		loops += edges->src[i] == edges->dst[i];
	uint64_t total = 2 * count - loops;
	gw_status status = GW_OK;
	if (total <= SIZE_MAX / (3 * sizeof(uint64_t)))
		status = gw_spill_announce_blocks(&builder->spill, total * 3 * sizeof(uint64_t), "reversing");
	uint64_t *memory = gw_builder_take(builder, total, 3 * sizeof(*memory), &status);
	if (status != GW_OK)
		return gw_context(status, "reversed edges");
	uint64_t *src = memory, *dst = src + total, *origin = dst + total, at = count;
	for (uint64_t i = 0; i < count; i++) {
		src[i] = edges->src[i];
		dst[i] = edges->dst[i];
		origin[i] = edges->origin ? edges->origin[i] : i;
		if (src[i] == dst[i])
			continue;
		src[at] = dst[i];
		dst[at] = src[i];
		origin[at++] = origin[i];
	}
	edges->input_rows = edges->origin ? edges->input_rows : count;
	edges->count = total;
	edges->src = src;
	edges->dst = dst;
	edges->origin = origin;
	edges->symmetric = true;
	return GW_OK;
}

static gw_status add_item(struct builder_items *list, const char *what, const struct builder_item *item,
			  const char *name)
{
	gw_status status = gw_name_check(what, name);
	if (status != GW_OK)
		return status;
	for (uint32_t i = 0; i < list->count; i++) {
		if (strcmp(list->items[i].name, name) == 0)
			return gw_fail(GW_EXISTS, "%s \"%s\" is given twice", what, name);
	}
	status = builder_make_room((void **)&list->items, list->count, &list->capacity, sizeof(*list->items));
	if (status != GW_OK)
		return status;
	struct builder_item *added = &list->items[list->count++];
	*added = *item;
	snprintf(added->name, sizeof(added->name), "%s", name);
	added->array.name = NULL; /* a pointer to added->name would be wrong after the list has grown */
	return GW_OK;
}

static gw_status fail_taken(const char *what, const char *name)
{
	return gw_fail(GW_INVALID, "%s \"%s\": the format reserves this name: choose another", what, name);
}

gw_status gw_builder_node_array(struct gw_builder *builder, uint32_t ntype, const struct gw_builder_array *array)
{
	struct builder_item item = {.array = *array};
	gw_status status = gw_name_is_taken(false, array->name)
				   ? fail_taken("node feature", array->name)
				   : add_item(&builder->ntypes[ntype].arrays, "node feature", &item, array->name);
	return status != GW_OK ? gw_context(status, "node type %s", builder->ntypes[ntype].name) : GW_OK;
}

gw_status gw_builder_edge_array(struct gw_builder *builder, uint32_t etype, const struct gw_builder_array *array)
{
	struct builder_item item = {.array = *array};
	const struct builder_etype *type = &builder->etypes[etype];
	bool taken =
		gw_name_is_taken(true, array->name) || (type->edges.time && strcmp(array->name, type->time_name) == 0);
	gw_status status = array->weight ? gw_weight_form_check(array->dtype, array->ndim, array->shape) : GW_OK;
	if (status != GW_OK)
		status = gw_context(status, "edge feature \"%s\"", array->name);
	else
		status = taken ? fail_taken("edge feature", array->name)
			       : add_item(&builder->etypes[etype].arrays, "edge feature", &item, array->name);
	return status != GW_OK ? gw_context(status, "edge type %s", builder->etypes[etype].rel) : GW_OK;
}

static struct builder_item strings_item(uint64_t count, const uint64_t *offsets, const char *bytes)
{
	return (struct builder_item){
		.strings = true, .offsets = offsets, .array = {.ndim = 1, .shape = {count}, .data = bytes}};
}

gw_status gw_builder_node_strings(struct gw_builder *builder, uint32_t ntype, const char *name, uint64_t count,
				  const uint64_t *offsets, const char *bytes)
{
	struct builder_item item = strings_item(count, offsets, bytes);
	return add_item(&builder->ntypes[ntype].arrays, "node strings", &item, name);
}

gw_status gw_builder_edge_strings(struct gw_builder *builder, uint32_t etype, const char *name, uint64_t count,
				  const uint64_t *offsets, const char *bytes)
{
	struct builder_item item = strings_item(count, offsets, bytes);
	size_t length = strlen(name), tail = strlen(".names");
	if (length <= tail || strcmp(name + length - tail, ".names") != 0)
		return gw_fail(GW_INVALID, "edge strings \"%s\": edges have tables of names only: NAME.names", name);
	return add_item(&builder->etypes[etype].arrays, "edge strings", &item, name);
}
