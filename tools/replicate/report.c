/* Reports the replicas of a graph, for people (a line for each part) or for programs (one JSON object). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/errors/units.h"
#include "core/memory/alloc.h"
#include "tools/replicate/replicate.h"

gw_status gw_replicate_report_begin(const struct gw_replicate_plan *plan, uint32_t parts,
				    struct gw_replicate_report *report)
{
	*report = (struct gw_replicate_report){.parts = parts,
					       .nodes = gw_calloc(parts, sizeof(uint64_t)),
					       .bytes = gw_calloc(parts, sizeof(uint64_t)),
					       .share = gw_calloc(parts, sizeof(double))};
	gw_replicate_by_text(plan, report->by);
	return report->nodes && report->bytes && report->share ? GW_OK : GW_NO_MEMORY;
}

void gw_replicate_report_free(struct gw_replicate_report *report)
{
	gw_free(report->nodes);
	gw_free(report->bytes);
	gw_free(report->share);
	*report = (struct gw_replicate_report){0};
}

void gw_replicate_report_text(const struct gw_replicate_report *report)
{
	char text[3][GW_UNIT_TEXT_MAX];
	if (report->index_bytes == 0)
		printf("the graph has no replicas\n");
	for (uint32_t p = 0; p < report->parts && report->index_bytes; p++)
		printf("part %u: replicas of %s nodes, %s of rows and %s of index: %.1f %% of the remote bytes by %s\n",
		       p, gw_text_count(text[0], (double)report->nodes[p]),
		       gw_text_bytes(text[1], (double)report->bytes[p]),
		       gw_text_bytes(text[2], (double)report->index_bytes), 100 * report->share[p], report->by);
}

json_t *gw_replicate_report_json(const struct gw_replicate_report *report)
{
	json_t *parts = json_array();
	for (uint32_t p = 0; p < report->parts; p++)
		json_array_append_new(parts, json_pack("{s:I,s:I,s:f}", "nodes", (json_int_t)report->nodes[p], "bytes",
						       (json_int_t)report->bytes[p], "saved", report->share[p]));
	return json_pack("{s:s,s:I,s:f,s:o}", "by", report->by, "index_bytes", (json_int_t)report->index_bytes,
			 "seconds", report->seconds, "parts", parts);
}

gw_status gw_replicate_report_print(const struct gw_replicate_report *report, bool json)
{
	if (!json) {
		gw_replicate_report_text(report);
		return GW_OK;
	}
	json_t *object = gw_replicate_report_json(report);
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	if (!text)
		return gw_fail(GW_NO_MEMORY, "the replicas are written, but their report is not: out of memory");
	puts(text);
	free(text);
	return GW_OK;
}
