/* graphwire bench update: rows that change, against the same loops without the protection from torn rows.
 *
 *   memory      reads: versioned rows, at random from memory, against a prefetching memcpy at the same stride, and at
 *               the bare stride
 *               hash: of one row, in ns, against the hash alone
 *               pushes: gradients for random rows, row-wise Adagrad, against the arithmetic and a hash
 *   reads       the reads over each transport, against rows of the same memory that never change, at the same stride,
 *               and at the bare stride
 *   step        rows pulled and gradients pushed over TCP, as DGL-KE trains, against a bare loop that does both
 *   mix         several clients that pull and push the same rows, and one row that all of them use
 *   lookup      single rows by several threads, of few and of many tensors, against tensors that were found once
 *   checkpoint  a tensor from servers to disk, against a bare write and sync of as many bytes, and compared with fio
 *   beside      steps while a checkpoint is written, against the same steps without a checkpoint
 *
 * A versioned row has a trailer. The bare stride is the stride of rows without trailers.
 *
 * Reads and pushes are checked before anything is measured. update_memory.c has memory, update_paths.c has reads, and
 * mix and lookup are each in update_NAME.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/bare_rows.h"
#include "bench/fio.h"
#include "bench/place.h"
#include "bench/row_bed.h"
#include "bench/update_private.h"
#include "core/files/staging.h"
#include "core/memory/alloc.h"
#include "core/numbers/digest.h"
#include "core/system/clock.h"

#define UPDATE_LISTS 64u /* number of lists of rows; the steps use them one after another, again and again */
#define UPDATE_WRITE (4u << 20)

static const char *const update_parts[] = {"memory", "reads", "step", "mix", "lookup", "checkpoint", "beside", NULL};

#define A struct gw_update
static const struct gw_option table[] = {
	{"rows", "N", "rows of the table (200k)", 0, GW_OPTION_NUMBER(A, rows, 1000, 1u << 30)},
	{"row", "BYTES", "bytes of a row, a multiple of 16 (1600)", 0, GW_OPTION_NUMBER(A, row_bytes, 16, 64 << 10)},
	{"batch", "N", "rows of a step (3000)", 0, GW_OPTION_NUMBER(A, step_rows, 1, 1 << 20)},
	{"seconds", "S", "length of one measurement (0.5)", 0, GW_OPTION_REAL(A, seconds, 0.01, 1000)},
	{"only", "NAME", "memory, reads, step, mix, lookup, checkpoint or beside (all)", 0,
	 GW_OPTION_CHOICE(A, only, update_parts)},
	{"transport", "NAME", "reads: shm, epoll, io_uring or verbs only", 0,
	 GW_OPTION_CHOICE(A, transport, gw_row_options + 1)},
	{"folder", "FOLDER", "where checkpoints are written (a temporary one)", 0, GW_OPTION_TEXT(A, folder)},
	{0},
};
#undef A

/* --- A step over TCP. --- */

static gw_status measure_step(void *context, double *figure)
{
	struct gw_update *a = context;
	uint64_t steps = 0, begun = gw_now_ns(), elapsed;
	gw_status status = GW_OK;
	do {
		const int64_t *ids = a->ids + a->next++ % UPDATE_LISTS * a->step_rows;
		status = gw_gather(a->served, a->tensor, ids, a->step_rows, a->landing);
		if (status == GW_OK)
			status = gw_push(a->served, a->tensor, ids, a->step_rows, a->gradients, &gw_update_optimizer);
		steps++;
		elapsed = gw_now_ns() - begun;
	} while (status == GW_OK && (double)elapsed < a->seconds * 1e9);
	*figure = (double)steps * 1e9 / (double)elapsed;
	return status;
}

static gw_status measure_bare_step(void *context, double *figure)
{
	struct gw_update *a = context;
	int error = gw_bare_step_run(a->bare_step, a->bare_numbers, UPDATE_LISTS, a->gradients, a->seconds, figure);
	return error ? gw_fail_errno(GW_IO, error, "the bare loop") : GW_OK;
}

