/* Any bytes as a mygraph.json: refused with a line of text, or a graph that prints to a JSON of the same graph. The
 * text's digest is made anew, where there is one: the reader's work lies behind it. */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/json.h"
#include "core/graph/meta.h"
#include "core/memory/alloc.h"

/* A relative path without a step upwards. Names may contain two dots. */
static bool stays_inside(const char *path)
{
	bool inside = path[0] != '/' && strncmp(path, "../", 3) != 0;
	for (const char *slash = strchr(path, '/'); slash && inside; slash = strchr(slash + 1, '/'))
		inside = strncmp(slash, "/../", 4) != 0 && strcmp(slash, "/..") != 0;
	return inside;
}

static gw_status parse_sealed(const uint8_t *data, size_t size, struct gw_graph_meta **meta)
{
	char *copy = malloc(size ? size : 1);
	assert(copy);
	memcpy(copy, data, size);
	gw_json_digest_set(copy, size);
	gw_status status = gw_meta_parse(copy, size, "fuzz", meta);
	free(copy);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gw_graph_meta *meta, *again;
	if (parse_sealed(data, size, &meta) != GW_OK) {
		assert(!meta && gw_last_error()[0] != '\0' && !strchr(gw_last_error(), '\n'));
		return 0;
	}
	char *text, *second;
	gw_status status = gw_meta_print(meta, &text);
	assert(status == GW_OK);
	status = gw_meta_parse(text, strlen(text), "printed", &again);
	assert(status == GW_OK && again->graph_id == meta->graph_id && again->minor == meta->minor);
	status = gw_meta_print(again, &second);
	assert(status == GW_OK && strcmp(text, second) == 0);
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		for (uint32_t i = 0; i < meta->parts[p].count; i++) {
			const struct gw_array_meta *array = &meta->parts[p].arrays[i];
			assert(gw_meta_array(meta, p, array->key) == array);
			assert(stays_inside(array->file));
			assert(gw_array_meta_bytes(array) <= INT64_MAX);
		}
	}
	gw_free(text);
	gw_free(second);
	gw_meta_destroy(meta);
	gw_meta_destroy(again);
	return 0;
}
