/* Plans narrow rows: word -> type and name -> features of the graph -> what they are -> form -> values -> a rule each.
 *
 * The lowest row that an int8_row cannot hold is reported, whatever the number of threads.
 */
#include "tools/store.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/numbers/convert.h"
#include "core/system/parallel.h"
#include "tools/weights.h"

#define SCAN_NUMBERS (256u << 10)

struct storing {
	const struct gw_store_view *view;
	const struct gw_graph_meta *meta;
	unsigned threads;
	struct gw_store_plan *plan;
};

struct store_word {
	const char *text;
	char type[GW_EDGE_FOLDER_MAX + 1], name[GW_NAME_MAX + 1]; /* type "": any */
	bool of_edges;                                            /* the type is SRC:REL:DST */
	gw_dtype dtype;
};

static gw_status split_word(const char *text, struct store_word *out)
{
	const char *equals = strrchr(text, '=');
	*out = (struct store_word){.text = text};
	if (!equals)
		return gw_fail(GW_INVALID, "\"%.200s\": write [TYPE:]NAME=DTYPE or SRC:REL:DST:NAME=DTYPE", text);
	if (gw_dtype_parse(equals + 1, &out->dtype) != GW_OK ||
	    (out->dtype != GW_FLOAT16 && out->dtype != GW_BFLOAT16 && out->dtype != GW_INT8_ROW))
		return gw_fail(GW_INVALID, "\"%.200s\": rows are stored as float16, bfloat16 or int8_row", text);
	const char *name = text;
	uint32_t colons = 0;
	for (const char *at = text; at < equals; at++) {
		colons += *at == ':';
		name = *at == ':' ? at + 1 : name;
	}
	size_t type = name > text ? (size_t)(name - text) - 1 : 0, length = (size_t)(equals - name);
	if ((colons != 0 && colons != 1 && colons != 3) || length == 0 || length > GW_NAME_MAX ||
	    type >= sizeof(out->type) || (colons > 0 && type == 0))
		return gw_fail(GW_INVALID, "\"%.200s\": write [TYPE:]NAME=DTYPE or SRC:REL:DST:NAME=DTYPE", text);
	memcpy(out->type, text, type);
	memcpy(out->name, name, length);
	out->of_edges = colons == 3;
	return GW_OK;
}

gw_status gw_store_word_check(const char *word)
{
	struct store_word split;
	return split_word(word, &split);
}

static const char *type_name(const struct storing *s, bool edge, uint32_t type, char text[GW_EDGE_FOLDER_MAX + 1])
{
	return edge ? gw_meta_etype_text(s->meta, type, text) : s->meta->ntypes[type].name;
}

static void store_key(const struct storing *s, bool edge, uint32_t type, const char *name, const char *tail,
		      char key[GW_STORE_KEY_MAX])
{
	snprintf(key, GW_STORE_KEY_MAX, "%s/%s/%s%s", edge ? "edge" : "node",
		 edge ? s->meta->etypes[type].folder : s->meta->ntypes[type].name, name, tail);
}

static bool has_array(const struct storing *s, bool edge, uint32_t type, const char *name, const char *tail)
{
	char key[GW_STORE_KEY_MAX];
	store_key(s, edge, type, name, tail, key);
	return gw_meta_array(s->meta, 0, key) != NULL;
}

static bool is_time(const struct storing *s, bool edge, uint32_t type, const char *name)
{
	const struct gw_time_plan *times = s->view->times;
	if (edge)
		return strcmp(s->meta->etypes[type].time_name, name) == 0 ||
		       (times->orders && strcmp(times->orders[type].name, name) == 0);
	for (uint32_t i = 0; i < times->num_index; i++) {
		if (times->index[i].ntype == type && strcmp(times->index[i].name, name) == 0)
			return true;
	}
	return has_array(s, false, type, name, GW_TIMES_TAIL);
}

static bool is_drawn_by(const struct storing *s, bool edge, uint32_t type, const char *name)
{
	return edge && (s->view->is_weight(s->view->weights, type, name) || has_array(s, true, type, name, ".alias"));
}

static bool is_label(const char *name)
{
	return strcmp(name, "label") == 0 || strcmp(name, "labels") == 0 || strcmp(name, "y") == 0;
}

