/* Replicas of rows: their index, their record in the graph's JSON, and their form. See replicas.h. */
#include "core/graph/replicas.h"

#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/numbers/digest.h"

uint64_t gw_replica_count(struct gw_replica_block *blocks, uint64_t ids)
{
	uint64_t total = 0;
	for (uint64_t b = 0; b < gw_replica_blocks(ids); b++) {
		uint64_t counts = 0, within = 0;
		for (uint32_t w = 0; w < GW_REPLICA_WORDS; w++) {
			counts |= within << 9 * w;
			within += gw_replica_ones(blocks[b].bits[w]);
		}
		blocks[b].before = total;
		blocks[b].counts = counts;
		total += within;
	}
	return total;
}

bool gw_replica_key(const struct gw_graph_meta *meta, const char *key)
{
	const char *name = strrchr(key, '/');
	return meta->minor >= GW_FORMAT_MINOR_REPLICAS && strncmp(key, "node/", 5) == 0 && name &&
	       gw_name_is_of_replicas(name + 1);
}

/* --- The record. --- */

gw_status gw_meta_set_replicas(struct gw_graph_meta *meta, const char *key, const char *by, uint64_t of)
{
	struct gw_replica_meta *grown = gw_realloc(meta->replicas, meta->num_replicas + 1, sizeof(*grown));
	if (!grown)
		return GW_NO_MEMORY;
	meta->replicas = grown;
	uint32_t at = 0;
	while (at < meta->num_replicas && strcmp(grown[at].key, key) < 0)
		at++;
	char *copy = gw_strdup(key);
	if (!copy)
		return GW_NO_MEMORY;
	memmove(&grown[at + 1], &grown[at], (meta->num_replicas - at) * sizeof(*grown));
	grown[at] = (struct gw_replica_meta){.key = copy, .of = of};
	snprintf(grown[at].by, sizeof(grown[at].by), "%s", by);
	meta->num_replicas++;
	return GW_OK;
}

const struct gw_replica_meta *gw_meta_replicas(const struct gw_graph_meta *meta, const char *key)
{
	for (uint32_t i = 0; i < meta->num_replicas; i++) {
		if (strcmp(meta->replicas[i].key, key) == 0)
			return &meta->replicas[i];
	}
	return NULL;
}

uint64_t gw_replicas_digest(const struct gw_graph_meta *meta, const char *key)
{
	uint64_t digest = 0;
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		const struct gw_array_meta *array = gw_meta_array(meta, p, key);
		const uint64_t both[2] = {digest, array ? array->digest : 0};
		digest = gw_digest(both, sizeof(both));
	}
	return digest;
}

gw_status gw_replicas_check_origin(const struct gw_graph_meta *meta)
{
	for (uint32_t i = 0; i < meta->num_replicas; i++) {
		const struct gw_replica_meta *record = &meta->replicas[i];
		if (gw_replicas_digest(meta, record->key) != record->of)
			return gw_fail(
				GW_DIGEST,
				"graph \"%s\": the replicas of \"%.200s\" are copies of other rows than the parts "
				"have now: make them again with graphwire replicate",
				meta->graph_name, record->key);
	}
	return GW_OK;
}

/* --- The schema. --- */

/* The array of this name in the type of another array. */
static const struct gw_array_meta *beside(const struct gw_graph_meta *meta, uint32_t part, const char *key,
					  const char *name, size_t length)
{
	char other[GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 16];
	snprintf(other, sizeof(other), "%.*s/%.*s", (int)(strrchr(key, '/') - key), key, (int)length, name);
	return gw_meta_array(meta, part, other);
}

/* Replicas have the form of their feature, which the record names, and an index. */
static gw_status replica_check_form(const struct gw_graph_meta *meta, uint32_t part, const struct gw_array_meta *rows)
{
	const char *name = strrchr(rows->key, '/') + 1;
	const struct gw_array_meta *of = beside(meta, part, rows->key, name, strlen(name) - strlen(GW_REPLICA_TAIL));
	if (!of || of->dtype != rows->dtype || of->ndim != rows->ndim ||
	    memcmp(of->shape + 1, rows->shape + 1, (of->ndim - 1) * sizeof(of->shape[0])) != 0)
		return gw_fail(GW_INVALID, "part %u: \"%s\": there is no feature of this name and form", part,
			       rows->key);
	if (meta->num_parts == 1)
		return gw_fail(GW_INVALID, "\"%s\": the graph is in one part, and no row is remote", rows->key);
	if (!beside(meta, part, rows->key, GW_REPLICA_INDEX_NAME, strlen(GW_REPLICA_INDEX_NAME)))
		return gw_fail(GW_INVALID, "part %u: \"%s\" without \"%s\"", part, rows->key, GW_REPLICA_INDEX_NAME);
	if (!gw_meta_replicas(meta, of->key))
		return gw_fail(GW_INVALID, "\"%s\": \"replicas\" does not name \"%s\"", rows->key, of->key);
	return GW_OK;
}

gw_status gw_replicas_check_schema(const struct gw_graph_meta *meta)
{
	gw_status status = GW_OK;
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		for (uint32_t i = 0; status == GW_OK && i < meta->parts[p].count; i++) {
			const struct gw_array_meta *array = &meta->parts[p].arrays[i];
			if (gw_replica_key(meta, array->key) && gw_name_ends_in(array->key, GW_REPLICA_TAIL))
				status = replica_check_form(meta, p, array);
		}
	}
	for (uint32_t i = 0; status == GW_OK && i < meta->num_replicas && meta->minor <= GW_FORMAT_MINOR; i++) {
		char key[GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 32];
		snprintf(key, sizeof(key), "%s" GW_REPLICA_TAIL, meta->replicas[i].key);
		if (!gw_meta_array(meta, 0, key))
			status = gw_fail(GW_INVALID, "\"replicas\": there is no \"%.200s\"", key);
	}
	return status;
}
