/* Lists of other parts: see serve --lists. A server holds them in the memory of its own part, so that they are
 * published, mapped, handed over and freed with it; only clients on its host use them.
 *
 *   files are there? -> own part, with room -> each other part's lists into that room, digests checked -> catalog
 *
 * Errors name the part and its file. A graph that was written again is one of them: the JSON names the digests of all
 * parts' arrays.
 */
#include "server/lists.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "core/graph/part_lists.h"
#include "core/memory/alloc.h"

/* Rows that change are no lists: no draw reads them. */
uint64_t gw_server_lists_bytes(const struct gw_server *server, const struct gw_part_options *options)
{
	uint64_t bytes = 0;
	for (uint32_t p = 0; server->options.lists == GW_SERVER_LISTS_ALL && p < server->meta->num_parts; p++) {
		if (p != server->options.part)
			bytes += gw_part_lists_bytes(server->meta, p, options->set_apart, options->apart_context);
	}
	return bytes;
}

static gw_status lists_context(const struct gw_server *server, gw_status status, uint32_t part)
{
	char advice[GW_ERROR_TEXT_MAX / 2];
	gw_context(status, "--lists all: part %u", part);
	if (status != GW_NOT_FOUND)
		return status;
	snprintf(advice, sizeof(advice),
		 "a server that holds all lists reads them from the part files on its host: deploy/copy_files.py "
		 "--lists copies them, or: rsync -a HOST:%.200s/part%u %.200s/",
		 server->meta->folder, part, server->meta->folder);
	return gw_advise(status, advice);
}

static gw_status look_for(const struct gw_server *server, const struct gw_array_meta *array)
{
	const struct gw_graph_meta *meta = server->meta;
	char *path = gw_format("%s/%s", meta->folder[0] ? meta->folder : ".", array->file);
	if (!path)
		return GW_NO_MEMORY;
	gw_status status = GW_OK;
	if (access(path, R_OK) != 0)
		status = gw_fail_errno(errno == ENOENT || errno == ENOTDIR ? GW_NOT_FOUND : GW_IO, errno,
				       "%s: %s: cannot read", path, array->key);
	gw_free(path);
	return status;
}

gw_status gw_server_lists_check(const struct gw_server *server)
{
	const struct gw_graph_meta *meta = server->meta;
	for (uint32_t p = 0; server->options.lists == GW_SERVER_LISTS_ALL && p < meta->num_parts; p++) {
		for (uint32_t i = 0; p != server->options.part && i < meta->parts[p].count; i++) {
			const struct gw_array_meta *array = &meta->parts[p].arrays[i];
			gw_status status = gw_array_is_of_lists(meta, array) ? look_for(server, array) : GW_OK;
			if (status != GW_OK)
				return lists_context(server, status, p);
		}
	}
	return GW_OK;
}

gw_status gw_server_lists_open(struct gw_server *server, const struct gw_part_options *options)
{
	struct gw_part_options only = *options;
	if (server->options.lists == GW_SERVER_LISTS_OWN)
		return GW_OK;
	only.only_lists = true;
	only.into = gw_part_arena(server->part);
	server->lists = gw_calloc(server->meta->num_parts, sizeof(struct gw_part *));
	if (!server->lists)
		return GW_NO_MEMORY;
	for (uint32_t p = 0; p < server->meta->num_parts; p++) {
		struct gw_part **out = &server->lists[server->list_count];
		if (p == server->options.part)
			continue;
		gw_status status = server->taker ? gw_part_adopt(server->meta, p, &only, NULL, out)
						 : gw_part_open(server->meta, p, &only, out);
		if (status != GW_OK)
			return lists_context(server, status, p);
		server->list_count++;
	}
	return GW_OK;
}

uint64_t gw_server_lists_held(const struct gw_server *server)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < server->list_count; i++)
		bytes += gw_part_load_stats(server->lists[i])->bytes;
	return bytes;
}

void gw_server_lists_close(struct gw_server *server)
{
	for (uint32_t i = 0; i < server->list_count; i++)
		gw_part_close(server->lists[i]);
	gw_free(server->lists);
	server->lists = NULL;
	server->list_count = 0;
}
