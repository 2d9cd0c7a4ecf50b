/* Access to an opened part's arrays and lists, and the errors of these arrays. part_open.c opens it. */
#include <stdarg.h>
#include <stdio.h>

#include "core/graph/part_private.h"

const struct gw_graph_meta *gw_part_meta(const struct gw_part *part)
{
	return part->meta;
}

uint32_t gw_part_number(const struct gw_part *part)
{
	return part->number;
}

struct gw_arena *gw_part_arena(const struct gw_part *part)
{
	return part->arena;
}

const struct gw_load_stats *gw_part_load_stats(const struct gw_part *part)
{
	return &part->stats;
}

const struct gw_array *gw_part_array(const struct gw_part *part, const char *key)
{
	const struct gw_array_meta *array = gw_meta_array(part->meta, part->number, key);
	return array ? &part->arrays[array - part->meta->parts[part->number].arrays] : NULL;
}

const struct gw_array *gw_part_array_at(const struct gw_part *part, uint32_t number)
{
	return number < part->count ? &part->arrays[number] : NULL;
}

const struct gw_adjacency *gw_part_adjacency(const struct gw_part *part, uint32_t etype)
{
	return &part->adjacency[etype];
}

const struct gw_adjacency *gw_part_out_adjacency(const struct gw_part *part, uint32_t etype)
{
	return part->out_adjacency[etype].columns ? &part->out_adjacency[etype] : NULL;
}

gw_status gw_part_bad(const struct gw_graph_meta *meta, gw_status status, const struct gw_array *array,
		      const char *format, ...)
{
	char text[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return gw_fail(status, "%s/%s: %s: %s: build the graph again", meta->folder, array->meta->file,
		       array->meta->key, text);
}
