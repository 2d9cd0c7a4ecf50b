/* Runs an import from end to end: the steps of tools/import/import.h in order, each timed; then releases everything.
 * */
#include <stdio.h>

#include "core/memory/alloc.h"
#include "core/system/parallel.h"
#include "tools/import/import.h"
#include "tools/import/npz.h"
#include "tools/phase.h"

void gw_import_close(struct gw_import *im)
{
	for (uint32_t s = 0; s < im->num_sets; s++) {
		struct gw_import_set *set = &im->sets[s];
		for (uint32_t f = 0; f < set->num_files; f++) {
			gw_table_close(&set->files[f].table);
			gw_text_close(&set->files[f].text);
			for (int i = 0; i < 2; i++) {
				if (set->files[f].arrays[i].mapping)
					gw_npy_close(&set->files[f].arrays[i]);
			}
		}
		gw_free(set->files);
		gw_free(set->columns);
	}
	for (uint32_t i = 0; i <= im->num_spaces; i++) {
		struct gw_import_space *space = i < im->num_spaces ? &im->spaces[i] : &im->relations;
		gw_table_close(&space->list_table);
		gw_text_close(&space->list_text);
	}
	for (uint32_t i = 0; i < im->num_archives; i++)
		gw_npz_close(im->archives[i].npz);
	gw_builder_destroy(im->builder);
	gw_free(im->archives);
	gw_free(im->features);
	gw_free(im->weights);
	gw_free(im->spaces);
	gw_free(im->sets);
	*im = (struct gw_import){0};
}

/* Inflating is part of opening. The bytes that the text phases read are known when they end. */
static gw_status run_steps(struct gw_import *im)
{
	bool quiet = im->options->build.quiet;
	struct gw_phase phase = gw_phase_begin(1, quiet);
	gw_status status = gw_import_plan(im);
	if (status == GW_OK)
		status = gw_import_open_all(im);
	if (status == GW_OK)
		status = gw_import_open_tables(im);
	uint64_t input_bytes = im->input_bytes; /* features are read when they are written */
	if (status == GW_OK)
		status = gw_import_open_features(im);
	if (status == GW_OK)
		status = gw_builder_target_check(im->options->out, im->options->build.replace);
	if (status != GW_OK)
		return status;
	uint64_t text_bytes = 0, inflated_bytes = 0;
	for (uint32_t s = 0; s < im->num_sets; s++) {
		for (uint32_t f = 0; f < im->sets[s].num_files; f++) {
			text_bytes += im->sets[s].files[f].text.bytes;
			inflated_bytes += im->sets[s].files[f].text.inflated ? im->sets[s].files[f].text.bytes : 0;
		}
	}
	gw_phase_end(&phase, inflated_bytes ? "open and inflate (one thread inflates a gzip stream)" : "open",
		     inflated_bytes);
	uint64_t step_bytes, before = gw_builder_spill(im->builder, &step_bytes)->file_bytes;
	phase = gw_phase_begin(im->threads, quiet);
	status = gw_import_read_all(im);
	if (status == GW_OK)
		status = gw_import_times(im);
	if (status != GW_OK)
		return status;
	input_bytes = text_bytes ? text_bytes : input_bytes;
	uint64_t written = gw_builder_spill(im->builder, &step_bytes)->file_bytes - before;
	if (written)
		gw_phase_end_pass(&phase, "input to edges", input_bytes, written);
	else
		gw_phase_end(&phase, "parse", input_bytes);
	phase = gw_phase_begin(im->threads, quiet);
	status = gw_import_number(im);
	if (status != GW_OK)
		return status;
	gw_phase_end(&phase, "number nodes", 0);
	if (!quiet && im->number_runs)
		fprintf(stderr, "memory: ids numbered in %llu runs\n", (unsigned long long)im->number_runs);
	status = gw_import_add_edges(im);
	if (status == GW_OK)
		status = gw_import_features(im);
	return status != GW_OK ? status : gw_import_table_columns(im);
}

gw_status gw_import_run(const struct gw_import_options *options, struct gw_builder_stats *stats,
			char name[GW_NAME_MAX + 1])
{
	struct gw_import im = {.options = options};
	im.threads = options->build.threads ? options->build.threads : gw_processors();
	gw_status status = gw_builder_target_check(options->out, options->build.replace);
	if (status == GW_OK)
		status = gw_builder_create(options->name ? options->name : "graph", &im.builder);
	if (status == GW_OK)
		status = gw_builder_limit(im.builder, options->out, options->build.memory, options->build.quiet);
	if (status == GW_OK)
		status = run_steps(&im);
	if (status == GW_OK) {
		struct gw_phase phase = gw_phase_begin(im.threads, options->build.quiet);
		struct gw_builder_options build = options->build;
		build.times = im.times;
		build.num_times = im.num_times;
		status = gw_builder_write(im.builder, options->out, &build, stats);
		if (status == GW_OK) {
			gw_phase_end(&phase, "sort and write", stats->bytes);
			gw_phase_print_runs(options->build.quiet, stats->runs, stats->file_bytes);
			gw_phase_print_times(options->build.quiet, stats->times_bytes);
		}
		snprintf(name, GW_NAME_MAX + 1, "%s", gw_builder_name(im.builder));
	}
	gw_import_close(&im);
	return status;
}
