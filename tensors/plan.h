/* What a tensor is to be, held against a graph; and which part has which of its rows: the same at clients and servers.
 */
#ifndef GW_TENSORS_PLAN_H
#define GW_TENSORS_PLAN_H

#include "core/graph/book.h"
#include "protocol/tensor_call.h"

#define GW_TENSOR_ROWS_MAX (1ull << 40)

/* Which part has a row: the book's ranges, or row i on part i % parts. */
struct gw_tensor_layout {
	uint64_t *starts; /* [parts + 1]: the rows of parts, added up; its own memory */
	uint32_t parts;
	bool striped;
	uint64_t rows, row_bytes, row_elements;
};

/* Whether the plan can be had of this graph: GW_INVALID, GW_RANGE, GW_LIMIT, GW_UNSUPPORTED say why not. */
gw_status gw_tensor_plan_check(const struct gw_graph_meta *meta, const struct gw_tensor_plan *plan);

/* GW_EXISTS unless both are the same; the text names what differs first. */
gw_status gw_tensor_plan_match(const struct gw_tensor_plan *have, const struct gw_tensor_plan *wanted);

/* Of a plan that was checked. GW_NO_MEMORY. */
gw_status gw_tensor_layout_make(const struct gw_graph_meta *meta, const struct gw_tensor_plan *plan,
				struct gw_tensor_layout *out);
void gw_tensor_layout_free(struct gw_tensor_layout *layout);

static inline uint64_t gw_tensor_layout_count(const struct gw_tensor_layout *layout, uint32_t part)
{
	return layout->starts[part + 1] - layout->starts[part];
}

/* The part that has a row, id < rows; and its number there. */
static inline uint32_t gw_tensor_layout_owner(const struct gw_tensor_layout *layout, uint64_t id)
{
	return layout->striped ? (uint32_t)(id % layout->parts) : gw_book_owner(layout->starts, layout->parts, id);
}

static inline uint64_t gw_tensor_layout_row(const struct gw_tensor_layout *layout, uint32_t owner, uint64_t id)
{
	return layout->striped ? id / layout->parts : id - layout->starts[owner];
}

/* The id of a part's row. */
static inline uint64_t gw_tensor_layout_id(const struct gw_tensor_layout *layout, uint32_t part, uint64_t row)
{
	return layout->striped ? row * layout->parts + part : layout->starts[part] + row;
}

#endif
