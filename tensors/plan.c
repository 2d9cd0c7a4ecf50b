/* Checks and compares plans of tensors, and assigns their rows to parts: see plan.h. */
#include "tensors/plan.h"

#include <math.h>
#include <string.h>

#include "core/memory/alloc.h"

static const char *const placements[] = {"nodes", "edges", "even", "striped"};
static const char *const initials[] = {"zero", "constant", "uniform", "normal", "copy"};

static bool is_floating(uint32_t dtype)
{
	return dtype == GW_FLOAT16 || dtype == GW_BFLOAT16 || dtype == GW_FLOAT32 || dtype == GW_FLOAT64;
}

/* UINT64_MAX: the rows belong to no type. */
static gw_status plan_type_rows(const struct gw_graph_meta *meta, const struct gw_tensor_plan *plan, uint64_t *rows)
{
	*rows = UINT64_MAX;
	if (plan->placement > GW_PLACE_EDGES)
		return GW_OK;
	bool edges = plan->placement == GW_PLACE_EDGES;
	uint32_t types = edges ? meta->num_etypes : meta->num_ntypes;
	if (plan->type >= types)
		return gw_fail(GW_RANGE, "tensor \"%s\": %s type %u of %u", plan->name, edges ? "edge" : "node",
			       plan->type, types);
	*rows = edges ? meta->etypes[plan->type].count : meta->ntypes[plan->type].count;
	return GW_OK;
}

static gw_status plan_check_shape(const struct gw_tensor_plan *plan)
{
	uint64_t bytes = gw_dtype_bytes(plan->dtype);
	if (plan->ndim < 1 || plan->ndim > GW_DIMS_MAX)
		return gw_fail(GW_INVALID, "tensor \"%s\": %u dimensions; 1 to %d are possible", plan->name, plan->ndim,
			       GW_DIMS_MAX);
	for (uint32_t i = 1; i < plan->ndim; i++) {
		if (plan->shape[i] == 0)
			return gw_fail(GW_INVALID, "tensor \"%s\": dimension %u has no elements", plan->name, i);
		if (plan->shape[i] > GW_TENSOR_ROW_BYTES_MAX / bytes)
			return gw_fail(GW_LIMIT, "tensor \"%s\": rows of more than %d bytes", plan->name,
				       GW_TENSOR_ROW_BYTES_MAX);
		bytes *= plan->shape[i];
	}
	if (plan->shape[0] > GW_TENSOR_ROWS_MAX)
		return gw_fail(GW_LIMIT, "tensor \"%s\": %llu rows; at most %llu are possible", plan->name,
			       (unsigned long long)plan->shape[0], GW_TENSOR_ROWS_MAX);
	return GW_OK;
}

static gw_status plan_check_initial(const struct gw_tensor_plan *plan)
{
	bool random = plan->initial == GW_INITIAL_UNIFORM || plan->initial == GW_INITIAL_NORMAL;
	if (plan->initial > GW_INITIAL_COPY)
		return gw_fail(GW_INVALID, "tensor \"%s\": initial values %u", plan->name, plan->initial);
	if (random && !is_floating(plan->dtype))
		return gw_fail(GW_INVALID, "tensor \"%s\": random initial values of %s: floating point only",
			       plan->name, gw_dtype_name(plan->dtype));
	if (!isfinite(plan->low) || !isfinite(plan->high) ||
	    (plan->initial == GW_INITIAL_UNIFORM && plan->low > plan->high) ||
	    (plan->initial == GW_INITIAL_NORMAL && plan->high < 0))
		return gw_fail(GW_INVALID, "tensor \"%s\": initial values %s with low %g, high %g", plan->name,
			       initials[plan->initial], plan->low, plan->high);
	return GW_OK;
}

gw_status gw_tensor_plan_check(const struct gw_graph_meta *meta, const struct gw_tensor_plan *plan)
{
	uint64_t rows;
	if (plan->placement > GW_PLACE_STRIPED)
		return gw_fail(GW_INVALID, "tensor \"%s\": placement %u", plan->name, plan->placement);
	if (plan->dtype >= GW_DTYPE_COUNT || plan->dtype == GW_INT8_ROW)
		return gw_fail(GW_UNSUPPORTED, "tensor \"%s\": rows of %s cannot be mutable", plan->name,
			       gw_dtype_name(plan->dtype));
	gw_status status = plan_type_rows(meta, plan, &rows);
	if (status == GW_OK && rows != UINT64_MAX && plan->shape[0] != rows)
		status = gw_fail(GW_INVALID, "tensor \"%s\": %llu rows, and its type has %llu", plan->name,
				 (unsigned long long)plan->shape[0], (unsigned long long)rows);
	if (status == GW_OK)
		status = plan_check_shape(plan);
	return status == GW_OK ? plan_check_initial(plan) : status;
}

