/* Servers: connects over each transport, reads from it and measures it.
 *
 *   tcp: hello ─▶ the server's identity ─▶ shm: the name of that incarnation on this host
 *                                       ─▶ verbs: the same host and port
 *   each: connect ─▶ a sample, compared with the first transport's ─▶ latency, rate, cost of a range
 *
 *   no transport works ─▶ the cause (cause.c)
 *
 * A transport that does not work is reported with the endpoint's reason. The finding is a note if that is ordinary
 * (another host, no device). It is a warning if this host has what the transport needs, or if reads fail. It is a
 * problem if --transport asked for it. A server that no transport reaches is a problem, and so are different bytes over
 * two transports.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "tools/doctor/doctor.h"

#define FAR_NS     (20 * GW_NS_PER_MS)
#define OFF_FACTOR 4 /* report a constant that is wrong by this factor or more */

struct peer {
	struct gw_doctor *doctor;
	const struct gw_doctor_peers *peers;
	const char *text;
	struct gw_address address;
	bool reached[GW_SCHEMES];
	bool mapped;          /* one transport mapped its memory */
	const char *first;    /* the first transport that reached it; NULL: none yet */
	uint64_t incarnation; /* the server that `first` reached; the other transports must reach the same server */
	uint8_t *sample, *other;
	uint32_t sample_bytes; /* 0: no sample to compare with */
	gw_status status;      /* the result of the connect over TCP, and its text */
	char reason[GW_ERROR_TEXT_MAX];
	bool loses_large; /* over TCP, short answers arrive and long ones do not */
};

gw_status gw_doctor_server_check(const char *text)
{
	struct gw_address address;
	gw_status status = gw_address_parse(text, &address);
	if (status == GW_OK && !gw_address_has_port(&address))
		status = gw_fail(GW_INVALID, "\"%.64s\": give HOST:PORT; the doctor tries every transport", text);
	if (status == GW_OK && address.port == 0)
		status = gw_fail(GW_INVALID, "\"%.64s\": no server has port 0", text);
	return status;
}

static bool is_asked_for(const struct peer *peer, const char *scheme)
{
	return peer->peers->transport && strcmp(peer->peers->transport, scheme) == 0;
}

/* --- One transport. --- */

static gw_status reach(const struct peer *peer, const struct gw_scheme *way, struct gw_doctor_reader **out)
{
	const struct gw_doctor_peers *peers = peer->peers;
	struct gw_connect_options to = {.address = peer->address,
					.key = peers->key,
					.key_bytes = peers->key_bytes,
					.deadline_ns = gw_deadline_ns((int64_t)peers->timeout_ms)};
	uint8_t found[GW_KEY_BYTES];
	gw_status status = peers->key ? GW_OK : gw_key_choose(&to, peers->insecure, found);
	snprintf(to.address.scheme, sizeof(to.address.scheme), "%s", way->name);
	if (way->local) {
		snprintf(to.address.host, sizeof(to.address.host), "%016llx", (unsigned long long)peer->incarnation);
		to.address.port = 0;
	}
	(void)!getrandom(to.client_uuid, sizeof(to.client_uuid),
			 0); /* no request here is repeated, so any uuid will do */
	*out = NULL;
	if (status == GW_OK)
		status = gw_doctor_reader_open(way->name, &to, peers->row_bytes, peers->measure_ms, out);
	explicit_bzero(found, sizeof(found));
	return status;
}

static void judge_unreached(const struct peer *peer, const struct gw_scheme *way, gw_status status,
			    struct gw_doctor_finding *finding)
{
	struct gw_doctor_names devices;
	bool network = !way->local && way->rank > GW_RANK_FIRST, mapped = network && peer->mapped;
	if (is_asked_for(peer, way->name)) {
		gw_doctor_raise(finding, GW_DOCTOR_PROBLEM);
		gw_doctor_costs(finding, "--transport asks for it");
	} else if (mapped) {
		gw_doctor_costs(finding, "nothing: the server's memory is mapped");
	} else if (network) {
		gw_doctor_costs(finding, "every row passes both kernels and uses the server's processors");
	} else if (way->local) {
		gw_doctor_costs(finding, "nothing, if the server is on another host or belongs to another user");
	}
	if (status == GW_REFUSED)
		gw_doctor_fix(finding, "graphwire doctor --server %s --key-file FILE, with the server's key%s",
			      peer->text, peer->peers->key ? "" : "; --insecure, if the server shall have no key");
	if (way != &gw_schemes[GW_SCHEME_VERBS] || mapped || !gw_doctor_device_names(peer->doctor, &devices))
		return;
	gw_doctor_raise(finding, GW_DOCTOR_WARNING);
	gw_doctor_fix(finding, "%sgraphwire doctor, on the server's host", finding->fix[0] ? "; " : "");
}

