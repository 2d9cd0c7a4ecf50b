/* The rings of the threads, and the thread that empties them: see trace.h.
 *
 *   gw_trace_open -> the file -> the writer -> gw_trace_on
 *   the first event of a thread -> a ring: a new one, or that of a thread that has ended
 *   exit -> gw_trace_on = false -> the writer empties all rings and ends the file
 *
 * A ring has one producer, its thread, and one consumer, the writer, so it needs no lock. Rings stay mapped until the
 * process ends, because a thread may be adding an event while the trace ends. The last events of a ring are kept for
 * those that end something: what has begun in the file also ends there.
 *
 * Fork: the child begins without a trace, and opens a file of its own when it opens a client. Its copy of the rings is
 * not mapped (MADV_DONTFORK).
 *
 * Errors: a file that cannot be opened or written, or a thread that cannot be started, ends the trace with one line of
 * the log. */
#include "core/system/trace.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/errors/log.h"
#include "core/system/clock.h"
#include "core/system/fork.h"
#include "core/system/futex.h"
#include "core/system/thread.h"
#include "core/system/trace_event.h"
#include "core/system/trace_file.h"

#define RING_EVENTS  2048u /* of 128 bytes: pages are used as events come */
#define RING_RESERVE 256u  /* of these, for events that end something */
#define RINGS_MAX    256u
#define WRITE_NS     (100 * GW_NS_PER_MS)
#define PATIENCE_NS  GW_NS_PER_SECOND /* of a flush, and of the exit */

struct trace_ring {
	struct trace_ring *next;
	atomic_bool used; /* by a thread */
	_Atomic uint32_t tid;
	_Atomic uint32_t put, taken; /* events, by the thread and by the writer */
	_Atomic uint64_t lost;
	uint64_t told; /* of the lost ones, by the writer */
	struct gw_trace_event events[RING_EVENTS];
};

enum trace_state { TRACE_UNREAD, TRACE_OFF, TRACE_WRITES, TRACE_ENDED };

atomic_bool gw_trace_on;
static _Thread_local struct trace_ring *ring_here;

static struct {
	pthread_mutex_t lock; /* of opening, ending and the list of rings */
	_Atomic enum trace_state state;
	_Atomic(struct trace_ring *) rings;
	uint32_t ring_count;
	_Atomic uint64_t ids;
	_Atomic uint64_t lost;               /* events of threads that got no ring */
	_Atomic uint32_t wakes, asked, done; /* futexes: of the writer; flushes */
	atomic_bool ends;
	pthread_t writer;
	pthread_key_t thread_ends;
	bool has_key;
	uint32_t pid;
	uint64_t lost_in_all;
	struct gw_trace_file file;
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER, .file = {.fd = -1}};

/* The child has no writer, and another process id. */
static void trace_forget(void)
{
	atomic_store(&gw_trace_on, false);
	atomic_store(&trace.state, TRACE_UNREAD);
	atomic_store(&trace.rings, NULL);
	atomic_store(&trace.lost, 0);
	atomic_store(&trace.asked, 0);
	atomic_store(&trace.done, 0);
	trace.ring_count = 0;
	trace.lost_in_all = 0;
	ring_here = NULL;
	gw_trace_file_close(&trace.file);
}

static struct gw_fork_guard guard = {.lock = &trace.lock, .in_child = trace_forget, .order = 10};

/* ---- threads that add events ---- */

uint64_t gw_trace_clock(void)
{
	return gw_monotonic_ns();
}

uint64_t gw_trace_id(void)
{
	return atomic_fetch_add_explicit(&trace.ids, 1, memory_order_relaxed) + 1;
}

static void trace_thread_ended(void *ignored)
{
	(void)ignored;
	if (ring_here)
		atomic_store(&ring_here->used, false);
	ring_here = NULL;
}

static bool ring_is_free(const struct trace_ring *ring)
{
	return !atomic_load(&ring->used) && atomic_load(&ring->taken) == atomic_load(&ring->put);
}

static struct trace_ring *trace_find_ring(void)
{
	struct trace_ring *ring = atomic_load(&trace.rings);
	while (ring && !ring_is_free(ring))
		ring = ring->next;
	if (ring || trace.ring_count == RINGS_MAX)
		return ring;
	ring = mmap(NULL, sizeof(*ring), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ring == MAP_FAILED)
		return NULL;
	madvise(ring, sizeof(*ring), MADV_DONTFORK);
	trace.ring_count++;
	ring->next = atomic_load(&trace.rings);
	atomic_store(&trace.rings, ring);
	return ring;
}

/* A trace that has ended gives no rings. */
static bool trace_take_ring(void)
{
	pthread_mutex_lock(&trace.lock);
	if (atomic_load(&trace.state) == TRACE_WRITES)
		ring_here = trace_find_ring();
	if (ring_here) {
		atomic_store(&ring_here->tid, (uint32_t)syscall(SYS_gettid));
		atomic_store(&ring_here->used, true);
		pthread_setspecific(trace.thread_ends, &trace); /* any value: it calls trace_thread_ended */
	}
	pthread_mutex_unlock(&trace.lock);
	return ring_here != NULL;
}

