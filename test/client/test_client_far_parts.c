/* Parts whose offsets are beyond 2^32, served by `graphwire serve` in processes of their own, over TCP and mapped. The
 * graph is the fixture's, but for 2^32 + 12345 more edges of one type in the first part: its lists begin behind them,
 * and the ids of all its edges are larger by as many. Mini-batches, rows of edges and answers about edges are those of
 * the fixture's graph, with these ids.
 *
 * Such a part takes 16 GiB and more for the neighbours of one type, and serve faults its memory in, reads every byte
 * for the digests, and walks the lists. So the arrays are sparse files, and a server of this program leaves its memory
 * sparse too: it faults nothing in, skips holes, and does not check the part (the linker's --wrap). The rest is the
 * server's.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <graphwire/edges.h>

#include "core/files/load.h"
#include "core/graph/npy.h"
#include "core/graph/part.h"
#include "core/memory/alloc.h"
#include "core/memory/arena_pages.h"
#include "core/memory/memory.h"
#include "server/server.h"
#include "test/support/client_setup.h"
#include "test/support/must.h"

#define PARTS 2
#define BASE  ((1ull << 32) + 12345)
#define TYPE  FIXTURE_CITES
#define SEEDS 60
#define HOPS  2

/* --- A server that leaves memory sparse. --- */

gw_status __wrap_gw_pages_populate(struct gw_pages *pages, unsigned threads);
gw_status __wrap_gw_memory_check(uint64_t bytes, int node, const char *what);
gw_status __wrap_gw_memory_suffices(const struct gw_memory *memory, uint64_t bytes, const char *what,
				    const char *remedy);
gw_status __wrap_gw_load(struct gw_arena *arena, const struct gw_load_item *items, size_t count,
			 const struct gw_load_options *options, struct gw_load_stats *stats);
gw_status __real_gw_part_open(const struct gw_graph_meta *meta, uint32_t number, const struct gw_part_options *options,
			      struct gw_part **out);
gw_status __wrap_gw_part_open(const struct gw_graph_meta *meta, uint32_t number, const struct gw_part_options *options,
			      struct gw_part **out);

gw_status __wrap_gw_pages_populate(struct gw_pages *pages, unsigned threads)
{
	(void)pages, (void)threads;
	return GW_OK;
}

gw_status __wrap_gw_memory_check(uint64_t bytes, int node, const char *what)
{
	(void)bytes, (void)node, (void)what;
	return GW_OK;
}

gw_status __wrap_gw_memory_suffices(const struct gw_memory *memory, uint64_t bytes, const char *what,
				    const char *remedy)
{
	(void)memory, (void)bytes, (void)what, (void)remedy;
	return GW_OK;
}

/* What lies between the holes of bytes [from, end) of a file. */
static gw_status load_data(int fd, uint64_t from, uint64_t end, uint8_t *to)
{
	for (off_t at = (off_t)from, hole; at < (off_t)end; at = hole) {
		off_t data = lseek(fd, at, SEEK_DATA);
		if (data < 0 || data >= (off_t)end)
			break; /* nothing but holes */
		hole = lseek(fd, data, SEEK_HOLE);
		hole = hole < (off_t)end ? hole : (off_t)end;
		size_t bytes = (size_t)(hole - data);
		if (pread(fd, to + ((uint64_t)data - from), bytes, data) != (ssize_t)bytes)
			return gw_fail_errno(GW_IO, errno, "a sparse file");
	}
	return GW_OK;
}