static void report_unreached(const struct peer *peer, const struct gw_scheme *way, gw_status status, const char *reason)
{
	struct gw_doctor_finding *finding =
		gw_doctor_find(peer->doctor, GW_DOCTOR_NOTE, "%s %s", peer->text, way->name);
	gw_doctor_value(finding, "not reached: %s", reason);
	judge_unreached(peer, way, status, finding);
}

static void report_untried(const struct peer *peer, const struct gw_scheme *way, const char *reason)
{
	struct gw_doctor_finding *finding =
		gw_doctor_find(peer->doctor, GW_DOCTOR_NOTE, "%s %s", peer->text, way->name);
	gw_doctor_value(finding, "not tried, since %s", reason);
	if (is_asked_for(peer, way->name)) {
		gw_doctor_raise(finding, GW_DOCTOR_PROBLEM);
		gw_doctor_costs(finding, "--transport asks for it");
	}
}

static bool judge_identity(struct peer *peer, const struct gw_scheme *way, struct gw_doctor_finding *finding,
			   uint64_t incarnation)
{
	if (!peer->first) {
		peer->first = way->name;
		peer->incarnation = incarnation;
	}
	if (incarnation == peer->incarnation)
		return true;
	gw_doctor_raise(finding, GW_DOCTOR_PROBLEM);
	gw_doctor_value(finding, "not the server that %s reached, or it has restarted since; ", peer->first);
	gw_doctor_costs(finding, "clients cannot know which of the two they read from");
	gw_doctor_fix(finding, "graphwire stat %s", peer->text);
	return false;
}

static bool judge_sample(struct peer *peer, struct gw_doctor_finding *finding, uint32_t bytes)
{
	if (peer->sample_bytes == 0) {
		memcpy(peer->sample, peer->other, GW_DOCTOR_SAMPLE_BYTES);
		peer->sample_bytes = bytes;
		return true;
	}
	if (bytes != peer->sample_bytes || memcmp(peer->sample, peer->other, bytes) != 0) {
		gw_doctor_raise(finding, GW_DOCTOR_PROBLEM);
		gw_doctor_value(finding, "; other bytes than over %s", peer->first);
		gw_doctor_costs(finding, "wrong rows: do not train over it");
		gw_doctor_fix(finding, "graphwire epoch --part-config PARTS --servers %s --check", peer->text);
		return false;
	}
	gw_doctor_value(finding, "; %u bytes compared with %s, the same", bytes, peer->first);
	return true;
}

static void report_figures(struct gw_doctor_finding *finding, const struct gw_doctor_figures *figures)
{
	char rows[GW_UNIT_TEXT_MAX], p50[GW_UNIT_TEXT_MAX], p99[GW_UNIT_TEXT_MAX];
	gw_doctor_value(finding, "a row of %u B in %s (99 of 100 in %s); %s rows/s, %.3g GB/s", figures->row_bytes,
			gw_text_duration(p50, figures->p50_us * 1e-6), gw_text_duration(p99, figures->p99_us * 1e-6),
			gw_text_count(rows, figures->rows_per_second), figures->bytes_per_second * 1e-9);
	gw_doctor_figure(finding, "row_bytes", figures->row_bytes);
	gw_doctor_figure(finding, "p50_us", figures->p50_us);
	gw_doctor_figure(finding, "p99_us", figures->p99_us);
	gw_doctor_figure(finding, "rows_per_second", figures->rows_per_second);
	gw_doctor_figure(finding, "bytes_per_second", figures->bytes_per_second);
}

