/* The device: completion queues, queue pairs, and the thread that does their work. See fabric.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "test/fabric/fabric.h"

#undef ibv_query_port

#define SGES_MAX  16
#define WORKS_MAX 1024 /* in flight on one queue pair */
#define QPS_MAX   65536
#define LATE_NS   (50 * GW_NS_PER_MS)
#define DEVICES   64 /* devices during the program's life, one at a time */

pthread_mutex_t fabric_lock = PTHREAD_MUTEX_INITIALIZER;

struct fabric_cq {
	struct ibv_cq ibv;
	struct ibv_wc *entries; /* [ibv.cqe] */
	uint32_t begin, end;
	bool armed;
	uint32_t qp_count; /* queue pairs that use it */
};

struct fabric_channel {
	struct ibv_comp_channel ibv;
	struct fabric_cq *unread[64]; /* events that were not read yet */
	uint32_t count;
};

struct fabric_work {
	uint64_t wr_id, remote, posted_ns;
	uint32_t rkey, sge_count;
	enum ibv_wr_opcode opcode;
	bool signalled;
	struct ibv_sge sges[SGES_MAX];
};

struct fabric_qp {
	struct ibv_qp ibv;
	struct fabric_qp *peer;
	bool failed;
	uint32_t at, busy; /* the place in fabric.qps, and 1 + the place in fabric.busy */
	uint32_t work_begin, work_end, receive_begin, receive_end;
	uint32_t works_max, receives_max; /* powers of two */
	struct fabric_work *works;
	struct fabric_receive {
		uint64_t wr_id;
		struct ibv_sge sge;
	} * receives;
};

static struct {
	struct ibv_device device;
	struct verbs_context contexts[DEVICES];
	uint32_t turn; /* index of the present device in contexts */
	bool gone, running;
	pthread_cond_t posted;
	struct fabric_qp *qps[QPS_MAX], *busy[QPS_MAX]; /* all; those with work */
	uint32_t qp_count, busy_count, next_qp;
	uint64_t seed;
	struct fabric_reads reads;
	struct fabric_counts counts;
} fabric = {.posted = PTHREAD_COND_INITIALIZER, .next_qp = 16};

/* --- Completion queues. --- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct fabric_channel *channel = fabric_calloc(sizeof(*channel));
	channel->ibv.context = context;
	channel->ibv.fd = eventfd(0, EFD_NONBLOCK | EFD_SEMAPHORE | EFD_CLOEXEC);
	return &channel->ibv;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	close(ibv->fd);
	free(ibv);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
			     int vector)
{
	struct fabric_cq *cq = fabric_calloc(sizeof(*cq));
	fabric_must(vector == 0 && cqe > 0, "a completion queue with impossible arguments");
	cq->ibv = (struct ibv_cq){.context = context, .channel = channel, .cq_context = cq_context, .cqe = cqe};
	cq->entries = fabric_calloc((size_t)cqe * sizeof(*cq->entries));
	return &cq->ibv;
}

/* Fails, as some drivers do: the caller must create another completion queue. */
int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	(void)cq, (void)cqe;
	return ENOSYS;
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct fabric_cq *cq = (struct fabric_cq *)ibv;
	struct fabric_channel *channel = (struct fabric_channel *)ibv->channel;
	pthread_mutex_lock(&fabric_lock);
	fabric_must(cq->qp_count == 0, "a completion queue in use is destroyed");
	for (uint32_t i = 0; i < channel->count;) {
		uint64_t one;
		if (channel->unread[i] != cq) {
			i++;
			continue;
		}
		channel->unread[i] = channel->unread[--channel->count];
		(void)!read(channel->ibv.fd, &one, sizeof(one));
	}
	pthread_mutex_unlock(&fabric_lock);
	free(cq->entries);
	free(cq);
	return 0;
}

static void cq_report(struct fabric_cq *cq)
{
	struct fabric_channel *channel = (struct fabric_channel *)cq->ibv.channel;
	uint64_t one = 1;
	cq->armed = false;
	fabric_must(channel->count < 64, "events are not read");
	channel->unread[channel->count++] = cq;
	(void)!write(channel->ibv.fd, &one, sizeof(one));
}