gw_status __wrap_gw_load(struct gw_arena *arena, const struct gw_load_item *items, size_t count,
			 const struct gw_load_options *options, struct gw_load_stats *stats)
{
	gw_status status = GW_OK;
	(void)options;
	if (stats)
		*stats = (struct gw_load_stats){.ns = 1, .driver = "sparse"};
	for (size_t i = 0; i < count && status == GW_OK; i++) {
		int fd = open(items[i].path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return gw_fail_errno(GW_IO, errno, "%s", items[i].path);
		status = load_data(fd, items[i].file_offset, items[i].file_offset + items[i].bytes,
				   gw_arena_base(arena) + items[i].arena_offset);
		close(fd);
	}
	return status;
}

gw_status __wrap_gw_part_open(const struct gw_graph_meta *meta, uint32_t number, const struct gw_part_options *options,
			      struct gw_part **out)
{
	struct gw_part_options sparse = *options;
	sparse.skip_verify = sparse.skip_checks = true;
	return __real_gw_part_open(meta, number, &sparse, out);
}

struct serving {
	pid_t pids[PARTS];
	char addresses[PARTS][64];
	const char *list[PARTS];
};

static void serve(const char *folder, uint32_t part, int out)
{
	char number[8], *words[] = {"serve",
				    "--part-config",
				    (char *)(uintptr_t)folder,
				    "--part",
				    number,
				    "--listen",
				    "127.0.0.1:0",
				    "--huge",
				    "off",
				    "--threads",
				    "1",
				    NULL};
	snprintf(number, sizeof(number), "%u", part);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(out, STDOUT_FILENO);
	_exit(gw_serve_main((int)(sizeof(words) / sizeof(words[0])) - 1, words));
}

/* The address in the line of a server that is ready. */
static void await_ready(int in, char address[64])
{
	char line[1024] = "", *at;
	size_t used = 0;
	while (!strchr(line, '\n')) {
		ssize_t n = read(in, line + used, sizeof(line) - 1 - used);
		if (n <= 0)
			fail_msg("a server ended before it was ready");
		used += (size_t)n;
		line[used] = '\0';
	}
	at = strstr(line, " at ");
	assert_non_null(at);
	assert_int_equal(sscanf(at, " at %63[^ ]", address), 1);
	address[strlen(address) - 1] = '\0'; /* a colon */
}

static void serving_begin(struct serving *serving, const char *folder)
{
	fflush(stdout);
	for (uint32_t p = 0; p < PARTS; p++) {
		int line[2];
		assert_int_equal(pipe(line), 0);
		serving->pids[p] = fork();
		if (serving->pids[p] == 0)
			serve(folder, p, line[1]);
		assert_true(serving->pids[p] > 0);
		close(line[1]);
		await_ready(line[0], serving->addresses[p]);
		close(line[0]);
		serving->list[p] = serving->addresses[p];
	}
}

static void serving_end(struct serving *serving)
{
	for (uint32_t p = 0; p < PARTS && serving->pids[p] > 0; p++) {
		int how;
		kill(serving->pids[p], SIGTERM);
		assert_int_equal(waitpid(serving->pids[p], &how, 0), serving->pids[p]);
		assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
	}
}

/* --- The far graph. --- */

static struct far_bed {
	struct gw_fixture fixture;
	char folder[128];
	struct serving near, far;
	int64_t seeds[SEEDS];
} bed;

static void make_folders(const char *path)
{
	char part[512];
	snprintf(part, sizeof(part), "%s", path);
	for (char *slash = part + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		assert_true(mkdir(part, 0700) == 0 || errno == EEXIST);
		*slash = '/';
	}
}

static uint8_t *read_array(const char *folder, const struct gw_array_meta *array, struct gw_npy *npy)
{
	char path[512];
	struct stat st = {0};
	snprintf(path, sizeof(path), "%s/%s", folder, array->file);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	uint8_t *bytes = malloc((size_t)st.st_size + 1);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
	close(fd);
	must(gw_npy_parse(bytes, (size_t)st.st_size, npy));
	memmove(bytes, bytes + npy->data_offset, npy->data_bytes);
	return bytes;
}

/* The array's bytes, behind so many bytes of holes. */
static void write_array(const struct gw_array_meta *array, uint64_t before, const void *data, uint64_t bytes)
{
	char path[512];
	uint8_t header[GW_NPY_HEADER_BYTES];
	must(gw_npy_format(array->dtype, array->ndim, array->shape, header));
	snprintf(path, sizeof(path), "%s/%s", bed.folder, array->file);
	make_folders(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, header, sizeof(header), 0), sizeof(header));
	assert_int_equal(ftruncate(fd, (off_t)(sizeof(header) + before + bytes)), 0);
	assert_int_equal(pwrite(fd, data, bytes, (off_t)(sizeof(header) + before)), bytes);
	close(fd);
}

/* The offsets of papers' lists, of 8 bytes; those of one type begin at BASE. */
static void write_offsets(const struct gw_graph_meta *meta, struct gw_array_meta *array, const void *data,
			  uint64_t bytes)
{
	uint64_t width = gw_dtype_bytes(array->dtype), n = bytes / width, columns = array->shape[1];
	uint64_t *offsets = calloc(n, sizeof(*offsets));
	assert_non_null(offsets);
	for (uint64_t i = 0; i < n; i++) {
		memcpy(&offsets[i], (const uint8_t *)data + i * width, width);
		offsets[i] += i % columns == meta->etypes[TYPE].column ? BASE : 0;
	}
	array->dtype = GW_UINT64;
	write_array(array, 0, offsets, n * sizeof(*offsets));
	free(offsets);
}

