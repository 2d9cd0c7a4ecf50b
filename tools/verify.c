/* graphwire verify: checks that a graph is what its writer wrote, and that it is consistent.
 *
 *   JSON (types, ranges, schema, graph_id recomputed) -> each part: headers, digests, offsets, ids, list order, the
 *   inverse of the original ids -> parts together: ranges filled, reverse types and transposes hold the same edges,
 *   the index of original ids leads to the nodes, the times of sources are those of the nodes, replicas are the rows of
 *   their owners
 *
 * A faulty part is reported in one line, and the next part is checked; the exit status is then 1.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "core/errors/options.h"
#include "core/graph/id_index.h"
#include "core/graph/inverse.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "core/system/progress.h"
#include "tools/edge_scan.h"
#include "tools/tools.h"
#include "tools/verify_replicas.h"
#include "tools/verify_times.h"

static const char doc[] =
	"Verify a graph: every digest, offset, id and list order, and that the parts together are the whole graph.\v"
	"CONFIG is the graph's JSON or its folder. For each faulty part, one line names the file, "
	"the key and the position. Exit status: 0 no fault, 1 faults found, 2 wrong usage.\n\n"
	"Examples:\n"
	"  graphwire verify parts/\n"
	"  graphwire verify parts/mygraph.json --part 1\n"
	"  graphwire verify parts/ --json | jq .verified\n";

struct verify_arguments {
	const char *config;
	uint64_t part; /* UINT64_MAX: all */
	unsigned threads;
	bool json, quiet;
};

struct verify_totals {
	uint32_t parts, faults;
	uint64_t arrays, bytes;
	struct gw_edge_scan *scans;            /* one for each edge type */
	struct gw_id_scan *id_scans;           /* one for each node type */
	struct gw_inverse_scan *inverse_scans; /* one for each edge type */
	char first_fault[GW_ERROR_TEXT_MAX];
};

static const struct gw_option table[] = {
	{"part", "N", "check only part N, on a host without the others (default: all parts)", 0,
	 GW_OPTION_NUMBER(struct verify_arguments, part, 0, GW_PARTS_MAX - 1)},
	{"threads", "N", "default: all processors", 0, GW_OPTION_NUMBER(struct verify_arguments, threads, 1, 256)},
	{"json", NULL, "one JSON object on standard output", 0, GW_OPTION_FLAG(struct verify_arguments, json)},
	{"quiet", NULL, "print faults only", 0, GW_OPTION_FLAG(struct verify_arguments, quiet)},
	{0},
};

static void note_fault(struct verify_totals *totals)
{
	if (totals->faults++ == 0)
		snprintf(totals->first_fault, sizeof(totals->first_fault), "%s", gw_last_error());
	fprintf(stderr, "graphwire verify: %s\n", gw_last_error());
}

static void verify_draw(void *progress, uint64_t done, uint64_t total)
{
	(void)total;
	gw_progress_update(progress, done);
}

static gw_status verify_part(const struct gw_graph_meta *meta, uint32_t number, const struct verify_arguments *a,
			     struct verify_totals *totals)
{
	struct gw_progress progress;
	struct gw_part *part;
	char what[64];
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < meta->parts[number].count; i++)
		bytes += gw_array_meta_bytes(&meta->parts[number].arrays[i]);
	snprintf(what, sizeof(what), "verifying part %u of %u", number, meta->num_parts);
	struct gw_part_options open_options = {.mapped = true, .load = {.verify_threads = a->threads}};
	if (!a->quiet) {
		gw_progress_begin(&progress, what, "B", bytes);
		open_options.load.progress = verify_draw;
		open_options.load.progress_context = &progress;
	}
	gw_status status = gw_part_open(meta, number, &open_options, &part);
	for (uint32_t t = 0; status == GW_OK && t < meta->num_etypes; t++)
		status = gw_edge_scan_add(part, t, a->threads, &totals->scans[t]);
	for (uint32_t t = 0; status == GW_OK && t < meta->num_etypes; t++)
		status = gw_inverse_check(part, t, a->threads);
	for (uint32_t t = 0; status == GW_OK && t < meta->num_etypes; t++)
		status = gw_inverse_scan_add(part, t, a->threads, &totals->inverse_scans[t]);
	for (uint32_t t = 0; status == GW_OK && t < meta->num_ntypes; t++)
		status = gw_id_index_scan(part, t, a->threads, &totals->id_scans[t]);
	gw_part_close(part);
	if (!a->quiet)
		gw_progress_end(&progress, status == GW_OK ? bytes : 0);
	if (status == GW_OK) {
		totals->parts++;
		totals->arrays += meta->parts[number].count;
		totals->bytes += bytes;
	}
	return status;
}

