/* Runs an engine: its inbox, links and completions. Passes the engine from thread to thread. */
#include "client/engine/engine.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "core/system/futex.h"
#include "core/system/thread.h"
#include "core/system/trace.h"

#define COMPLETIONS_PER_RUN 64
#define LOOK_RUNS           64u
#define SHORT_RETRY_NS      GW_NS_PER_SECOND
#define RUN_MAX_NS          (100 * GW_NS_PER_MS) /* longest sleep of one run, since links have timers */
/* How often an idle engine polls if it may hold a resource that others wait for. The removal of a device waits until
 * its users release it. The memory of a server that has ended exists until its last client unmaps it. */
#define WATCH_NS     (500 * GW_NS_PER_MS)
#define WATCH_FOR_NS 100000ull /* a poll that waits also checks idle connections */
#define TRACED_NS    GW_NS_PER_MS
/* `wakeups` counts in its upper 31 bits. Its lowest bit orders the thread to end, so that the thread reads the order
 * and the count at once: an order between two reads would be counted as seen and never obeyed. */
#define WAKEUPS_STOP 1u
#define WAKEUPS_ONE  2u

gw_status gw_engine_open(struct gw_engine *engine, struct gw_client *client, uint32_t number)
{
	memset(engine, 0, sizeof(*engine));
	engine->client = client;
	engine->number = number;
	struct gw_poll_group_options options = {
		.tcp_driver = client->tcp_driver, .spin_ns = client->spin_ns, .queue_pairs = client->queue_pairs};
	gw_status status = gw_poll_group_create(&options, &engine->group);
	if (status != GW_OK)
		return status;
	gw_slab_open(&engine->slab, engine->group);
	engine->links = gw_calloc(client->server_count, sizeof(*engine->links));
	engine->part_links = gw_calloc(client->server_count, sizeof(*engine->part_links));
	engine->lists = gw_calloc(client->server_count, sizeof(*engine->lists));
	if (!engine->links || !engine->part_links || !engine->lists) {
		gw_engine_close(engine);
		return GW_NO_MEMORY;
	}
	for (uint32_t i = 0; i < client->server_count && status == GW_OK; i++)
		status = gw_link_init(&engine->links[i], engine, &client->servers[i]);
	if (status != GW_OK)
		gw_engine_close(engine);
	return status;
}

void gw_engine_map_parts(struct gw_engine *engine)
{
	const struct gw_client *client = engine->client;
	for (uint32_t i = 0; i < client->server_count; i++)
		engine->part_links[client->servers[i].part] = &engine->links[i];
}

static void take_inbox(struct gw_engine *engine)
{
	struct gw_job *newest = atomic_exchange(&engine->inbox, NULL), *oldest = NULL;
	while (newest) {
		struct gw_job *next = newest->next_in_inbox;
		newest->next_in_inbox = oldest;
		oldest = newest;
		newest = next;
	}
	while (oldest) {
		struct gw_job *job = oldest;
		oldest = job->next_in_inbox;
		job->next = engine->jobs;
		job->previous = NULL;
		if (engine->jobs)
			engine->jobs->previous = job;
		engine->jobs = job;
		engine->jobs_open++;
		engine->jobs_bounded += !job->is_boundless;
		/* A cancel may have come before the start, and run_cancels may already have counted it as handled. Only
		 * this check still sees such a cancel. */
		if (atomic_load(&job->cancel_wanted))
			gw_job_end(job, gw_fail(GW_CANCELLED, "cancelled"));
		else if (!job->is_boundless && engine->jobs_bounded > GW_JOBS_MAX)
			gw_job_end(job, gw_fail(GW_LIMIT,
						"more than %d operations at once in one thread of the client: "
						"wait for some of them",
						GW_JOBS_MAX));
		else
			job->start(job);
	}
}

