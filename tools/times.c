/* Plans the order of lists by time: words -> features of edges or sources -> forms -> values -> orders and indexes.
 *
 * Words that name an edge type come before words that name none. The lowest row with NaN is reported, whatever the
 * number of threads.
 */
#include "tools/times.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/numbers/time_key.h"
#include "core/system/parallel.h"
#include "tools/weights.h"

#define GRAIN (256u << 10)

struct planning {
	const struct gw_time_view *view;
	unsigned threads;
	struct gw_time_plan *plan;
	uint32_t both; /* edge types that have an edge feature and times of their sources */
	uint32_t first_both;
};

gw_status gw_time_word_check(const char *word)
{
	if (strchr(word, ':') && !gw_weight_is_typed(word))
		return gw_fail(GW_INVALID, "\"%.200s\": write NAME or SRC:REL:DST:NAME", word);
	return word[0] ? GW_OK : gw_fail(GW_INVALID, "the name of a time has at least one character");
}

/* The length of NAME in "NAME" or "NAME.source". */
static size_t stem_length(const char *name)
{
	assert(name);
	return strlen(name) - (gw_name_ends_in(name, GW_TIME_SOURCE_TAIL) ? strlen(GW_TIME_SOURCE_TAIL) : 0);
}

bool gw_time_word_means(const char *text, const char *feature)
{
	size_t length = stem_length(text);
	return strncmp(text, feature, length) == 0 && feature[length] == '\0';
}

static const char *type_text(const struct planning *p, bool edge, uint32_t type, char text[GW_EDGE_FOLDER_MAX + 1])
{
	return edge ? gw_meta_etype_text(p->view->meta, type, text) : p->view->meta->ntypes[type].name;
}

static gw_status check_form(const struct planning *p, bool edge, uint32_t type, const char *name,
			    const struct gw_time_column *column)
{
	char text[GW_EDGE_FOLDER_MAX + 1], shape[GW_DIMS_MAX * 24] = "";
	size_t used = 0;
	if (column->ndim == 1 && gw_time_is_possible(column->dtype))
		return GW_OK;
	for (uint32_t i = 0; i < column->ndim; i++)
		used += (size_t)snprintf(shape + used, sizeof(shape) - used, "%s%" PRIu64, i ? ", " : "",
					 column->shape[i]);
	return gw_fail(GW_UNSUPPORTED,
		       "%s feature \"%s\" of %s: %s [%s] cannot be a time: a time is one number for each %s, int64, "
		       "int32, float64 or float32",
		       edge ? "edge" : "node", name, type_text(p, edge, type, text), gw_dtype_name(column->dtype),
		       shape, edge ? "edge" : "node");
}

struct time_scanning {
	const struct gw_time_column *column;
	uint64_t first; /* the lowest entry without a time so far */
};

static bool is_no_time(const struct gw_time_column *column, uint64_t entry)
{
	int64_t key = gw_time_key(column->dtype, (const uint8_t *)column->data + entry * gw_dtype_bytes(column->dtype));
	return gw_time_is_real(column->dtype) ? key == GW_TIME_KEY_NAN
					      : column->unit != GW_UNIT_NONE && key == GW_TIME_NAT;
}

static gw_status scan_times(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct time_scanning *s = context;
	(void)thread;
	for (uint64_t i = begin; i < end; i++) {
		if (!is_no_time(s->column, i))
			continue;
		gw_parallel_least(&s->first, i);
		return GW_RANGE; /* ends the loop; chunks before this one still run */
	}
	return GW_OK;
}

gw_status gw_time_values_check(const struct gw_time_view *view, bool edge, uint32_t type, const char *name,
			       const struct gw_time_column *column, unsigned threads)
{
	char text[GW_EDGE_FOLDER_MAX + 1], row[GW_TIME_ROW_MAX];
	struct time_scanning scanning = {.column = column, .first = GW_NONE};
	bool real = gw_time_is_real(column->dtype);
	uint64_t of_row = 1; /* entries */
	for (uint32_t i = 1; i < column->ndim; i++)
		of_row *= column->shape[i];
	if ((!real && column->unit == GW_UNIT_NONE) ||
	    gw_parallel_for(threads ? threads : gw_processors(), column->shape[0] * of_row, GRAIN, scan_times,
			    &scanning) == GW_OK ||
	    scanning.first == GW_NONE)
		return GW_OK;
	view->name_row(view->context, edge, type, scanning.first / of_row, row);
	return gw_fail(GW_RANGE, "%s%s%s of %s: time \"%s\" is %s: fill it in, or leave out the row",
		       column->source ? column->source : "", column->source ? ": " : "", row,
		       edge ? gw_meta_etype_text(view->meta, type, text) : view->meta->ntypes[type].name, name,
		       real ? "nan" : "nat");
}

