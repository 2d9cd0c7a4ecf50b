/* See lists.h.
 *
 *   space reserved -> for each range of nodes: lists sorted -> repeats dropped, ids renumbered, in place -> written
 *   -> offsets, header, weights written -> the rest of the space given back -> mapped
 */
#include "tools/partition/lists.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/files/filemap.h"
#include "core/memory/alloc.h"
#include "core/system/parallel.h"

#define HEADER_WORDS     3u
#define ROWS_GRAIN       8192u
#define NO_ENTRY_WEIGHTS 1u
#define NO_NODE_WEIGHTS  2u
#define NARROW_IDS       (8u | 16u | 32u) /* of nodes, and of both kinds of weights */
#define WEIGHT_UNITS     256u             /* the mean weight of a node */
#define PIECE_NODES      65536u           /* whose weights are written at once */
#define RANGES           8u               /* more memory than the lists of one in so many takes no time off */
#define RANGE_BYTES      (4u << 20)
#define LEAVE_BYTES      (2u << 20) /* of lists */

struct writing {
	const struct gw_balance *balance;
	struct gw_spill *spill;
	struct gw_symmetric_range range;
	struct gw_list_file *out;
	uint64_t *offset; /* [nodes + 1]: in bytes of the file */
};

uint64_t gw_list_file_bytes_max(uint64_t nodes, uint64_t edges)
{
	return HEADER_WORDS * sizeof(uint64_t) + (nodes + 1) * sizeof(uint64_t) + 2 * edges * sizeof(uint32_t) +
	       nodes * sizeof(uint32_t);
}

static gw_status lists_put(const struct writing *w, const void *data, uint64_t bytes, uint64_t at)
{
	const char *from = data;
	while (bytes > 0) {
		ssize_t done = pwrite(w->out->fd, from, bytes < 1u << 30 ? bytes : 1u << 30, (off_t)at);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return gw_fail_errno(errno == ENOSPC ? GW_NO_SPACE : GW_IO, errno, "%s: a temporary file",
					     w->spill->folder);
		from += done;
		at += (uint64_t)done;
		bytes -= (uint64_t)done;
	}
	return GW_OK;
}

static uint32_t *list_in_range(const struct gw_symmetric_range *range, uint64_t v)
{
	return range->list + (range->ends[v] - range->ends[range->first]);
}

static gw_status drop_repeats(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct gw_symmetric_range *range = context;
	for (uint64_t v = range->first + begin; v < range->first + end; v++) {
		uint32_t *ids = list_in_range(range, v), *to = ids, last = UINT32_MAX; /* no node has this number */
		uint64_t n = range->ends[v + 1] - range->ends[v];
		for (uint64_t i = 0; i < n; i++) {
			uint32_t id = ids[i];
			if (id != last)
				*to++ = range->number[id];
			last = id;
		}
	}
	(void)thread;
	return GW_OK;
}

static gw_status write_range(struct writing *w)
{
	const struct gw_symmetric_range *range = &w->range;
	uint64_t at = w->offset[range->number[range->first]], next = at;
	gw_status status = gw_parallel_for(w->balance->plan->threads, range->end - range->first, ROWS_GRAIN,
					   drop_repeats, &w->range);
	for (uint64_t v = range->first; v < range->end && status == GW_OK; v++) {
		uint64_t bytes = range->distinct[v - range->first] * sizeof(uint32_t);
		memmove((char *)range->list + (next - at), list_in_range(range, v), bytes);
		w->offset[range->number[v]] = next; /* a node without neighbours has the number of the next with some */
		next += bytes;
		if (bytes)
			w->offset[range->number[v] + 1] = next;
	}
	return status == GW_OK ? lists_put(w, range->list, next - at, at) : status;
}

/* Sums the quantities, and keeps the origins. */
static gw_status lists_survey(struct writing *w)
{
	struct gw_list_file *out = w->out;
	uint32_t quantities = w->balance->quantities, ntype = 0;
	uint64_t quantity[GW_BALANCE_QUANTITIES_MAX];
	out->origin = gw_malloc((out->nodes + 1) * sizeof(*out->origin));
	out->total = gw_calloc(quantities, sizeof(*out->total));
	out->most = gw_calloc(quantities, sizeof(*out->most));
	if (!out->origin || !out->total || !out->most)
		return GW_NO_MEMORY;
	for (uint64_t v = 0; v < w->range.all; v++) {
		if (w->range.ends[v + 1] == w->range.ends[v])
			continue;
		out->origin[w->range.number[v]] = (uint32_t)v;
		gw_balance_of_node(w->balance, v, &ntype, quantity);
		for (uint32_t c = 0; c < quantities; c++) {
			out->total[c] += quantity[c];
			out->most[c] = quantity[c] > out->most[c] ? quantity[c] : out->most[c];
		}
	}
	return GW_OK;
}

/* A node's share of each quantity, summed, in units of the mean. */
static gw_status write_weights(struct writing *w, uint64_t at)
{
	const struct gw_list_file *out = w->out;
	uint32_t quantities = w->balance->quantities, ntype = 0;
	uint64_t quantity[GW_BALANCE_QUANTITIES_MAX];
	uint32_t *weight = gw_malloc(PIECE_NODES * sizeof(*weight));
	gw_status status = weight ? GW_OK : GW_NO_MEMORY;
	for (uint64_t v = 0; v < out->nodes && status == GW_OK; v++) {
		double sum = 0;
		gw_balance_of_node(w->balance, out->origin[v], &ntype, quantity);
		for (uint32_t c = 0; c < quantities; c++)
			sum += out->total[c] ? (double)quantity[c] / (double)out->total[c] : 0;
		sum = sum / quantities * (double)out->nodes * WEIGHT_UNITS;
		weight[v % PIECE_NODES] = sum < 1 ? 1 : sum > INT32_MAX ? INT32_MAX : (uint32_t)sum;
		if ((v + 1) % PIECE_NODES == 0 || v + 1 == out->nodes)
			status = lists_put(w, weight, (v % PIECE_NODES + 1) * sizeof(*weight),
					   at + v / PIECE_NODES * PIECE_NODES * sizeof(*weight));
	}
	gw_free(weight);
	return status;
}