static void run_cancels(struct gw_engine *engine)
{
	if (atomic_load(&engine->cancels) == 0 || atomic_exchange(&engine->cancels, 0) == 0)
		return;
	struct gw_job *next;
	for (struct gw_job *job = engine->jobs; job; job = next) {
		next = job->next;
		if (atomic_load(&job->cancel_wanted) && !job->cancel_begun) {
			job->cancel_begun = true;
			job->cancel(job);
		}
	}
}

void gw_engine_continue(struct gw_engine *engine, struct gw_job_slice *slice)
{
	slice->next = engine->slices;
	engine->slices = slice;
}

static void run_slices(struct gw_engine *engine)
{
	struct gw_job_slice *slice = engine->slices, *next;
	engine->slices = NULL;
	for (; slice; slice = next) {
		next = slice->next;
		slice->run(slice);
	}
}

/* Polls that find nothing and return at once are not worth an event. */
static __attribute__((cold)) void trace_poll(uint64_t began, size_t completions)
{
	static const struct gw_trace_form form = {"poll", "engine", {"completions"}, NULL};
	if (completions > 0 || gw_trace_clock() - began > TRACED_NS)
		gw_trace_span_end(&form, began, completions, 0);
}

/* The job that lets the links connect ends when each has connected or failed, or when the thread is to end. */
static __attribute__((cold)) void connect_look(struct gw_engine *engine)
{
	struct gw_job *job = engine->connecting;
	bool ends = atomic_load(&engine->wakeups) & WAKEUPS_STOP;
	for (uint32_t i = 0; i < engine->client->server_count && !ends; i++) {
		enum gw_link_state state = engine->links[i].state;
		if (state != GW_LINK_OPEN && state != GW_LINK_DOWN && state != GW_LINK_WAITING)
			return;
	}
	engine->connecting = NULL;
	gw_job_end(job, GW_OK);
}

void gw_engine_run_once(struct gw_engine *engine, uint64_t deadline_ns)
{
	uint64_t ended = engine->jobs_ended;
	run_slices(engine);
	take_inbox(engine);
	run_cancels(engine);
	/* Every job could end at once, as gathers of mapped rows do. Without a job nothing waits for the connections,
	 * so only one in LOOK_RUNS such runs polls. */
	if (engine->jobs_ended != ended && engine->jobs_open == 0 && engine->runs_to_skip > 0) {
		engine->runs_to_skip--;
		return;
	}
	uint64_t now = gw_now_ns(), timer = gw_links_tick(engine, now);
	uint64_t until = timer < now + RUN_MAX_NS ? timer : now + RUN_MAX_NS;
	until = deadline_ns < until ? deadline_ns : until;
	if (engine->jobs_ended != ended || engine->slices)
		until = now; /* the calling thread may have the result that it waits for */

	struct gw_completion completions[COMPLETIONS_PER_RUN];
	uint64_t began = gw_trace_span_begin();
	size_t n = gw_poll_group_poll(engine->group, completions, COMPLETIONS_PER_RUN, until > now ? until - now : 0);
	if (began)
		trace_poll(began, n);
	/* The next poll frees what this one delivered. */
	engine->runs_to_skip = n > 0 ? 0 : LOOK_RUNS - 1;
	for (size_t i = 0; i < n; i++) {
		struct gw_event *event = completions[i].cookie;
		if (event) /* a goodbye (gw_endpoint_goodbye) has none */
			event->fire(event, &completions[i]);
	}
	if (engine->connecting)
		connect_look(engine);
}

static bool try_own(struct gw_engine *engine)
{
	uint32_t free = 0;
	return atomic_compare_exchange_strong(&engine->owner, &free, 1);
}

/* The waker raises `wakeups` before it checks `sleeps`. The thread sets `sleeps` before it checks `wakeups`. All
 * accesses are sequentially consistent, so at least one of the two sees the other's change. */
static void wake_thread(struct gw_engine *engine, uint32_t more)
{
	atomic_fetch_add(&engine->wakeups, more);
	if (atomic_load(&engine->sleeps))
		gw_futex_wake(&engine->wakeups, 1);
}

