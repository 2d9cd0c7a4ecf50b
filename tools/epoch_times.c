/* Draws by time of an epoch: see epoch_times.h.
 *
 *   names -> a rule for each edge type -> the unit of their columns
 *   one number, a file, or the seeds' own feature -> a time for each seed -> the begins of windows -> a list of seeds
 *
 * All times are whole numbers, or all are real ones; a whole number becomes a real one exactly or is refused.
 */
#include "tools/epoch_times.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/errors/status.h"
#include "core/errors/units.h"
#include "core/graph/npy.h"
#include "core/memory/alloc.h"
#include "tools/times.h"

#define FIRST_WHOLE_ABOVE 0x1p63 /* the first real number above every int64 */

/* The values of a column or a file. */
struct column {
	gw_dtype dtype;
	const void *values;
	uint64_t count;
};

gw_status gw_epoch_number_parse(const char *text, struct gw_epoch_number *out)
{
	char *end;
	errno = 0;
	out->given = true;
	out->number = (struct gw_time){.value = {.whole = strtoll(text, &end, 10)}};
	if (end != text && !*end && errno == 0)
		return GW_OK;
	out->number.is_real = true;
	gw_status status = gw_parse_double(text, -INFINITY, INFINITY, &out->number.value.real);
	return status == GW_OK && isnan(out->number.value.real) ? gw_fail(GW_INVALID, "\"%s\" is not a number", text)
								: status;
}

gw_status gw_epoch_times_check(const struct gw_epoch_times_plan *plan)
{
	const char *alone = plan->at.given       ? "at"
			    : plan->file         ? "times"
			    : plan->window.given ? "window"
			    : plan->end          ? "end"
			    : plan->pick         ? "pick"
			    : plan->strict       ? "strict"
						 : NULL;
	if (!plan->time && alone)
		return gw_fail(GW_INVALID, "--%s is for edges that are drawn by time: --time is missing", alone);
	if (plan->at.given && plan->file)
		return gw_fail(GW_INVALID, "--at and --times exclude each other: leave out one");
	const struct gw_time *width = &plan->window.number;
	if (plan->window.given && (width->is_real ? width->value.real < 0 : width->value.whole < 0))
		return gw_fail(GW_INVALID, "--window: a length is 0 or more");
	return GW_OK;
}

static gw_status same_unit(const char *option, const char *unit, const char **all)
{
	if (*all && unit && strcmp(*all, unit) != 0)
		return gw_fail(GW_INVALID, "--%s: some times are in %s and others in %s: name times of one unit",
			       option, *all, unit);
	*all = *all ? *all : unit;
	return GW_OK;
}

/* Sets one name of the rules of all edge types that have the times. */
static gw_status name_times(struct gw_client *client, const char *option, const char *name, struct gw_edge_rule *rules,
			    const char **unit)
{
	const struct gw_graph_info *graph = gw_client_graph(client);
	bool found = false, of_end = strcmp(option, "end") == 0;
	gw_status status = GW_OK;
	for (uint32_t e = 0; e < graph->num_etypes && status == GW_OK; e++) {
		const struct gw_tensor *tensor;
		status = gw_edge_times(client, e, name, &tensor);
		if (status != GW_OK || !tensor)
			continue;
		found = true;
		*(of_end ? &rules[e].end : &rules[e].time) = tensor->name;
		status = same_unit(option, tensor->unit, unit);
	}
	if (status != GW_OK)
		return gw_context(status, "--%s", option);
	return found ? GW_OK
		     : gw_fail(GW_NOT_FOUND,
			       "--%s: no edge type has times \"%s\"; graphwire inspect lists the features", option,
			       name);
}

static gw_status set_time_rules(const struct gw_epoch_times_plan *plan, struct gw_client *client,
				struct gw_edge_rule *rules, const char **unit)
{
	gw_status status = name_times(client, "time", plan->time, rules, unit);
	if (status == GW_OK && plan->end)
		status = name_times(client, "end", plan->end, rules, unit);
	for (uint32_t e = 0; e < gw_client_graph(client)->num_etypes; e++)
		rules[e].pick = rules[e].time ? (enum gw_edge_pick)plan->pick : GW_PICK_UNIFORM;
	return status;
}