static gw_status plan_differs(const struct gw_tensor_plan *have, const char *what, const char *is, const char *wanted)
{
	return gw_fail(GW_EXISTS, "tensor \"%s\" exists with %s %s, not %s: choose another name, or delete it",
		       have->name, what, is, wanted);
}

static gw_status plan_differs_by(const struct gw_tensor_plan *have, const char *what, double is, double wanted)
{
	return gw_fail(GW_EXISTS, "tensor \"%s\" exists with %s %.17g, not %.17g: choose another name, or delete it",
		       have->name, what, is, wanted);
}

gw_status gw_tensor_plan_match(const struct gw_tensor_plan *have, const struct gw_tensor_plan *wanted)
{
	if (have->dtype != wanted->dtype)
		return plan_differs(have, "dtype", gw_dtype_name(have->dtype), gw_dtype_name(wanted->dtype));
	if (have->ndim != wanted->ndim)
		return plan_differs_by(have, "dimensions", have->ndim, wanted->ndim);
	for (uint32_t i = 0; i < have->ndim && i < GW_DIMS_MAX; i++) {
		if (have->shape[i] != wanted->shape[i])
			return gw_fail(GW_EXISTS,
				       "tensor \"%s\" exists with %llu in dimension %u of its shape, not %llu: "
				       "choose another name, or delete it",
				       have->name, (unsigned long long)have->shape[i], i,
				       (unsigned long long)wanted->shape[i]);
	}
	if (have->placement != wanted->placement)
		return plan_differs(have, "placement", placements[have->placement & 3],
				    placements[wanted->placement & 3]);
	if (have->placement <= GW_PLACE_EDGES && have->type != wanted->type)
		return plan_differs_by(have, "type", have->type, wanted->type);
	if (have->initial != wanted->initial)
		return plan_differs(have, "initial values", initials[have->initial % 5], initials[wanted->initial % 5]);
	if (have->low != wanted->low)
		return plan_differs_by(have, "an initial value's low of", have->low, wanted->low);
	if (have->high != wanted->high)
		return plan_differs_by(have, "an initial value's high of", have->high, wanted->high);
	if (have->seed != wanted->seed)
		return gw_fail(GW_EXISTS,
			       "tensor \"%s\" exists with seed %llu, not %llu: choose another name, or delete it",
			       have->name, (unsigned long long)have->seed, (unsigned long long)wanted->seed);
	if (strcmp(have->source, wanted->source) != 0)
		return plan_differs(have, "the rows of", have->source, wanted->source);
	return GW_OK;
}

/* The rows of a part if all parts get equal shares: consecutive rows, or every parts-th row. */
static uint64_t share_of(const struct gw_tensor_plan *plan, uint32_t parts, uint32_t part)
{
	uint64_t rows = plan->shape[0], share = (rows + parts - 1) / parts, first = share * part;
	if (plan->placement == GW_PLACE_STRIPED)
		return rows / parts + (part < rows % parts);
	return first >= rows ? 0 : rows - first < share ? rows - first : share;
}

gw_status gw_tensor_layout_make(const struct gw_graph_meta *meta, const struct gw_tensor_plan *plan,
				struct gw_tensor_layout *out)
{
	uint32_t parts = meta->num_parts;
	*out = (struct gw_tensor_layout){
		.parts = parts, .striped = plan->placement == GW_PLACE_STRIPED, .rows = plan->shape[0]};
	out->starts = gw_calloc((size_t)parts + 1, sizeof(*out->starts));
	if (!out->starts)
		return GW_NO_MEMORY;
	if (plan->placement <= GW_PLACE_EDGES) {
		const uint64_t *starts = plan->placement == GW_PLACE_EDGES ? meta->etypes[plan->type].starts
									   : meta->ntypes[plan->type].starts;
		memcpy(out->starts, starts, ((size_t)parts + 1) * sizeof(*starts));
	} else {
		for (uint32_t p = 0; p < parts; p++)
			out->starts[p + 1] = out->starts[p] + share_of(plan, parts, p);
	}
	out->row_elements = 1;
	for (uint32_t i = 1; i < plan->ndim; i++)
		out->row_elements *= plan->shape[i];
	out->row_bytes = out->row_elements * gw_dtype_bytes(plan->dtype);
	return GW_OK;
}

void gw_tensor_layout_free(struct gw_tensor_layout *layout)
{
	gw_free(layout->starts);
	layout->starts = NULL;
}
