/* graphwire doctor: reports what this host lacks for Graphwire, what that costs, and how to fix it.
 *
 *   trials (io_uring, huge pages, devices) -> the table of checks -> the named servers, over every transport
 *   -> a report
 *
 * The command changes nothing and needs no privilege. A file that cannot be read gives a note. Status: 0, 1 if a
 * problem stops work that was asked for, 2 for wrong usage.
 */
#include <stdio.h>
#include <string.h>

#include "client/launched.h"
#include "core/errors/options.h"
#include "core/memory/alloc.h"
#include "core/system/parallel.h"
#include "tools/doctor/doctor.h"
#include "tools/means/means.h"
#include "tools/tools.h"
#ifdef GRAPHWIRE_VERBS
#include "transport/verbs/library.h"
#endif

#define SERVERS_MAX   256
#define KEY_BYTES_MAX 1024

/* One row for each check. */
static const struct doctor_check {
	const char *section;
	void (*run)(struct gw_doctor *doctor);
} checks[] = {
	{"memory", gw_doctor_memory},          {"memory", gw_doctor_swap},
	{"memory", gw_doctor_locked},          {"memory", gw_doctor_hugepages},
	{"memory", gw_doctor_huge_group},      {"memory", gw_doctor_transparent},
	{"memory", gw_doctor_overcommit},      {"memory", gw_doctor_address_space},
	{"memory", gw_doctor_file_size},       {"memory", gw_doctor_dev_shm},
	{"memory", gw_doctor_sealed},          {"memory", gw_doctor_plan},
	{"processors", gw_doctor_nodes},       {"processors", gw_doctor_processors},
	{"processors", gw_doctor_spin},        {"kernel", gw_doctor_io_uring},
	{"kernel", gw_doctor_io_uring_switch}, {"kernel", gw_doctor_seccomp},
	{"kernel", gw_doctor_open_files},      {"kernel", gw_doctor_threads},
	{"RDMA", gw_doctor_modules},           {"RDMA", gw_doctor_device_files},
	{"RDMA", gw_doctor_devices},           {"RDMA", gw_doctor_rdma_group},
	{"transports", gw_doctor_transports},
};

void gw_doctor_host(struct gw_doctor *doctor)
{
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		doctor->section = checks[i].section;
		checks[i].run(doctor);
	}
}

void gw_doctor_transports(struct gw_doctor *doctor)
{
	for (const struct gw_scheme *scheme = gw_schemes; scheme < gw_schemes + GW_SCHEMES; scheme++) {
		const struct gw_transport *transport;
		if (!scheme->rank)
			continue;
		struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "%s", scheme->name);
		if (gw_transport_find(scheme->name, &transport) != GW_OK) {
			gw_doctor_raise(finding, GW_DOCTOR_NOTE);
			gw_doctor_value(finding, "%s", gw_last_error());
			gw_doctor_fix(
				finding,
				"sudo apt install libibverbs-dev librdmacm-dev, then cmake --preset release && cmake "
				"--build --preset release");
			continue;
		}
		gw_doctor_value(finding, "built in; a range counts as %u bytes in addition to its own",
				transport->range_cost_bytes);
		gw_doctor_figure(finding, "range_cost_constant", transport->range_cost_bytes);
	}
}

struct doctor_command {
	struct gw_doctor doctor;
	struct gw_doctor_peers peers;
	const char *servers[SERVERS_MAX];
	struct gw_probe probe;
	struct gw_verbs_report reports[GW_VERBS_REPORTS_MAX];
	char no_reports[GW_ERROR_TEXT_MAX];
	const char *key_file, *read;
	struct gw_doctor_rates rates;
	uint8_t key[KEY_BYTES_MAX];
	bool json;
	struct gw_means_plan means; /* with its config: what each means saves, instead of a report of the host */
	struct gw_means_table table;
	struct gw_launched launched; /* if a launcher named the servers; else --server does */
};

static gw_status doctor_take_server(void *input, char *text)
{
	struct doctor_command *c = input;
	if (c->peers.count == SERVERS_MAX)
		return gw_fail(GW_LIMIT, "more than %d servers", SERVERS_MAX);
	c->servers[c->peers.count++] = text;
	return gw_doctor_server_check(text);
}

static gw_status doctor_take_fanouts(void *input, char *text)
{
	return gw_replicate_fanouts_parse(text, &((struct doctor_command *)input)->means.trainers);
}

static gw_status doctor_take_features(void *input, char *text)
{
	struct gw_replicate_plan *trainers = &((struct doctor_command *)input)->means.trainers;
	return gw_split_list(text, GW_REPLICATE_WORDS_MAX, trainers->features, &trainers->num_features);
}