static gw_status update_make_tensor(struct gw_update *a)
{
	struct gw_tensor_spec spec = {.name = "bench",
				      .dtype = GW_FLOAT32,
				      .placement = GW_PLACE_EVEN,
				      .ndim = 2,
				      .shape = {a->rows, gw_update_columns(a)}};
	gw_status status = gw_tensor_create(a->served, &spec, &a->tensor);
	for (uint64_t i = 0; i < UPDATE_LISTS * a->step_rows; i++) {
		a->bare_numbers[i] = (uint32_t)(gw_bare_mix(i) % a->rows);
		a->ids[i] = a->bare_numbers[i];
	}
	return status;
}

/* A formula gives the expected row. */
static gw_status update_check_step(struct gw_update *a)
{
	int64_t id = 1;
	const float *rows = (const float *)(const void *)a->landing;
	double squares = 0;
	for (uint32_t i = 0; i < gw_update_columns(a); i++)
		squares += (double)a->gradients[i] * (double)a->gradients[i] / gw_update_columns(a);
	gw_status status = gw_push(a->served, a->tensor, &id, 1, a->gradients, &gw_update_optimizer);
	if (status == GW_OK)
		status = gw_gather(a->served, a->tensor, &id, 1, a->landing);
	for (uint32_t i = 0; i < gw_update_columns(a) && status == GW_OK; i++) {
		double wanted = -0.1 * (double)a->gradients[i] / (sqrt(squares) + 1e-10);
		if (fabs((double)rows[i] - wanted) > 1e-5)
			status = gw_fail(GW_DIGEST, "a push gives %g instead of %g", (double)rows[i], wanted);
	}
	return status;
}

static gw_status run_step(struct gw_update *a)
{
	static struct gw_bench_series ceilings, values;
	int error = gw_bare_step_begin(a->rows, gw_update_columns(a), (uint32_t)a->step_rows, &a->bare_step);
	gw_status status = error ? gw_fail_errno(GW_IO, error, "the bare loop") : update_check_step(a);
	if (status == GW_OK)
		status = gw_bench_alternate(&a->bench, measure_bare_step, measure_step, a, &ceilings, &values);
	gw_bare_step_end(a->bare_step);
	if (status != GW_OK)
		return status;
	char title[96], note[160];
	snprintf(title, sizeof(title), "pull and push over TCP, %llu x %llu B", (unsigned long long)a->step_rows,
		 (unsigned long long)a->row_bytes);
	snprintf(note, sizeof(note), "of %llu rows, row-wise Adagrad, %u servers; the bare loop: one connection",
		 (unsigned long long)a->rows, gw_client_graph(a->served)->num_parts);
	const struct gw_bench_result result = {.title = title,
					       .unit = "steps/s",
					       .values = &values,
					       .ceilings = &ceilings,
					       .verified = true,
					       .note = note};
	gw_bench_report(&a->bench, &result);
	return GW_OK;
}

/* --- Checkpoints. --- */

static double update_checkpoint_bytes(const struct gw_update *a)
{
	return (double)(a->rows * (a->row_bytes + sizeof(float)));
}

static gw_status measure_checkpoint(void *context, double *figure)
{
	struct gw_update *a = context;
	const struct gw_checkpoint_options options = {.replace = true};
	char *folder = gw_format("%s/graphwire-bench-checkpoint", a->folder);
	uint64_t begun = gw_now_ns();
	gw_status status = folder ? gw_checkpoint(a->served, folder, &options) : GW_NO_MEMORY;
	*figure = a->checkpoint_bytes / (double)(gw_now_ns() - begun);
	if (status == GW_OK)
		status = gw_remove_tree(folder);
	gw_free(folder);
	return status;
}

