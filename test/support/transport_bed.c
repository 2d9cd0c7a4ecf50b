/* The bed of the transport tests: server threads, connects and waits with a time limit. */
#include "test/support/transport_bed.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "test/support/alloc_fault.h"
#include "test/support/row_take.h"

/* How long a completion may take: an emulated machine has all the time it wants. */
static uint64_t patience_ns(void)
{
	return (getenv("GRAPHWIRE_GUEST") ? 300 : 100) * GW_NS_PER_SECOND;
}

const struct bed_kind gw_beds[] = {
	{"memory", NULL, "memory", false, false, 0},
	{"tcp/epoll", "epoll", "tcp", true, false, 0},
	{"tcp/io_uring", "io_uring", "tcp", true, false, 0},
	{"shm/epoll", "epoll", "shm", true, true, 0},
	{"shm/io_uring", "io_uring", "shm", true, true, 0},
	{"verbs", NULL, "verbs", true, true, 0},
	{"tcp/io_uring spinning", "io_uring", "tcp", true, false, 50000},
};
const size_t gw_bed_count = sizeof(gw_beds) / sizeof(gw_beds[0]);

static void check(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "bed: %s: %s\n", what, gw_last_error());
	abort();
}

/* Whether a list of names, separated by commas, has this one. */
static bool names_bed(const char *list, const char *name)
{
	size_t bytes = strlen(name);
	for (const char *at = list; (at = strstr(at, name)); at += bytes)
		if ((at == list || at[-1] == ',') && (at[bytes] == ',' || at[bytes] == 0))
			return true;
	return false;
}

bool gw_bed_possible(const struct bed_kind *kind)
{
	struct gw_poll_group_options options = {.tcp_driver = kind->driver, .spin_ns = kind->spin_ns};
	struct gw_poll_group *group;
	const struct gw_transport *transport;
	void *state;
	const char *wanted = getenv("GRAPHWIRE_TEST_BED");
	const char *without = getenv("GRAPHWIRE_TEST_WITHOUT");
	if ((wanted && strcmp(wanted, kind->name) != 0) || (without && names_bed(without, kind->name)))
		return false;
	check(gw_poll_group_create(&options, &group) == GW_OK, "poll group");
	gw_status status = gw_transport_find(kind->scheme, &transport);
	if (status == GW_OK)
		status = gw_poll_group_state(group, transport, &state);
	check(status == GW_OK || !wanted, "the bed that is wanted");
	if (status != GW_OK)
		printf("[  SKIPPED ] %s: %s\n", kind->name, gw_last_error());
	gw_poll_group_destroy(group);
	return status == GW_OK;
}