static bool find_feature(const struct planning *p, bool edge, uint32_t type, const char *name, size_t length,
			 struct gw_time_column *out)
{
	char stem[GW_NAME_MAX + 1];
	if (length > GW_NAME_MAX)
		return false;
	snprintf(stem, sizeof(stem), "%.*s", (int)length, name);
	return !gw_name_is_taken(edge, stem) && p->view->find(p->view->context, edge, type, stem, out);
}

static gw_status set_order(struct planning *p, uint32_t etype, const struct gw_time_order *order)
{
	char text[GW_EDGE_FOLDER_MAX + 1];
	struct gw_time_order *to = &p->plan->orders[etype];
	const struct gw_edge_type *type = &p->view->meta->etypes[etype];
	bool given = p->view->keeps_orders && type->order == GW_ORDER_TIME_SRC;
	const char *other = given ? type->time_name : to->name;
	if (other[0] && strcmp(other, order->name) != 0)
		return (given || to->typed) && !order->typed
			       ? GW_OK
			       : gw_fail(GW_INVALID,
					 "edge type %s has two times, \"%s\" and \"%s\": name one with %s:NAME",
					 gw_meta_etype_text(p->view->meta, etype, text), other, order->name, text);
	if (type->relations > 0)
		return gw_fail(
			GW_UNSUPPORTED,
			"edge type %s: lists with relations are sorted by relation, and cannot also be sorted by "
			"the time \"%s\": name the other edge types with SRC:REL:DST:NAME",
			gw_meta_etype_text(p->view->meta, etype, text), order->name);
	*to = *order;
	return GW_OK;
}

/* Whether the schema sorts the lists by this time of the edges: then the caller has chosen it before. */
static bool is_sorted_by(const struct planning *p, uint32_t etype, const char *stem)
{
	const struct gw_edge_type *type = &p->view->meta->etypes[etype];
	return type->order == GW_ORDER_TIME_SRC && strcmp(type->time_name, stem) == 0;
}

/* name: "NAME" or "NAME.source". *found is set if the type is sorted by it. */
static gw_status plan_etype(struct planning *p, uint32_t etype, const char *name, bool typed, bool *found)
{
	size_t length = stem_length(name);
	uint32_t src = p->view->meta->etypes[etype].src;
	char stem[GW_NAME_MAX + 1];
	struct gw_time_column of_edge, of_source;
	bool has_edge = find_feature(p, true, etype, name, length, &of_edge);
	bool has_source = find_feature(p, false, src, name, length, &of_source);
	bool asked = name[length] != '\0';
	struct gw_time_order order = {.typed = typed, .of_source = asked || !has_edge};
	if (asked ? !has_source : !has_edge && !has_source)
		return GW_OK;
	*found = true;
	snprintf(stem, sizeof(stem), "%.*s", (int)length, name);
	gw_status status = gw_time_name_check(stem);
	if (status != GW_OK)
		return status;
	if (has_edge && has_source && !asked && !is_sorted_by(p, etype, stem) && p->both++ == 0)
		p->first_both = etype;
	order.column = order.of_source ? of_source : of_edge;
	snprintf(order.name, sizeof(order.name), "%s%s", stem, order.of_source ? GW_TIME_SOURCE_TAIL : "");
	status = check_form(p, !order.of_source, order.of_source ? src : etype, stem, &order.column);
	if (status == GW_OK && !order.of_source)
		status = gw_time_values_check(p->view, true, etype, stem, &order.column, p->threads);
	return status == GW_OK ? set_order(p, etype, &order) : status;
}