static void cq_push(struct ibv_cq *ibv, struct ibv_wc wc)
{
	struct fabric_cq *cq = (struct fabric_cq *)ibv;
	fabric_must(cq->end - cq->begin < (uint32_t)cq->ibv.cqe, "a completion queue overflows");
	cq->entries[cq->end++ % (uint32_t)cq->ibv.cqe] = wc;
	if (cq->armed)
		cq_report(cq);
}

/* Earlier completions cause no event: the caller must poll once more after arming. */
static int fabric_arm(struct ibv_cq *ibv, int solicited)
{
	fabric_must(!solicited, "armed for solicited messages only");
	pthread_mutex_lock(&fabric_lock);
	((struct fabric_cq *)ibv)->armed = true;
	pthread_mutex_unlock(&fabric_lock);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **context)
{
	struct fabric_channel *channel = (struct fabric_channel *)ibv;
	uint64_t one;
	pthread_mutex_lock(&fabric_lock);
	bool any = channel->count > 0;
	if (any) {
		(void)!read(ibv->fd, &one, sizeof(one));
		*cq = &channel->unread[0]->ibv;
		*context = (*cq)->cq_context;
		memmove(channel->unread, channel->unread + 1, --channel->count * sizeof(struct fabric_cq *));
	}
	pthread_mutex_unlock(&fabric_lock);
	errno = EAGAIN;
	return any ? 0 : -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	(void)cq, (void)n;
}

/* --- Queue pairs. --- */

struct fabric_qp *fabric_qp_of(struct ibv_qp *qp)
{
	return (struct fabric_qp *)qp;
}

void fabric_connect(struct fabric_qp *a, struct fabric_qp *b)
{
	a->peer = b;
	b->peer = a;
}

static void busy_set(struct fabric_qp *qp)
{
	bool busy = qp->work_begin != qp->work_end;
	if (busy && !qp->busy) {
		fabric.busy[fabric.busy_count++] = qp;
		qp->busy = fabric.busy_count;
	} else if (!busy && qp->busy) {
		struct fabric_qp *last = fabric.busy[--fabric.busy_count];
		fabric.busy[qp->busy - 1] = last;
		last->busy = qp->busy;
		qp->busy = 0;
	}
}

static void work_end(struct fabric_qp *qp, const struct fabric_work *work, enum ibv_wc_status status)
{
	if (work->signalled || status != IBV_WC_SUCCESS)
		cq_push(qp->ibv.send_cq, (struct ibv_wc){.wr_id = work->wr_id, .status = status});
}

void fabric_qp_fail(struct fabric_qp *qp)
{
	qp->failed = true;
	for (; qp->work_begin != qp->work_end; qp->work_begin++)
		work_end(qp, &qp->works[qp->work_begin % qp->works_max], IBV_WC_WR_FLUSH_ERR);
	busy_set(qp);
	for (; qp->receive_begin != qp->receive_end; qp->receive_begin++) {
		uint64_t wr_id = qp->receives[qp->receive_begin % qp->receives_max].wr_id;
		cq_push(qp->ibv.recv_cq, (struct ibv_wc){.wr_id = wr_id, .status = IBV_WC_WR_FLUSH_ERR});
	}
}