/* Writes as many bytes as a checkpoint to one file, and syncs it. *figure: GB/s. */
static gw_status measure_write(void *context, double *figure)
{
	struct gw_update *a = context;
	double fio;
	if (gw_bench_fio_write(a->folder, (uint64_t)a->checkpoint_bytes, GW_DIGEST_CHUNK, &fio) == GW_OK)
		gw_bench_series_add(&a->fio, fio);
	else
		snprintf(a->no_fio, sizeof(a->no_fio), "%s", gw_last_error());
	char *path = gw_format("%s/graphwire-bench-write", a->folder);
	if (!path)
		return GW_NO_MEMORY;
	uint64_t begun = gw_now_ns(), left = (uint64_t)a->checkpoint_bytes;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	gw_status status = fd < 0 ? gw_fail_errno(GW_IO, errno, "%s", path) : GW_OK;
	unlink(path); /* removed at once, so that no file remains even after a crash */
	uint64_t most = a->batch * a->row_bytes < UPDATE_WRITE ? a->batch * a->row_bytes : UPDATE_WRITE;
	while (status == GW_OK && left) {
		ssize_t got = write(fd, a->landing, left < most ? left : most);
		if (got < 0)
			status = gw_fail_errno(GW_IO, errno, "%s", path);
		left -= got > 0 ? (uint64_t)got : 0;
	}
	if (status == GW_OK && fsync(fd) != 0)
		status = gw_fail_errno(GW_IO, errno, "%s", path);
	*figure = a->checkpoint_bytes / (double)(gw_now_ns() - begun);
	if (fd >= 0)
		close(fd);
	gw_free(path);
	return status;
}

/* Pushes once, so that the tensor has an optimizer state even if no other part of the benchmark has run. */
static gw_status update_train_one(struct gw_update *a)
{
	static const int64_t id = 2;
	return gw_push(a->served, a->tensor, &id, 1, a->gradients, &gw_update_optimizer);
}

/* Compares the checkpoint's rate with fio's. fio's blocks are as long as the checkpoint's, and bypass the page cache
 * too. */
static void update_compare_fio(const struct gw_update *a, double rate, char *text, size_t room)
{
	double fio = gw_bench_series_median(&a->fio);
	if (fio > 0)
		snprintf(text, room, "fio: %.4g GB/s, ratio %.3f", fio, rate / fio);
	else
		snprintf(text, room, "fio not measured: %s", a->no_fio);
}

static gw_status run_checkpoint(struct gw_update *a)
{
	static struct gw_bench_series ceilings, values;
	gw_status status = update_train_one(a);
	a->checkpoint_bytes = update_checkpoint_bytes(a);
	if (status == GW_OK)
		status = gw_bench_alternate(&a->bench, measure_write, measure_checkpoint, a, &ceilings, &values);
	if (status != GW_OK)
		return status;
	char title[96], note[400], fio[240];
	double rate = gw_bench_series_median(&values);
	update_compare_fio(a, rate, fio, sizeof(fio));
	snprintf(note, sizeof(note),
		 "rows and state, synced; the ceiling: a write and sync of as many bytes to the same folder; %s", fio);
	snprintf(title, sizeof(title), "checkpoint of %.3g GB over TCP", a->checkpoint_bytes * 1e-9);
	const struct gw_bench_result result = {.title = title,
					       .unit = "GB/s",
					       .values = &values,
					       .ceilings = &ceilings,
					       .verified = true,
					       .note = note,
					       .fields = {{"fio_gb_per_s", gw_bench_series_median(&a->fio), NULL}}};
	gw_bench_report(&a->bench, &result);
	a->checkpoint_rate = rate * 1e9;
	return GW_OK;
}

/* --- Training during a checkpoint. --- */

/* A thread that writes checkpoints one after another, at a limited rate, until `stop` is set. */
struct update_writer {
	struct gw_update *arguments;
	struct gw_client *client;
	uint64_t bytes_per_second;
	atomic_bool stop;
	gw_status status;
	char error[GW_ERROR_TEXT_MAX];
};

static void *update_write_slowly(void *context)
{
	struct update_writer *writer = context;
	const struct gw_checkpoint_options options = {.bytes_per_second = writer->bytes_per_second, .replace = true};
	char *folder = gw_format("%s/graphwire-bench-concurrent", writer->arguments->folder);
	writer->status = folder ? GW_OK : GW_NO_MEMORY;
	while (!atomic_load(&writer->stop) && !writer->status)
		writer->status = gw_checkpoint(writer->client, folder, &options);
	if (writer->status)
		snprintf(writer->error, sizeof(writer->error), "%s", gw_last_error());
	if (folder)
		gw_remove_tree(folder);
	gw_free(folder);
	return NULL;
}