static struct gw_time time_of_row(const struct column *column, uint64_t i)
{
	const uint8_t *entry = column->values;
	struct gw_time time = {.is_real = gw_time_is_real(column->dtype)};
	float narrow;
	switch (column->dtype) {
	case GW_FLOAT32:
		memcpy(&narrow, entry + i * sizeof(narrow), sizeof(narrow));
		time.value.real = narrow;
		break;
	case GW_FLOAT64:
		memcpy(&time.value.real, entry + i * sizeof(time.value.real), sizeof(time.value.real));
		break;
	default:
		time.value.whole = gw_time_key(column->dtype, entry + i * (column->dtype == GW_INT32 ? 4u : 8u));
	}
	return time;
}

static gw_status as_real(struct gw_time *time)
{
	if (time->is_real)
		return GW_OK;
	double real = (double)time->value.whole;
	if (real >= FIRST_WHOLE_ABOVE || (int64_t)real != time->value.whole)
		return gw_fail(GW_INVALID, "the time %" PRId64 " is not exact as a float64", time->value.whole);
	*time = (struct gw_time){.is_real = true, .value = {.real = real}};
	return GW_OK;
}

/* The begin of the window that ends at a time. Both are whole, or both are real. */
static struct gw_time begin_of(struct gw_time until, struct gw_time width)
{
	struct gw_time from = {.is_real = until.is_real};
	if (!until.is_real)
		from.value.whole = until.value.whole < INT64_MIN + width.value.whole
					   ? INT64_MIN
					   : until.value.whole - width.value.whole;
	else
		from.value.real = isinf(width.value.real) ? -INFINITY : until.value.real - width.value.real;
	return from;
}

/* Sets the times of all seeds. column: NULL: the plan's one time. */
static gw_status set_values(const struct gw_epoch_times_plan *plan, const struct column *column, uint64_t count,
			    struct gw_sample_spec *spec, struct gw_epoch_times *times)
{
	bool real = (plan->window.given && plan->window.number.is_real) ||
		    (column ? gw_time_is_real(column->dtype) : plan->at.number.is_real);
	struct gw_time width = plan->window.number;
	gw_status status = real && plan->window.given ? as_real(&width) : GW_OK;
	times->until = gw_calloc(count + 1, sizeof(int64_t));
	times->from = plan->window.given ? gw_calloc(count + 1, sizeof(int64_t)) : NULL;
	if (!times->until || (plan->window.given && !times->from))
		return GW_NO_MEMORY;
	for (uint64_t i = 0; i < count && status == GW_OK; i++) {
		struct gw_time until = column ? time_of_row(column, i) : plan->at.number;
		if (until.is_real && isnan(until.value.real))
			return gw_fail(GW_INVALID, "the time of seed %" PRIu64 " is NaN", i);
		status = real ? as_real(&until) : GW_OK;
		memcpy((int64_t *)times->until + i, &until.value, sizeof(until.value));
		if (times->from) {
			const struct gw_time from = begin_of(until, width);
			memcpy((int64_t *)times->from + i, &from.value, sizeof(from.value));
		}
	}
	spec->real_times = real;
	spec->strict_times = plan->strict;
	return status;
}

static gw_status set_from_file(const struct gw_epoch_times_plan *plan, uint64_t count, const char *unit,
			       struct gw_sample_spec *spec, struct gw_epoch_times *times)
{
	struct gw_npy_file file;
	gw_status status = gw_npy_open(plan->file, &file);
	if (status != GW_OK)
		return gw_context(status, "--times");
	const char *own = file.npy.unit == GW_UNIT_NONE ? NULL : gw_time_unit_text(file.npy.unit);
	if (file.npy.ndim != 1 || !gw_time_is_possible(file.npy.dtype))
		status =
			gw_fail(GW_INVALID, "--times: \"%s\" is not one int64, int32, float64 or float32 for each seed",
				plan->file);
	else if (file.npy.shape[0] != count)
		status = gw_fail(GW_INVALID, "--times: \"%s\" has %" PRIu64 " times for %" PRIu64 " seeds", plan->file,
				 file.npy.shape[0], count);
	else if (own && (!unit || strcmp(own, unit) != 0))
		status = gw_fail(GW_INVALID, "--times: \"%s\" is in %s, and the graph's times are %s%s", plan->file,
				 own, unit ? "in " : "plain numbers", unit ? unit : "");
	const struct column column = {file.npy.dtype, file.data, count};
	if (status == GW_OK)
		status = set_values(plan, &column, count, spec, times);
	gw_npy_close(&file);
	return status;
}

/* The name of the nodes' own feature of the times, which is NAME for --time NAME and NAME.source; NULL: none. */
static const char *time_of_nodes(const struct gw_epoch_times_plan *plan, struct gw_client *client, uint32_t ntype)
{
	const struct gw_tensor *tensor = NULL;
	for (uint32_t i = 0; (tensor = gw_tensor_at(client, i)) != NULL; i++) {
		if (!tensor->of_edges && tensor->type == ntype && gw_time_word_means(plan->time, tensor->name))
			return tensor->name;
	}
	return NULL;
}

