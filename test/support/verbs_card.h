/* A made-up RDMA device, whose driver has or lacks what cards' drivers do. The verbs that it takes are defined here, in
 * place of the library's: for one program's source alone, behind cmocka.h, and nothing else of that program reaches a
 * device. */
#ifndef GW_TEST_VERBS_CARD_H
#define GW_TEST_VERBS_CARD_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "transport/verbs/verbs.h"

/* --- The device. --- */

#define EVENTS_MAX 8

static struct {
	struct ibv_device device;
	struct verbs_context verbs;
	struct ibv_device_attr attr;
	/* What its driver can do. */
	int resize_error, td_error, parent_error;
	/* What was made of it and is still there. */
	int cqs, tds, parents, qps, pds;
	int resized, td_made;
	/* Asynchronous events: not read, read, and acknowledged. */
	struct ibv_async_event events[EVENTS_MAX];
	int event_count, event_at, acknowledged;
	struct ibv_pd *qp_pd; /* of the queue pair made last */
	uint32_t qp_num;
	int vector; /* of the completion queue made last */
} card;

struct card_td {
	struct ibv_td td;
	int users; /* parent domains */
};

static struct ibv_td *card_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init)
{
	assert_int_equal(init->comp_mask, 0);
	errno = card.td_error;
	if (errno)
		return NULL;
	struct card_td *td = calloc(1, sizeof(*td));
	td->td.context = context;
	card.tds++;
	card.td_made++;
	return &td->td;
}

static int card_dealloc_td(struct ibv_td *td)
{
	assert_int_equal(((struct card_td *)td)->users, 0);
	card.tds--;
	free(td);
	return 0;
}

struct card_pd {
	struct ibv_pd pd;
	struct ibv_pd *base; /* of a parent domain */
	struct card_td *td;
	int users; /* parent domains, queue pairs */
};

static struct ibv_pd *pd_create(struct ibv_context *context, struct ibv_pd *base)
{
	struct card_pd *pd = calloc(1, sizeof(*pd));
	pd->pd.context = context;
	pd->base = base;
	return &pd->pd;
}

static struct ibv_pd *card_alloc_parent(struct ibv_context *context, struct ibv_parent_domain_init_attr *init)
{
	assert_non_null(init->td);
	errno = card.parent_error;
	if (errno)
		return NULL;
	card.parents++;
	((struct card_pd *)init->pd)->users++;
	struct ibv_pd *pd = pd_create(context, init->pd);
	((struct card_pd *)pd)->td = (struct card_td *)init->td;
	((struct card_td *)init->td)->users++;
	return pd;
}

static int card_query_port(struct ibv_context *context, uint8_t number, struct ibv_port_attr *attr, size_t bytes)
{
	(void)context;
	assert_in_range(number, 1, card.attr.phys_port_cnt);
	memset(attr, 0, bytes);
	attr->max_msg_sz = 1u << 30;
	attr->active_speed = 32; /* 4 lanes of 25 Gb/s */
	attr->active_width = 2;
	return 0;
}

static int card_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	(void)cq, (void)n, (void)wc;
	return 0;
}

static int card_notify(struct ibv_cq *cq, int solicited)
{
	(void)cq, (void)solicited;
	return 0;
}

static void card_begin(int vectors)
{
	memset(&card, 0, sizeof(card));
	snprintf(card.device.name, sizeof(card.device.name), "made_up_0");
	card.device.transport_type = IBV_TRANSPORT_IB;
	card.attr = (struct ibv_device_attr){
		.max_qp_wr = 4096, .max_sge = 30, .max_sge_rd = 30, .max_cqe = 1 << 20, .phys_port_cnt = 2};
	card.verbs = (struct verbs_context){.sz = sizeof(card.verbs),
					    .query_port = card_query_port,
					    .alloc_td = card_alloc_td,
					    .dealloc_td = card_dealloc_td,
					    .alloc_parent_domain = card_alloc_parent};
	card.verbs.context = (struct ibv_context){.device = &card.device,
						  .num_comp_vectors = vectors,
						  .abi_compat = __VERBS_ABI_IS_EXTENDED,
						  .async_fd = eventfd(0, EFD_NONBLOCK),
						  .cmd_fd = eventfd(0, EFD_NONBLOCK),
						  .ops = {.poll_cq = card_poll, .req_notify_cq = card_notify}};
	card.qp_num = 16;
}

/* Nothing of it is left, and every event was acknowledged. */
static void card_end(void)
{
	assert_int_equal(card.cqs, 0);
	assert_int_equal(card.qps, 0);
	assert_int_equal(card.parents, 0);
	assert_int_equal(card.tds, 0);
	assert_int_equal(card.pds, 0);
	assert_int_equal(card.acknowledged, card.event_count);
	close(card.verbs.context.async_fd);
	close(card.verbs.context.cmd_fd);
}

/* --- The library's functions. --- */

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
			     int vector)
{
	struct ibv_cq *cq = calloc(1, sizeof(*cq));
	assert_in_range(vector, 0, context->num_comp_vectors ? context->num_comp_vectors - 1 : 0);
	assert_in_range(cqe, 1, card.attr.max_cqe);
	*cq = (struct ibv_cq){.context = context, .channel = channel, .cq_context = cq_context, .cqe = cqe};
	card.vector = vector;
	card.cqs++;
	return cq;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	if (card.resize_error)
		return card.resize_error;
	cq->cqe = cqe;
	card.resized++;
	return 0;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	card.cqs--;
	free(cq);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
	(void)channel, (void)cq, (void)context;
	errno = EAGAIN;
	return -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	(void)cq, (void)n;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *channel = calloc(1, sizeof(*channel));
	channel->context = context;
	channel->fd = eventfd(0, EFD_NONBLOCK);
	return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	close(channel->fd);
	free(channel);
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	card.pds++;
	return pd_create(context, NULL);
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct card_pd *inside = (struct card_pd *)pd;
	assert_int_equal(inside->users, 0);
	if (inside->base) {
		((struct card_pd *)inside->base)->users--;
		inside->td->users--;
		card.parents--;
	} else {
		card.pds--;
	}
	free(inside);
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	*attr = card.attr;
	return 0;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	uint64_t ignored;
	(void)!read(context->async_fd, &ignored, sizeof(ignored));
	if (card.event_at == card.event_count) {
		errno = EAGAIN;
		return -1;
	}
	*event = card.events[card.event_at++];
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
	card.acknowledged++;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	(void)qp, (void)attr, (void)mask;
	return 0;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rdma_event_channel *channel = calloc(1, sizeof(*channel));
	channel->fd = eventfd(0, EFD_NONBLOCK);
	return channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	close(channel->fd);
	free(channel);
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	(void)channel, (void)event;
	errno = EAGAIN;
	return -1;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space ps)
{
	(void)ps;
	*id = calloc(1, sizeof(**id));
	(*id)->channel = channel;
	(*id)->context = context;
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
	(void)address;
	id->verbs = &card.verbs.context;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	free(id);
	return 0;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	id->qp = calloc(1, sizeof(*id->qp));
	*id->qp = (struct ibv_qp){.context = id->verbs,
				  .pd = pd,
				  .send_cq = init->send_cq,
				  .recv_cq = init->recv_cq,
				  .qp_num = card.qp_num++};
	((struct card_pd *)pd)->users++;
	card.qp_pd = pd;
	card.qps++;
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	((struct card_pd *)id->qp->pd)->users--;
	card.qps--;
	free(id->qp);
	id->qp = NULL;
}

#endif