static enum ibv_wc_status do_read(const struct fabric_work *work)
{
	uint64_t bytes = 0, at = work->remote;
	for (uint32_t i = 0; i < work->sge_count; i++)
		bytes += work->sges[i].length;
	if (bytes && !fabric_mr_holds(work->rkey, work->remote, bytes, IBV_ACCESS_REMOTE_READ))
		return IBV_WC_REM_ACCESS_ERR;
	for (uint32_t i = 0; i < work->sge_count; i++) {
		const struct ibv_sge *sge = &work->sges[i];
		if (!fabric_mr_holds(sge->lkey, sge->addr, sge->length, IBV_ACCESS_LOCAL_WRITE))
			return IBV_WC_LOC_PROT_ERR;
		fabric_copy((uint8_t *)(uintptr_t)sge->addr, (const uint8_t *)(uintptr_t)at, sge->length);
		at += sge->length;
	}
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status do_send(struct fabric_qp *qp, const struct fabric_work *work)
{
	struct fabric_qp *peer = qp->peer;
	const struct ibv_sge *from = &work->sges[0];
	if (peer->receive_begin == peer->receive_end)
		return IBV_WC_RNR_RETRY_EXC_ERR;
	uint32_t at = peer->receive_begin++ % peer->receives_max;
	const struct ibv_sge *to = &peer->receives[at].sge;
	fabric_must(work->sge_count == 1 && from->length <= to->length, "a message longer than its receive");
	fabric_must(fabric_mr_holds(from->lkey, from->addr, from->length, 0),
		    "a message from memory that is not registered");
	fabric_must(fabric_mr_holds(to->lkey, to->addr, to->length, IBV_ACCESS_LOCAL_WRITE),
		    "a receive in memory that is not registered");
	memcpy((void *)(uintptr_t)to->addr, (const void *)(uintptr_t)from->addr, from->length);
	cq_push(peer->ibv.recv_cq, (struct ibv_wc){.wr_id = peer->receives[at].wr_id, .byte_len = from->length});
	return IBV_WC_SUCCESS;
}

static void work_do(struct fabric_qp *qp)
{
	struct fabric_work work = qp->works[qp->work_begin++ % qp->works_max];
	enum ibv_wc_status status = IBV_WC_RETRY_EXC_ERR;
	busy_set(qp);
	if (qp->peer && !qp->peer->failed)
		status = work.opcode == IBV_WR_SEND ? do_send(qp, &work) : do_read(&work);
	work_end(qp, &work, status);
	if (status != IBV_WC_SUCCESS)
		fabric_qp_fail(qp);
}

/* A device does not wait for a processor, so this does the work that the device's thread has left for more than
 * LATE_NS. */
static void works_catch_up(const struct ibv_cq *cq)
{
	for (uint32_t i = fabric.busy_count; i-- > 0;) {
		struct fabric_qp *qp = fabric.busy[i];
		while (qp->ibv.send_cq == cq && qp->work_begin != qp->work_end &&
		       qp->works[qp->work_begin % qp->works_max].posted_ns + LATE_NS < gw_now_ns())
			work_do(qp);
		i = i < fabric.busy_count ? i : fabric.busy_count;
	}
}

static int fabric_poll(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
	struct fabric_cq *cq = (struct fabric_cq *)ibv;
	int got = 0;
	pthread_mutex_lock(&fabric_lock);
	works_catch_up(ibv);
	while (got < n && cq->begin != cq->end)
		wc[got++] = cq->entries[cq->begin++ % (uint32_t)cq->ibv.cqe];
	pthread_mutex_unlock(&fabric_lock);
	return got;
}

/* The device's thread. It runs until the process ends. */
static void *device_run(void *argument)
{
	(void)argument;
	pthread_mutex_lock(&fabric_lock);
	for (;;) {
		if (!fabric.busy_count) {
			pthread_cond_wait(&fabric.posted, &fabric_lock);
			continue;
		}
		work_do(fabric.busy[gw_mix64(++fabric.seed) % fabric.busy_count]);
		/* Let other threads post, poll and deregister memory in between. */
		pthread_mutex_unlock(&fabric_lock);
		pthread_mutex_lock(&fabric_lock);
	}
	return NULL;
}

static uint8_t message_type(const struct ibv_send_wr *wr)
{
	return *(const uint8_t *)(uintptr_t)wr->sg_list[0].addr % FABRIC_TYPES;
}

static int fabric_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fabric_qp *qp = fabric_qp_of(ibv);
	(void)bad;
	pthread_mutex_lock(&fabric_lock);
	if (wr->opcode == IBV_WR_SEND)
		fabric.counts.posts[message_type(wr)]++;
	for (; wr; wr = wr->next) {
		fabric_must(qp->work_end - qp->work_begin < qp->works_max && wr->num_sge <= SGES_MAX,
			    "too much work is posted");
		struct fabric_work *work = &qp->works[qp->work_end++ % qp->works_max];
		*work = (struct fabric_work){.wr_id = wr->wr_id,
					     .remote = wr->wr.rdma.remote_addr,
					     .posted_ns = gw_now_ns(),
					     .rkey = wr->wr.rdma.rkey,
					     .sge_count = (uint32_t)wr->num_sge,
					     .opcode = wr->opcode,
					     .signalled = wr->send_flags & IBV_SEND_SIGNALED};
		if (wr->num_sge)
			memcpy(work->sges, wr->sg_list, (size_t)wr->num_sge * sizeof(struct ibv_sge));
		fabric.reads.reads += wr->opcode == IBV_WR_RDMA_READ;
		for (int i = 0; wr->opcode == IBV_WR_RDMA_READ && i < wr->num_sge; i++)
			fabric.reads.bytes += wr->sg_list[i].length;
		if (wr->opcode == IBV_WR_SEND) {
			fabric.counts.messages[message_type(wr)]++;
			fabric.counts.message_bytes += wr->sg_list[0].length;
		}
	}
	busy_set(qp);
	if (qp->failed)
		fabric_qp_fail(qp);
	pthread_cond_signal(&fabric.posted);
	pthread_mutex_unlock(&fabric_lock);
	return 0;
}

