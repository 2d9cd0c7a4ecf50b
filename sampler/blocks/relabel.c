/* Numbers global ids in the order of first use. This is where a sampler waits for memory.
 *
 *   ids (given, or read at the picked positions), their map entries prefetched -> checked and put, AHEAD later
 *
 * The loop alternates fill and put, id by id, so that the processor can put while it waits for room for the next
 * prefetch. It always stores the id after the list's end; the list grows by one or by nothing. In a batch in groups
 * the key is the pair (group, id). Pairs are far more than nodes, so their map is always a hash map. Fails for an id
 * that is no node, for numbers beyond the width of the result, and if memory runs out.
 */
#include "sampler/blocks/relabel.h"

#include "core/memory/alloc.h"
#include "sampler/lists.h"

#define AHEAD       64   /* measured: 16 is 6 % slower, 128 as fast */
#define PIECE       1024 /* nodes that are numbered at once; room for them is allocated before */
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
	relabel->dense = ids <= dense_bytes_max / sizeof(uint32_t) && ids <= GW_DENSE_IDS_MAX;
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
	gw_dense_map_clear(&relabel->dense_map, relabel->numbers_max);
	relabel->numbers_max = 0;
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

/* Nodes that are numbered at once, and the maps. In local variables: through pointers, the compiler would load all of
 * it again after every store. */
struct piece {
	struct gw_relabel_source source;
	struct gw_dense_map dense;
	struct gw_hash_map *by_hash;
	uint64_t pair_step; /* from a key to that of the same node in the next group */
	uint64_t key;       /* of the type's id 0 */
	uint64_t ids[PIECE];
};

INLINE uint64_t map_key(const struct piece *piece, uint64_t at, enum map_kind map)
{
	return piece->key + piece->ids[at] + (map == PAIRS ? piece->source.groups[at] * piece->pair_step : 0);
}

/* Reads an id, and prefetches the map's entry. Does not check the id's range yet. */
INLINE void fill(struct piece *piece, uint64_t at, enum map_kind map, uint32_t element_bytes)
{
	const struct gw_relabel_source *source = &piece->source;
	if (element_bytes) {
		const void *address = (const void *)(source->memory + source->elements[at] * element_bytes);
		piece->ids[at] = element_bytes == 4 ? *(const uint32_t *)address : *(const uint64_t *)address;
	} else {
		piece->ids[at] = source->ids[at];
	}
	uint64_t key = map_key(piece, at, map);
	if (map == DENSE)
		__builtin_prefetch((const void *)((uintptr_t)piece->dense.entries + key * sizeof(uint32_t)), 1);
	else
		gw_hash_map_prefetch(piece->by_hash, key);
}

INLINE uint32_t put(const struct piece *piece, uint64_t at, uint32_t number, bool *is_new, enum map_kind map)
{
	uint64_t key = map_key(piece, at, map);
	return map == DENSE ? gw_dense_map_put(&piece->dense, key, number, is_new)
			    : gw_hash_map_put(piece->by_hash, key, number, is_new);
}

static gw_status make_room(struct gw_relabel *relabel, struct gw_node_list *nodes, uint64_t n, bool wide, bool pairs)
{
	uint64_t left = pairs ? UINT64_MAX : nodes->id_count - nodes->count, more = n < left ? n : left;
	uint64_t count_max = wide ? UINT32_MAX : INT32_MAX;
	if (nodes->count + more > count_max)
		return gw_fail(GW_LIMIT, "a batch of more than %llu nodes: take fewer seeds%s",
			       (unsigned long long)count_max, wide ? "" : " or wide indices");
	if (nodes->count + more > relabel->numbers_max)
		relabel->numbers_max = nodes->count + more;
	gw_status status = gw_vec_reserve(&nodes->ids, (nodes->count + more + 1) * sizeof(uint64_t));
	if (status == GW_OK && pairs)
		status = gw_vec_reserve(&nodes->groups, (nodes->count + more + 1) * sizeof(uint32_t));
	if (status == GW_OK && (pairs || !relabel->dense))
		status = gw_hash_map_reserve(&relabel->hash_map, more);
	return status;
}

/* Where the numbers of a piece go. */
struct numbered {
	uint64_t *ids, count; /* the nodes so far */
	uint32_t *groups;
	void *numbers;
};

INLINE void number_one(const struct piece *piece, uint64_t at, struct numbered *to, bool wide, enum map_kind map)
{
	bool is_new;
	uint32_t number = put(piece, at, (uint32_t)to->count, &is_new, map);
	to->ids[to->count] = piece->ids[at];
	if (map == PAIRS)
		to->groups[to->count] = piece->source.groups[at];
	to->count += is_new;
	if (wide)
		((int64_t *)to->numbers)[at] = number;
	else
		((uint32_t *)to->numbers)[at] = number;
}

/* Numbers n ids, for which room exists. */
INLINE gw_status run_piece(struct gw_relabel *relabel, struct gw_node_list *nodes,
			   const struct gw_relabel_source *source, uint64_t n, void *numbers, bool wide,
			   enum map_kind map, uint32_t element_bytes)
{
	struct piece piece;
	piece.source = *source;
	piece.dense = relabel->dense_map;
	piece.by_hash = &relabel->hash_map;
	piece.pair_step = relabel->id_count;
	piece.key = map == DENSE ? 0 : nodes->key;
	piece.dense.entries += map == DENSE ? nodes->key : 0;
	struct numbered to = {nodes->ids.data, nodes->count, nodes->groups.data, numbers};
	const uint64_t id_count = nodes->id_count;
	uint64_t ahead = n < AHEAD ? n : AHEAD, i = 0;
	for (; i < ahead; i++)
		fill(&piece, i, map, element_bytes);
	for (i = 0; i + ahead < n; i++) {
		fill(&piece, i + ahead, map, element_bytes);
		if (piece.ids[i] >= id_count)
			return no_node(nodes, piece.ids[i]);
		number_one(&piece, i, &to, wide, map);
	}
	for (; i < n; i++) {
		if (piece.ids[i] >= id_count)
			return no_node(nodes, piece.ids[i]);
		number_one(&piece, i, &to, wide, map);
	}
	nodes->count = to.count;
	return GW_OK;
}

INLINE gw_status run(struct gw_relabel *relabel, struct gw_node_list *nodes, const struct gw_relabel_source *source,
		     uint64_t n, void *numbers, bool wide, enum map_kind map, uint32_t element_bytes)
{
	const size_t width = wide ? sizeof(int64_t) : sizeof(uint32_t);
	struct gw_relabel_source left = *source;
	for (uint64_t at = 0; at < n; at += PIECE) {
		uint64_t some = n - at < PIECE ? n - at : PIECE;
		gw_status status = make_room(relabel, nodes, some, wide, map == PAIRS);
		if (status == GW_OK)
			status = run_piece(relabel, nodes, &left, some, (char *)numbers + at * width, wide, map,
					   element_bytes);
		if (status != GW_OK)
			return status;
		left.ids += left.ids ? some : 0;
		left.elements += left.elements ? some : 0;
		left.groups += left.groups ? some : 0;
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