static gw_status fail_feature(const struct storing *s, bool edge, uint32_t type, const char *name, const char *why)
{
	char text[GW_EDGE_FOLDER_MAX + 1];
	return gw_fail(GW_UNSUPPORTED, "%s feature \"%s\" of %s: %s", edge ? "edge" : "node", name,
		       type_name(s, edge, type, text), why);
}

static gw_status store_check_form(const struct storing *s, bool edge, uint32_t type, const char *name,
				  const struct gw_time_column *column, const struct gw_store_rule *rule)
{
	char why[256], key[GW_STORE_KEY_MAX];
	const bool packed = rule->dtype == GW_INT8_ROW;
	store_key(s, edge, type, name, "", key);
	const struct gw_array_meta *array = gw_meta_array(s->meta, 0, key);
	if (is_time(s, edge, type, name))
		return fail_feature(s, edge, type, name, "times are compared, and stay as they are");
	if (is_drawn_by(s, edge, type, name))
		return fail_feature(s, edge, type, name, "weights are drawn by, and stay as they are");
	if (is_label(name))
		return fail_feature(s, edge, type, name, "labels stay as they are");
	if (array && gw_meta_original(s->meta, array)) {
		snprintf(why, sizeof(why), "it is stored as %s already", gw_dtype_name(array->dtype));
		return fail_feature(s, edge, type, name, why);
	}
	if (column->dtype == GW_INT8_ROW || !gw_convert_is_possible(column->dtype, rule->dtype) ||
	    column->unit != GW_UNIT_NONE) {
		snprintf(why, sizeof(why), "it is of %s; rows of float32, float64, float16 and bfloat16 can be narrow",
			 gw_dtype_name(column->dtype));
		return fail_feature(s, edge, type, name, why);
	}
	if (packed && column->ndim != 2)
		return fail_feature(s, edge, type, name, "an int8_row is made of rows of one dimension");
	struct gw_conversion conversion = gw_conversion_of(column->dtype, rule->dtype, rule->numbers);
	if (conversion.to_bytes < conversion.from_bytes)
		return GW_OK;
	snprintf(why, sizeof(why), "a row of %" PRIu64 " takes %" PRIu64 " bytes as %s, and %" PRIu64 " as %s",
		 rule->numbers, conversion.from_bytes, gw_dtype_name(column->dtype), conversion.to_bytes,
		 gw_dtype_name(rule->dtype));
	return fail_feature(s, edge, type, name, why);
}

struct store_scanning {
	const struct gw_time_column *column;
	uint64_t of_row; /* numbers */
	uint64_t first;  /* the lowest number with a fault so far */
};

static gw_status scan_rows(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	struct store_scanning *scan = context;
	const gw_dtype dtype = scan->column->dtype;
	const uint8_t *numbers = scan->column->data;
	uint64_t first = begin * scan->of_row, count = (end - begin) * scan->of_row;
	uint64_t at = gw_convert_first_fault(dtype, numbers + first * gw_dtype_bytes(dtype), count);
	(void)thread;
	if (at == count)
		return GW_OK;
	gw_parallel_least(&scan->first, first + at);
	return GW_RANGE; /* ends the loop; chunks before this one still run */
}

static gw_status check_values(const struct storing *s, bool edge, uint32_t type, const char *name,
			      const struct gw_time_column *column, const struct gw_store_rule *rule)
{
	char text[GW_EDGE_FOLDER_MAX + 1], row[GW_TIME_ROW_MAX], number[32];
	struct store_scanning scan = {.column = column, .of_row = rule->numbers, .first = GW_NONE};
	uint64_t grain = SCAN_NUMBERS / rule->numbers;
	if (rule->dtype != GW_INT8_ROW ||
	    gw_parallel_for(s->threads, column->shape[0], grain ? grain : 1, scan_rows, &scan) == GW_OK ||
	    scan.first == GW_NONE)
		return GW_OK;
	double value = gw_convert_number(column->dtype, column->data, scan.first);
	snprintf(number, sizeof(number), isnan(value) ? "nan" : "%g", value);
	s->view->features->name_row(s->view->features->context, edge, type, scan.first / rule->numbers, row);
	return gw_fail(GW_RANGE, "%s%s%s of %s: \"%s\", column %" PRIu64 ", is %s: " GW_INT8_ROW_RULE,
		       column->source ? column->source : "", column->source ? ": " : "", row,
		       type_name(s, edge, type, text), name, scan.first % rule->numbers, number);
}

