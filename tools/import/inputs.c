/* The node spaces, edge sets and files of an import, each added once, and the parser of an option's words. Fails on
 * invalid names and on too many inputs. */
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "tools/import/import.h"
#include "tools/import/words.h"

gw_status gw_import_grow(void **elements, uint32_t count, uint32_t *room, size_t bytes)
{
	if (count < *room)
		return GW_OK;
	if (count >= GW_IMPORT_INPUTS_MAX)
		return gw_fail(GW_LIMIT, "more than %u inputs in one import", GW_IMPORT_INPUTS_MAX);
	uint32_t wanted = *room ? *room * 2 : 4;
	void *grown = gw_realloc(*elements, wanted, bytes);
	if (!grown)
		return GW_NO_MEMORY;
	memset((char *)grown + (size_t)*room * bytes, 0, (wanted - *room) * bytes);
	*elements = grown;
	*room = wanted;
	return GW_OK;
}

struct gw_import_space *gw_import_space_find(const struct gw_import *im, const char *name)
{
	for (uint32_t i = 0; i < im->num_spaces; i++) {
		if (strcmp(im->spaces[i].name, name) == 0)
			return &im->spaces[i];
	}
	return NULL;
}

gw_status gw_import_space(struct gw_import *im, const char *name, uint32_t *out)
{
	const struct gw_import_space *found = gw_import_space_find(im, name);
	if (found) {
		*out = (uint32_t)(found - im->spaces);
		return GW_OK;
	}
	gw_status status = gw_name_check("node type", name);
	if (status == GW_OK)
		status = gw_import_grow((void **)&im->spaces, im->num_spaces, &im->spaces_room, sizeof(*im->spaces));
	if (status != GW_OK)
		return status;
	struct gw_import_space *space = &im->spaces[im->num_spaces];
	snprintf(space->name, sizeof(space->name), "%s", name);
	space->ids = im->options->ids;
	space->num_nodes = GW_NONE;
	*out = im->num_spaces++;
	return gw_builder_ntype(im->builder, name, &space->ntype);
}

static struct gw_import_set *set_find(const struct gw_import *im, const char *src, const char *rel, const char *dst)
{
	for (uint32_t i = 0; i < im->num_sets; i++) {
		struct gw_import_set *set = &im->sets[i];
		if (strcmp(im->spaces[set->src].name, src) == 0 && strcmp(set->rel, rel) == 0 &&
		    strcmp(im->spaces[set->dst].name, dst) == 0)
			return set;
	}
	return NULL;
}

gw_status gw_import_set_of(const struct gw_import *im, const struct gw_import_parts *parts, const char *form,
			   struct gw_import_set **out)
{
	bool given = parts->count >= 3;
	const char *src = given ? parts->names[0] : "_N", *rel = given ? parts->names[1] : "_E";
	const char *dst = given ? parts->names[2] : "_N";
	*out = set_find(im, src, rel, dst);
	return *out ? GW_OK : gw_fail(GW_NOT_FOUND, "edge type %s:%s:%s does not exist: write %s", src, rel, dst, form);
}

gw_status gw_import_set_add(struct gw_import *im, const char *src, const char *rel, const char *dst,
			    struct gw_import_set **out)
{
	uint32_t from, to;
	gw_status status = gw_name_check("edge type", rel);
	if (status == GW_OK)
		status = gw_import_space(im, src, &from);
	if (status == GW_OK)
		status = gw_import_space(im, dst, &to);
	if (status != GW_OK)
		return status;
	*out = set_find(im, src, rel, dst);
	if (*out)
		return GW_OK;
	status = gw_import_grow((void **)&im->sets, im->num_sets, &im->sets_room, sizeof(*im->sets));
	if (status != GW_OK)
		return status;
	struct gw_import_set *set = &im->sets[im->num_sets++];
	set->src = from;
	set->dst = to;
	snprintf(set->rel, sizeof(set->rel), "%s", rel);
	*out = set;
	return GW_OK;
}

static bool inputs_end_with(const char *text, const char *end)
{
	size_t bytes = strlen(text), tail = strlen(end);
	return bytes >= tail && strcmp(text + bytes - tail, end) == 0;
}

enum gw_import_format gw_import_format_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	if (inputs_end_with(name, ".npz"))
		return GW_FROM_NPZ;
	if (inputs_end_with(name, ".npy"))
		return GW_FROM_NPY;
	return inputs_end_with(name, ".json") ? GW_FROM_DGL : GW_FROM_TEXT;
}

gw_status gw_import_file_add(struct gw_import_set *set, const char *path, enum gw_import_format format,
			     enum gw_import_split split)
{
	gw_status status = gw_import_grow((void **)&set->files, set->num_files, &set->files_room, sizeof(*set->files));
	if (status != GW_OK)
		return status;
	struct gw_import_file *file = &set->files[set->num_files++];
	file->path = path;
	file->format = format == GW_FROM_AUTO ? gw_import_format_of(path) : format;
	file->split = split;
	return GW_OK;
}

gw_status gw_import_word_split(const char *text, uint32_t types_max, struct gw_import_parts *out)
{
	*out = (struct gw_import_parts){.value = text};
	const char *equals = strchr(text, '=');
	if (!equals)
		return GW_OK;
	const char *at = text;
	out->value = equals + 1;
	for (;;) {
		size_t bytes = strcspn(at, ":=");
		if (out->count > types_max)
			return gw_fail(GW_INVALID, "\"%.200s\": too many ':' before the '='", text);
		if (bytes > GW_NAME_MAX)
			return gw_fail(GW_INVALID, "\"%.200s\": a name has at most %d bytes", text, GW_NAME_MAX);
		memcpy(out->names[out->count], at, bytes);
		out->names[out->count++][bytes] = '\0';
		if (at[bytes] == '=')
			return GW_OK;
		at += bytes + 1;
	}
}