/* Measures steps while a checkpoint is written at a quarter of its rate without other work. */
static gw_status measure_concurrently(void *context, double *figure)
{
	struct gw_update *a = context;
	struct update_writer writer = {
		.arguments = a, .client = a->writer, .bytes_per_second = (uint64_t)(a->checkpoint_rate / 4)};
	pthread_t thread;
	int error = pthread_create(&thread, NULL, update_write_slowly, &writer);
	if (error)
		return gw_fail_errno(GW_LIMIT, error, "cannot start the checkpoint's thread");
	gw_bench_unpin(thread);
	gw_status status = measure_step(a, figure);
	atomic_store(&writer.stop, true);
	pthread_join(thread, NULL);
	return status != GW_OK ? status : writer.status ? gw_fail_text(writer.status, writer.error) : GW_OK;
}

static gw_status update_open_writer(struct gw_update *a)
{
	struct gw_client_options options = a->clients.client;
	options.servers = a->own.list;
	options.server_count = a->own.count;
	return gw_client_open(&options, &a->writer);
}

/* Opens the writer's client, and measures a checkpoint's rate if no other part has. */
static gw_status concurrent_prepare(struct gw_update *a)
{
	double rate = 0;
	gw_status status = update_open_writer(a);
	if (status != GW_OK || a->checkpoint_rate > 0)
		return status;
	status = update_train_one(a);
	a->checkpoint_bytes = update_checkpoint_bytes(a);
	if (status == GW_OK)
		status = measure_checkpoint(a, &rate);
	a->checkpoint_rate = rate * 1e9;
	return status;
}

static gw_status run_concurrently(struct gw_update *a)
{
	static struct gw_bench_series ceilings, values;
	gw_status status = concurrent_prepare(a);
	if (status == GW_OK)
		status = gw_bench_alternate(&a->bench, measure_step, measure_concurrently, a, &ceilings, &values);
	if (status != GW_OK)
		return status;
	char note[160];
	snprintf(note, sizeof(note), "the checkpoint at %.3g GB/s, a quarter of its rate; the ceiling: no checkpoint",
		 a->checkpoint_rate / 4 * 1e-9);
	const struct gw_bench_result result = {.title = "the same steps during a checkpoint",
					       .unit = "steps/s",
					       .values = &values,
					       .ceilings = &ceilings,
					       .verified = true,
					       .note = note};
	gw_bench_report(&a->bench, &result);
	return GW_OK;
}

/* --- The benchmark. --- */

static gw_status update_make(struct gw_update *a)
{
	uint64_t widest = a->batch > a->step_rows ? a->batch : a->step_rows;
	uint32_t columns = gw_update_columns(a);
	const struct gw_row_store_options options = {
		.name = "bench-rows",
		.dtype = GW_FLOAT32,
		.rows = a->rows,
		.columns = columns,
		.seed = gw_bare_mix(1),
		.numa = GW_NUMA_LOCAL,
		.initial = {.how = GW_INITIAL_UNIFORM, .low = -1, .high = 1, .seed = 1}};
	const struct gw_arena_options pages = {.name = "bench-plain", .numa = GW_NUMA_LOCAL, .shareable = true};
	if (a->row_bytes % 16 != 0)
		return gw_fail(GW_INVALID, "--row must be a multiple of 16");
	a->landing = gw_malloc(widest * a->row_bytes);
	a->offsets = gw_malloc(a->batch * sizeof(*a->offsets));
	a->numbers = gw_malloc(a->step_rows * sizeof(*a->numbers));
	a->gradients = gw_malloc(a->step_rows * a->row_bytes);
	a->ids = gw_malloc(UPDATE_LISTS * a->step_rows * sizeof(*a->ids));
	a->bare_numbers = gw_malloc(UPDATE_LISTS * a->step_rows * sizeof(*a->bare_numbers));
	a->bare_rows = gw_calloc(a->rows, a->row_bytes + 16);
	if (!a->landing || !a->offsets || !a->numbers || !a->gradients || !a->ids || !a->bare_numbers || !a->bare_rows)
		return GW_NO_MEMORY;
	for (uint64_t i = 0; i < a->step_rows * columns; i++)
		a->gradients[i] = (float)(gw_bare_mix(i) % 2001) * 1e-3f - 1;
	memset(a->bare_rows, 0, a->rows * (a->row_bytes + 16)); /* touch the pages now, as the store's are */
	gw_status status = gw_row_store_create(&options, &a->store);
	if (status == GW_OK)
		status = gw_arena_create(a->rows * a->row_bytes, &pages, &a->bare);
	return status != GW_OK ? status : gw_row_store_read_range(a->store, 0, a->rows, gw_arena_base(a->bare));
}

