/* Any bytes as a call on tensors, or as a reply to one: refused with a line of text, or taken as they are and no
 * further than they go. A plan that is taken is held against a graph, and dealt out over its parts. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "tensors/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PARTS 3

/* A text that was taken is all that its field holds. */
static void fuzz_text(const char *field, size_t room)
{
	size_t end = strnlen(field, room);
	assert(end < room);
	for (size_t i = end; i < room; i++)
		assert(field[i] == 0);
}

static void fuzz_names(const struct gw_tensor_plan *plan)
{
	fuzz_text(plan->name, sizeof(plan->name));
	fuzz_text(plan->job, sizeof(plan->job));
	fuzz_text(plan->source, sizeof(plan->source));
}

static void fuzz_plan(const struct gw_tensor_plan *plan)
{
	static uint64_t starts[PARTS + 1] = {0, 3, 3, 10};
	static struct gw_node_type ntype = {.name = "n", .count = 10, .starts = starts};
	static const struct gw_graph_meta meta = {.num_parts = PARTS, .num_ntypes = 1, .ntypes = &ntype};
	struct gw_tensor_layout layout;
	fuzz_names(plan);
	if (gw_tensor_plan_check(&meta, plan) != GW_OK) {
		assert(gw_last_error()[0] != '\0');
		return;
	}
	assert(gw_tensor_plan_match(plan, plan) == GW_OK);
	if (gw_tensor_layout_make(&meta, plan, &layout) != GW_OK)
		return;
	assert(layout.starts[PARTS] == layout.rows && layout.row_bytes <= GW_TENSOR_ROW_BYTES_MAX);
	if (layout.rows > 0) {
		uint64_t id = layout.rows / 2;
		uint32_t owner = gw_tensor_layout_owner(&layout, id);
		uint64_t row = gw_tensor_layout_row(&layout, owner, id);
		assert(row < gw_tensor_layout_count(&layout, owner) && gw_tensor_layout_id(&layout, owner, row) == id);
	}
	gw_tensor_layout_free(&layout);
}

static void fuzz_rows(const uint8_t *data, size_t size, bool is_push)
{
	struct gw_tensor_push push;
	uint8_t head[GW_TENSOR_PUSH_HEAD_MAX];
	const uint8_t *rows = NULL, *payload = NULL;
	size_t payload_bytes = 0;
	gw_status status = is_push ? gw_tensor_push_parse(data, size, &push, &rows, &payload, &payload_bytes)
				   : gw_tensor_rows_parse(data, size, &push.rows, &rows, &payload, &payload_bytes);
	if (status != GW_OK)
		return;
	assert(rows >= data && payload == rows + (size_t)push.rows.count * 8 && payload + payload_bytes == data + size);
	if (is_push) {
		uint32_t bytes = gw_tensor_push_encode(&push, head);
		assert(rows == data + bytes && memcmp(head, data, bytes) == 0);
	}
}

static gw_status fuzz_others(uint8_t which, const uint8_t *data, size_t size)
{
	struct gw_tensor_complete_call complete;
	struct gw_tensor_list_call list;
	struct gw_tensor_delete_call delete;
	struct gw_tensor_state state;
	struct gw_tensor_range_call range;
	struct gw_tensor_restore_call restore;
	struct gw_tensor_saved saved;
	const uint8_t *epochs = NULL, *rows = NULL, *payload = NULL;
	char job[GW_JOB_NAME_MAX + 1];
	uint32_t count = 0;
	gw_status status;
	switch (which) {
	case 3:
		status = gw_tensor_complete_parse(data, size, &complete, &epochs);
		assert(status != GW_OK || epochs + (size_t)complete.parts * 8 == data + size);
		return status;
	case 4:
		return gw_tensor_list_parse(data, size, &list);
	case 5:
		status = gw_tensor_delete_parse(data, size, &delete);
		if (status == GW_OK)
			fuzz_text(delete.name, sizeof(delete.name));
		return status;
	case 6: /* and a job's end */
		status = gw_tensor_lease_parse(data, size, job);
		if (status == GW_OK)
			fuzz_text(job, sizeof(job));
		return status;
	case 12:
		status = gw_tensor_reads_parse(data, size, &rows, &count);
		assert(status != GW_OK || (count <= GW_TENSOR_READS_MAX && rows + count * 16 == data + size));
		return status;
	case 9: /* to save, or to count */
		return gw_tensor_range_parse(data, size, &range);
	case 10:
		status = gw_tensor_restore_parse(data, size, &restore, &rows, &payload);
		assert(status != GW_OK || (payload == rows + (size_t)restore.rows.count * 8 &&
					   payload + restore.rows.count * restore.floats * 4 == data + size));
		return status;
	case 11:
		status = gw_tensor_saved_parse(data, size, 3, 20, &saved, &payload, &rows);
		assert(status != GW_OK || (!rows && !payload && size == sizeof(saved)) ||
		       (payload + 3 * saved.state_floats * 4 == rows && rows + 60 == data + size));
		return status;
	default:
		status = gw_tensor_state_parse(data, size, PARTS, &state, &epochs);
		assert(status != GW_OK || epochs + (size_t)state.epochs * 8 == data + size);
		return status;
	}
}

static void fuzz_listed(const uint8_t *data, size_t size)
{
	uint32_t count = 0;
	struct gw_tensor_listed *listed = gw_calloc(GW_TENSOR_LIST_MAX, sizeof(*listed));
	if (listed && gw_tensor_listed_parse(data, size, listed, &count) == GW_OK) {
		assert(count * sizeof(*listed) == size);
		for (uint32_t i = 0; i < count; i++)
			fuzz_names(&listed[i].plan);
	}
	gw_free(listed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gw_tensor_create_call create;
	if (size == 0)
		return 0;
	uint8_t which = data[0] % 13;
	data++;
	size--;
	if (which == 0 && gw_tensor_create_parse(data, size, &create) == GW_OK)
		fuzz_plan(&create.plan);
	else if (which == 1 || which == 2)
		fuzz_rows(data, size, which == 2);
	else if (which == 8)
		fuzz_listed(data, size);
	else if (which > 2 && fuzz_others(which, data, size) != GW_OK)
		assert(gw_last_error()[0] != '\0');
	return 0;
}