/* Releases the engine. If work is left, wakes the engine's thread, which continues. Also wakes the engine's thread when
 * the engine starts to watch (WATCH_NS), since the thread might otherwise sleep for ever. The inbox is checked after
 * the release, so a job that is submitted meanwhile is not overlooked. */
static void engine_disown(struct gw_engine *engine)
{
	bool watches = atomic_load_explicit(&engine->watches, memory_order_relaxed);
	bool open = engine->jobs_open > 0 || watches != engine->watches_noted;
	engine->watches_noted = watches;
	atomic_store(&engine->owner, 0);
	if (open || atomic_load(&engine->inbox) || atomic_load(&engine->cancels))
		wake_thread(engine, WAKEUPS_ONE);
}

void gw_engine_submit(struct gw_engine *engine, struct gw_job *job, bool soon)
{
	job->engine = engine;
	job->deadline_ns = gw_deadline_ns(engine->client->timeout_ms);
	job->waits_away = 0;
	job->aim = GW_AIM_CALL;
	job->cancel_begun = false;
	/* The exchange with the inbox publishes both. */
	atomic_store_explicit(&job->ended, GW_JOB_OPEN, memory_order_relaxed);
	atomic_store_explicit(&job->cancel_wanted, false, memory_order_relaxed);
	struct gw_job *newest = atomic_load(&engine->inbox);
	do
		job->next_in_inbox = newest;
	while (!atomic_compare_exchange_weak(&engine->inbox, &newest, job));
	if (atomic_load(&engine->owner))
		gw_poll_group_wake(engine->group);
	else if (!soon)
		wake_thread(engine, WAKEUPS_ONE);
}

/* The thread runs the engine as long as this job is open. */
static void connect_start(struct gw_job *job)
{
	for (uint32_t i = 0; i < job->engine->client->server_count; i++)
		gw_link_open(&job->engine->links[i]);
	job->engine->connecting = job;
}

static void connect_cancel(struct gw_job *job)
{
	(void)job; /* no caller has it to cancel it */
}

/* Starts the thread of the engine, and lets it open its links, unless another caller does so now or did so lately. */
static void connect_short(struct gw_client *client, struct gw_engine *engine)
{
	struct gw_error_kept kept;
	const uint64_t now = gw_now_ns();
	if (pthread_mutex_trylock(&client->short_lock) != 0)
		return;
	gw_error_keep(&kept);
	struct gw_job *job = client->short_connect;
	if (!job)
		job = client->short_connect = gw_calloc(1, sizeof(*job)); /* not open */
	const bool open = client->short_retry_ns && job && atomic_load(&job->ended) != GW_JOB_ENDED;
	if (job && !open && now >= client->short_retry_ns &&
	    (engine->has_thread || gw_engine_start_thread(engine) == GW_OK)) {
		client->short_retry_ns = now + SHORT_RETRY_NS;
		*job = (struct gw_job){.start = connect_start, .cancel = connect_cancel};
		gw_engine_submit(engine, job, false);
	}
	gw_error_restore(&kept);
	pthread_mutex_unlock(&client->short_lock);
}

struct gw_engine *gw_engine_for_call(struct gw_client *client, bool is_short)
{
	struct gw_engine *engine = &client->engines[client->engine_count];
	if (!is_short || atomic_load(&client->loaders) == 0)
		return gw_client_engine(client);
	if (atomic_load_explicit(&engine->open_links, memory_order_relaxed) == client->server_count)
		return engine;
	connect_short(client, engine);
	return gw_client_engine(client);
}

static bool has_ended(struct gw_job *job)
{
	return atomic_load(&job->ended) == GW_JOB_ENDED;
}

/* Another thread runs the engine. */
static void sleep_on(struct gw_job *job, uint64_t deadline_ns)
{
	uint32_t seen = GW_JOB_OPEN;
	if (atomic_compare_exchange_strong(&job->ended, &seen, GW_JOB_AWAITED) || seen == GW_JOB_AWAITED)
		gw_futex_wait(&job->ended, GW_JOB_AWAITED, deadline_ns);
}