/* Reports the break-even between reading a complete list and reading single entries of it: the measured value, and the
 * constant in use. */
static void report_range(const struct peer *peer, const struct gw_transport *transport, double measured)
{
	struct gw_doctor_finding *finding =
		gw_doctor_find(peer->doctor, GW_DOCTOR_OK, "%s %s ranges", peer->text, transport->scheme->name);
	double constant = transport->range_cost_bytes;
	gw_doctor_figure(finding, "range_cost_bytes", measured);
	gw_doctor_figure(finding, "range_cost_constant", constant);
	if (isnan(measured)) {
		gw_doctor_raise(finding, GW_DOCTOR_NOTE);
		gw_doctor_value(finding,
				"a range counts as %.0f bytes in addition to its own; its cost could not be measured",
				constant);
		return;
	}
	gw_doctor_value(finding, "a range costs as much as %.0f bytes in addition to its own, and counts as %.0f",
			measured, constant);
	if (measured <= OFF_FACTOR * constant && measured * OFF_FACTOR >= constant)
		return;
	gw_doctor_raise(finding, GW_DOCTOR_NOTE);
	gw_doctor_costs(finding,
			"clients read some lists completely where picking from them is faster, or the reverse");
}

/* If short answers still arrive over another connection, the server is alive. */
static bool answers_in_short(const struct peer *peer, const struct gw_scheme *way)
{
	struct gw_doctor_reader *reader;
	uint64_t ns;
	gw_status status = reach(peer, way, &reader);
	if (status == GW_OK)
		status = gw_doctor_reader_ping(reader, &ns);
	gw_doctor_reader_goodbye(reader);
	gw_doctor_reader_close(reader);
	return status == GW_OK;
}

static void report_failed_reads(struct peer *peer, const struct gw_scheme *way, gw_status status, bool pinged,
				struct gw_doctor_finding *finding)
{
	gw_doctor_raise(finding, is_asked_for(peer, way->name) ? GW_DOCTOR_PROBLEM : GW_DOCTOR_WARNING);
	gw_doctor_value(finding, "connected, but reads fail: %s", gw_last_error());
	gw_doctor_costs(finding, "a client that chooses this transport loses time, or fails");
	/* With a long time-out, the kernel may end the connection first. */
	bool silent = status == GW_DEADLINE || status == GW_PEER_LOST;
	if (way->rank == GW_RANK_FIRST && silent && pinged && answers_in_short(peer, way)) {
		peer->loses_large = true;
		gw_doctor_cause_large(peer->text, finding);
	} else {
		gw_doctor_fix(finding, "graphwire stat %s, and the server's log", peer->text);
	}
}

/* Clients have many reads in flight. So a distant server answers as many reads as a near one, only later. Sampling more
 * mini-batches ahead can hide this delay. */
static void judge_distance(const struct gw_scheme *way, struct gw_doctor_finding *finding, uint64_t trip_ns)
{
	char trip[GW_UNIT_TEXT_MAX];
	if (trip_ns < FAR_NS || way->local)
		return;
	gw_doctor_raise(finding, GW_DOCTOR_NOTE);
	gw_doctor_costs(finding,
			"%s a round trip, and a mini-batch takes several: more mini-batches ahead (depth) hide it, "
			"as far as the network carries their bytes",
			gw_text_duration(trip, (double)trip_ns * 1e-9));
}