struct fabric_reads fabric_reads(void)
{
	pthread_mutex_lock(&fabric_lock);
	struct fabric_reads reads = fabric.reads;
	pthread_mutex_unlock(&fabric_lock);
	return reads;
}

struct fabric_counts fabric_counts(void)
{
	pthread_mutex_lock(&fabric_lock);
	struct fabric_counts counts = fabric.counts;
	counts.qps_open = fabric.qp_count;
	counts.pinned_bytes = fabric_pinned();
	counts.registrations = fabric_registrations();
	pthread_mutex_unlock(&fabric_lock);
	return counts;
}

static int fabric_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fabric_qp *qp = fabric_qp_of(ibv);
	(void)bad;
	pthread_mutex_lock(&fabric_lock);
	fabric_must(qp->receive_end - qp->receive_begin < qp->receives_max && wr->num_sge == 1 && !wr->next,
		    "a receive that the device does not support");
	qp->receives[qp->receive_end++ % qp->receives_max] = (struct fabric_receive){wr->wr_id, wr->sg_list[0]};
	if (qp->failed)
		fabric_qp_fail(qp);
	pthread_mutex_unlock(&fabric_lock);
	return 0;
}

static uint32_t power_of_two(uint32_t least)
{
	uint32_t power = 1;
	while (power < least)
		power *= 2;
	return power;
}

struct ibv_qp *fabric_qp_create(struct ibv_context *context, struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
	struct fabric_qp *qp = fabric_calloc(sizeof(*qp));
	pthread_t thread;
	fabric_must(init->cap.max_send_wr && init->cap.max_send_wr <= WORKS_MAX && init->cap.max_recv_wr <= WORKS_MAX,
		    "a queue pair of impossible size");
	qp->works_max = power_of_two(init->cap.max_send_wr);
	qp->receives_max = power_of_two(init->cap.max_recv_wr);
	qp->works = fabric_calloc(qp->works_max * sizeof(*qp->works));
	qp->receives = fabric_calloc(qp->receives_max * sizeof(*qp->receives));
	pthread_mutex_lock(&fabric_lock);
	qp->ibv = (struct ibv_qp){.context = context,
				  .pd = pd,
				  .send_cq = init->send_cq,
				  .recv_cq = init->recv_cq,
				  .qp_num = fabric.next_qp++};
	fabric_must(fabric.qp_count < QPS_MAX, "more queue pairs than the device has");
	qp->at = fabric.qp_count;
	fabric.qps[fabric.qp_count++] = qp;
	fabric.counts.qps_made++;
	((struct fabric_cq *)init->send_cq)->qp_count++;
	if (!fabric.running) {
		fabric_must(pthread_create(&thread, NULL, device_run, NULL) == 0, "cannot start the device's thread");
		pthread_detach(thread);
	}
	fabric.running = true;
	pthread_mutex_unlock(&fabric_lock);
	return &qp->ibv;
}

void fabric_qp_destroy(struct ibv_qp *ibv)
{
	struct fabric_qp *qp = fabric_qp_of(ibv);
	pthread_mutex_lock(&fabric_lock);
	struct fabric_qp *last = fabric.qps[--fabric.qp_count];
	fabric.qps[qp->at] = last;
	last->at = qp->at;
	qp->work_begin = qp->work_end;
	busy_set(qp);
	((struct fabric_cq *)ibv->send_cq)->qp_count--;
	if (qp->peer)
		qp->peer->peer = NULL;
	pthread_mutex_unlock(&fabric_lock);
	free(qp->works);
	free(qp->receives);
	free(qp);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	fabric_must(mask == IBV_QP_STATE && attr->qp_state == IBV_QPS_ERR, "a state other than the error state");
	pthread_mutex_lock(&fabric_lock);
	fabric_qp_fail(fabric_qp_of(qp));
	pthread_mutex_unlock(&fabric_lock);
	return 0;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	(void)qp, (void)mask, (void)init;
	*attr = (struct ibv_qp_attr){.path_mtu = IBV_MTU_4096, .max_rd_atomic = 16};
	return 0;
}

