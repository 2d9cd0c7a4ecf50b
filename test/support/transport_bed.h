/* A server and a client over one backend, in one process: the server's poll groups run on threads of their own. The
 * transport suites run over every row of `gw_beds`: a new backend is a row there. */
#ifndef GW_TEST_TRANSPORT_BED_H
#define GW_TEST_TRANSPORT_BED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "core/memory/arena.h"
#include "transport/transport.h"

#define BED_THREADS_MAX 4
#define BED_OP_ECHO     1 /* replies with what it got */
#define BED_OP_COUNT    2 /* adds 1 to bed->applied and replies with the sum */
#define BED_OP_FAIL     3 /* GW_NOT_FOUND, "no such thing" */
#define BED_OP_LARGE    4 /* u32 n: n bytes, byte i is i * 7 */
#define BED_OP_SLOW     5 /* u32 ms: sleeps, then replies nothing */
#define BED_OP_DEFER    6 /* has more to do until bed->release; then replies with what it got */
#define BED_OP_RESERVE  7 /* u32 n: as LARGE, of a reply that was reserved */
#define BED_OP_WRITE    8 /* u32 i, payload: writes row i of the versioned region */

#define BED_ROWS 3 /* the versioned region, where a test wants one */
#define BED_SEED 0x5eed

struct bed_kind {
	const char *name;   /* "tcp/epoll" */
	const char *driver; /* tcp's, or NULL */
	const char *scheme;
	bool network;     /* bytes go through a socket: peers may be slow, silent or unauthenticated */
	bool one_sided;   /* reads need no server code: one that is paused still answers, and counts nothing */
	uint64_t spin_ns; /* of both sides' poll groups */
};
extern const struct bed_kind gw_beds[];
extern const size_t gw_bed_count;
/* Whether reads are over when their call returns: nothing is ever in flight. */
bool gw_bed_is_mapped(const struct bed_kind *kind);
/* An address to listen at that no other process uses. */
void gw_bed_name(const struct bed_kind *kind, struct gw_address *address);
/* Whether this machine can run it; prints why not. GRAPHWIRE_TEST_BED names one that alone is wanted. */
bool gw_bed_possible(const struct bed_kind *kind);

#define BED_END_BYTES (64u << 10) /* of a sparse region 0, at each end */

struct bed_options {
	uint32_t threads;     /* serving; 0: 1 */
	uint64_t bytes;       /* of region 0; 0: 1 MiB */
	bool sparse;          /* not shm: only its ends are pseudo-random, and it may be longer than memory */
	uint64_t graph_id;    /* 0: 77 */
	uint64_t incarnation; /* 0: 5 */
	uint16_t port;        /* 0: any */
	const char *key;
	enum gw_huge_policy huge; /* shm: of the memory */
	uint32_t row_bytes;       /* payload of the rows of region BED_ROWS; 0: there is none */
	uint32_t row_count;
	struct gw_service_limits limits;
};

struct bed {
	const struct bed_kind *kind;
	uint8_t *memory; /* region 0: pseudo-random; region 1: empty; region 2: its last 1000 bytes */
	bool sparse;
	struct gw_arena *arena; /* the memory's, or NULL */
	uint8_t *rows;          /* region BED_ROWS: zeros at first */
	struct gw_arena *row_arena;
	struct gw_region_rows row_format;
	uint32_t row_count;
	uint64_t bytes;
	struct gw_service *service;
	uint32_t thread_count;
	struct gw_poll_group *server_groups[BED_THREADS_MAX];
	pthread_t threads[BED_THREADS_MAX];
	_Atomic bool stop, pause, paused[BED_THREADS_MAX];
	_Atomic uint32_t applied;
	_Atomic bool release;
	_Atomic uint32_t runs, works_ended; /* of BED_OP_DEFER: its handler's, and calls of it that are over */
	struct gw_listener *listener;
	struct gw_address address;
};