static void report_reached(struct peer *peer, const struct gw_scheme *way, struct gw_doctor_reader *reader)
{
	const struct gw_endpoint *endpoint = gw_doctor_reader_endpoint(reader);
	const struct gw_peer who = endpoint->peer;
	bool empty = who.region_count == 0 || who.regions[0].bytes == 0;
	struct gw_doctor_finding *finding = gw_doctor_find(peer->doctor, GW_DOCTOR_OK, "%s %s", peer->text, way->name);
	struct gw_doctor_figures figures = {0};
	uint64_t trip_ns = 0;
	uint32_t bytes = 0;
	bool same = judge_identity(peer, way, finding, who.incarnation);
	gw_status status = empty ? GW_OK : gw_doctor_reader_ping(reader, &trip_ns);
	bool pinged = status == GW_OK;
	if (status == GW_OK && !empty)
		status = gw_doctor_reader_sample(reader, peer->other, &bytes);
	if (status == GW_OK && !empty)
		status = gw_doctor_reader_measure(reader, &figures);
	if (status != GW_OK) {
		report_failed_reads(peer, way, status, pinged, finding);
		return;
	}
	judge_distance(way, finding, trip_ns);
	if (empty)
		gw_doctor_value(finding, "connected; the server has nothing to read");
	else
		report_figures(finding, &figures);
	/* Trainable rows may have changed between two samples. */
	if (same && !empty && who.regions[0].kind == GW_REGION_IMMUTABLE)
		same = judge_sample(peer, finding, bytes);
	peer->reached[way - gw_schemes] = same;
	peer->mapped |= same && way->mapped;
	if (!empty)
		report_range(peer, endpoint->transport, figures.range_cost_bytes);
}

/* --- One server. --- */

static gw_status doctor_try_transport(struct peer *peer, const struct gw_scheme *way)
{
	struct gw_doctor_reader *reader;
	gw_status status = reach(peer, way, &reader);
	if (status != GW_OK && way->rank == GW_RANK_FIRST) {
		peer->status = status;
		snprintf(peer->reason, sizeof(peer->reason), "%s", gw_last_error());
	}
	if (status != GW_OK)
		report_unreached(peer, way, status, gw_last_error());
	else
		report_reached(peer, way, reader);
	gw_doctor_reader_goodbye(reader);
	gw_doctor_reader_close(reader);
	return status;
}

/* Chooses as client/link/upgrade.c does: the best transport that reads the same bytes as TCP, else TCP. */
static void report_choice(const struct peer *peer)
{
	const struct gw_scheme *way = gw_scheme_below(NULL), *first = &gw_schemes[GW_SCHEME_TCP];
	while (way && !peer->reached[way - gw_schemes])
		way = gw_scheme_below(way);
	if (!way && peer->reached[first - gw_schemes])
		way = first;
	struct gw_doctor_finding *finding =
		gw_doctor_find(peer->doctor, way ? GW_DOCTOR_OK : GW_DOCTOR_PROBLEM, "%s", peer->text);
	if (way) {
		gw_doctor_value(finding, "clients here read over %s", way->name);
		return;
	}
	gw_doctor_value(finding, "reached by no transport");
	gw_doctor_costs(finding, "its part cannot be read: clients fail");
	if (peer->loses_large)
		gw_doctor_cause_large(peer->text, finding);
	else if (peer->status)
		gw_doctor_cause(peer->peers, peer->text, peer->status, peer->reason, finding);
	else
		gw_doctor_fix(finding, "graphwire stat %s, and the server's log", peer->text);
}

static void ask_server(struct peer *peer)
{
	bool answers = doctor_try_transport(peer, &gw_schemes[GW_SCHEME_TCP]) == GW_OK;
	for (const struct gw_scheme *way = gw_schemes; way < gw_schemes + GW_SCHEMES; way++) {
		if (way->rank <= GW_RANK_FIRST)
			continue;
		if (answers)
			doctor_try_transport(peer, way);
		else
			report_untried(peer, way,
				       way->local ? "the server sends its name over TCP"
						  : "it starts with a hello over TCP");
	}
	report_choice(peer);
}

void gw_doctor_ask(struct gw_doctor *doctor, const struct gw_doctor_peers *peers)
{
	uint8_t *samples = gw_calloc(2, GW_DOCTOR_SAMPLE_BYTES);
	if (!samples) {
		doctor->left_out++;
		return;
	}
	for (uint32_t i = 0; i < peers->count; i++) {
		struct peer peer = {.doctor = doctor,
				    .peers = peers,
				    .text = peers->servers[i],
				    .sample = samples,
				    .other = samples + GW_DOCTOR_SAMPLE_BYTES};
		if (gw_address_parse(peer.text, &peer.address))
			gw_doctor_value(gw_doctor_find(doctor, GW_DOCTOR_PROBLEM, "%s", peer.text), "%s",
					gw_last_error());
		else
			ask_server(&peer);
	}
	gw_free(samples);
}