/* --- The device itself. --- */

static int fabric_query_port(struct ibv_context *context, uint8_t number, struct ibv_port_attr *attr, size_t bytes)
{
	(void)context;
	fabric_must(number == 1, "a port other than the only one");
	memset(attr, 0, bytes);
	attr->max_msg_sz = 1u << 30;
	attr->active_speed = 32; /* 4 lanes of 25 Gb/s */
	attr->active_width = 2;
	return 0;
}

struct ibv_context *fabric_context(void)
{
	struct verbs_context *verbs = &fabric.contexts[fabric.turn];
	if (fabric.gone)
		return NULL;
	if (verbs->sz)
		return &verbs->context;
	snprintf(fabric.device.name, sizeof(fabric.device.name), "fabric_0");
	fabric.device.transport_type = IBV_TRANSPORT_IB;
	*verbs = (struct verbs_context){.sz = sizeof(*verbs), .query_port = fabric_query_port};
	verbs->context = (struct ibv_context){.device = &fabric.device,
					      .num_comp_vectors = 1,
					      .abi_compat = __VERBS_ABI_IS_EXTENDED,
					      .async_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
					      .cmd_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
					      .ops = {.poll_cq = fabric_poll,
						      .req_notify_cq = fabric_arm,
						      .post_send = fabric_post_send,
						      .post_recv = fabric_post_recv}};
	return &verbs->context;
}

void fabric_remove(void)
{
	pthread_mutex_lock(&fabric_lock);
	for (uint32_t i = 0; i < fabric.qp_count; i++)
		fabric_qp_fail(fabric.qps[i]);
	fabric_send_removed(fabric_context());
	fabric.gone = true;
	pthread_mutex_unlock(&fabric_lock);
}

void fabric_return(void)
{
	pthread_mutex_lock(&fabric_lock);
	fabric_must(++fabric.turn < DEVICES, "too many devices");
	fabric.gone = false;
	pthread_mutex_unlock(&fabric_lock);
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	*attr = (struct ibv_device_attr){.max_qp_wr = WORKS_MAX,
					 .max_sge = SGES_MAX,
					 .max_sge_rd = SGES_MAX,
					 .max_cqe = 1 << 20,
					 .max_qp_rd_atom = 16,
					 .max_qp_init_rd_atom = 16,
					 .atomic_cap = IBV_ATOMIC_HCA,
					 .phys_port_cnt = 1};
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = fabric_calloc(sizeof(*pd));
	pd->context = context;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	pthread_mutex_lock(&fabric_lock);
	fabric_must(!fabric_mr_in(pd), "a domain with memory in it is destroyed");
	for (uint32_t i = 0; i < fabric.qp_count; i++)
		fabric_must(fabric.qps[i]->ibv.pd != pd, "a domain with queue pairs in it is destroyed");
	pthread_mutex_unlock(&fabric_lock);
	free(pd);
	return 0;
}

struct ibv_device **ibv_get_device_list(int *count)
{
	struct ibv_device **list = fabric_calloc(2 * sizeof(struct ibv_device *));
	pthread_mutex_lock(&fabric_lock);
	const struct ibv_context *context = fabric_context();
	if (context)
		list[0] = context->device;
	*count = context != NULL;
	pthread_mutex_unlock(&fabric_lock);
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
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
	(void)context, (void)event;
	errno = EAGAIN;
	return -1;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	static const char *const names[] = {[IBV_WC_SUCCESS] = "success",
					    [IBV_WC_LOC_PROT_ERR] = "local protection error",
					    [IBV_WC_WR_FLUSH_ERR] = "Work Request Flushed Error",
					    [IBV_WC_REM_ACCESS_ERR] = "remote access error",
					    [IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
					    [IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
					    [IBV_WC_FATAL_ERR] = "fatal error",
					    [IBV_WC_GENERAL_ERR] = "general error"};
	const char *name = (size_t)status < sizeof(names) / sizeof(names[0]) ? names[status] : NULL;
	return name ? name : "unknown";
}
