/* The report of graphwire partition. */
#ifndef GW_TOOLS_PARTITION_REPORT_H
#define GW_TOOLS_PARTITION_REPORT_H

#include "tools/partition/plan.h"
#include "tools/replicate/replicate.h"

struct gw_plan_report {
	const char *config;               /* the new graph's JSON */
	const struct gw_graph_meta *meta; /* names of types */
	const char *method;               /* that assigned the parts */
	const struct gw_assignment *assignment;
	const struct gw_plan_quality *quality;
	const struct gw_split_stats *split;
	const struct gw_replicate_report *replicas; /* NULL: none were asked for */
	bool volume;                                /* METIS's result is communication volume, not edges cut */
	double open_s, measure_s, total_s;
	uint64_t peak_bytes;         /* peak memory of this process */
	uint64_t peak_process_bytes; /* of the method's process, including the memory shared with this one; 0: it had
					none */
};

/* Prints to stdout. GW_NO_MEMORY. GW_IO: writing to stdout failed, but the graph is in place. */
gw_status gw_plan_report_print(const struct gw_plan_report *report, bool json);

#endif