static gw_status doctor_check_together(void *input)
{
	struct doctor_command *c = input;
	if (c->read && !c->doctor.bytes)
		return gw_fail(GW_INVALID, "--read is for the plan of --bytes SIZE");
	if (!c->means.config != (c->means.trainers.fanouts.hops == 0))
		return gw_fail(GW_INVALID, "--part-config and --fanouts belong together: give both, or none");
	if (!c->means.config && (c->means.memory || c->means.trainers.num_features))
		return gw_fail(GW_INVALID, "--%s is for --part-config", c->means.memory ? "memory" : "features");
	if (c->means.config)
		return c->peers.count == 0 && !c->doctor.bytes
			       ? GW_OK
			       : gw_fail(GW_INVALID, "--part-config is about a graph: leave out --server and --bytes");
	if (c->peers.count == 0 && gw_is_launched()) {
		gw_status status = gw_launched_read(&c->launched);
		for (uint32_t i = 0; status == GW_OK && i < c->launched.server_count; i++)
			status = doctor_take_server(c, (char *)c->launched.servers[i]);
		if (!c->key_file && !c->peers.insecure)
			c->key_file = c->launched.key_file;
		return status;
	}
	if (c->peers.count)
		return GW_OK;
	const char *const alone = c->key_file           ? "key-file"
				  : c->peers.transport  ? "transport"
				  : c->peers.insecure   ? "insecure"
				  : c->peers.row_bytes  ? "row"
				  : c->peers.timeout_ms ? "timeout"
				  : c->peers.measure_ms ? "measure"
							: NULL;
	return alone ? gw_fail(GW_INVALID, "--%s is for servers: name them with --server HOST:PORT", alone) : GW_OK;
}

static const struct gw_option table[] = {
	{"server", "HOST:PORT", "try this server over every transport; may be repeated", 0,
	 GW_OPTION_CALL(doctor_take_server)},
	{"key-file", "FILE", "the servers' key (on loopback: found automatically)", 0,
	 GW_OPTION_TEXT(struct doctor_command, key_file, .excludes = "part-config")},
	{"insecure", NULL, "accept servers on loopback that have no key", 0,
	 GW_OPTION_FLAG(struct doctor_command, peers.insecure, .excludes = "part-config")},
	{"transport", GW_SCHEME_CHOICES, "the transport that must reach every server (default auto: any)", 0,
	 GW_OPTION_CHOICE(struct doctor_command, peers.transport, gw_scheme_choices, .excludes = "part-config")},
	{"row", "BYTES", "bytes of a row, for the times and rates of reads (default 512)", 0,
	 GW_OPTION_NUMBER(struct doctor_command, peers.row_bytes, 1, GW_DOCTOR_ROW_MAX, .excludes = "part-config")},
	{"timeout", "MS", "how long a connect may take (default 5000)", 0,
	 GW_OPTION_NUMBER(struct doctor_command, peers.timeout_ms, 1, 600000, .excludes = "part-config")},
	{"measure", "MS", "how long to measure each transport of a server (default 800)", 0,
	 GW_OPTION_NUMBER(struct doctor_command, peers.measure_ms, 10, 600000, .excludes = "part-config")},
	{"bytes", "SIZE",
	 "check whether a server or cache of this size fits on this host; plan its pages, registration and load time by "
	 "rates measured here",
	 0, GW_OPTION_NUMBER(struct doctor_command, doctor.bytes, 1, 1ull << 50)},
	{"read", "FILE", "a large file on the disk of the parts: measure how fast it is read, for --bytes", 0,
	 GW_OPTION_TEXT(struct doctor_command, read)},
	{"spin", "US", "check whether threads can poll so long here (serve --spin, spin_us of clients)", 0,
	 GW_OPTION_NUMBER(struct doctor_command, doctor.spin_us, 1, 1000000, .excludes = "part-config")},
	{"part-config", "JSON|FOLDER",
	 "print what each means saves for this partitioned graph: replicas, narrow rows, look-ahead, kept rows, lists of "
	 "all parts, rows and lists on disk; instead of a report of the host",
	 0, GW_OPTION_TEXT(struct doctor_command, means.config, .letter = 'p')},
	{"fanouts", "N,N,...", "the fanouts of the trainers of --part-config", 0, GW_OPTION_CALL(doctor_take_fanouts)},
	{"batch-size", "N", "their seeds of a mini-batch (default 1000)", 0,
	 GW_OPTION_NUMBER(struct doctor_command, means.trainers.batch_size, 1, 1u << 24, .needs = "part-config")},
	{"steps", "N", "mini-batches of each part that are counted (default 64; 0: an epoch)", 0,
	 GW_OPTION_NUMBER(struct doctor_command, means.steps, 0, UINT64_MAX, .needs = "part-config")},
	{"features", "[TYPE:]NAME,...", "the features that they fetch (default: those with more than one number a row)",
	 0, GW_OPTION_CALL(doctor_take_features)},
	{"memory", "SIZE",
	 "the memory of a host for its part and the means: print the combination that lets the fewest bytes travel", 0,
	 GW_OPTION_NUMBER(struct doctor_command, means.memory, 1, 1ull << 50)},
	{"json", NULL, "one JSON object", 0, GW_OPTION_FLAG(struct doctor_command, json)},
	{0},
};