static void write_far(void)
{
	struct gw_graph_meta *near, *far;
	char *text, path[512];
	must(gw_meta_read(bed.fixture.folder, &near));
	must(gw_meta_copy(near, &far));
	far->minor = near->minor;
	far->etypes[TYPE].count += BASE;
	for (uint32_t p = 1; p <= PARTS; p++)
		far->etypes[TYPE].starts[p] += BASE;
	for (uint32_t p = 0; p < PARTS; p++) {
		for (uint32_t i = 0; i < near->parts[p].count; i++) {
			struct gw_array_meta array = near->parts[p].arrays[i];
			struct gw_array_key key;
			struct gw_npy npy;
			uint8_t *data = read_array(near->folder, &array, &npy);
			must(gw_array_key_parse(near, array.key, &key));
			bool lists = key.edge && key.type == TYPE;
			if (p == 0 && lists) {
				array.shape[0] += BASE;
				write_array(&array, BASE * (npy.data_bytes / npy.shape[0]), data, npy.data_bytes);
			} else if (p == 0 && strcmp(array.key, "node/paper/indptr") == 0) {
				write_offsets(near, &array, data, npy.data_bytes);
			} else {
				write_array(&array, 0, data, npy.data_bytes);
			}
			must(gw_meta_add_array(far, p, &array));
			free(data);
		}
	}
	must(gw_meta_digest(far, &far->graph_id));
	must(gw_meta_print(far, &text));
	snprintf(path, sizeof(path), "%s/far.json", bed.folder);
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
	gw_free(text);
	gw_meta_destroy(near);
	gw_meta_destroy(far);
}

static int far_set_up(void **state)
{
	(void)state;
	cluster_use_own_runtime_folder();
	gw_fixture_begin(&bed.fixture, 93, SETUP_SCALE, PARTS);
	gw_fixture_write(&bed.fixture);
	snprintf(bed.folder, sizeof(bed.folder), "%s/far", bed.fixture.root);
	write_far();
	serving_begin(&bed.near, bed.fixture.folder);
	serving_begin(&bed.far, bed.folder);
	for (uint64_t i = 0; i < SEEDS; i++)
		bed.seeds[i] = (int64_t)(i * 9);
	return 0;
}

static int far_tear_down(void **state)
{
	(void)state;
	serving_end(&bed.near);
	serving_end(&bed.far);
	gw_fixture_end(&bed.fixture);
	return 0;
}

/* --- Both graphs have the same answers. --- */

struct two {
	struct gw_client *near, *far;
};

static struct gw_client *client_of(const struct serving *serving, const char *transport, const char *neighbours)
{
	const struct gw_client_options options = {.servers = (const char *const *)serving->list,
						  .server_count = PARTS,
						  .threads = 1,
						  .transport = transport,
						  .neighbours = neighbours};
	struct gw_client *client = open_client(&options);
	expect_transport(client, transport);
	return client;
}

static uint64_t expect_same_edges(const struct gw_block_edges *near, const struct gw_block_edges *far)
{
	assert_int_equal(far->edge_count, near->edge_count);
	assert_int_equal(far->dst_count, near->dst_count);
	assert_memory_equal(far->indptr, near->indptr, (near->dst_count + 1) * sizeof(*near->indptr));
	assert_memory_equal(far->indices, near->indices, near->edge_count * sizeof(int32_t));
	for (uint64_t e = 0; e < near->edge_count; e++)
		assert_int_equal(far->edge_ids[e], near->edge_ids[e] + (near->etype == TYPE ? (int64_t)BASE : 0));
	return near->edge_count;
}

/* Mini-batches with the rows of papers and edges. */
static void expect_same_batch(const struct two *two, const struct gw_sample_spec *how)
{
	struct gw_minibatch *batches[2];
	uint64_t row_bytes[2] = {0};
	for (int i = 0; i < 2; i++) {
		struct gw_client *client = i ? two->far : two->near;
		struct gw_sample_spec spec = *how;
		const struct gw_tensor *weight;
		must(gw_edge_tensor(client, TYPE, "weight", &weight));
		struct gw_fetch fetches[] = {{.tensor = node_tensor(client, "paper", "feat"), .at = GW_AT_INPUTS},
					     {.tensor = weight, .at = GW_AT_EDGES}};
		spec.ntype = fetches[0].tensor->type;
		spec.fetches = fetches;
		spec.fetch_count = 2;
		row_bytes[0] = fetches[0].tensor->row_bytes;
		row_bytes[1] = weight->row_bytes;
		must(gw_sample(client, &spec, 5, 6, bed.seeds, SEEDS, &batches[i]));
	}
	const struct gw_minibatch *near = batches[0], *far = batches[1];
	uint64_t edges = 0;
	for (uint32_t t = 0; t < GW_FIXTURE_NTYPES; t++) {
		assert_int_equal(far->node_counts[t], near->node_counts[t]);
		assert_memory_equal(far->nodes[t], near->nodes[t], near->node_counts[t] * sizeof(int64_t));
	}
	for (uint32_t hop = 0; hop < HOPS; hop++) {
		assert_int_equal(far->blocks[hop]->edges_count, near->blocks[hop]->edges_count);
		for (uint32_t i = 0; i < near->blocks[hop]->edges_count; i++)
			edges += expect_same_edges(&near->blocks[hop]->edges[i], &far->blocks[hop]->edges[i]);
	}
	assert_true(edges > SEEDS);
	for (uint32_t f = 0; f < 2; f++) {
		assert_int_equal(far->row_counts[f], near->row_counts[f]);
		assert_true(near->row_counts[f] > 0);
		assert_memory_equal(far->rows[f], near->rows[f], near->row_counts[f] * row_bytes[f]);
	}
	gw_minibatch_release(batches[0]);
	gw_minibatch_release(batches[1]);
}

