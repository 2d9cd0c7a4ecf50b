/* The index that finds a node by its original id. Each part stores a share of it.
 *
 *   original id -> key -> the part that has the key's entry -> its bucket -> the entry -> node
 *
 * Every node type has one of these forms:
 *   dense    the original ids are 0 ... nodes - 1, each once. "orig_id.inverse" has the node of each id; the parts
 *            divide the ids evenly, in order.
 *   numbers  any other integers. "orig_id.index" has entries {key, node}, sorted.
 *   texts    "orig_id.index" has entries {key, key, node}, sorted.
 *   none     the graph is older than the index, or was written without it.
 * The key of a number is a bijection of it; that of a text is its XXH3-128, the upper half first. The first
 * word of a key is spread evenly over 64 bits. It selects the part and, within the part, the bucket. "orig_id.buckets"
 * has the number of the first entry of each bucket, and at the end the number of entries.
 *
 * An original id may belong to several nodes. Their entries are adjacent, and a look-up adds GW_ID_SHARED to the node.
 */
#ifndef GW_GRAPH_ID_INDEX_H
#define GW_GRAPH_ID_INDEX_H

#include "core/graph/part.h"
#include "core/graph/writer.h"
#include "core/numbers/rng.h"

enum gw_id_form { GW_IDS_NONE, GW_IDS_DENSE, GW_IDS_NUMBERS, GW_IDS_TEXTS };

/* What a look-up returns for a key, instead of a node. */
#define GW_ID_MISSING UINT64_MAX
#define GW_ID_SHARED  (1ull << 63) /* added to the first node, if the id belongs to further nodes */

#define GW_ID_KEY_WORDS 2u /* at most */

/* The index of a node type in one part. */
struct gw_id_index {
	enum gw_id_form form;
	const void *nodes;       /* dense: [rows] of node_bytes */
	uint8_t node_bytes;      /* 4 or 8 */
	uint64_t rows;           /* dense: ids of the part; else entries */
	const uint64_t *entries; /* [rows][words + 1] */
	const void *buckets;     /* [bucket_count + 1] of bucket_bytes */
	uint8_t bucket_bytes;
	uint64_t bucket_count;
	uint32_t words; /* of a key */
	uint32_t parts; /* of the graph */
};

/* The form of a node type's index. */
enum gw_id_form gw_id_form(const struct gw_graph_meta *meta, uint32_t ntype);

/* Words of a key: 2 for texts, else 1. */
static inline uint32_t gw_id_key_words(enum gw_id_form form)
{
	return form == GW_IDS_TEXTS ? 2 : 1;
}

static inline uint64_t gw_id_number_key(int64_t id)
{
	return gw_mix64((uint64_t)id);
}

void gw_id_text_key(const void *text, size_t bytes, uint64_t key[GW_ID_KEY_WORDS]);

/* The part that has the entries of a key. */
static inline uint32_t gw_id_key_owner(uint64_t first_word, uint32_t parts)
{
	return (uint32_t)((unsigned __int128)first_word * parts >> 64);
}

/* The bucket of a key in that part. */
static inline uint64_t gw_id_key_bucket(uint64_t first_word, uint32_t parts, uint64_t buckets)
{
	return (uint64_t)((unsigned __int128)(first_word * parts) * buckets >> 64);
}

/* Finds the arrays of the index in an opened part. False: the type has no index, or the part was opened without it. */
bool gw_id_index_of(const struct gw_part *part, uint32_t ntype, struct gw_id_index *out);

/* Looks up n keys of gw_id_key_words() words each; for dense ids, a key is the id minus the part's first id.
 * nodes[i]: the node, GW_ID_MISSING, or GW_ID_SHARED + the node with the smallest id. The arrays may be a peer's:
 * GW_FORMAT if a bucket is impossible. Nodes are not checked. */
gw_status gw_id_index_look_up(const struct gw_id_index *index, const uint64_t *keys, uint64_t n, uint64_t *nodes);

/* The node of a key among sorted entries of the index, as above. *at: the entry, or the first one after its place. */
uint64_t gw_id_entries_find(const uint64_t *entries, uint64_t count, const uint64_t *key, uint32_t words, uint64_t *at);

/* Writes the index of every node type, and orig_id.inverse of every edge type of a graph in several parts. The
 * orig_id arrays of all parts must already be written: the call maps the writer's files and reads them. Types whose ids
 * repeat get an index too. threads = 0: one per processor. Memory: range_bytes (0: 256 MiB), or a sixteenth of the
 * largest type's index if that is more; and a bit for each node. An id that many nodes share takes 16 or 24 bytes for
 * each of them. Errors: those of the writer, GW_NO_MEMORY.
 */
gw_status gw_id_index_write(struct gw_writer *writer, unsigned threads, uint64_t range_bytes);

/* Checks the index of a node type in one part without the original ids: entries in order, in their part and bucket, and
 * nodes that exist. gw_part_check calls it. GW_FORMAT or GW_RANGE names the file, the key and the first fault. */
gw_status gw_id_index_check(const struct gw_part *part, uint32_t ntype, unsigned threads);

/* Two sums of hashes of the pairs (key, node): over the nodes, and over the index. */
struct gw_id_scan {
	uint64_t nodes, entries;
};

/* Adds a part to the sums of a node type. After all parts, the sums are equal if the index leads from every original id
 * to its nodes. */
gw_status gw_id_index_scan(const struct gw_part *part, uint32_t ntype, unsigned threads, struct gw_id_scan *scan);

#endif
