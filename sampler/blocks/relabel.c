/* Numbers global ids in the order of first use. This is where a sampler waits for memory.
 *
 *   ids (given, or read at the picked positions), their map entries prefetched -> checked and put, AHEAD later
 *
 * The loop alternates fill and put, id by id, so that the processor can put while it waits for room for the next
 * prefetch. A put into the dense map has no branch, because no predictor learns whether an id is new. It always writes
 * the entry, and always stores the id after the list's end; the list grows by one or by nothing. In a batch in groups
 * the key is the pair (group, id). Pairs are far more than nodes, so their map is always a hash map. Fails for an id
 * that is no node, for numbers beyond the width of the result, and if memory runs out.
 */
#include "sampler/blocks/relabel.h"

#include "core/memory/alloc.h"
#include "sampler/lists.h"

#define AHEAD       64   /* measured: 16 is 6 % slower, 128 as fast */
#define PIECE       4096 /* nodes for which room is allocated at once */
#define FIRST_NODES 4096 /* initial room of a hash map */
#define INLINE      static inline __attribute__((always_inline))

gw_status gw_relabel_create(const struct gw_graph_meta *meta, uint64_t dense_bytes_max, struct gw_relabel **out)
{
	*out = NULL;
	struct gw_relabel *relabel = gw_calloc(1, sizeof(*relabel));
	if (!relabel)
		return GW_NO_MEMORY;
	uint64_t ids = 0;
	for (uint32_t t = 0; t < meta->num_ntypes; t++)
		ids += meta->ntypes[t].count;
	relabel->meta = meta;
	relabel->id_count = ids;
	relabel->dense = ids <= dense_bytes_max / sizeof(uint64_t);
	*out = relabel;
	return GW_OK;
}

void gw_relabel_destroy(struct gw_relabel *relabel)
{
	if (!relabel)
		return;
	gw_dense_map_destroy(&relabel->dense_map);
	gw_hash_map_destroy(&relabel->hash_map);
	gw_free(relabel);
}

static gw_status begin_dense(struct gw_relabel *relabel)
{
	if (!relabel->dense_map.arena)
		return gw_dense_map_create(relabel->id_count, &relabel->dense_map);
	gw_dense_map_clear(&relabel->dense_map);
	return GW_OK;
}

static gw_status begin_by_hash(struct gw_relabel *relabel)
{
	if (!relabel->hash_map.slots)
		return gw_hash_map_create(FIRST_NODES, &relabel->hash_map);
	gw_hash_map_clear(&relabel->hash_map);
	return GW_OK;
}

gw_status gw_relabel_begin(struct gw_relabel *relabel)
{
	gw_status status = relabel->dense ? begin_dense(relabel) : begin_by_hash(relabel);
	return status == GW_OK ? GW_OK : gw_context(status, "maps for relabelling");
}

gw_status gw_relabel_begin_groups(struct gw_relabel *relabel, uint32_t last)
{
	uint64_t pairs;
	if (__builtin_mul_overflow((uint64_t)last + 1, relabel->id_count, &pairs))
		return gw_fail(GW_LIMIT, "group %u of a graph of %llu nodes: groups * nodes must be below 2^64", last,
			       (unsigned long long)relabel->id_count);
	gw_status status = begin_by_hash(relabel);
	return status == GW_OK ? GW_OK : gw_context(status, "maps for relabelling");
}

static gw_status no_node(const struct gw_node_list *nodes, uint64_t id)
{
	return gw_fail(GW_RANGE, "node %lld is out of range: there are %llu", (long long)id,
		       (unsigned long long)nodes->id_count);
}

enum map_kind { BY_HASH, DENSE, PAIRS };

/* An id whose place in the map is on its way to the cache. */
struct ahead {
	uint64_t id, key;
};

/* Reads an id, replaces its position by an edge id, and prefetches the map's entry. Does not check the id's range
 * yet. */
INLINE struct ahead fill(const struct gw_relabel *relabel, const struct gw_node_list *nodes,
			 const struct gw_relabel_source *source, uint64_t at, enum map_kind map, uint32_t element_bytes)
{
	uint64_t id;
	if (element_bytes) {
		uint64_t element = source->elements[at];
		const void *address = (const void *)(source->memory + element * element_bytes);
		id = element_bytes == 4 ? *(const uint32_t *)address : *(const uint64_t *)address;
		source->elements[at] = element + source->edge_delta;
	} else {
		id = source->ids[at];
	}
	uint64_t key = nodes->key + id;
	if (map == PAIRS)
		key += source->groups[at] * relabel->id_count;
	if (map == DENSE)
		__builtin_prefetch((const void *)((uintptr_t)relabel->dense_map.entries + key * sizeof(uint64_t)), 1);
	else
		gw_hash_map_prefetch(&relabel->hash_map, key);
	return (struct ahead){id, key};
}

/* Returns the number of an id, and updates the count of nodes. */
INLINE uint32_t put(struct gw_relabel *relabel, struct ahead ahead, uint64_t *ids, uint64_t *count, enum map_kind map)
{
	bool is_new;
	uint32_t number;
	if (map == DENSE) {
		uint64_t fresh = (uint64_t)relabel->dense_map.tag << 32 | *count;
		uint64_t *place = relabel->dense_map.entries + ahead.key, entry = *place;
		is_new = (entry ^ fresh) >> 32 != 0;
		entry ^= (entry ^ fresh) & -(uint64_t)is_new;
		*place = entry;
		number = (uint32_t)entry;
	} else {
		number = gw_hash_map_put(&relabel->hash_map, ahead.key, (uint32_t)*count, &is_new);
	}
	ids[*count] = ahead.id;
	*count += is_new;
	return number;
}