static bool ring_put(struct trace_ring *ring, const struct gw_trace_event *event)
{
	uint32_t put = atomic_load_explicit(&ring->put, memory_order_relaxed);
	uint32_t used = put - atomic_load_explicit(&ring->taken, memory_order_acquire);
	if (used >= (event->kind == GW_TRACE_END ? RING_EVENTS : RING_EVENTS - RING_RESERVE)) {
		atomic_fetch_add_explicit(&ring->lost, 1, memory_order_relaxed);
		return false;
	}
	ring->events[put % RING_EVENTS] = *event;
	atomic_store_explicit(&ring->put, put + 1, memory_order_release);
	if (used == RING_EVENTS / 2) {
		atomic_fetch_add(&trace.wakes, 1);
		gw_futex_wake(&trace.wakes, 1);
	}
	return true;
}

static struct gw_trace_event trace_named(enum gw_trace_kind kind, const char *name)
{
	struct gw_trace_event event = {.kind = kind};
	size_t bytes = strnlen(name, GW_TRACE_NAME_MAX);
	memcpy(event.name, name, bytes);
	event.name[bytes] = 0;
	return event;
}

bool gw_trace_put(const struct gw_trace_event *event)
{
	if (!ring_here) {
		char name[17] = "";
		if (!trace_take_ring()) {
			atomic_fetch_add(&trace.lost, 1);
			return false;
		}
		prctl(PR_GET_NAME, name);
		const struct gw_trace_event thread = trace_named(GW_TRACE_THREAD, name);
		ring_put(ring_here, &thread);
	}
	return ring_put(ring_here, event);
}

void gw_trace_name_thread(const char *name, uint32_t number)
{
	char whole[GW_TRACE_NAME_MAX];
	snprintf(whole, sizeof(whole), "%s %u", name, number);
	const struct gw_trace_event thread = trace_named(GW_TRACE_THREAD, whole);
	gw_trace_put(&thread);
}

void gw_trace_span_put(const struct gw_trace_form *form, uint64_t began_ns, uint64_t first, uint64_t second)
{
	const struct gw_trace_event event = {.kind = GW_TRACE_SPAN,
					     .form = form,
					     .at_ns = began_ns,
					     .for_ns = gw_trace_clock() - began_ns,
					     .numbers = {first, second}};
	gw_trace_put(&event);
}

/* ---- the writer ---- */

static gw_status trace_write_event(const struct gw_trace_event *event, uint32_t tid)
{
	char text[GW_TRACE_TEXT_BYTES];
	gw_status status =
		gw_trace_file_add(&trace.file, text, gw_trace_event_text(text, event, trace.pid, tid, false));
	if (status == GW_OK && event->kind == GW_TRACE_PHASE)
		status = gw_trace_file_add(&trace.file, text, gw_trace_event_text(text, event, trace.pid, tid, true));
	return status;
}

static gw_status trace_write_lost(uint32_t tid, uint64_t lost)
{
	char text[GW_TRACE_TEXT_BYTES];
	trace.lost_in_all += lost;
	return gw_trace_file_add(&trace.file, text, gw_trace_event_lost(text, trace.pid, tid, gw_trace_clock(), lost));
}

static gw_status trace_write_ring(struct trace_ring *ring)
{
	gw_status status = GW_OK;
	uint32_t put = atomic_load_explicit(&ring->put, memory_order_acquire);
	for (uint32_t at = atomic_load_explicit(&ring->taken, memory_order_relaxed); at != put && status == GW_OK;) {
		status = trace_write_event(&ring->events[at++ % RING_EVENTS], ring->tid);
		atomic_store_explicit(&ring->taken, at, memory_order_release);
	}
	uint64_t lost = atomic_load_explicit(&ring->lost, memory_order_relaxed);
	if (status == GW_OK && lost != ring->told)
		status = trace_write_lost(ring->tid, lost - ring->told);
	ring->told = lost;
	return status;
}

static gw_status trace_write_all(void)
{
	gw_status status = GW_OK;
	for (struct trace_ring *ring = atomic_load(&trace.rings); ring && status == GW_OK; ring = ring->next)
		status = trace_write_ring(ring);
	uint64_t lost = atomic_exchange(&trace.lost, 0);
	if (status == GW_OK && lost)
		status = trace_write_lost(0, lost);
	return status == GW_OK ? gw_trace_file_flush(&trace.file) : status;
}

static void trace_answer_flushes(uint32_t asked)
{
	atomic_store(&trace.done, asked);
	gw_futex_wake(&trace.done, INT32_MAX);
}