/* ids: NULL: all nodes or edges of the type. */
static gw_status set_from_feature(const struct gw_epoch_times_plan *plan, struct gw_client *client,
				  const struct gw_seeds *seeds, const char *unit, struct gw_sample_spec *spec,
				  struct gw_epoch_times *times)
{
	const struct gw_tensor *tensor;
	const char *of_nodes = spec->edges ? NULL : time_of_nodes(plan, client, seeds->type);
	const char *name = of_nodes ? of_nodes : plan->time;
	gw_status status = spec->edges ? gw_edge_tensor(client, seeds->type, name, &tensor)
				       : gw_node_tensor(client, seeds->type, name, &tensor);
	if (status != GW_OK)
		return gw_context(status, "--at or --times is missing, and the seeds have no times of their own");
	if (tensor->ndim != 1 || !gw_time_is_possible(tensor->dtype))
		return gw_fail(GW_INVALID, "--time: \"%s\" of the seeds is not one number of a time's type",
			       plan->time);
	if ((tensor->unit || unit) && (!tensor->unit || !unit || strcmp(tensor->unit, unit) != 0))
		return gw_fail(GW_INVALID,
			       "--time: the seeds' times have another unit than the edges': add --at or --times");
	int64_t *ids = gw_calloc(seeds->count + 1, sizeof(*ids));
	void *rows = gw_calloc(seeds->count + 1, tensor->row_bytes);
	status = ids && rows ? GW_OK : GW_NO_MEMORY;
	for (uint64_t i = 0; i < seeds->count && status == GW_OK; i++)
		ids[i] = seeds->ids ? seeds->ids[i] : (int64_t)i;
	if (status == GW_OK)
		status = gw_gather(client, tensor, ids, seeds->count, rows);
	const struct column column = {tensor->dtype, rows, seeds->count};
	if (status == GW_OK)
		status = set_values(plan, &column, seeds->count, spec, times);
	gw_free(ids);
	gw_free(rows);
	return status;
}

/* Negatives exist at the times of their edges. */
static gw_status set_negatives(const struct gw_epoch_times_plan *plan, struct gw_client *client,
			       struct gw_edge_seeds *edges)
{
	const struct gw_graph_info *graph = gw_client_graph(client);
	uint32_t ntype = graph->etypes[edges->etype].dst;
	edges->exist_time = time_of_nodes(plan, client, ntype);
	return edges->exist_time
		       ? GW_OK
		       : gw_fail(GW_INVALID,
				 "negatives: %s has no feature \"%s\", so that it is not known which nodes exist at a "
				 "time: add --negatives 0",
				 graph->ntypes[ntype].name, plan->time);
}

gw_status gw_epoch_times_set(const struct gw_epoch_times_plan *plan, struct gw_client *client,
			     struct gw_loader_options *options, struct gw_edge_seeds *edges,
			     struct gw_epoch_times *times)
{
	const struct gw_graph_info *graph = gw_client_graph(client);
	struct gw_sample_spec *spec = &options->spec;
	const char *unit = NULL;
	if (!plan->time)
		return GW_OK;
	times->rules = gw_calloc(graph->num_etypes + 1, sizeof(*times->rules));
	gw_status status = times->rules ? set_time_rules(plan, client, times->rules, &unit) : GW_NO_MEMORY;
	if (status == GW_OK && spec->edges && edges->negatives_each)
		status = set_negatives(plan, client, edges);
	if (status != GW_OK)
		return status;
	struct gw_seeds *list = &times->list;
	*list = (struct gw_seeds){.type = spec->edges ? edges->etype : spec->ntype,
				  .ids = options->ids,
				  .count = options->ids ? options->id_count : graph->etypes[edges->etype].count};
	if (plan->file)
		status = set_from_file(plan, list->count, unit, spec, times);
	else if (plan->at.given)
		status = set_values(plan, NULL, list->count, spec, times);
	else
		status = set_from_feature(plan, client, list, unit, spec, times);
	list->times = times->until;
	list->times_from = times->from;
	spec->rules = times->rules;
	options->lists = list;
	options->list_count = 1;
	options->ids = NULL;
	options->id_count = 0;
	return status;
}

void gw_epoch_times_free(struct gw_epoch_times *times)
{
	gw_free(times->rules);
	gw_free(times->until);
	gw_free(times->from);
	*times = (struct gw_epoch_times){0};
}
