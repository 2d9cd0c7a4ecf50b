/* The list of the backends in this build. Each look-up checks the backends: every slot is filled, and the backend's
 * number is its scheme's number, so no two backends share one. */
#include <stdio.h>
#include <string.h>

#include "transport/memory/memory.h"
#include "transport/shm/shm.h"
#include "transport/tcp/loop.h"
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

static_assert(GW_SERVICE_SCHEMES == GW_SCHEMES, "a service counts each of them");
static_assert(GW_SCHEMES < GW_TRANSPORTS_MAX, "a buffer has a word for each backend, and one more");

static void registry_check(const struct gw_transport *t)
{
	assert(t->open && t->shut && t->connect && t->close && t->buffer_register && t->buffer_release);
	assert(t->read && t->request && t->cancel && t->request_cancel && t->map);
	assert(t->region_open);
	assert(t->poll && t->busy && t->wait_fd && t->wake);
	assert(t->listen && t->listener_stop && t->listener_drain && t->listener_free);
	assert(t->number < GW_SCHEMES && t->scheme == &gw_schemes[t->number]);
}

gw_status gw_transport_find(const char *name, const struct gw_transport **out)
{
	char names[256] = "";
	*out = NULL;
	for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++) {
		registry_check(transports[i]);
		if (strcmp(transports[i]->scheme->name, name) == 0) {
			*out = transports[i];
			return GW_OK;
		}
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? ", " : "",
			 transports[i]->scheme->name);
	}
	const struct gw_scheme *scheme = gw_scheme_find(name);
	if (scheme)
		return gw_fail(GW_UNSUPPORTED, "built without %s, since %s was missing; built in: %s", scheme->title,
			       scheme->needs, names);
	return gw_fail(GW_UNSUPPORTED, "no transport \"%s\"; built in: %s", name, names);
}