pid_t gw_bed_fork(void)
{
	pid_t child = fork();
	check(child >= 0, "fork");
	if (child == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return child;
}

struct bed_work {
	struct bed *bed;
	uint32_t runs;
	uint64_t sum; /* of the call's bytes */
};

static void work_end(void *opaque)
{
	struct bed_work *work = opaque;
	atomic_fetch_add(&work->bed->works_ended, 1);
}

/* A handler that has more to do for as long as the test likes: memory and call are the same in every run. */
static gw_status defer(struct bed *bed, const struct gw_call *call, struct gw_reply *reply)
{
	struct bed_work *work = gw_reply_work(reply, sizeof(*work), work_end);
	if (!work)
		return GW_NO_MEMORY;
	uint64_t sum = call->byte_count;
	for (uint32_t i = 0; i < call->byte_count; i++)
		sum = sum * 31 + call->bytes[i];
	if (work->runs == 0) {
		work->bed = bed;
		work->sum = sum;
	}
	check(work->sum == sum && work->bed == bed, "a deferred call that changes");
	work->runs++;
	atomic_fetch_add(&bed->runs, 1);
	if (!atomic_load(&bed->release))
		return GW_AGAIN;
	uint8_t *room = gw_reply_extend(reply, call->byte_count);
	if (!room)
		return GW_LIMIT;
	if (call->byte_count)
		memcpy(room, call->bytes, call->byte_count);
	return GW_OK;
}

static gw_status row_write(struct bed *bed, const struct gw_call *call)
{
	uint32_t number;
	check(call->byte_count == 4 + bed->row_format.format.payload_bytes, "a row's bytes");
	memcpy(&number, call->bytes, 4);
	check(number < bed->row_count, "a row's number");
	gw_bed_row_write(bed, number, call->bytes + 4);
	return GW_OK;
}

static gw_status handler(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	struct bed *bed = context;
	uint32_t number = 0;
	check(call->thread < bed->thread_count, "thread number");
	if (call->byte_count >= 4)
		memcpy(&number, call->bytes, 4);
	if (call->op == BED_OP_FAIL)
		return gw_fail(GW_NOT_FOUND, "no such thing");
	if (call->op == BED_OP_SLOW) {
		struct timespec time = {.tv_sec = number / 1000, .tv_nsec = (long)(number % 1000) * 1000000};
		nanosleep(&time, NULL);
		return GW_OK;
	}
	if (call->op == BED_OP_DEFER)
		return defer(bed, call, reply);
	if (call->op == BED_OP_WRITE)
		return row_write(bed, call);
	bool large = call->op == BED_OP_LARGE || call->op == BED_OP_RESERVE;
	if (call->op == BED_OP_RESERVE) {
		gw_status status = gw_reply_reserve(reply, number);
		if (status != GW_OK)
			return status;
	}
	uint32_t bytes = call->op == BED_OP_ECHO ? call->byte_count : large ? number : 4;
	uint8_t *room = gw_reply_extend(reply, bytes);
	if (!room)
		return GW_LIMIT;
	if (call->op == BED_OP_ECHO && bytes)
		memcpy(room, call->bytes, bytes);
	if (large)
		for (uint32_t i = 0; i < bytes; i++)
			room[i] = (uint8_t)(i * 7);
	if (call->op == BED_OP_COUNT) {
		uint32_t sum = atomic_fetch_add(&bed->applied, 1) + 1;
		memcpy(room, &sum, 4);
	}
	return GW_OK;
}

struct serving {
	struct bed *bed;
	uint32_t number;
};

static void *serve(void *argument)
{
	struct serving serving = *(struct serving *)argument;
	struct bed *bed = serving.bed;
	free(argument);
	while (!atomic_load(&bed->stop)) {
		if (atomic_load(&bed->pause)) {
			atomic_store(&bed->paused[serving.number], true);
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
			continue;
		}
		atomic_store(&bed->paused[serving.number], false);
		gw_poll_group_poll(bed->server_groups[serving.number], NULL, 0, 50 * GW_NS_PER_MS);
	}
	return NULL;
}

bool gw_bed_is_mapped(const struct bed_kind *kind)
{
	return strcmp(kind->scheme, "shm") == 0 || strcmp(kind->scheme, "memory") == 0;
}

void gw_bed_name(const struct bed_kind *kind, struct gw_address *address)
{
	static uint32_t names;
	snprintf(address->scheme, sizeof(address->scheme), "%s", kind->scheme);
	if (strcmp(kind->scheme, "shm") == 0 || !kind->network)
		snprintf(address->host, sizeof(address->host), "bed-%ld-%u", (long)getpid(), names++);
	else
		snprintf(address->host, sizeof(address->host), "127.0.0.1");
}

/* Memory that a client of this host may map, where it does so; else such that a sanitizer sees its ends. */
static void make_memory(struct bed *bed, const struct bed_options *asked)
{
	struct gw_arena_options options = {
		.name = "bed", .huge = asked->huge, .numa = GW_NUMA_LOCAL, .shareable = true};
	bed->sparse = asked->sparse;
	if (bed->sparse) {
		bed->memory = mmap(NULL, bed->bytes + 8, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		check(bed->memory != MAP_FAILED, "memory");
	} else if (strcmp(bed->kind->scheme, "shm") == 0) {
		check(gw_arena_create(bed->bytes + 8, &options, &bed->arena) == GW_OK, "arena");
		bed->memory = gw_arena_base(bed->arena);
	} else {
		bed->memory = malloc(bed->bytes + 8);
		check(bed->memory != NULL, "memory");
	}
}

static void make_rows(struct bed *bed, const struct bed_options *options)
{
	struct gw_arena_options memory = {.name = "rows", .numa = GW_NUMA_LOCAL, .shareable = true};
	struct gw_region_rows *rows = &bed->row_format;
	uint32_t id;
	rows->seed = BED_SEED;
	bed->row_count = options->row_count;
	check(gw_row_format_init(options->row_bytes, &rows->format) == GW_OK, "row format");
	uint64_t bytes = (uint64_t)bed->row_count * rows->format.stride;
	check(gw_arena_create(bytes, &memory, &bed->row_arena) == GW_OK, "rows");
	bed->rows = gw_arena_base(bed->row_arena);
	for (uint32_t i = 0; i < bed->row_count; i++)
		gw_row_make(&rows->format, rows->seed, i, gw_bed_row(bed, i), NULL);
	if (bed->arena)
		check(gw_service_memory(bed->service, bed->rows, gw_arena_bytes(bed->row_arena),
					gw_arena_fd(bed->row_arena)) == GW_OK,
		      "memory of rows");
	check(gw_service_expose(bed->service, bed->rows, bytes, 1 << 16, rows, &id) == GW_OK && id == BED_ROWS, "rows");
}

uint8_t *gw_bed_row(struct bed *bed, uint32_t i)
{
	return bed->rows + (uint64_t)i * bed->row_format.format.stride;
}

void gw_bed_row_write(struct bed *bed, uint32_t i, const void *payload)
{
	const struct gw_region_rows *rows = &bed->row_format;
	if (!rows->format.versioned) {
		gw_row_store(&rows->format, gw_bed_row(bed, i), payload);
		return;
	}
	uint64_t sequence = row_take(&rows->format, gw_bed_row(bed, i));
	gw_row_publish(&rows->format, rows->seed, i, gw_bed_row(bed, i), sequence, payload);
}

void gw_bed_begin(struct bed *bed, const struct bed_kind *kind, const struct bed_options *options)
{
	static const struct bed_options none;
	options = options ? options : &none;
	memset(bed, 0, sizeof(*bed));
	bed->kind = kind;
	bed->thread_count = options->threads ? options->threads : 1;
	bed->bytes = options->bytes ? options->bytes : 1 << 20;
	make_memory(bed, options);
	for (uint64_t i = 0; i < bed->bytes; i += 8) {
		if (options->sparse && i == BED_END_BYTES)
			i = bed->bytes - BED_END_BYTES;
		uint64_t word = gw_mix64(i);
		memcpy(bed->memory + i, &word, 8);
	}
	struct gw_service_identity identity = {.graph_id = options->graph_id ? options->graph_id : 77,
					       .incarnation = options->incarnation ? options->incarnation : 5,
					       .part = 1,
					       .parts = 3};
	check(gw_service_create(&identity, &options->limits, &bed->service) == GW_OK, "service");
	if (options->key)
		check(gw_service_key_set(bed->service, (const uint8_t *)options->key, (uint32_t)strlen(options->key)) ==
			      GW_OK,
		      "key");
	if (bed->arena)
		check(gw_service_memory(bed->service, bed->memory, gw_arena_bytes(bed->arena),
					gw_arena_fd(bed->arena)) == GW_OK,
		      "memory");
	uint32_t id;
	check(gw_service_expose(bed->service, bed->memory, bed->bytes, 64 << 10, NULL, &id) == GW_OK && id == 0,
	      "region 0");
	check(gw_service_expose(bed->service, NULL, 0, 0, NULL, &id) == GW_OK, "region 1");
	check(gw_service_expose(bed->service, bed->memory + bed->bytes - 1000, 1000, 0, NULL, &id) == GW_OK,
	      "region 2");
	if (options->row_bytes)
		make_rows(bed, options);
	for (uint16_t op = BED_OP_ECHO; op <= BED_OP_WRITE; op++)
		check(gw_service_handle(bed->service, op, handler, bed) == GW_OK, "handler");
	for (uint32_t i = 0; i < bed->thread_count; i++)
		bed->server_groups[i] = gw_bed_group(kind);
	struct gw_address address = {.port = options->port};
	gw_bed_name(kind, &address);
	check(gw_listen(bed->server_groups, bed->thread_count, &address, bed->service, &bed->listener) == GW_OK,
	      "listen");
	bed->address = bed->listener->address;
	for (uint32_t i = 0; i < bed->thread_count; i++) {
		struct serving *serving = malloc(sizeof(*serving));
		check(serving != NULL, "memory");
		*serving = (struct serving){bed, i};
		check(pthread_create(&bed->threads[i], NULL, serve, serving) == 0, "thread");
	}
}

void gw_bed_end(struct bed *bed)
{
	atomic_store(&bed->stop, true);
	for (uint32_t i = 0; i < bed->thread_count; i++) {
		gw_poll_group_wake(bed->server_groups[i]);
		pthread_join(bed->threads[i], NULL);
	}
	gw_listener_stop(bed->listener, true);
	gw_listener_free(bed->listener);
	for (uint32_t i = 0; i < bed->thread_count; i++)
		gw_poll_group_destroy(bed->server_groups[i]);
	gw_service_destroy(bed->service);
	if (!bed->arena)
		bed->sparse ? (void)munmap(bed->memory, bed->bytes + 8) : free(bed->memory);
	gw_arena_destroy(bed->arena);
	gw_arena_destroy(bed->row_arena);
}

void gw_bed_pause(struct bed *bed)
{
	atomic_store(&bed->pause, true);
	for (uint32_t i = 0; i < bed->thread_count; i++) {
		gw_poll_group_wake(bed->server_groups[i]);
		while (!atomic_load(&bed->paused[i]))
			nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	}
}

void gw_bed_resume(struct bed *bed)
{
	atomic_store(&bed->pause, false);
}

void gw_bed_fault_begin(struct bed *bed, unsigned long n)
{
	gw_bed_pause(bed);
	gw_fault_begin(n);
	gw_bed_resume(bed);
}

bool gw_bed_fault_end(struct bed *bed)
{
	gw_bed_pause(bed);
	bool hit = gw_fault_hit();
	gw_fault_end();
	gw_bed_resume(bed);
	return hit;
}

struct gw_poll_group *gw_bed_group(const struct bed_kind *kind)
{
	struct gw_poll_group_options options = {.tcp_driver = kind->driver, .spin_ns = kind->spin_ns};
	struct gw_poll_group *group;
	check(gw_poll_group_create(&options, &group) == GW_OK, "poll group");
	return group;
}

struct gw_connect_options gw_bed_options(const struct bed *bed)
{
	return (struct gw_connect_options){
		.address = bed->address, .client_uuid = {1, 2, 3}, .deadline_ns = gw_now_ns() + 30 * GW_NS_PER_SECOND};
}

struct gw_completion gw_bed_wait(struct gw_poll_group *group, const void *cookie)
{
	struct gw_completion completion;
	uint64_t end = gw_now_ns() + patience_ns();
	while (gw_now_ns() < end) {
		if (gw_poll_group_poll(group, &completion, 1, 100 * GW_NS_PER_MS) == 0)
			continue;
		check(completion.cookie == cookie, "a completion of something else");
		return completion;
	}
	check(false, "nothing completed in time");
	abort();
}

gw_status gw_bed_connect(struct gw_poll_group *group, const struct gw_connect_options *options,
			 struct gw_endpoint **out)
{
	gw_status status = gw_endpoint_connect(group, options, out, out);
	if (status != GW_OK)
		return status;
	struct gw_completion completion = gw_bed_wait(group, out);
	return completion.status ? gw_fail_text(completion.status, completion.text) : GW_OK;
}

static void make_room(struct gw_endpoint *endpoint)
{
	struct gw_completion completion;
	check(gw_poll_group_poll(endpoint->group, &completion, 1, 5 * GW_NS_PER_SECOND) == 0, "early completion");
}

void gw_bed_gather(struct gw_endpoint *endpoint, struct gw_read_set *set, const struct gw_region *region,
		   struct gw_buffer *buffer, const struct gw_gather *gather, size_t n)
{
	struct gw_gather rest = *gather;
	for (;;) {
		size_t taken = gw_endpoint_gather(endpoint, set, region, buffer, &rest, n, true);
		check(taken <= n, "more taken than given");
		n -= taken;
		rest.remote += taken;
		if (rest.rows)
			rest.rows += taken;
		else
			rest.local += taken * rest.stride;
		if (n == 0)
			return;
		make_room(endpoint);
	}
}

void gw_bed_readv(struct gw_endpoint *endpoint, struct gw_read_set *set, const struct gw_region *region,
		  struct gw_buffer *buffer, const struct gw_span *spans, size_t n)
{
	for (;;) {
		size_t taken = gw_endpoint_readv(endpoint, set, region, buffer, spans, n, true);
		check(taken <= n, "more taken than given");
		n -= taken;
		spans += taken;
		if (n == 0)
			return;
		make_room(endpoint);
	}
}

/* --- A bed with one client. --- */

void gw_one_begin(struct one *one, void **state, const struct bed_options *options, uint64_t landing_bytes)
{
	memset(one, 0, sizeof(*one));
	gw_bed_begin(&one->bed, *state, options);
	one->group = gw_bed_group(one->bed.kind);
	one->landing_bytes = landing_bytes;
	one->landing = calloc(1, landing_bytes);
	one->expected = calloc(1, landing_bytes);
	assert_non_null(one->landing);
	assert_non_null(one->expected);
	assert_int_equal(gw_buffer_register(one->group, one->landing, landing_bytes, &one->buffer), GW_OK);
	struct gw_connect_options connect = gw_bed_options(&one->bed);
	if (gw_bed_connect(one->group, &connect, &one->endpoint))
		fail_msg("%s", gw_last_error());
	assert_int_equal(one->endpoint->state, GW_ENDPOINT_OPEN);
	one->region = one->endpoint->peer.regions[0];
}

void gw_one_end(struct one *one)
{
	gw_endpoint_close(one->endpoint);
	gw_buffer_release(one->buffer);
	gw_poll_group_destroy(one->group);
	gw_bed_end(&one->bed);
	free(one->landing);
	free(one->expected);
}

void gw_one_wait_ok(struct one *one, struct gw_read_set *set)
{
	struct gw_completion completion = gw_bed_wait(one->group, set->cookie);
	if (completion.status)
		print_error("%s\n", completion.text);
	assert_int_equal(completion.status, GW_OK);
	assert_string_equal(completion.text, "");
}

void gw_one_nothing_more(struct one *one, uint64_t ms)
{
	struct gw_completion completion;
	uint64_t end = gw_now_ns() + ms * GW_NS_PER_MS;
	while (gw_now_ns() < end)
		assert_int_equal(gw_poll_group_poll(one->group, &completion, 1, 2 * GW_NS_PER_MS), 0);
}

uint64_t gw_below(uint64_t *seed, uint64_t bound)
{
	*seed = gw_mix64(*seed + 0x9e3779b97f4a7c15ull);
	return *seed % bound;
}

void gw_one_expect_failure(struct one *one, struct gw_read_set *set, gw_status status)
{
	struct gw_completion completion = gw_bed_wait(one->group, set->cookie);
	assert_int_equal(completion.status, status);
	assert_true(strlen(completion.text) > 0);
}

struct gw_completion gw_one_call(struct one *one, uint16_t op, uint64_t sequence, const void *bytes, uint32_t n)
{
	struct gw_once once = {sequence, sequence, one->endpoint->peer.window};
	assert_int_equal(gw_endpoint_request(one->endpoint, op, &once, bytes, n, GW_NO_DEADLINE, (void *)(uintptr_t)op),
			 GW_OK);
	return gw_bed_wait(one->group, (void *)(uintptr_t)op);
}

void gw_one_read_works(struct one *one)
{
	struct gw_span span = {12, 0, 64};
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_readv(one->endpoint, &set, &one->region, one->buffer, &span, 1);
	gw_one_wait_ok(one, &set);
	assert_memory_equal(one->landing, one->bed.memory + 12, 64);
}

/* --- Every test on every backend. --- */

static int run(const char *name, const struct bed_test *tests, size_t n, bool network_only, const char *scheme)
{
	size_t rows = 0;
	char(*names)[96] = calloc(n * gw_bed_count, sizeof(*names));
	struct CMUnitTest *table = calloc(n * gw_bed_count, sizeof(*table));
	check(names && table, "memory");
	for (size_t b = 0; b < gw_bed_count; b++) {
		if ((network_only && !gw_beds[b].network) || (scheme && strcmp(gw_beds[b].scheme, scheme) != 0) ||
		    !gw_bed_possible(&gw_beds[b]))
			continue;
		for (size_t i = 0; i < n; i++, rows++) {
			snprintf(names[rows], sizeof(*names), "%s: %s", gw_beds[b].name, tests[i].name);
			table[rows] = (struct CMUnitTest){names[rows], tests[i].run, NULL, NULL,
							  (void *)(uintptr_t)&gw_beds[b]};
		}
	}
	int failed = _cmocka_run_group_tests(name, table, rows, NULL, NULL);
	free(table);
	free(names);
	return failed;
}

int gw_bed_run(const char *name, const struct bed_test *tests, size_t n)
{
	return run(name, tests, n, false, NULL);
}

int gw_bed_run_network(const char *name, const struct bed_test *tests, size_t n)
{
	return run(name, tests, n, true, NULL);
}

int gw_bed_run_tcp(const char *name, const struct bed_test *tests, size_t n)
{
	return run(name, tests, n, true, "tcp");
}

int gw_bed_run_shm(const char *name, const struct bed_test *tests, size_t n)
{
	return run(name, tests, n, true, "shm");
}