static void update_free(struct gw_update *a)
{
	gw_row_push_scratch_free(&a->scratch);
	gw_row_store_destroy(a->store);
	gw_arena_destroy(a->bare);
	gw_free(a->landing);
	gw_free(a->offsets);
	gw_free(a->numbers);
	gw_free(a->gradients);
	gw_free(a->ids);
	gw_free(a->bare_numbers);
	gw_free(a->bare_rows);
}

static gw_status update_run_memory(struct gw_update *a)
{
	gw_status status = gw_update_reads(a);
	if (status == GW_OK)
		status = gw_update_hash(a);
	return status != GW_OK ? status : gw_update_push(a);
}

static gw_status update_run_parts(struct gw_update *a)
{
	static gw_status (*const parts[])(struct gw_update * a) = {update_run_memory, gw_update_paths,  run_step,
								   gw_update_mix,     gw_update_lookup, run_checkpoint,
								   run_concurrently};
	gw_status status = GW_OK;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && status == GW_OK; i++) {
		if (!a->only || strcmp(a->only, update_parts[i]) == 0)
			status = parts[i](a);
	}
	return status;
}

static gw_status update_run(struct gw_update *a)
{
	gw_status status = gw_bench_open(&a->bench);
	/* Start the servers, which are processes, before this process allocates its memory. */
	if (status == GW_OK)
		status = gw_own_clients_open(&a->own, &a->clients, &a->alone, &a->served);
	if (!a->folder && a->own.staging)
		a->folder = gw_staging_path(a->own.staging); /* removed at the end, on Ctrl-C too */
	gw_bare_pin(0);
	if (status == GW_OK)
		status = update_make(a);
	if (status == GW_OK)
		status = update_make_tensor(a);
	if (status == GW_OK)
		status = update_run_parts(a);
	char text[GW_ERROR_TEXT_MAX];
	snprintf(text, sizeof(text), "%s", gw_last_error());
	gw_client_close(a->writer);
	gw_client_close(a->served);
	gw_client_close(a->alone);
	gw_own_servers_end(&a->own);
	update_free(a);
	gw_status closed = gw_bench_close(&a->bench);
	return status != GW_OK ? gw_fail_text(status, text) : closed;
}

int gw_bench_update(int argc, char **argv)
{
	static const struct gw_options options = {
		.table = table,
		.common = gw_bench_options,
		.common_offset = offsetof(struct gw_update, bench),
		.doc = "Measures rows that change: reads, hashes, pushes, steps of training over TCP and checkpoints, "
		       "each against the same loop without protection from torn rows.\vExamples:\n"
		       "  graphwire bench update\n"
		       "  graphwire bench update --row 400 --folder /data --json -"};
	static struct gw_update a;
	a = (struct gw_update){.bench = {.name = "update"},
			       .rows = 200000,
			       .row_bytes = 1600,
			       .batch = 10000,
			       .step_rows = 3000,
			       .seconds = 0.5,
			       .clients = {.client = {.transport = "tcp", .threads = 1, .job = "bench-update"},
					   .scale = 10,
					   .features = 1,
					   .server_threads = 1,
					   .server_pin = "core"}};
	gw_options_parse(&options, argc, argv, &a);
	gw_status status = update_run(&a);
	return gw_exit_status("graphwire bench update", status);
}
