/* A thread's own doorbells.
 *
 * The queue pairs of a process share the few doorbell pages that the driver maps for it. Each page is behind a lock:
 * with hundreds of queue pairs, independent threads wait for one another at every post. A thread domain (ibv_alloc_td)
 * promises the driver that one thread at a time uses the objects made under it. That holds for a poller's queue pairs.
 * The driver then gives them a doorbell of their own and takes no locks.
 *
 * A queue pair gets the thread domain through a parent domain (ibv_alloc_parent_domain) around a protection domain. The
 * parent domain can replace the protection domain everywhere: queue pairs made in one can use memory registered in the
 * other (ibv_alloc_parent_domain(3)).
 *
 *   poller ── thread domain ──┬── parent domain of the device's protection domain: the client's queue pairs
 *                             └── parent domain of a listener's protection domain: its clients' queue pairs
 *
 * A parent domain ends with its last queue pair, before the protection domain that it surrounds. The thread domain ends
 * with the poller. Some drivers have no thread domains, and a device has a limited number of doorbells. In both cases
 * queue pairs use the protection domain itself, and the driver locks its doorbells.
 */
#include <errno.h>
#include <string.h>

#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "transport/verbs/verbs.h"

/* Tries once: a device that refuses a thread domain will refuse it later as well. */
static void ask_td(struct verbs_poller *poller)
{
	struct ibv_td_init_attr init = {0};
	if (poller->td_asked)
		return;
	poller->td_asked = true;
	poller->td = ibv_alloc_td(poller->device->context, &init);
	if (!poller->td)
		gw_log(GW_LOG_DEBUG, "RDMA device %s: no thread domain: %s",
		       ibv_get_device_name(poller->device->context->device), strerror(errno));
}

static struct verbs_domain *domain_create(struct verbs_poller *poller, struct ibv_pd *base)
{
	struct ibv_parent_domain_init_attr init = {.pd = base, .td = poller->td};
	struct verbs_domain *domain = gw_calloc(1, sizeof(*domain));
	if (!domain)
		return NULL;
	domain->base = base;
	domain->pd = ibv_alloc_parent_domain(poller->device->context, &init);
	if (!domain->pd) {
		gw_log(GW_LOG_DEBUG, "RDMA device %s: no parent domain: %s",
		       ibv_get_device_name(poller->device->context->device), strerror(errno));
		gw_free(domain);
		return NULL;
	}
	domain->next = poller->domains;
	poller->domains = domain;
	return domain;
}

struct ibv_pd *gw_verbs_domain_get(struct verbs_poller *poller, struct ibv_pd *base, struct verbs_domain **out)
{
	struct verbs_domain *domain = poller->domains;
	*out = NULL;
	ask_td(poller);
	if (!poller->td)
		return base;
	while (domain && domain->base != base)
		domain = domain->next;
	if (!domain)
		domain = domain_create(poller, base);
	if (!domain)
		return base;
	domain->references++;
	*out = domain;
	return domain->pd;
}

void gw_verbs_domain_put(struct verbs_poller *poller, struct verbs_domain *domain)
{
	if (!domain || --domain->references)
		return;
	GW_SLIST_REMOVE(poller->domains, domain, next);
	ibv_dealloc_pd(domain->pd);
	gw_free(domain);
}

void gw_verbs_domains_end(struct verbs_poller *poller)
{
	assert(!poller->domains);
	if (poller->td)
		ibv_dealloc_td(poller->td);
	poller->td = NULL;
}
