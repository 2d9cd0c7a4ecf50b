/* The backends that were built in: an explicit list. Each is checked when it is looked up: no slot is empty, and its
 * number is no other's. */
#include <stdio.h>
#include <string.h>

#include "transport/memory/memory.h"
#include "transport/shm/shm.h"
#include "transport/tcp/tcp.h"
#include "transport/transport.h"
#ifdef GRAPHWIRE_VERBS
#include "transport/verbs/verbs.h"
#endif

static const struct gw_transport *const transports[] = {
	&gw_transport_memory,
	&gw_transport_tcp,
	&gw_transport_shm,
#ifdef GRAPHWIRE_VERBS
	&gw_transport_verbs,
#endif
};

static_assert(sizeof(transports) / sizeof(transports[0]) <= GW_TRANSPORTS_MAX, "a buffer has a word for each");

static void registry_check(const struct gw_transport *t, size_t place)
{
	assert(t->open && t->shut && t->connect && t->close && t->buffer_register && t->buffer_release);
	assert(t->readv && t->gather && t->request && t->cancel && t->request_cancel && t->map);
	assert(t->region_open);
	assert(t->poll && t->busy && t->wait_fd && t->wake);
	assert(t->listen && t->listener_stop && t->listener_drain && t->listener_free);
	assert(t->number < GW_TRANSPORTS_MAX);
	for (size_t i = 0; i < place; i++)
		assert(transports[i]->number != t->number);
}

gw_status gw_transport_find(const char *name, const struct gw_transport **out)
{
	char names[256] = "";
	*out = NULL;
	for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++) {
		registry_check(transports[i], i);
		if (strcmp(transports[i]->name, name) == 0) {
			*out = transports[i];
			return GW_OK;
		}
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? ", " : "",
			 transports[i]->name);
	}
#ifndef GRAPHWIRE_VERBS
	if (strcmp(name, "verbs") == 0)
		return gw_fail(GW_UNSUPPORTED,
			       "built without RDMA, since libibverbs or librdmacm was missing; built in: %s", names);
#endif
	return gw_fail(GW_UNSUPPORTED, "no transport \"%s\"; built in: %s", name, names);
}
