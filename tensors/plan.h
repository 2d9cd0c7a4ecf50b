/* Plans of tensors, checked against a graph, and which part has which rows. Clients and servers compute the same
 * layout. */
#ifndef GW_TENSORS_PLAN_H
#define GW_TENSORS_PLAN_H

#include "core/graph/book.h"
#include "protocol/tensor_call.h"

#define GW_TENSOR_ROWS_MAX (1ull << 40)

/* Assigns rows to parts: by the ranges of the partition book, or row i to part i % parts. */
struct gw_tensor_layout {
	uint64_t *starts; /* [parts + 1]: prefix sums of the parts' rows; owned */
	uint32_t parts;
	bool striped;
	uint64_t rows, row_bytes, row_elements;
};

/* Whether the graph can have a tensor of this plan. GW_INVALID, GW_RANGE, GW_LIMIT and GW_UNSUPPORTED give the
 * reason. */
gw_status gw_tensor_plan_check(const struct gw_graph_meta *meta, const struct gw_tensor_plan *plan);

/* GW_EXISTS unless both plans are equal; the text names the first difference. */
gw_status gw_tensor_plan_match(const struct gw_tensor_plan *have, const struct gw_tensor_plan *wanted);

/* Creates the layout of a checked plan. GW_NO_MEMORY. */
gw_status gw_tensor_layout_make(const struct gw_graph_meta *meta, const struct gw_tensor_plan *plan,
				struct gw_tensor_layout *out);
void gw_tensor_layout_free(struct gw_tensor_layout *layout);

static inline uint64_t gw_tensor_layout_count(const struct gw_tensor_layout *layout, uint32_t part)
{
	return layout->starts[part + 1] - layout->starts[part];
}

/* The part that has row `id`, id < rows; and the row's number there. */
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
