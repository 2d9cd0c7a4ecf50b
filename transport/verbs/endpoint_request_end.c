/* Ends requests: for their callers, and for the endpoint, which then has a free place. */
#include "core/memory/alloc.h"
#include "transport/verbs/endpoint_private.h"

void gw_verbs_request_complete(struct verbs_endpoint *endpoint, struct verbs_request *request, gw_status status)
{
	if (!request->note)
		return;
	gw_completions_post(&endpoint->loop->completions, request->note, status);
	request->note = NULL;
}

void gw_verbs_request_retire(struct verbs_endpoint *endpoint)
{
	struct verbs_request *request = verbs_request_at(endpoint, endpoint->oldest++);
	endpoint->loop->open--;
	gw_free(request->bytes);
	gw_free(request->reply);
	request->bytes = request->reply = NULL;
	if (endpoint->room_wanted) {
		endpoint->room_wanted = false;
		gw_poll_group_room(endpoint->loop->group);
	}
}

void gw_verbs_requests_fail(struct verbs_endpoint *endpoint, gw_status status)
{
	while (endpoint->oldest != endpoint->newest) {
		gw_verbs_request_complete(endpoint, verbs_request_at(endpoint, endpoint->oldest), status);
		gw_verbs_request_retire(endpoint);
	}
	endpoint->unsent = endpoint->newest;
	endpoint->unsent_bytes = 0;
}
