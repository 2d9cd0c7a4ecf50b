/* Frames: a head, with the descriptors, then the body. All calls wait in poll, until a deadline. A frame that has begun
 * must continue: a pause of STALL_NS ends it. Fails on anything that is not such a frame, on a body that is too long,
 * and when the other side is gone. */
#include "server/handover_wire.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"

#define MAGIC    0x6f487747u /* "GwHo" */
#define STALL_NS (10 * GW_NS_PER_SECOND)

enum frame_kind { FRAME_JSON = 1, FRAME_BYTES = 2 };

struct frame_head {
	uint32_t magic, kind;
	uint64_t bytes;
};

static gw_status peer_gone(void)
{
	return gw_fail(GW_PEER_LOST, "the other server has closed the connection");
}

/* Waits until the socket is ready for `events`. */
static gw_status frame_wait(int fd, short events, int watched, uint64_t deadline_ns)
{
	for (;;) {
		struct pollfd polled[2] = {{.fd = fd, .events = events}, {.fd = watched, .events = POLLIN}};
		uint64_t now = gw_now_ns();
		int timeout = -1;
		if (deadline_ns != GW_NO_DEADLINE)
			timeout = now >= deadline_ns ? 0 : (int)((deadline_ns - now) / GW_NS_PER_MS + 1);
		int n = poll(polled, 2, timeout);
		if (n < 0 && errno != EINTR)
			return gw_fail_errno(GW_IO, errno, "poll");
		if (n > 0 && polled[0].revents)
			return GW_OK;
		if (n > 0)
			return gw_fail(GW_CANCELLED, "a signal came");
		if (n == 0)
			return gw_fail(GW_DEADLINE, "the other server does not answer");
	}
}

static gw_status frame_put(int fd, const struct msghdr *message, size_t *sent, uint64_t deadline_ns)
{
	for (;;) {
		ssize_t n = sendmsg(fd, message, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0) {
			*sent = (size_t)n;
			return GW_OK;
		}
		if (errno == EPIPE || errno == ECONNRESET)
			return peer_gone();
		if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)
			return gw_fail_errno(GW_IO, errno, "a message to the other server");
		gw_status status = errno == EINTR ? GW_OK : frame_wait(fd, POLLOUT, -1, deadline_ns);
		if (status != GW_OK)
			return status;
	}
}

gw_status gw_handover_send(int fd, const json_t *json, const void *bytes, uint64_t byte_count, const int *fds,
			   uint32_t fd_count, uint64_t deadline_ns)
{
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	struct frame_head head = {.magic = MAGIC, .kind = json ? FRAME_JSON : FRAME_BYTES};
	union {
		char room[CMSG_SPACE(GW_HANDOVER_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	if (json && !text)
		return gw_fail(GW_NO_MEMORY, "a message to the other server");
	head.bytes = json ? strlen(text) : byte_count;
	struct iovec pieces[2] = {{&head, sizeof(head)},
				  {.iov_base = json ? text : (void *)(uintptr_t)bytes, .iov_len = head.bytes}};
	struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
	if (fd_count) {
		message.msg_control = control.room;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(rights), fds, fd_count * sizeof(int));
	}
	gw_status status = GW_OK;
	while (status == GW_OK && pieces[0].iov_len + pieces[1].iov_len) {
		size_t sent = 0;
		status = frame_put(fd, &message, &sent, deadline_ns);
		message.msg_control = NULL;
		message.msg_controllen = 0;
		for (int i = 0; i < 2; i++) {
			size_t of = sent < pieces[i].iov_len ? sent : pieces[i].iov_len;
			pieces[i].iov_base = (uint8_t *)pieces[i].iov_base + of;
			pieces[i].iov_len -= of;
			sent -= of;
		}
	}
	free(text);
	return status;
}

static void take_fds(struct msghdr *message, struct gw_handover_message *out)
{
	for (struct cmsghdr *rights = CMSG_FIRSTHDR(message); rights; rights = CMSG_NXTHDR(message, rights)) {
		if (rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS)
			continue;
		size_t n = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(rights) + i * sizeof(int), sizeof(int));
			if (out->fd_count < GW_HANDOVER_FDS)
				out->fds[out->fd_count++] = fd;
			else
				close(fd);
		}
	}
}

/* out: NULL if descriptors may not come. */
static gw_status frame_get(int fd, void *bytes, size_t n, struct gw_handover_message *out)
{
	size_t at = 0;
	while (at < n) {
		union {
			char room[CMSG_SPACE(GW_HANDOVER_FDS * sizeof(int))];
			struct cmsghdr align;
		} control;
		struct iovec piece = {(uint8_t *)bytes + at, n - at};
		struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
		if (out) {
			message.msg_control = control.room;
			message.msg_controllen = sizeof(control.room);
		}
		ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			gw_status status = frame_wait(fd, POLLIN, -1, gw_now_ns() + STALL_NS);
			if (status != GW_OK)
				return status;
			continue;
		}
		if (got < 0 && errno == EINTR)
			continue;
		if (got == 0 || (got < 0 && errno == ECONNRESET))
			return peer_gone();
		if (got < 0)
			return gw_fail_errno(GW_IO, errno, "a message of the other server");
		if (out)
			take_fds(&message, out);
		at += (size_t)got;
	}
	return GW_OK;
}

static gw_status frame_body(int fd, const struct frame_head *head, struct gw_handover_message *out)
{
	json_error_t error;
	if (head->magic != MAGIC || (head->kind != FRAME_JSON && head->kind != FRAME_BYTES) ||
	    head->bytes > GW_HANDOVER_BYTES_MAX)
		return gw_fail(GW_PROTOCOL, "the other side is no Graphwire server that hands over");
	out->bytes = gw_malloc(head->bytes + 1);
	if (!out->bytes)
		return GW_NO_MEMORY;
	out->byte_count = head->bytes;
	gw_status status = frame_get(fd, out->bytes, head->bytes, NULL);
	if (status != GW_OK || head->kind == FRAME_BYTES)
		return status;
	out->json = json_loadb((const char *)out->bytes, head->bytes, JSON_REJECT_DUPLICATES, &error);
	gw_free(out->bytes);
	out->bytes = NULL;
	if (!json_is_object(out->json))
		return gw_fail(GW_PROTOCOL, "the other server sent no JSON object");
	return GW_OK;
}

gw_status gw_handover_receive(int fd, int watched, uint64_t deadline_ns, struct gw_handover_message *out)
{
	struct frame_head head;
	*out = (struct gw_handover_message){.fds = {-1, -1, -1, -1}};
	gw_status status = frame_wait(fd, POLLIN, watched, deadline_ns);
	if (status == GW_OK)
		status = frame_get(fd, &head, sizeof(head), out);
	if (status == GW_OK)
		status = frame_body(fd, &head, out);
	if (status != GW_OK)
		gw_handover_message_end(out);
	return status;
}

void gw_handover_message_end(struct gw_handover_message *message)
{
	json_decref(message->json);
	gw_free(message->bytes);
	for (uint32_t i = 0; i < message->fd_count; i++)
		if (message->fds[i] >= 0)
			close(message->fds[i]);
	*message = (struct gw_handover_message){.fds = {-1, -1, -1, -1}};
}

int gw_handover_message_fd(struct gw_handover_message *message, uint32_t i)
{
	if (i >= message->fd_count)
		return -1;
	int fd = message->fds[i];
	message->fds[i] = -1;
	return fd;
}