static gw_status lists_write_file(struct writing *w, uint64_t bytes, bool weights)
{
	struct gw_list_file *out = w->out;
	uint64_t head = (HEADER_WORDS + out->nodes + 1) * sizeof(uint64_t);
	w->offset =
		gw_malloc((out->nodes + 2) * sizeof(*w->offset)); /* one more for nodes at the end without neighbours */
	if (!w->offset)
		return GW_NO_MEMORY;
	w->offset[0] = head;
	uint64_t share = 2 * w->range.edges * sizeof(uint32_t) / RANGES;
	if (share < RANGE_BYTES)
		share = RANGE_BYTES;
	if (bytes > share)
		bytes = share;
	gw_status status = gw_symmetric_range_next(&w->range, bytes);
	while (status == GW_OK && w->range.first < w->range.end) {
		status = write_range(w);
		if (status == GW_OK)
			status = gw_symmetric_range_next(&w->range, bytes);
	}
	if (status == GW_OK)
		status = lists_survey(w);
	if (status != GW_OK)
		return status;
	uint64_t end = w->offset[out->nodes];
	out->entries = (end - head) / sizeof(uint32_t);
	out->bytes = end + (weights ? out->nodes * sizeof(uint32_t) : 0);
	const uint64_t header[HEADER_WORDS] = {NO_ENTRY_WEIGHTS | (weights ? 0 : NO_NODE_WEIGHTS) | NARROW_IDS,
					       out->nodes, out->entries};
	status = lists_put(w, header, sizeof(header), 0);
	if (status == GW_OK)
		status = lists_put(w, w->offset, (out->nodes + 1) * sizeof(uint64_t), sizeof(header));
	if (status == GW_OK && weights)
		status = write_weights(w, end);
	return status;
}

gw_status gw_list_file_check(const struct gw_balance *balance)
{
	uint64_t nodes = balance->base[balance->meta->num_ntypes];
	if (balance->quantities > GW_BALANCE_QUANTITIES_MAX)
		return gw_fail(GW_LIMIT,
			       "%u quantities to balance, and at most %u are supported; leave out "
			       "--balance-ntypes, or use --method random, which balances every type",
			       balance->quantities, GW_BALANCE_QUANTITIES_MAX);
	return nodes < GW_SYMMETRIC_NODES_END
		       ? GW_OK
		       : gw_fail(GW_LIMIT, "%" PRIu64 " nodes do not fit in 32-bit ids; use --method random", nodes);
}

gw_status gw_list_file_make(const struct gw_balance *balance, struct gw_spill *spill, uint64_t bytes, bool weights,
			    struct gw_list_file *out)
{
	const struct gw_graph_meta *meta = balance->meta;
	struct writing w = {.balance = balance, .spill = spill, .out = out};
	*out = (struct gw_list_file){.fd = -1};
	gw_status status = gw_list_file_check(balance);
	if (status == GW_OK)
		status = gw_symmetric_range_open(balance->sources, meta->num_etypes, balance->base[meta->num_ntypes],
						 balance->plan->threads, &w.range);
	out->nodes = w.range.nodes;
	if (status == GW_OK)
		status = gw_spill_announce(spill, gw_list_file_bytes_max(out->nodes, w.range.edges),
					   "the symmetric graph");
	if (status == GW_OK)
		status = gw_spill_file(spill, gw_list_file_bytes_max(out->nodes, w.range.edges), &out->fd);
	if (status == GW_OK)
		status = lists_write_file(&w, bytes, weights);
	gw_symmetric_range_close(&w.range);
	gw_free(w.offset);
	if (status == GW_OK && ftruncate(out->fd, (off_t)out->bytes) != 0)
		status = gw_fail_errno(GW_IO, errno, "%s: a temporary file", spill->folder);
	if (status == GW_OK) {
		out->map = mmap(NULL, out->bytes, PROT_READ, MAP_SHARED, out->fd, 0);
		if (out->map == MAP_FAILED) {
			out->map = NULL;
			status = gw_fail_errno(GW_NO_MEMORY, errno, "%s: a temporary file", spill->folder);
		}
	}
	if (status != GW_OK) {
		gw_list_file_close(out);
		return status;
	}
	out->offset = (const uint64_t *)out->map + HEADER_WORDS;
	out->ids = (const uint32_t *)((const char *)out->map + out->offset[0]);
	return GW_OK;
}

void gw_list_file_leave(const struct gw_list_file *lists, uint64_t v, uint64_t *left)
{
	uint64_t at = lists->offset[v];
	if (at < *left + LEAVE_BYTES)
		return;
	*left = at;
	gw_filemap_drop(lists->map, lists->offset + v);
	gw_filemap_drop(lists->ids, (const char *)lists->map + at);
}

void gw_list_file_close(struct gw_list_file *lists)
{
	if (lists->map)
		munmap(lists->map, lists->bytes);
	if (lists->map || lists->fd > 0)
		close(lists->fd);
	gw_free(lists->origin);
	gw_free(lists->total);
	gw_free(lists->most);
	*lists = (struct gw_list_file){.fd = -1};
}
