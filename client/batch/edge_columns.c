/* Looks up the columns of edge rules: see edge_columns.h. Features that a rule may name never change, so a result stays
 * true. The client keeps the results in a list, one for each edge type and weight in use. */
#include "client/batch/edge_columns.h"

#include <stdio.h>
#include <string.h>

#include "client/rows/tensors.h"
#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "sampler/weight_keys.h"

static gw_status rule_check(const struct gw_client *client, uint32_t etype, const struct gw_edge_rule *rule)
{
	const char *missing = rule->mask ? "mask" : rule->time ? "time" : NULL;
	if (missing)
		return gw_fail(
			GW_UNSUPPORTED,
			"edge type %s: the rule's %s is not supported: this version samples uniformly or by weight",
			client->etypes[etype].name, missing);
	if (rule->weight && (!*rule->weight || strlen(rule->weight) > GW_NAME_MAX))
		return gw_fail(GW_INVALID, "edge type %s: the rule's weight names no feature",
			       client->etypes[etype].name);
	return GW_OK;
}

static struct gw_edge_columns *columns_known(const struct gw_client *client, uint32_t etype, const char *weight)
{
	struct gw_edge_columns *columns = client->edge_columns;
	while (columns && (columns->etype != etype || strcmp(columns->weight, weight) != 0))
		columns = columns->next;
	return columns;
}

static void columns_free(struct gw_edge_columns *columns)
{
	for (uint32_t c = 0; c < GW_COLUMN_COUNT; c++) {
		gw_free(columns->keys[c]);
		gw_free(columns->places[c]);
	}
	gw_free(columns);
}

/* Notes where a column's array is stored in all parts. */
static gw_status column_add(struct gw_client *client, struct gw_edge_columns *columns, enum gw_column column,
			    const struct gw_array_meta *array)
{
	columns->keys[column] = gw_strdup(array->key);
	if (!columns->keys[column])
		return GW_NO_MEMORY;
	gw_status status = gw_places_find(client, array->key, &columns->places[column]);
	/* An entry is a row of the array: two numbers in an alias table. */
	for (uint32_t p = 0; p < client->meta->num_parts && status == GW_OK; p++)
		columns->places[column][p].element_bytes = (uint32_t)gw_array_meta_row_bytes(array);
	return status;
}

/* The array of a key, if all parts have it in one form; else NULL. */
static const struct gw_array_meta *array_of_all(const struct gw_graph_meta *meta, const char *key)
{
	const struct gw_array_meta *first = gw_meta_array(meta, 0, key);
	for (uint32_t p = 1; first && p < meta->num_parts; p++) {
		const struct gw_array_meta *array = gw_meta_array(meta, p, key);
		if (!array || array->dtype != first->dtype ||
		    gw_array_meta_row_bytes(array) != gw_array_meta_row_bytes(first))
			return NULL;
	}
	return first;
}

/* Whether servers serve a feature as rows that change. */
static bool column_is_mutable(const struct gw_client *client, const char *key)
{
	for (uint32_t i = 0; i < client->tensor_count; i++) {
		const struct gw_array_meta *changes = client->tensors[i].changes;
		if (changes && strcmp(changes->key, key) == 0)
			return true;
	}
	return false;
}

static gw_status columns_add_weight(struct gw_client *client, struct gw_edge_columns *columns)
{
	const struct gw_graph_meta *meta = client->meta;
	const struct gw_weight_keys keys = gw_weight_keys_of(&meta->etypes[columns->etype], columns->weight);
	const struct gw_array_meta *weights = array_of_all(meta, keys.weight), *table = array_of_all(meta, keys.alias);
	gw_status status = gw_weight_forms(meta, columns->etype, columns->weight, columns->sampling.kind, weights,
					   table, columns->sampling.forms);
	if (status == GW_OK && column_is_mutable(client, weights->key))
		status = gw_fail(GW_UNSUPPORTED,
				 "edge type %s: \"%s\" is served as mutable rows, so edges cannot be drawn by it",
				 client->etypes[columns->etype].name, columns->weight);
	if (status == GW_OK)
		status = column_add(client, columns, GW_COLUMN_WEIGHT, weights);
	if (status != GW_OK)
		return status;
	if (table)
		return column_add(client, columns, GW_COLUMN_ALIAS, table);
	columns->by_request = true;
	gw_log(GW_LOG_WARN,
	       "edge type %s: a draw by \"%s\" reads a whole list, because no alias table exists; "
	       "partition the graph with --weight %s to make one",
	       client->etypes[columns->etype].name, columns->weight, columns->weight);
	return GW_OK;
}

static gw_status columns_make(struct gw_client *client, uint32_t etype, const char *weight,
			      struct gw_edge_columns **out)
{
	struct gw_edge_columns *columns = gw_calloc(1, sizeof(*columns));
	if (!columns)
		return GW_NO_MEMORY;
	columns->etype = etype;
	columns->sampling.kind = &gw_sample_weighted;
	columns->sampling.weight = columns->text;
	gw_weight_text(client->meta, etype, weight, columns->text);
	snprintf(columns->weight, sizeof(columns->weight), "%s", weight);
	gw_status status = columns_add_weight(client, columns);
	if (status != GW_OK) {
		columns_free(columns);
		return status;
	}
	*out = columns;
	return GW_OK;
}

gw_status gw_edge_columns_find(struct gw_client *client, uint32_t etype, const struct gw_edge_rule *rule,
			       const struct gw_edge_columns **out)
{
	*out = NULL;
	gw_status status = rule_check(client, etype, rule);
	if (status != GW_OK || !rule->weight)
		return status;
	pthread_mutex_lock(&client->edge_columns_lock);
	struct gw_edge_columns *columns = columns_known(client, etype, rule->weight);
	if (!columns) {
		status = columns_make(client, etype, rule->weight, &columns);
		if (status == GW_OK) {
			columns->next = client->edge_columns;
			client->edge_columns = columns;
		}
	}
	pthread_mutex_unlock(&client->edge_columns_lock);
	*out = status == GW_OK ? columns : NULL;
	return status;
}

void gw_edge_columns_free(struct gw_client *client)
{
	while (client->edge_columns) {
		struct gw_edge_columns *columns = client->edge_columns;
		client->edge_columns = columns->next;
		columns_free(columns);
	}
}