/* *known: a word has named the feature before. */
static gw_status find_rule(const struct storing *s, const struct gw_store_rule *rule, bool *known)
{
	*known = false;
	for (uint32_t i = 0; i < s->plan->count; i++) {
		const struct gw_store_rule *other = &s->plan->rules[i];
		if (strcmp(other->key, rule->key) != 0)
			continue;
		*known = true;
		if (other->dtype != rule->dtype && other->typed == rule->typed)
			return gw_fail(GW_INVALID, "%s: two types are given, %s and %s", rule->key,
				       gw_dtype_name(other->dtype), gw_dtype_name(rule->dtype));
	}
	return GW_OK;
}

static gw_status add_rule(const struct storing *s, const struct store_word *word, bool edge, uint32_t type,
			  const struct gw_time_column *column)
{
	bool known;
	struct gw_store_rule rule = {
		.original = column->dtype, .dtype = word->dtype, .numbers = 1, .typed = word->type[0] != '\0'};
	store_key(s, edge, type, word->name, "", rule.key);
	for (uint32_t d = 1; d < column->ndim; d++)
		rule.numbers *= column->shape[d];
	gw_status status = find_rule(s, &rule, &known);
	if (status != GW_OK || known || column->dtype == word->dtype)
		return status; /* rows that are of this type stay so */
	status = store_check_form(s, edge, type, word->name, column, &rule);
	if (status == GW_OK)
		status = check_values(s, edge, type, word->name, column, &rule);
	if (status != GW_OK)
		return status;
	struct gw_store_rule *more = gw_realloc(s->plan->rules, s->plan->count + 1, sizeof(*more));
	if (!more)
		return GW_NO_MEMORY;
	s->plan->rules = more;
	more[s->plan->count++] = rule;
	return GW_OK;
}

static gw_status store_word_types(const struct storing *s, const struct store_word *word, bool edge, bool *found)
{
	const struct gw_time_view *features = s->view->features;
	uint32_t count = edge ? s->meta->num_etypes : s->meta->num_ntypes;
	gw_status status = GW_OK;
	for (uint32_t t = 0; t < count && status == GW_OK; t++) {
		char text[GW_EDGE_FOLDER_MAX + 1];
		struct gw_time_column column;
		if (word->type[0] && (word->of_edges != edge || strcmp(type_name(s, edge, t, text), word->type) != 0))
			continue;
		if (gw_name_is_taken(edge, word->name) ||
		    !features->find(features->context, edge, t, word->name, &column))
			continue;
		*found = true;
		status = add_rule(s, word, edge, t, &column);
	}
	return status;
}

static gw_status store_plan_word(const struct storing *s, const struct store_word *word)
{
	bool found = false;
	gw_status status = store_word_types(s, word, false, &found);
	if (status == GW_OK)
		status = store_word_types(s, word, true, &found);
	if (status != GW_OK || found)
		return status;
	return word->type[0] ? gw_fail(GW_NOT_FOUND, "%s has no feature \"%s\"", word->type, word->name)
			     : gw_fail(GW_NOT_FOUND, "no node type or edge type has a feature \"%s\"", word->name);
}

gw_status gw_store_plan_make(const struct gw_store_view *view, const char *const *words, uint32_t count,
			     unsigned threads, struct gw_store_plan *out)
{
	struct storing s = {.view = view,
			    .meta = view->features->meta,
			    .threads = threads ? threads : gw_processors(),
			    .plan = out};
	gw_status status = GW_OK;
	*out = (struct gw_store_plan){0};
	for (int typed = 1; typed >= 0; typed--) {
		for (uint32_t i = 0; i < count && status == GW_OK; i++) {
			struct store_word word;
			status = split_word(words[i], &word);
			if (status == GW_OK && (word.type[0] != '\0') == (typed != 0))
				status = store_plan_word(&s, &word);
		}
	}
	if (status == GW_OK)
		return GW_OK;
	gw_store_plan_free(out);
	return gw_context(status, "--store");
}

void gw_store_plan_free(struct gw_store_plan *plan)
{
	gw_free(plan->rules);
	*plan = (struct gw_store_plan){0};
}

gw_status gw_store_plan_apply(const struct gw_store_plan *plan, struct gw_writer *writer)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; i < plan->count && status == GW_OK; i++) {
		const struct gw_store_rule *rule = &plan->rules[i];
		status = gw_writer_store(writer, rule->key, rule->original, rule->numbers, rule->dtype);
	}
	return status;
}
