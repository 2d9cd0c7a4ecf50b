/* Looks up the columns of edge rules: see edge_columns.h. Features that a rule may name never change, so a result stays
 * true. The client keeps the results in a list, one for each edge type and names in use. */
#include "client/batch/edge_columns.h"

#include <stdio.h>
#include <string.h>

#include "client/rows/tensors.h"
#include "core/errors/log.h"
#include "core/memory/alloc.h"

static bool same_names(const struct gw_column_names *a, const struct gw_column_names *b)
{
	bool same = a->etype == b->etype && a->pick == b->pick;
	for (uint32_t c = 0; same && c < GW_COLUMN_COUNT; c++)
		same = !a->of[c] == !b->of[c] && (!a->of[c] || strcmp(a->of[c], b->of[c]) == 0);
	return same;
}

static struct gw_edge_columns *columns_known(const struct gw_client *client, const struct gw_column_names *names)
{
	struct gw_edge_columns *columns = client->edge_columns;
	while (columns && !same_names(&columns->names, names))
		columns = columns->next;
	return columns;
}

static void columns_free(struct gw_edge_columns *columns)
{
	for (uint32_t c = 0; c < GW_COLUMN_COUNT; c++) {
		gw_free((char *)columns->names.of[c]);
		gw_free(columns->keys[c]);
		gw_free(columns->places[c]);
	}
	gw_free(columns);
}

static gw_status column_add(struct gw_client *client, struct gw_edge_columns *columns, enum gw_column column,
			    const struct gw_array_meta *array)
{
	columns->keys[column] = gw_strdup(array->key);
	if (!columns->keys[column])
		return GW_NO_MEMORY;
	gw_status status = gw_places_find_anywhere(client, array->key, &columns->places[column]);
	/* An entry is a row of the array: two numbers in an alias table. */
	for (uint32_t p = 0; p < client->meta->num_parts && status == GW_OK; p++)
		columns->places[column][p].element_bytes = (uint32_t)gw_array_meta_row_bytes(array);
	return status;
}

/* NAME.source is true as long as the sources' NAME never changes. */
static gw_status check_source_column(const struct gw_client *client, const struct gw_column_names *names,
				     enum gw_column column)
{
	const struct gw_graph_meta *meta = client->meta;
	const char *name = names->of[column], *source = meta->ntypes[meta->etypes[names->etype].src].name;
	char key[GW_COLUMN_KEY_MAX];
	if (meta->minor < GW_FORMAT_MINOR_TIMES || !name || !gw_name_ends_in(name, GW_TIME_SOURCE_TAIL))
		return GW_OK;
	snprintf(key, sizeof(key), "node/%s/%.*s", source, (int)(strlen(name) - strlen(GW_TIME_SOURCE_TAIL)), name);
	if (!gw_array_is_mutable(client, key))
		return GW_OK;
	return gw_fail(GW_UNSUPPORTED,
		       "edge type %s: edges cannot be drawn by \"%s\", because the feature of %s is served as mutable "
		       "rows",
		       client->etypes[names->etype].name, name, source);
}

static gw_status columns_add(struct gw_client *client, struct gw_edge_columns *columns)
{
	const struct gw_column_names *names = &columns->names;
	const struct gw_array_meta *arrays[GW_COLUMN_COUNT] = {NULL};
	char key[GW_COLUMN_KEY_MAX], text[GW_COLUMN_ADVICE];
	for (uint32_t c = 0; c < GW_COLUMN_COUNT; c++) {
		if (columns->sampling.kind->columns & GW_COLUMN_BIT(c) && gw_column_key(names, c, key))
			arrays[c] = gw_array_of_all(client->meta, key);
	}
	gw_status status = gw_column_forms(names, columns->sampling.kind, arrays, columns->sampling.forms);
	for (uint32_t c = 0; c < GW_COLUMN_COUNT && status == GW_OK; c++) {
		if (!arrays[c])
			continue;
		status = gw_array_is_mutable(client, arrays[c]->key) ? gw_column_fail_mutable(names, c)
								     : check_source_column(client, names, c);
		if (status == GW_OK)
			status = column_add(client, columns, c, arrays[c]);
	}
	for (uint32_t c = 0; c < GW_COLUMN_COUNT && status == GW_OK; c++) {
		if (!(columns->sampling.kind->columns & GW_COLUMN_BIT(c)) || arrays[c] ||
		    !gw_column_advice(names, c, text))
			continue;
		columns->by_request = true;
		gw_log(GW_LOG_WARN, "edge type %s: %s", client->etypes[names->etype].name, text);
	}
	return status;
}

static gw_status columns_make(struct gw_client *client, const struct gw_column_names *names,
			      struct gw_edge_columns **out)
{
	struct gw_edge_columns *columns = gw_calloc(1, sizeof(*columns));
	if (!columns)
		return GW_NO_MEMORY;
	gw_status status = gw_sampling_kind_of(names, &columns->sampling.kind);
	if (status == GW_OK)
		status = gw_column_names_check(names);
	columns->names = (struct gw_column_names){.meta = names->meta, .etype = names->etype, .pick = names->pick};
	columns->sampling.names = &columns->names;
	for (uint32_t c = 0; c < GW_COLUMN_COUNT && status == GW_OK; c++) {
		if (names->of[c] && !(columns->names.of[c] = gw_strdup(names->of[c])))
			status = GW_NO_MEMORY;
	}
	if (status == GW_OK)
		status = columns_add(client, columns);
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
	const struct gw_column_names names = gw_column_names_of(client->meta, etype, rule);
	gw_status status = GW_OK;
	*out = NULL;
	if (!gw_column_names_bits(&names) && names.pick == GW_PICK_UNIFORM)
		return GW_OK;
	pthread_mutex_lock(&client->lookups_lock);
	struct gw_edge_columns *columns = columns_known(client, &names);
	if (!columns) {
		status = columns_make(client, &names, &columns);
		if (status == GW_OK) {
			columns->next = client->edge_columns;
			client->edge_columns = columns;
		}
	}
	pthread_mutex_unlock(&client->lookups_lock);
	*out = columns;
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
