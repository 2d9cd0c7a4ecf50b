/* Picks rows in the order of nodes. If the input exceeds the memory, no pass reads or writes in a random order:
 *
 *   the rows that nodes take, to the blocks of the input that have them, in the order of nodes
 *   each block, read into memory: its rows in this order, behind those of the blocks before it
 *   the nodes in order, each from the next place of its block
 *
 * Fails if memory runs out, or the disk.
 */
#include "tools/import/pick_rows.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/parallel.h"
#include "tools/builder/run_reader.h"
#include "tools/builder/run_writer.h"
#include "tools/phase.h"

#define GRAIN       (4u << 10)
#define BLOCKS_MAX  4096u
#define BLOCK_SHARE 2u /* of a step's memory: the kernel also keeps what was written */

struct picking {
	const uint8_t *from;
	uint8_t *to;
	const uint64_t *rows;
	uint64_t base, row_bytes;
};

static gw_status pick_copy_rows(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	(void)thread;
	const struct picking *p = context;
	for (uint64_t i = begin; i < end; i++)
		memcpy(p->to + i * p->row_bytes, p->from + (p->rows[i] - p->base) * p->row_bytes, p->row_bytes);
	return GW_OK;
}

struct blocks {
	const struct gw_import_pick *pick;
	uint64_t block_rows, count;
	uint64_t *starts; /* [count + 1] */
	uint64_t *rows;   /* [nodes] by block, without the base */
	uint8_t *staged;  /* [nodes] rows by block */
};

static uint64_t block_of(const struct blocks *b, uint64_t node)
{
	return (b->pick->rows[node] - b->pick->base) / b->block_rows;
}

static gw_status divide_nodes(struct blocks *b, uint64_t memory)
{
	for (uint64_t i = 0; i < b->pick->count; i++)
		b->starts[block_of(b, i) + 1]++;
	for (uint64_t k = 0; k < b->count; k++)
		b->starts[k + 1] += b->starts[k];
	struct gw_run_writer writer;
	gw_status status = gw_run_writer_open(b->rows, sizeof(*b->rows), b->starts, b->count, memory, &writer);
	for (uint64_t i = 0; i < b->pick->count && status == GW_OK; i++) {
		uint64_t row = b->pick->rows[i] - b->pick->base;
		gw_run_writer_add(&writer, block_of(b, i), &row, sizeof(row));
	}
	gw_status closed = gw_run_writer_close(&writer);
	return status != GW_OK ? status : closed;
}

/* A block is copied first. In the mapping, the kernel would take its pages rather than write what has been staged. */
static void stage_blocks(struct blocks *b, unsigned threads, uint8_t *memory)
{
	uint64_t bytes = b->pick->row_bytes;
	for (uint64_t k = 0; k < b->count; k++) {
		uint64_t first = k * b->block_rows, left = b->pick->input_rows - first;
		uint64_t rows = left < b->block_rows ? left : b->block_rows;
		memcpy(memory, (const uint8_t *)b->pick->from + first * bytes, rows * bytes);
		struct picking picking = {.from = memory,
					  .base = first,
					  .to = b->staged + b->starts[k] * bytes,
					  .rows = b->rows + b->starts[k],
					  .row_bytes = bytes};
		gw_parallel_for(threads, b->starts[k + 1] - b->starts[k], GRAIN, pick_copy_rows, &picking);
	}
}

static gw_status join_blocks(struct blocks *b, uint64_t memory, uint8_t *to)
{
	uint64_t bytes = b->pick->row_bytes;
	struct gw_run_reader reader;
	gw_status status = gw_run_reader_open(b->staged, bytes, b->starts, b->count, memory, &reader);
	for (uint64_t i = 0; i < b->pick->count && status == GW_OK; i++)
		memcpy(to + i * bytes, gw_run_reader_next(&reader, block_of(b, i)), bytes);
	gw_status closed = gw_run_reader_close(&reader);
	return status != GW_OK ? status : closed;
}

static gw_status pick_by_blocks(struct gw_import *im, const struct gw_import_pick *pick, uint64_t limit, uint8_t *to)
{
	struct gw_spill *spill = gw_import_memory(im).spill;
	uint64_t least = pick->input_rows / BLOCKS_MAX + 1, fit = limit / BLOCK_SHARE / pick->row_bytes;
	struct blocks b = {.pick = pick, .block_rows = fit > least ? fit : least};
	b.count = pick->input_rows / b.block_rows + 1;
	gw_status status = gw_spill_announce(spill, pick->count * (pick->row_bytes + sizeof(*b.rows)),
					     "a feature in another order");
	b.starts = gw_calloc(b.count + 1, sizeof(*b.starts));
	if (status == GW_OK && !b.starts)
		status = GW_NO_MEMORY;
	uint8_t *memory = gw_malloc(b.block_rows * pick->row_bytes);
	if (status == GW_OK && !memory)
		status = GW_NO_MEMORY;
	b.rows = gw_spill_take(spill, pick->count * sizeof(*b.rows), &status);
	b.staged = gw_spill_take(spill, pick->count * pick->row_bytes, &status);
	const uint64_t bytes = pick->count * pick->row_bytes, numbers = pick->count * sizeof(*b.rows);
	struct gw_phase pass = gw_phase_begin(1, !spill->reports);
	if (status == GW_OK && b.starts)
		status = divide_nodes(&b, limit / BLOCK_SHARE);
	if (status == GW_OK && b.starts && memory) {
		gw_phase_end_pass(&pass, "nodes to blocks", numbers, numbers);
		pass = gw_phase_begin(im->threads, !spill->reports);
		stage_blocks(&b, im->threads, memory);
		gw_phase_end_pass(&pass, "rows of blocks", pick->input_rows * pick->row_bytes + numbers, bytes);
		gw_free(memory);
		memory = NULL;
		pass = gw_phase_begin(1, !spill->reports);
		status = join_blocks(&b, limit / BLOCK_SHARE, to);
		if (status == GW_OK)
			gw_phase_end_pass(&pass, "blocks to rows", bytes + numbers, bytes);
	}
	gw_free(b.starts);
	gw_free(memory);
	gw_spill_give(b.rows);
	gw_spill_give(b.staged);
	return status;
}

gw_status gw_import_pick_rows(struct gw_import *im, const struct gw_import_pick *pick, const void **out)
{
	gw_status status = GW_OK;
	uint64_t memory = gw_import_memory(im).bytes, bytes = pick->row_bytes;
	uint8_t *to = gw_import_take(im, pick->count, bytes ? bytes : 1, &status);
	*out = to;
	if (status != GW_OK)
		return status;
	if (memory && bytes && pick->input_rows > memory / bytes)
		return pick_by_blocks(im, pick, memory, to);
	struct picking picking = {
		.from = pick->from, .to = to, .rows = pick->rows, .base = pick->base, .row_bytes = bytes};
	return gw_parallel_for(im->threads, pick->count, GRAIN, pick_copy_rows, &picking);
}
