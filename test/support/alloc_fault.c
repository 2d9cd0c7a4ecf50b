/* The counting and failing allocator: libc's, with a count in front of it. */
#include "test/support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/memory/alloc.h"

#define RUNS_MAX 100000ul /* a body that meets a fault in each of so many runs never ends */

static atomic_ulong count;
static atomic_long live;
static atomic_bool hit;
static atomic_ulong fail_at;
static bool fail_all_after;

static _Thread_local unsigned long here_count, here_fail_at;
static _Thread_local bool here_hit;

bool gw_fault_here(unsigned long n)
{
	bool was_hit = here_hit;
	here_count = 0;
	here_fail_at = n;
	here_hit = false;
	return was_hit;
}

bool gw_fault_anywhere(unsigned long n)
{
	atomic_store(&count, 0);
	atomic_store(&fail_at, n);
	return atomic_exchange(&hit, false);
}

static bool must_fail(void)
{
	if (here_fail_at != GW_FAULT_NEVER && ++here_count == here_fail_at) {
		here_hit = true;
		return true;
	}
	unsigned long number = atomic_fetch_add(&count, 1) + 1;
	unsigned long at = atomic_load(&fail_at);
	bool fails = at != GW_FAULT_NEVER && (number == at || (fail_all_after && number > at));
	if (fails)
		atomic_store(&hit, true);
	return fails;
}

static void *count_allocate(size_t bytes)
{
	void *memory = must_fail() ? NULL : malloc(bytes);
	if (memory)
		atomic_fetch_add(&live, 1);
	return memory;
}

static void *count_reallocate(void *old, size_t bytes)
{
	void *memory = must_fail() ? NULL : realloc(old, bytes);
	if (memory && !old)
		atomic_fetch_add(&live, 1);
	return memory;
}

static void count_release(void *memory)
{
	if (memory)
		atomic_fetch_sub(&live, 1);
	free(memory);
}

static const struct gw_allocator counting = {
	.allocate = count_allocate, .reallocate = count_reallocate, .release = count_release};

static void begin(unsigned long n, bool all_after)
{
	atomic_store(&fail_at, n);
	fail_all_after = all_after;
	atomic_store(&count, 0);
	atomic_store(&live, 0);
	atomic_store(&hit, false);
	gw_allocator_set(&counting);
}

void gw_fault_begin(unsigned long n)
{
	begin(n, false);
}

void gw_fault_begin_from(unsigned long n)
{
	begin(n, true);
}

long gw_fault_end(void)
{
	gw_allocator_set(NULL);
	return atomic_load(&live);
}

bool gw_fault_hit(void)
{
	return atomic_load(&hit);
}

unsigned long gw_fault_count(void)
{
	return atomic_load(&count);
}

#define EACH_UP_TO 20
#if defined(__SANITIZE_THREAD__)
static const unsigned long strides[] = {37, 11};
#elif defined(__SANITIZE_ADDRESS__)
static const unsigned long strides[] = {5, 3};
#else
static const unsigned long strides[] = {1, 1};
#endif

unsigned long gw_fault_step(unsigned long runs)
{
	if (runs < EACH_UP_TO)
		return 1;
	return strides[getenv("GRAPHWIRE_TEST_MANY") != NULL];
}

static unsigned long each(gw_status (*body)(void *context), void *context, bool all_after)
{
	for (unsigned long n = 1; n <= RUNS_MAX; n += gw_fault_step(n)) {
		gw_fail_text(GW_OK, "");
		begin(n, all_after);
		gw_status status = body(context);
		long leaked = gw_fault_end();
		if (leaked)
			fail_msg("allocation %lu failing: %ld blocks leaked (status: %s)", n, leaked,
				 gw_status_text(status));
		if (!gw_fault_hit()) {
			if (status != GW_OK)
				fail_msg("no allocation failed, yet: %s: %s", gw_status_text(status), gw_last_error());
			return n - 1;
		}
		if (status != GW_OK && status != GW_NO_MEMORY)
			fail_msg("allocation %lu failing: %s: %s", n, gw_status_text(status), gw_last_error());
		if (status != GW_OK && !gw_last_error()[0])
			fail_msg("allocation %lu failing: no error text", n);
	}
	fail_msg("still meeting faults after %lu runs", RUNS_MAX);
	return 0;
}

unsigned long gw_fault_each(gw_status (*body)(void *context), void *context)
{
	return each(body, context, false);
}

unsigned long gw_fault_each_from(gw_status (*body)(void *context), void *context)
{
	return each(body, context, true);
}
