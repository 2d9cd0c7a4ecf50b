/* Any bytes as a checkpoint.json: refused with a line of text, or tensors whose rows and arrays are within what a
 * tensor can be, and each row in one part. The text's digest is made anew, where there is one: the reader's work lies
 * behind it. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/json.h"
#include "tensors/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_part(const struct gw_checkpoint_tensor *tensor, uint32_t number)
{
	const struct gw_checkpoint_part *part = &tensor->parts[number];
	uint64_t rows = tensor->plan.shape[0];
	assert(part->rows <= rows && part->step > 0 && part->there[GW_CHECKPOINT_ROWS]);
	assert(part->rows == 0 || part->first + (part->rows - 1) * part->step < rows);
	for (uint32_t a = 0; a < GW_CHECKPOINT_ARRAYS; a++) {
		if (!part->there[a])
			continue;
		struct gw_checkpoint_shape shape = gw_checkpoint_shape_of(tensor, number, a);
		assert(shape.name && gw_dtype_bytes(shape.dtype) > 0 && shape.ndim >= 1 && shape.ndim <= GW_DIMS_MAX);
		assert(shape.shape[0] == part->rows);
	}
}

static gw_status fuzz_parse_sealed(const uint8_t *data, size_t size, struct gw_checkpoint_index **index)
{
	char *copy = malloc(size ? size : 1);
	assert(copy);
	memcpy(copy, data, size);
	gw_json_digest_set(copy, size);
	gw_status status = gw_checkpoint_parse(copy, size, index);
	free(copy);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gw_checkpoint_index *index;
	if (fuzz_parse_sealed(data, size, &index) != GW_OK) {
		assert(!index && gw_last_error()[0] != '\0' && !strchr(gw_last_error(), '\n'));
		return 0;
	}
	for (uint32_t t = 0; t < index->count; t++) {
		const struct gw_tensor_plan *plan = &index->tensors[t].plan;
		assert(gw_tensor_name_valid(plan->name) && gw_dtype_bytes((gw_dtype)plan->dtype) > 0);
		assert(plan->ndim >= 1 && plan->ndim <= GW_DIMS_MAX);
		uint64_t rows = 0;
		for (uint32_t p = 0; p < index->num_parts; p++) {
			fuzz_part(&index->tensors[t], p);
			rows += index->tensors[t].parts[p].rows;
		}
		assert(rows == plan->shape[0]);
	}
	gw_checkpoint_free(index);
	return 0;
}
