/* Reports a partitioning, for people (stdout, a few lines) or for programs (one JSON object on one line). */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "core/errors/options.h"
#include "tools/partition/report.h"

static void print_share(const char *what, const uint64_t *counts, uint32_t parts)
{
	char most[GW_UNIT_TEXT_MAX], mean[GW_UNIT_TEXT_MAX];
	uint64_t sum = 0, largest = 0;
	for (uint32_t p = 0; p < parts; p++) {
		sum += counts[p];
		largest = counts[p] > largest ? counts[p] : largest;
	}
	printf("  %-16s largest %s, mean %s: %.3f\n", what, gw_text_count(most, (double)largest),
	       gw_text_count(mean, (double)sum / parts), gw_plan_balance(counts, parts));
}

static double cut_share(const struct gw_plan_quality *quality)
{
	return quality->edges ? (double)quality->edges_cut / (double)quality->edges : 0;
}

static void partition_print_text(const struct gw_plan_report *r)
{
	const struct gw_plan_quality *q = r->quality;
	char text[GW_UNIT_TEXT_MAX], more[GW_UNIT_TEXT_MAX];
	printf("%s: %u part%s by %s\n", r->config, q->parts, q->parts == 1 ? "" : "s", r->method);
	if (r->assignment->note)
		printf("  note: %s\n", r->assignment->note);
	printf("  edges cut        %s of %s, %.1f %%\n", gw_text_count(text, (double)q->edges_cut),
	       gw_text_count(more, (double)q->edges), 100 * cut_share(q));
	if (r->volume && r->assignment->has_objective)
		printf("  volume           %s: for each node, the number of other parts that hold its neighbours\n",
		       gw_text_count(text, (double)r->assignment->objective));
	if (r->split->times_bytes)
		printf("  times            %s for fences, indexes and sources' times\n",
		       gw_text_bytes(text, (double)r->split->times_bytes));
	printf("balance (largest part over mean; 1 is even)\n");
	print_share("nodes", q->nodes + (uint64_t)q->num_ntypes * q->parts, q->parts);
	for (uint32_t t = 0; t < q->num_ntypes && q->num_ntypes > 1; t++)
		print_share(r->meta->ntypes[t].name, q->nodes + (uint64_t)t * q->parts, q->parts);
	print_share("edges", q->part_edges, q->parts);
	if (q->train)
		print_share("training nodes", q->train, q->parts);
	printf("seconds: open %.2f, symmetric graph %.2f, %s %.2f, cut and balance %.2f, renumber %.2f, edges %.2f, "
	       "node data %.2f, sync %.2f; all %.2f\n",
	       r->open_s, r->assignment->symmetric_s, r->method, r->assignment->method_s, r->measure_s,
	       r->split->renumber_s, r->split->edges_s, r->split->rows_s, r->split->commit_s, r->total_s);
	printf("wrote %s; peak memory %s", gw_text_bytes(text, (double)r->split->bytes),
	       gw_text_bytes(more, (double)r->peak_bytes));
	if (r->peak_process_bytes)
		printf(", in %s's process %s", r->assignment->process,
		       gw_text_bytes(text, (double)r->peak_process_bytes));
	if (r->assignment->file_bytes)
		printf("; temporary files %s", gw_text_bytes(text, (double)r->assignment->file_bytes));
	printf("\n");
	if (r->replicas)
		gw_replicate_report_text(r->replicas);
}

static json_t *array_of(const uint64_t *counts, uint32_t parts)
{
	json_t *array = json_array();
	for (uint32_t p = 0; p < parts; p++)
		json_array_append_new(array, json_integer((json_int_t)counts[p]));
	return array;
}

static json_t *partition_types_of(const struct gw_plan_report *r, bool balance)
{
	const struct gw_plan_quality *q = r->quality;
	json_t *object = json_object();
	for (uint32_t t = 0; t < q->num_ntypes; t++) {
		const uint64_t *counts = q->nodes + (uint64_t)t * q->parts;
		json_object_set_new(object, r->meta->ntypes[t].name,
				    balance ? json_real(gw_plan_balance(counts, q->parts))
					    : array_of(counts, q->parts));
	}
	return object;
}

static json_t *seconds_of(const struct gw_plan_report *r)
{
	return json_pack("{s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f}", "open", r->open_s, "symmetric",
			 r->assignment->symmetric_s, "assign", r->assignment->method_s, "measure", r->measure_s,
			 "renumber", r->split->renumber_s, "edges", r->split->edges_s, "node_data", r->split->rows_s,
			 "sync", r->split->commit_s, "total", r->total_s);
}

static gw_status partition_print_json(const struct gw_plan_report *r)
{
	const struct gw_plan_quality *q = r->quality;
	const uint64_t *all = q->nodes + (uint64_t)q->num_ntypes * q->parts;
	char id[17];
	snprintf(id, sizeof(id), "%016" PRIx64, r->split->graph_id);
	json_t *object = json_pack(
		"{s:s,s:s,s:s,s:i,s:I,s:I,s:f,s:{s:f,s:f},s:o,s:o,s:o,s:o,s:o,s:I,s:I,s:I}", "config", r->config,
		"graph_id", id, "part_method", r->method, "num_parts", (int)q->parts, "edges", (json_int_t)q->edges,
		"edges_cut", (json_int_t)q->edges_cut, "cut_share", cut_share(q), "balance", "nodes",
		gw_plan_balance(all, q->parts), "edges", gw_plan_balance(q->part_edges, q->parts), "balance_ntypes",
		partition_types_of(r, true), "nodes_per_part", array_of(all, q->parts), "ntypes_per_part",
		partition_types_of(r, false), "edges_per_part", array_of(q->part_edges, q->parts), "seconds",
		seconds_of(r), "bytes", (json_int_t)r->split->bytes, "peak_bytes", (json_int_t)r->peak_bytes,
		"peak_metis_bytes", (json_int_t)(r->assignment->has_objective ? r->peak_process_bytes : 0));
	if (object && r->assignment->process)
		json_object_set_new(object, "peak_process_bytes", json_integer((json_int_t)r->peak_process_bytes));
	if (object && r->assignment->file_bytes)
		json_object_set_new(object, "temporary_bytes", json_integer((json_int_t)r->assignment->file_bytes));
	if (object && q->train) {
		json_object_set_new(object, "train_per_part", array_of(q->train, q->parts));
		json_object_set_new(json_object_get(object, "balance"), "train",
				    json_real(gw_plan_balance(q->train, q->parts)));
	}
	if (object && r->assignment->has_objective)
		json_object_set_new(object, "metis_objective", json_integer((json_int_t)r->assignment->objective));
	if (object && r->split->times_bytes)
		json_object_set_new(object, "times_bytes", json_integer((json_int_t)r->split->times_bytes));
	if (object && r->replicas)
		json_object_set_new(object, "replicas", gw_replicate_report_json(r->replicas));
	if (object && r->assignment->note)
		json_object_set_new(object, "note", json_string(r->assignment->note));
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	if (!text)
		return gw_fail(GW_NO_MEMORY,
			       "%s: written, but its report is not: out of memory, or a name is not UTF-8", r->config);
	puts(text);
	free(text);
	return GW_OK;
}

gw_status gw_plan_report_print(const struct gw_plan_report *report, bool json)
{
	gw_status status = GW_OK;
	if (json)
		status = partition_print_json(report);
	else
		partition_print_text(report);
	if (status == GW_OK && (fflush(stdout) != 0 || ferror(stdout)))
		return gw_fail_errno(GW_IO, errno, "%s: written, but its report is not: stdout", report->config);
	return status;
}
