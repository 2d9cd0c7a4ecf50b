/* Limits the bytes of reads in flight toward one port of a device.
 *
 * Many servers may send their read responses at once. All bytes that were requested from them then queue in the switch
 * before this port. Beyond the switch's buffers packets are dropped, or pauses reach back into the network. All queue
 * pairs of the process that read through one port therefore share a window: the bytes that the port receives in
 * WINDOW_US. Each queue pair with reads in flight may fill an equal share of it:
 *
 *   share = window / queue pairs that read            SHARE_MIN to VERBS_WINDOW_BYTES, reads cut at a quarter of it
 *
 * No queue pair waits for another's share: a queue pair whose reads have all ended is not a reader, and a queue pair
 * without reads in flight may always post. The process has one count of readers for each port. Its threads read the
 * count before they post. A thread changes it only when an uncounted queue pair begins to read, and before the thread
 * sleeps: not for every read. The price is that the sum of bytes in flight is only near the window. Beyond window /
 * SHARE_MIN readers the sum grows with their number.
 */
#include "transport/verbs/verbs.h"

#define WINDOW_US  1000u
#define WINDOW_MIN (2ull << 20)
#define WINDOW_MAX (64ull << 20)
#define SHARE_MIN  (16u << 10)
#define READ_MIN   (4u << 10)
#define SPEED      12500000000ull /* bytes a second, assumed for a port that does not report its speed */

static uint64_t lane_megabits_a_second(uint8_t speed)
{
	static const struct {
		uint8_t code;
		uint32_t megabits;
	} speeds[] = {{1, 2500},   {2, 5000},   {4, 10000},  {8, 10000},
		      {16, 14000}, {32, 25000}, {64, 50000}, {128, 100000}};
	for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
		if (speeds[i].code == speed)
			return speeds[i].megabits;
	return 0;
}

static uint64_t window_lanes(uint8_t width)
{
	switch (width) {
	case 1:
		return 1;
	case 2:
		return 4;
	case 4:
		return 8;
	case 8:
		return 12;
	case 16:
		return 2;
	default:
		return 0;
	}
}

uint64_t gw_verbs_port_window(uint64_t bytes_per_second)
{
	uint64_t window = (bytes_per_second ? bytes_per_second : SPEED) / 1000000 * WINDOW_US;
	window = window < WINDOW_MIN ? WINDOW_MIN : window;
	return window < WINDOW_MAX ? window : WINDOW_MAX;
}

void gw_verbs_ports_begin(struct verbs_device *device)
{
	for (uint32_t i = 0; i < VERBS_PORTS_MAX; i++) {
		struct ibv_port_attr attr;
		uint64_t speed = 0;
		if (i < device->attr.phys_port_cnt && ibv_query_port(device->context, (uint8_t)(i + 1), &attr) == 0)
			speed = lane_megabits_a_second(attr.active_speed) * window_lanes(attr.active_width) * 125000;
		device->ports[i].window = gw_verbs_port_window(speed);
	}
}

void gw_verbs_share_work_out(struct verbs_share *share, uint32_t readers)
{
	uint64_t bytes = share->port->window / (readers ? readers : 1);
	bytes = bytes < SHARE_MIN ? SHARE_MIN : bytes;
	share->readers = readers;
	share->bytes = bytes < VERBS_WINDOW_BYTES ? (uint32_t)bytes : VERBS_WINDOW_BYTES;
	share->read_bytes =
		share->bytes / 4 < VERBS_READ_BYTES ? share->bytes / 4 / READ_MIN * READ_MIN : VERBS_READ_BYTES;
}

void gw_verbs_share_raise(struct verbs_share *share)
{
	share->counted++;
	atomic_fetch_add_explicit(&share->port->readers, 1, memory_order_relaxed);
}

void gw_verbs_share_settle(struct verbs_share *share)
{
	uint32_t fewer = share->counted - share->reading;
	if (!fewer)
		return;
	share->counted = share->reading;
	atomic_fetch_sub_explicit(&share->port->readers, fewer, memory_order_relaxed);
}