/* A child that does not outlive us, whatever happens; as fork(2), but for failures. */
pid_t gw_bed_fork(void);

/* Each prints and exits on failure, but for the ones that return a status. */
void gw_bed_begin(struct bed *bed, const struct bed_kind *kind, const struct bed_options *options);
void gw_bed_end(struct bed *bed);
/* A row of region BED_ROWS; and a write to it, by any thread. */
uint8_t *gw_bed_row(struct bed *bed, uint32_t i);
void gw_bed_row_write(struct bed *bed, uint32_t i, const void *payload);
/* Server threads stop polling, and go on. */
void gw_bed_pause(struct bed *bed);
void gw_bed_resume(struct bed *bed);
/* gw_fault_begin and gw_fault_end while no server thread is at work; end: whether an allocation was made to fail. */
void gw_bed_fault_begin(struct bed *bed, unsigned long n);
bool gw_bed_fault_end(struct bed *bed);

struct gw_poll_group *gw_bed_group(const struct bed_kind *kind);
/* Options for a connect to this bed: no key, any graph, 10 s. */
struct gw_connect_options gw_bed_options(const struct bed *bed);
/* Connects and waits for the outcome. */
gw_status gw_bed_connect(struct gw_poll_group *group, const struct gw_connect_options *options,
			 struct gw_endpoint **out);
/* Polls until the completion with the cookie comes (10 s at most); others must not come. */
struct gw_completion gw_bed_wait(struct gw_poll_group *group, const void *cookie);
/* Posts all of a read, polling while there is no room; completions of other sets are kept in *seen if not NULL. */
void gw_bed_gather(struct gw_endpoint *endpoint, struct gw_read_set *set, const struct gw_region *region,
		   struct gw_buffer *buffer, const struct gw_gather *gather, size_t n);
void gw_bed_readv(struct gw_endpoint *endpoint, struct gw_read_set *set, const struct gw_region *region,
		  struct gw_buffer *buffer, const struct gw_span *spans, size_t n);

/* A bed with one client and a buffer. What follows fails the test in progress if it is not as it says. */
struct one {
	struct bed bed;
	struct gw_poll_group *group;
	struct gw_endpoint *endpoint;
	struct gw_buffer *buffer;
	uint8_t *landing, *expected; /* the buffer's memory, and as much to compare with; both zeroed */
	uint64_t landing_bytes;
	struct gw_region region; /* the first */
};

/* *state: the backend, as gw_bed_run hands it to a test. */
void gw_one_begin(struct one *one, void **state, const struct bed_options *options, uint64_t landing_bytes);
void gw_one_end(struct one *one);
void gw_one_wait_ok(struct one *one, struct gw_read_set *set);
void gw_one_expect_failure(struct one *one, struct gw_read_set *set, gw_status status);
/* Polls for so long: nothing completes. */
void gw_one_nothing_more(struct one *one, uint64_t ms);
/* A request and its completion; the reply is valid until the next poll. */
struct gw_completion gw_one_call(struct one *one, uint16_t op, uint64_t sequence, const void *bytes, uint32_t n);
/* The connection still serves a small read. */
void gw_one_read_works(struct one *one);

/* The next number of a sequence, in [0, bound). */
uint64_t gw_below(uint64_t *seed, uint64_t bound);

/* Every test on every backend that this machine can run: what main returns. */
struct bed_test {
	const char *name;
	void (*run)(void **state);
};
#define BED_TEST(function) .name = #function, .run = function
int gw_bed_run(const char *name, const struct bed_test *tests, size_t n);
/* The same over those only whose bytes go through a socket. */
int gw_bed_run_network(const char *name, const struct bed_test *tests, size_t n);
/* And over TCP alone, or shm alone. */
int gw_bed_run_tcp(const char *name, const struct bed_test *tests, size_t n);
int gw_bed_run_shm(const char *name, const struct bed_test *tests, size_t n);

#endif