/* Rows and ends of all edges of the type, and the edges between these ends. */
static void expect_same_edges_on_request(const struct two *two)
{
	uint64_t n = bed.fixture.edges[TYPE].count;
	int64_t *ids = calloc(4 * n, sizeof(*ids)), *years = calloc(n, sizeof(*years));
	const struct gw_tensor *year;
	struct gw_edge_list *found;
	assert_true(ids && years);
	int64_t *far_ids = ids + n, *src = ids + 2 * n, *dst = ids + 3 * n;
	for (uint64_t e = 0; e < n; e++) {
		ids[e] = (int64_t)e;
		far_ids[e] = (int64_t)(e + BASE);
	}
	must(gw_edge_tensor(two->far, TYPE, "year", &year));
	must(gw_gather(two->far, year, far_ids, n, years));
	must(gw_find_edges(two->far, TYPE, far_ids, n, src, dst));
	for (uint64_t e = 0; e < n; e++) {
		assert_int_equal(years[e], bed.fixture.edges[TYPE].time[e]);
		assert_int_equal(src[e], bed.fixture.edges[TYPE].src[e]);
		assert_int_equal(dst[e], bed.fixture.edges[TYPE].dst[e]);
	}
	must(gw_edge_ids(two->far, TYPE, src, dst, n, &found));
	for (uint64_t e = 0; e < n; e++) {
		bool is_among = false;
		for (uint64_t at = found->offsets[e]; at < found->offsets[e + 1]; at++)
			is_among |= found->edge_ids[at] == far_ids[e];
		assert_true(is_among);
	}
	gw_edge_list_free(found);
	/* The edges that lie before: no list has them. */
	assert_int_not_equal(gw_find_edges(two->far, TYPE, &(int64_t){(int64_t)(BASE + n)}, 1, src, dst), GW_OK);
	free(ids);
	free(years);
}

static void check(const char *transport, const char *neighbours)
{
	static const int32_t some[HOPS * GW_FIXTURE_ETYPES] = {4, 3, 5, 2, 2, 2, 4, 3};
	static const int32_t all[HOPS * GW_FIXTURE_ETYPES] = {[TYPE] = GW_ALL_NEIGHBOURS,
							      [GW_FIXTURE_ETYPES + TYPE] = 3};
	static const struct gw_edge_rule rules[GW_FIXTURE_ETYPES] = {[TYPE] = {.weight = "weight"}};
	struct two two = {client_of(&bed.near, transport, neighbours), client_of(&bed.far, transport, neighbours)};
	for (int replace = 0; replace < 2; replace++) {
		struct gw_sample_spec spec = {.hops = HOPS, .fanouts = some, .replace = replace};
		expect_same_batch(&two, &spec);
		spec.rules = rules;
		expect_same_batch(&two, &spec);
	}
	expect_same_batch(&two, &(struct gw_sample_spec){.hops = HOPS, .fanouts = all});
	expect_same_edges_on_request(&two);
	gw_client_close(two.near);
	gw_client_close(two.far);
}

static void over_tcp_by_requests(void **state)
{
	(void)state;
	check("tcp", "requests");
}

static void over_tcp_by_reads(void **state)
{
	(void)state;
	check("tcp", "reads");
}

static void mapped(void **state)
{
	(void)state;
	check("shm", "auto");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_tcp_by_requests),
		cmocka_unit_test(over_tcp_by_reads),
		cmocka_unit_test(mapped),
	};
	return cmocka_run_group_tests_name("parts beyond 2^32", tests, far_set_up, far_tear_down);
}