static const char doc[] =
	"Check this host for Graphwire: memory, huge pages, processors, io_uring, RDMA devices. "
	"Try the named servers over each transport, and measure the time of one read and the rate of many. Each "
	"finding names what it costs and the command that fixes it. The doctor changes nothing and needs no "
	"privilege.\n\n"
	"Examples:\n"
	"  graphwire doctor\n"
	"  graphwire doctor --bytes 40Gi --json\n"
	"  graphwire doctor --bytes 1100G --read parts/part0/node/paper/feat.npy\n"
	"  graphwire doctor --server 10.0.0.1:30050 --key-file job.key\n"
	"  graphwire doctor --server 10.0.0.1:30050 --transport verbs --row 400\n"
	"  graphwire doctor --part-config parts/ --fanouts 15,10,5 --batch-size 1024"
	"\v\"ok\": no fault. \"note\": worth knowing, or could not be checked. \"warning\": it costs speed. "
	"\"problem\": it stops the work that was asked for. With --json: {\"status\", \"findings\": [{\"section\", "
	"\"name\", \"status\", \"value\", \"costs\", \"fix\", \"figures\"}]}.\n\n"
	"Exit status: 0 no problem, 1 a problem (a server that no transport reaches, memory that does not suffice), "
	"2 bad options.";

static void look_at_devices(struct doctor_command *c)
{
	c->doctor.reports = c->reports;
#ifdef GRAPHWIRE_VERBS
	if (gw_verbs_report(c->reports, GW_VERBS_REPORTS_MAX, &c->doctor.report_count)) {
		snprintf(c->no_reports, sizeof(c->no_reports), "%s", gw_last_error());
		c->doctor.no_reports = c->no_reports;
		c->doctor.no_libraries = gw_verbs_library() != GW_OK;
	}
#else
	c->doctor.no_reports = "Graphwire was built without RDMA";
#endif
}

static gw_status doctor_run(struct doctor_command *c)
{
	gw_status status = GW_OK;
	if (c->means.config) {
		status = gw_means_count(&c->means, &c->table);
		return status == GW_OK ? gw_means_print(&c->table, c->json) : status;
	}
	if (c->key_file) {
		status = gw_key_read(c->key_file, c->key, &c->peers.key_bytes);
		c->peers.key = c->key;
	}
	if (status != GW_OK)
		return status;
	if (c->doctor.bytes) {
		status = gw_doctor_rates_measure(&c->rates, gw_processors(), c->read);
		if (status != GW_OK)
			return status;
		c->doctor.rates = &c->rates;
	}
	gw_probe_read(&c->probe);
	c->doctor.probe = &c->probe;
	look_at_devices(c);
	gw_doctor_host(&c->doctor);
	c->doctor.section = "servers";
	c->peers.servers = c->servers;
	c->peers.row_bytes = c->peers.row_bytes ? c->peers.row_bytes : 512;
	c->peers.timeout_ms = c->peers.timeout_ms ? c->peers.timeout_ms : 5000;
	c->peers.measure_ms = c->peers.measure_ms ? c->peers.measure_ms : 800;
	if (c->peers.count)
		gw_doctor_ask(&c->doctor, &c->peers);
	if (c->json)
		status = gw_doctor_print_json(&c->doctor);
	else
		gw_doctor_print(&c->doctor);
	if (status == GW_OK && c->doctor.left_out)
		status = gw_fail(GW_NO_MEMORY, "out of memory for %u of the findings", c->doctor.left_out);
	return status;
}

int gw_tool_doctor(int argc, char **argv)
{
	static const struct gw_options options = {
		.table = table,
		.argument_missing = "name servers with --server HOST:PORT",
		.doc = doc,
		.check = doctor_check_together,
	};
	struct doctor_command *c = gw_calloc(1, sizeof(*c));
	int result = 1;
	if (c) {
		c->doctor.root = "";
		c->means.trainers.batch_size = 1000;
		c->means.trainers.seed = 1;
		c->means.steps = 64;
		gw_options_parse(&options, argc, argv, c);
	}
	gw_status status = c ? doctor_run(c) : GW_NO_MEMORY;
	if (status != GW_OK)
		fprintf(stderr, "%s: %s\n", argv[0], gw_last_error());
	else
		result = gw_doctor_worst(&c->doctor) == GW_DOCTOR_PROBLEM;
	if (c) {
		explicit_bzero(c->key, sizeof(c->key));
		gw_doctor_free(&c->doctor);
		gw_launched_free(&c->launched);
	}
	gw_free(c);
	return result;
}