bool gw_job_wait(struct gw_job *job, uint64_t deadline_ns)
{
	struct gw_engine *engine = job->engine;
	while (!has_ended(job)) {
		if (deadline_ns != GW_NO_DEADLINE && gw_now_ns() >= deadline_ns) {
			/* The job is still open, so some thread must run the engine. */
			if (engine && !atomic_load(&engine->owner))
				wake_thread(engine, WAKEUPS_ONE);
			return false;
		}
		if (engine && try_own(engine)) {
			while (!has_ended(job) && (deadline_ns == GW_NO_DEADLINE || gw_now_ns() < deadline_ns))
				gw_engine_run_once(engine, deadline_ns);
			engine_disown(engine);
		} else {
			sleep_on(job, deadline_ns);
		}
	}
	return true;
}

void gw_job_cancel(struct gw_job *job)
{
	struct gw_engine *engine = job->engine;
	atomic_store(&job->cancel_wanted, true);
	if (!engine) {
		job->cancel(job);
		return;
	}
	atomic_fetch_add(&engine->cancels, 1);
	if (atomic_load(&engine->owner))
		gw_poll_group_wake(engine->group);
	else
		wake_thread(engine, WAKEUPS_ONE);
}

static void *engine_run(void *argument)
{
	struct gw_engine *engine = argument;
	uint32_t seen;
	if (gw_trace_is_on())
		gw_trace_name_thread("engine", engine->number);
	while (!((seen = atomic_load(&engine->wakeups)) & WAKEUPS_STOP)) {
		if (try_own(engine)) {
			if (atomic_load(&engine->watches))
				gw_engine_run_once(engine, gw_now_ns() + WATCH_FOR_NS);
			/* The thread owns the engine only while there is work: a run without work would sleep and keep
			 * callers from running the engine. */
			while (engine->jobs_open > 0 || atomic_load(&engine->inbox))
				gw_engine_run_once(engine, GW_NO_DEADLINE);
			/* engine_disown() is not needed: the submitter of work that came after the last check has
			 * raised `wakeups`, or will find the engine without owner. */
			atomic_store(&engine->owner, 0);
			if (atomic_load(&engine->inbox))
				continue;
		}
		bool watches = atomic_load(&engine->watches);
		atomic_store(&engine->sleeps, true);
		gw_futex_wait(&engine->wakeups, seen, watches ? gw_now_ns() + WATCH_NS : GW_NO_DEADLINE);
		atomic_store(&engine->sleeps, false);
	}
	return NULL;
}

gw_status gw_engine_start_thread(struct gw_engine *engine)
{
	int error = gw_thread_start(&engine->thread, engine_run, engine);
	if (error)
		return gw_thread_failed(error, "cannot start thread %u", engine->number);
	engine->has_thread = true;
	return GW_OK;
}

void gw_engine_stop_thread(struct gw_engine *engine)
{
	if (!engine->has_thread)
		return;
	wake_thread(engine, WAKEUPS_STOP);
	pthread_join(engine->thread, NULL);
	atomic_fetch_and(&engine->wakeups, ~WAKEUPS_STOP);
	engine->has_thread = false;
}

void gw_engine_close(struct gw_engine *engine)
{
	gw_engine_stop_thread(engine);
	gw_slab_close(&engine->slab);
	gw_vec_free(&engine->buffers);
	for (uint32_t i = 0; engine->links && i < engine->client->server_count; i++) {
		if (engine->links[i].endpoint)
			gw_endpoint_goodbye(engine->links[i].endpoint);
		gw_link_close(&engine->links[i]);
		gw_deadlines_leave(&engine->timers, &engine->links[i].timer);
	}
	gw_deadlines_end(&engine->timers);
	/* Operations that were open when their endpoint was closed still use the links' memory (upgrade.h) until the
	 * poll group has ended. The poll group therefore ends before the links are freed. */
	gw_poll_group_destroy(engine->group);
	gw_free(engine->links);
	gw_free(engine->part_links);
	gw_free(engine->lists);
	memset(engine, 0, sizeof(*engine));
}