/* Checks that only all parts together allow. */
static void verify_whole(const struct gw_graph_meta *meta, unsigned threads, struct verify_totals *totals)
{
	for (uint32_t t = 0; t < meta->num_etypes; t++) {
		const struct gw_edge_type *type = &meta->etypes[t];
		const struct gw_edge_scan *scan = &totals->scans[t];
		gw_status status = GW_OK;
		if (scan->edges != type->count)
			status = gw_fail(GW_FORMAT,
					 "edge type %s: the parts hold %" PRIu64 " edges, the JSON says %" PRIu64,
					 type->folder, scan->edges, type->count);
		else if (type->out_column != GW_TYPE_NONE && scan->in != scan->out)
			status = gw_fail(GW_FORMAT,
					 "edge type %s: its lists and its transposed lists hold different edges",
					 type->folder);
		else if (type->reverse != GW_TYPE_NONE && scan->backward != totals->scans[type->reverse].forward)
			status = gw_fail(GW_FORMAT, "edge type %s: its reverse %s does not hold its edges reversed",
					 type->folder, meta->etypes[type->reverse].folder);
		else if (totals->inverse_scans[t].rows == type->count &&
			 totals->inverse_scans[t].edges != totals->inverse_scans[t].inverse)
			status = gw_fail(GW_FORMAT, "edge type %s: its orig_id.inverse does not lead to its edges",
					 type->folder);
		if (status != GW_OK)
			note_fault(totals);
	}
	for (uint32_t t = 0; t < meta->num_ntypes; t++) {
		if (totals->id_scans[t].nodes == totals->id_scans[t].entries)
			continue;
		gw_fail(GW_FORMAT, "node type %s: the index of its original ids does not lead to its nodes",
			meta->ntypes[t].name);
		note_fault(totals);
	}
	if (gw_verify_source_times(meta, threads) != GW_OK)
		note_fault(totals);
	if (gw_verify_replicas(meta, threads) != GW_OK)
		note_fault(totals);
}

static gw_status verify_run(const struct gw_graph_meta *meta, const struct verify_arguments *a,
			    struct verify_totals *totals)
{
	bool all = a->part == UINT64_MAX;
	if (!all && a->part >= meta->num_parts)
		return gw_fail(GW_RANGE, "graph \"%s\" has parts 0 to %u; part %" PRIu64 " does not exist",
			       meta->graph_name, meta->num_parts - 1, a->part);
	totals->scans = gw_calloc(meta->num_etypes, sizeof(*totals->scans));
	totals->id_scans = gw_calloc(meta->num_ntypes, sizeof(*totals->id_scans));
	totals->inverse_scans = gw_calloc(meta->num_etypes, sizeof(*totals->inverse_scans));
	if (!totals->scans || !totals->id_scans || !totals->inverse_scans)
		return GW_NO_MEMORY;
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		if (!all && p != a->part)
			continue;
		gw_status status = verify_part(meta, p, a, totals);
		if (status == GW_NOT_FOUND && all)
			gw_context(status, "not all parts are on this host (verify one with --part N)");
		if (status != GW_OK)
			note_fault(totals);
	}
	if (all && totals->faults == 0)
		verify_whole(meta, a->threads, totals);
	return GW_OK;
}

/* Text for a JSON, which must be UTF-8. A file's name or a cut text may not be UTF-8. */
static json_t *text_value(const char *text)
{
	char plain[GW_ERROR_TEXT_MAX];
	json_t *value = json_string(text);
	if (value)
		return value;
	snprintf(plain, sizeof(plain), "%s", text);
	for (char *at = plain; *at; at++)
		*at = (unsigned char)*at < 0x80 ? *at : '?';
	return json_string(plain);
}

static void report_json(const struct gw_graph_meta *meta, const struct verify_totals *totals, double seconds)
{
	char id[17] = "";
	if (meta)
		snprintf(id, sizeof(id), "%016" PRIx64, meta->graph_id);
	json_t *root = json_pack("{ss ss sb sI sI sI sf}", "graph", meta ? meta->graph_name : "", "graph_id", id,
				 "verified", totals->faults == 0, "parts", (json_int_t)totals->parts, "arrays",
				 (json_int_t)totals->arrays, "bytes", (json_int_t)totals->bytes, "seconds", seconds);
	if (totals->faults > 0)
		json_object_set_new(root, "error", text_value(totals->first_fault));
	json_dumpf(root, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(root);
}

static void report_text(const struct gw_graph_meta *meta, const struct verify_arguments *a,
			const struct verify_totals *totals, double seconds)
{
	char bytes[GW_UNIT_TEXT_MAX], rate[GW_UNIT_TEXT_MAX], time[GW_UNIT_TEXT_MAX];
	if (a->part == UINT64_MAX)
		printf("%s is whole: %u part%s", meta->graph_name, meta->num_parts, meta->num_parts == 1 ? "" : "s");
	else
		printf("part %" PRIu64 " of %s is sound", a->part, meta->graph_name);
	printf(", %" PRIu64 " arrays, %s in %s (%s/s), graph id %016" PRIx64 "\n", totals->arrays,
	       gw_text_bytes(bytes, (double)totals->bytes), gw_text_duration(time, seconds),
	       gw_text_bytes(rate, (double)totals->bytes / (seconds > 0 ? seconds : 1)), meta->graph_id);
}

int gw_tool_verify(int argc, char **argv)
{
	static const struct gw_options options = {.table = table,
						  .argument = "CONFIG",
						  .argument_to = GW_OPTION_TEXT(struct verify_arguments, config),
						  .argument_missing = "name the JSON or the folder of a graph",
						  .doc = doc};
	struct verify_arguments a = {.part = UINT64_MAX};
	struct verify_totals totals = {0};
	struct gw_graph_meta *meta = NULL;
	gw_options_parse(&options, argc, argv, &a);
	uint64_t start_ns = gw_now_ns();
	gw_status status = gw_meta_read(a.config, &meta);
	if (status == GW_OK)
		status = verify_run(meta, &a, &totals);
	if (status != GW_OK)
		note_fault(&totals);
	double seconds = (double)(gw_now_ns() - start_ns) / GW_NS_PER_SECOND;
	if (a.json)
		report_json(meta, &totals, seconds);
	else if (totals.faults == 0 && !a.quiet)
		report_text(meta, &a, &totals, seconds);
	gw_free(totals.scans);
	gw_free(totals.id_scans);
	gw_free(totals.inverse_scans);
	gw_meta_destroy(meta);
	return totals.faults ? 1 : 0;
}