static gw_status make_room(struct gw_relabel *relabel, struct gw_node_list *nodes, uint64_t n, bool wide, bool pairs)
{
	uint64_t left = pairs ? UINT64_MAX : nodes->id_count - nodes->count, more = n < left ? n : left;
	uint64_t count_max = wide ? UINT32_MAX : INT32_MAX;
	if (nodes->count + more > count_max)
		return gw_fail(GW_LIMIT, "a batch of more than %llu nodes: take fewer seeds%s",
			       (unsigned long long)count_max, wide ? "" : " or wide indices");
	gw_status status = gw_vec_reserve(&nodes->ids, (nodes->count + more + 1) * sizeof(uint64_t));
	if (status == GW_OK && pairs)
		status = gw_vec_reserve(&nodes->groups, (nodes->count + more + 1) * sizeof(uint32_t));
	if (status == GW_OK && (pairs || !relabel->dense))
		status = gw_hash_map_reserve(&relabel->hash_map, more);
	return status;
}

/* Handles ids [at, end); room for all of them exists. */
INLINE gw_status run_piece(struct gw_relabel *relabel, struct gw_node_list *nodes,
			   const struct gw_relabel_source *source, uint64_t at, uint64_t end, void *numbers, bool wide,
			   enum map_kind map, uint32_t element_bytes)
{
	struct ahead ring[AHEAD];
	uint64_t *ids = nodes->ids.data, count = nodes->count;
	uint32_t *groups = nodes->groups.data;
	const uint64_t id_count = nodes->id_count;
	for (uint64_t i = at; i < end && i < at + AHEAD; i++)
		ring[i % AHEAD] = fill(relabel, nodes, source, i, map, element_bytes);
	for (uint64_t i = at; i < end; i++) {
		struct ahead ahead = ring[i % AHEAD];
		if (i + AHEAD < end)
			ring[i % AHEAD] = fill(relabel, nodes, source, i + AHEAD, map, element_bytes);
		if (ahead.id >= id_count)
			return no_node(nodes, ahead.id);
		if (map == PAIRS)
			groups[count] = source->groups[i];
		uint32_t number = put(relabel, ahead, ids, &count, map);
		if (wide)
			((int64_t *)numbers)[i] = number;
		else
			((uint32_t *)numbers)[i] = number;
	}
	nodes->count = count;
	return GW_OK;
}

INLINE gw_status run(struct gw_relabel *relabel, struct gw_node_list *nodes, const struct gw_relabel_source *source,
		     uint64_t n, void *numbers, bool wide, enum map_kind map, uint32_t element_bytes)
{
	const struct gw_relabel_source copy = *source;
	for (uint64_t at = 0; at < n; at += PIECE) {
		uint64_t end = n - at < PIECE ? n : at + PIECE;
		gw_status status = make_room(relabel, nodes, end - at, wide, map == PAIRS);
		if (status == GW_OK)
			status = run_piece(relabel, nodes, &copy, at, end, numbers, wide, map, element_bytes);
		if (status != GW_OK)
			return status;
	}
	return GW_OK;
}

/* One instance of the loop per width, map and source. */
#define OF_MAP(X, map)                                                                                                 \
	X(0, map, 0)                                                                                                   \
	X(0, map, 4)                                                                                                   \
	X(0, map, 8)                                                                                                   \
	X(1, map, 0)                                                                                                   \
	X(1, map, 4)                                                                                                   \
	X(1, map, 8)
#define INSTANCES(X) OF_MAP(X, BY_HASH) OF_MAP(X, DENSE) OF_MAP(X, PAIRS)

#define DEFINE(wide, map, bytes)                                                                                       \
	static gw_status run_##wide##_##map##_##bytes(struct gw_relabel *relabel, struct gw_node_list *nodes,          \
						      const struct gw_relabel_source *source, uint64_t n,              \
						      void *numbers)                                                   \
	{                                                                                                              \
		return run(relabel, nodes, source, n, numbers, wide, map, bytes);                                      \
	}
INSTANCES(DEFINE)
#undef DEFINE

typedef gw_status (*run_function)(struct gw_relabel *relabel, struct gw_node_list *nodes,
				  const struct gw_relabel_source *source, uint64_t n, void *numbers);

static const run_function runs[2][3][3] = {
#define ENTRY(wide, map, bytes) [wide][map][bytes / 4] = run_##wide##_##map##_##bytes,
	INSTANCES(ENTRY)
#undef ENTRY
};

gw_status gw_relabel_run(struct gw_relabel *relabel, struct gw_node_list *nodes, struct gw_relabel_source source,
			 uint64_t n, void *numbers, bool wide)
{
	uint32_t bytes = source.ids ? 0 : source.element_bytes;
	enum map_kind map = source.groups ? PAIRS : relabel->dense ? DENSE : BY_HASH;
	return runs[wide][map][bytes / 4](relabel, nodes, &source, n, numbers);
}