static gw_status trace_write_head(void)
{
	char text[GW_TRACE_TEXT_BYTES];
	gw_status status = gw_trace_file_add(&trace.file, text, gw_trace_event_process(text, trace.pid));
	if (status == GW_OK)
		status = gw_trace_file_add(&trace.file, text, gw_trace_event_clock(text, trace.pid));
	return status;
}

static void *trace_run(void *ignored)
{
	gw_status status = trace_write_head();
	for (bool ends = false; status == GW_OK && !ends;) {
		uint32_t wakes = atomic_load(&trace.wakes), asked = atomic_load(&trace.asked);
		ends = atomic_load(&trace.ends);
		status = trace_write_all();
		trace_answer_flushes(asked);
		if (!ends && status == GW_OK)
			gw_futex_wait(&trace.wakes, wakes, gw_now_ns() + WRITE_NS);
	}
	if (status == GW_OK)
		status = gw_trace_file_end(&trace.file);
	atomic_store(&gw_trace_on, false);
	if (status != GW_OK) {
		gw_log(GW_LOG_WARN, "the trace ends: %s", gw_last_error());
		gw_trace_file_close(&trace.file);
	} else if (trace.lost_in_all) {
		gw_log(GW_LOG_WARN, "%llu events of the trace %s are lost: they came faster than they were written",
		       (unsigned long long)trace.lost_in_all, trace.file.path);
	}
	trace_answer_flushes(atomic_load(&trace.asked));
	return ignored;
}

/* ---- the process ---- */

static void trace_wake_writer(void)
{
	atomic_fetch_add(&trace.wakes, 1);
	gw_futex_wake(&trace.wakes, 1);
}

static gw_status trace_begin(const char *pattern)
{
	trace.pid = (uint32_t)getpid();
	atomic_store(&trace.ends, false);
	if (!trace.has_key && pthread_key_create(&trace.thread_ends, trace_thread_ended) != 0)
		return gw_fail(GW_LIMIT, "this process has no key for data of threads left");
	trace.has_key = true;
	gw_status status = gw_trace_file_open(&trace.file, pattern);
	if (status != GW_OK)
		return status;
	int error = gw_thread_start(&trace.writer, trace_run, NULL);
	if (!error)
		return GW_OK;
	gw_trace_file_close(&trace.file);
	return gw_thread_failed(error, "cannot start the thread that writes the trace");
}

void gw_trace_open(void)
{
	const char *pattern = secure_getenv("GRAPHWIRE_TRACE");
	gw_status status = GW_OK;
	gw_fork_guard(&guard);
	pthread_mutex_lock(&trace.lock);
	enum trace_state state = atomic_load(&trace.state);
	bool begins = state == TRACE_UNREAD || state == TRACE_OFF;
	if (begins && pattern && *pattern) {
		status = trace_begin(pattern);
		atomic_store(&trace.state, status == GW_OK ? TRACE_WRITES : TRACE_ENDED);
		atomic_store(&gw_trace_on, status == GW_OK);
	} else if (begins) {
		atomic_store(&trace.state, TRACE_OFF);
	}
	pthread_mutex_unlock(&trace.lock);
	if (status != GW_OK)
		gw_log(GW_LOG_WARN, "GRAPHWIRE_TRACE: no trace is written: %s", gw_last_error());
}

__attribute__((destructor)) static void trace_at_exit(void)
{
	atomic_store(&gw_trace_on, false);
	if (atomic_exchange(&trace.state, TRACE_ENDED) != TRACE_WRITES)
		return;
	struct timespec until = gw_timespec(gw_clock_of(CLOCK_REALTIME) + PATIENCE_NS);
	atomic_store(&trace.ends, true);
	trace_wake_writer();
	pthread_timedjoin_np(trace.writer, NULL, &until);
	pthread_key_delete(trace.thread_ends); /* the library may be unloaded before its callers' threads end */
}

/* ---- what a program calls ---- */

uint64_t gw_trace_begin(void)
{
	if (atomic_load_explicit(&trace.state, memory_order_relaxed) == TRACE_UNREAD)
		gw_trace_open();
	return gw_trace_span_begin();
}

void gw_trace_end(uint64_t began, const char *name)
{
	if (!began || !gw_trace_is_on())
		return;
	struct gw_trace_event event = trace_named(GW_TRACE_SPAN, name);
	event.at_ns = began;
	event.for_ns = gw_trace_clock() - began;
	gw_trace_put(&event);
}

void gw_trace_flush(void)
{
	if (!gw_trace_is_on())
		return;
	uint64_t deadline = gw_now_ns() + PATIENCE_NS;
	uint32_t mine = atomic_fetch_add(&trace.asked, 1) + 1, done;
	trace_wake_writer();
	while (gw_trace_is_on() && (int32_t)((done = atomic_load(&trace.done)) - mine) < 0 && gw_now_ns() < deadline)
		gw_futex_wait(&trace.done, done, deadline);
}
