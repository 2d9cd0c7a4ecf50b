/* Numbers nodes of a batch in groups: the key of the map is the pair (group, node).
 *
 * Pairs are far more than nodes, so the map is always a hash map; a relabel whose own map is dense makes one with its
 * first batch in groups.
 */
#include "sampler/blocks/relabel.h"

#define FIRST_NODES 4096 /* initial room of the map */
#define PIECE       4096 /* nodes for which room is made at once */

gw_status gw_relabel_begin_groups(struct gw_relabel *relabel)
{
	return relabel->hash_map.keys ? GW_OK : gw_hash_map_create(FIRST_NODES, &relabel->hash_map);
}

static gw_status groups_make_room(struct gw_relabel *relabel, struct gw_node_list *nodes, uint64_t more, bool wide)
{
	uint64_t count_max = wide ? UINT32_MAX : INT32_MAX;
	if (nodes->count + more > count_max)
		return gw_fail(GW_LIMIT, "a batch of more than %llu nodes: take fewer seeds%s",
			       (unsigned long long)count_max, wide ? "" : " or wide indices");
	gw_status status = gw_vec_reserve(&nodes->ids, (nodes->count + more + 1) * sizeof(uint64_t));
	if (status == GW_OK)
		status = gw_vec_reserve(&nodes->groups, (nodes->count + more + 1) * sizeof(uint32_t));
	return status == GW_OK ? gw_hash_map_reserve(&relabel->hash_map, more) : status;
}

static gw_status put_pair(struct gw_relabel *relabel, struct gw_node_list *nodes, uint64_t id, uint32_t group,
			  uint32_t *number)
{
	uint64_t key;
	bool is_new;
	if (id >= nodes->id_count)
		return gw_fail(GW_RANGE, "node %lld is out of range: there are %llu", (long long)id,
			       (unsigned long long)nodes->id_count);
	if (__builtin_mul_overflow((uint64_t)group, relabel->id_count, &key) ||
	    __builtin_add_overflow(key, nodes->key + id, &key) || key == GW_HASH_EMPTY)
		return gw_fail(GW_LIMIT, "group %u of a graph of %llu nodes: groups * nodes must be below 2^64", group,
			       (unsigned long long)relabel->id_count);
	*number = gw_hash_map_put(&relabel->hash_map, key, (uint32_t)nodes->count, &is_new);
	if (is_new) {
		((uint64_t *)nodes->ids.data)[nodes->count] = id;
		((uint32_t *)nodes->groups.data)[nodes->count] = group;
		nodes->count++;
	}
	return GW_OK;
}

gw_status gw_relabel_run_groups(struct gw_relabel *relabel, struct gw_node_list *nodes, const uint64_t *ids,
				const uint32_t *groups, uint64_t n, void *numbers, bool wide)
{
	gw_status status = GW_OK;
	for (uint64_t i = 0; i < n && status == GW_OK; i++) {
		uint32_t number;
		if (i % PIECE == 0)
			status = groups_make_room(relabel, nodes, n - i < PIECE ? n - i : PIECE, wide);
		if (status == GW_OK)
			status = put_pair(relabel, nodes, ids[i], groups[i], &number);
		if (status != GW_OK)
			break;
		if (wide)
			((int64_t *)numbers)[i] = number;
		else
			((uint32_t *)numbers)[i] = number;
	}
	return status;
}