gw_status gw_time_plan_add_index(struct gw_time_plan *plan, uint32_t ntype, const char *name)
{
	for (uint32_t i = 0; i < plan->num_index; i++) {
		if (plan->index[i].ntype == ntype && strcmp(plan->index[i].name, name) == 0)
			return GW_OK;
	}
	struct gw_time_index *more = gw_realloc(plan->index, plan->num_index + 1, sizeof(*more));
	if (!more)
		return GW_NO_MEMORY;
	plan->index = more;
	more[plan->num_index].ntype = ntype;
	snprintf(more[plan->num_index++].name, GW_NAME_MAX + 1, "%s", name);
	return GW_OK;
}

/* Index of a name in all node types that have it. A feature that cannot be a time is not meant, unless nothing else is.
 */
static gw_status plan_index(struct planning *p, const char *name, bool *found)
{
	char stem[GW_NAME_MAX + 1];
	struct gw_time_column column;
	gw_status status = GW_OK;
	if (stem_length(name) > GW_NAME_MAX)
		return GW_OK;
	snprintf(stem, sizeof(stem), "%.*s", (int)stem_length(name), name);
	for (uint32_t t = 0; t < p->view->meta->num_ntypes && status == GW_OK; t++) {
		if (!find_feature(p, false, t, stem, strlen(stem), &column))
			continue;
		if (column.ndim != 1 || !gw_time_is_possible(column.dtype)) {
			status = *found ? GW_OK : check_form(p, false, t, stem, &column);
			continue;
		}
		*found = true;
		status = gw_time_name_check(stem);
		if (status == GW_OK)
			status = gw_time_values_check(p->view, false, t, stem, &column, p->threads);
		if (status == GW_OK)
			status = gw_time_plan_add_index(p->plan, t, stem);
	}
	return status;
}

static gw_status plan_word(struct planning *p, const char *word)
{
	char text[GW_EDGE_FOLDER_MAX + 1];
	bool typed = gw_weight_is_typed(word), found = false;
	gw_status status = GW_OK;
	for (uint32_t e = 0; e < p->view->meta->num_etypes && status == GW_OK; e++) {
		const char *name = typed ? gw_weight_name_in(word, gw_meta_etype_text(p->view->meta, e, text)) : word;
		if (name)
			status = plan_etype(p, e, name, typed, &found);
	}
	if (status == GW_OK && (!typed || found))
		status = plan_index(p, typed ? strrchr(word, ':') + 1 : word, &found);
	if (status == GW_OK && !found)
		status = gw_fail(GW_NOT_FOUND, "\"%.200s\": no edge type and no node type has this feature", word);
	return status;
}

gw_status gw_time_plan_make(const struct gw_time_view *view, const char *const *words, uint32_t count, unsigned threads,
			    struct gw_time_plan *out)
{
	struct planning p = {.view = view, .threads = threads ? threads : gw_processors(), .plan = out};
	char text[GW_EDGE_FOLDER_MAX + 1], others[48] = "";
	*out = (struct gw_time_plan){.orders = gw_calloc(view->meta->num_etypes, sizeof(*out->orders))};
	gw_status status = out->orders ? GW_OK : GW_NO_MEMORY;
	for (int typed = 1; typed >= 0; typed--) {
		for (uint32_t i = 0; i < count && status == GW_OK; i++)
			status = gw_weight_is_typed(words[i]) == typed ? plan_word(&p, words[i]) : GW_OK;
	}
	if (status != GW_OK) {
		gw_time_plan_free(out);
		return gw_context(status, "--time");
	}
	if (p.both > 1)
		snprintf(others, sizeof(others), " and %u other edge types", p.both - 1);
	if (p.both)
		gw_log(GW_LOG_WARN,
		       "--time: the edges of %s%s have this time, and so have their sources: the lists are sorted by the "
		       "times of the edges (NAME.source: of the sources)",
		       gw_meta_etype_text(view->meta, p.first_both, text), others);
	return GW_OK;
}

void gw_time_plan_free(struct gw_time_plan *plan)
{
	gw_free(plan->orders);
	gw_free(plan->index);
	*plan = (struct gw_time_plan){0};
}
