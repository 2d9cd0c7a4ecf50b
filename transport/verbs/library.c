/* Opens libibverbs and librdmacm of this host when RDMA is first needed.
 *
 *   gw_verbs_library ─▶ dlopen of both ─▶ dlsym of each function ─▶ all found, or GW_UNSUPPORTED
 *
 * The host provides both libraries, because their providers must fit its kernel and cards. Graphwire therefore does not
 * link them. This file defines the functions that Graphwire calls under the libraries' own names; each one jumps to the
 * library's function. The inline functions of verbs.h (posting, polling, arming) call through the device's context and
 * bypass this file.
 *
 * The names are weak and hidden: a test can replace them, and calls of other code in the process do not reach them.
 * dlsym without a version returns the newest version of a name, which is the version that the linker would choose.
 *
 * Fails where a library is missing, or is too old and lacks a function that has no substitute. The log reports the
 * failure once: as a warning where the kernel has an RDMA device.
 */
#include "transport/verbs/library.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/errors/log.h"

#define PACKAGES "sudo apt install libibverbs1 librdmacm1 ibverbs-providers"

/* verbs.h defines macros of these names; this file needs the functions. */
#undef ibv_query_port
#undef ibv_reg_mr

/* RETURNS(type, name, parameters, arguments): a function that its library must have. GIVES: the same for a function of
 * type void. OR: a function that older libraries lack, with the value that it then returns. */
/* clang-format off */
#define VERBS_CALLS(RETURNS, GIVES, OR)                                                                                \
	RETURNS(struct ibv_device **, ibv_get_device_list, (int *num_devices), (num_devices))                          \
	GIVES(ibv_free_device_list, (struct ibv_device **list), (list))                                                \
	RETURNS(const char *, ibv_get_device_name, (struct ibv_device *device), (device))                              \
	RETURNS(struct ibv_context *, ibv_open_device, (struct ibv_device *device), (device))                          \
	RETURNS(int, ibv_close_device, (struct ibv_context *context), (context))                                       \
	RETURNS(int, ibv_query_device, (struct ibv_context *context, struct ibv_device_attr *attr), (context,          \
		attr))                                                                                                 \
	RETURNS(int, ibv_query_port, (struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr          \
		*attr), (context, port, attr))                                                                         \
	OR(ENOSYS, int, _ibv_query_gid_ex, (struct ibv_context *context, uint32_t port_num, uint32_t                   \
		gid_index, struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size), (context,                  \
		port_num, gid_index, entry, flags, entry_size))                                                        \
	RETURNS(int, ibv_get_async_event, (struct ibv_context *context, struct ibv_async_event *event),                \
		(context, event))                                                                                      \
	GIVES(ibv_ack_async_event, (struct ibv_async_event *event), (event))                                           \
	RETURNS(const char *, ibv_event_type_str, (enum ibv_event_type event), (event))                                \
	RETURNS(const char *, ibv_wc_status_str, (enum ibv_wc_status status), (status))                                \
	RETURNS(int, ibv_fork_init, (void), ())                                                                        \
	OR(IBV_FORK_DISABLED, enum ibv_fork_status, ibv_is_fork_initialized, (void), ())                               \
	RETURNS(struct ibv_pd *, ibv_alloc_pd, (struct ibv_context *context), (context))                               \
	RETURNS(int, ibv_dealloc_pd, (struct ibv_pd *pd), (pd))                                                        \
	RETURNS(struct ibv_mr *, ibv_reg_mr, (struct ibv_pd *pd, void *addr, size_t length, int access), (pd,          \
		addr, length, access))                                                                                 \
	OR(NULL, struct ibv_mr *, ibv_reg_mr_iova2, (struct ibv_pd *pd, void *addr, size_t length, uint64_t            \
		iova, unsigned access), (pd, addr, length, iova, access))                                              \
	RETURNS(int, ibv_dereg_mr, (struct ibv_mr *mr), (mr))                                                          \
	RETURNS(struct ibv_comp_channel *, ibv_create_comp_channel, (struct ibv_context *context), (context))          \
	RETURNS(int, ibv_destroy_comp_channel, (struct ibv_comp_channel *channel), (channel))                          \
	RETURNS(struct ibv_cq *, ibv_create_cq, (struct ibv_context *context, int cqe, void *cq_context,               \
		struct ibv_comp_channel *channel, int comp_vector), (context, cqe, cq_context, channel,                \
		comp_vector))                                                                                          \
	RETURNS(int, ibv_resize_cq, (struct ibv_cq *cq, int cqe), (cq, cqe))                                           \
	RETURNS(int, ibv_destroy_cq, (struct ibv_cq *cq), (cq))                                                        \
	RETURNS(int, ibv_get_cq_event, (struct ibv_comp_channel *channel, struct ibv_cq **cq, void                     \
		**cq_context), (channel, cq, cq_context))                                                              \
	GIVES(ibv_ack_cq_events, (struct ibv_cq *cq, unsigned events), (cq, events))                                   \
	RETURNS(struct ibv_qp *, ibv_create_qp, (struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr),            \
		(pd, qp_init_attr))                                                                                    \
	RETURNS(int, ibv_modify_qp, (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask), (qp, attr,                \
		mask))                                                                                                 \
	RETURNS(int, ibv_query_qp, (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct                      \
		ibv_qp_init_attr *init), (qp, attr, mask, init))                                                       \
	RETURNS(int, ibv_destroy_qp, (struct ibv_qp *qp), (qp))

#define CM_CALLS(RETURNS, GIVES, OR)                                                                                   \
	RETURNS(struct rdma_event_channel *, rdma_create_event_channel, (void), ())                                    \
	GIVES(rdma_destroy_event_channel, (struct rdma_event_channel *channel), (channel))                             \
	RETURNS(int, rdma_get_cm_event, (struct rdma_event_channel *channel, struct rdma_cm_event **event),            \
		(channel, event))                                                                                      \
	RETURNS(int, rdma_ack_cm_event, (struct rdma_cm_event *event), (event))                                        \
	RETURNS(int, rdma_create_id, (struct rdma_event_channel *channel, struct rdma_cm_id **id, void                 \
		*context, enum rdma_port_space ps), (channel, id, context, ps))                                        \
	RETURNS(int, rdma_destroy_id, (struct rdma_cm_id *id), (id))                                                   \
	GIVES(rdma_destroy_ep, (struct rdma_cm_id *id), (id))                                                          \
	RETURNS(int, rdma_set_option, (struct rdma_cm_id *id, int level, int optname, void *optval, size_t             \
		optlen), (id, level, optname, optval, optlen))                                                         \
	RETURNS(int, rdma_bind_addr, (struct rdma_cm_id *id, struct sockaddr *address), (id, address))                 \
	RETURNS(__be16, rdma_get_src_port, (struct rdma_cm_id *id), (id))                                              \
	RETURNS(int, rdma_resolve_addr, (struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr             \
		*dst_addr, int timeout_ms), (id, src_addr, dst_addr, timeout_ms))                                      \
	RETURNS(int, rdma_resolve_route, (struct rdma_cm_id *id, int timeout_ms), (id, timeout_ms))                    \
	RETURNS(int, rdma_create_qp, (struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr                \
		*qp_init_attr), (id, pd, qp_init_attr))                                                                \
	GIVES(rdma_destroy_qp, (struct rdma_cm_id *id), (id))                                                          \
	RETURNS(int, rdma_listen, (struct rdma_cm_id *id, int backlog), (id, backlog))                                 \
	RETURNS(int, rdma_connect, (struct rdma_cm_id *id, struct rdma_conn_param *param), (id, param))                \
	RETURNS(int, rdma_accept, (struct rdma_cm_id *id, struct rdma_conn_param *param), (id, param))                 \
	RETURNS(int, rdma_reject, (struct rdma_cm_id *id, const void *private_data, uint8_t                            \
		private_data_len), (id, private_data, private_data_len))                                               \
	RETURNS(int, rdma_disconnect, (struct rdma_cm_id *id), (id))
/* clang-format on */

/* The libraries' functions. */
static struct {
#define POINTER_RETURNS(type, name, parameters, arguments)   type(*name) parameters;
#define POINTER_GIVES(name, parameters, arguments)           void(*name) parameters;
#define POINTER_OR(value, type, name, parameters, arguments) type(*name) parameters;
	VERBS_CALLS(POINTER_RETURNS, POINTER_GIVES, POINTER_OR)
	CM_CALLS(POINTER_RETURNS, POINTER_GIVES, POINTER_OR)
} real;

/* Our functions under the libraries' names. */
#define JUMP_RETURNS(type, name, parameters, arguments)                                                                \
	__attribute__((weak)) type name parameters                                                                     \
	{                                                                                                              \
		return real.name arguments;                                                                            \
	}
#define JUMP_GIVES(name, parameters, arguments)                                                                        \
	__attribute__((weak)) void name parameters                                                                     \
	{                                                                                                              \
		real.name arguments;                                                                                   \
	}
#define JUMP_OR(value, type, name, parameters, arguments)                                                              \
	__attribute__((weak)) type name parameters                                                                     \
	{                                                                                                              \
		if (real.name)                                                                                         \
			return real.name arguments;                                                                    \
		errno = ENOSYS;                                                                                        \
		return value;                                                                                          \
	}
VERBS_CALLS(JUMP_RETURNS, JUMP_GIVES, JUMP_OR)
CM_CALLS(JUMP_RETURNS, JUMP_GIVES, JUMP_OR)

struct call {
	const char *name;
	void *at; /* the pointer in real */
	bool must;
};

#define ROW_RETURNS(type, name, parameters, arguments)   {#name, &real.name, true},
#define ROW_GIVES(name, parameters, arguments)           {#name, &real.name, true},
#define ROW_OR(value, type, name, parameters, arguments) {#name, &real.name, false},
static const struct call verbs_calls[] = {VERBS_CALLS(ROW_RETURNS, ROW_GIVES, ROW_OR)};
static const struct call cm_calls[] = {CM_CALLS(ROW_RETURNS, ROW_GIVES, ROW_OR)};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char missing[256]; /* why RDMA cannot be used; empty: RDMA can be used */

static bool library_open(const char *file, const struct call *calls, size_t n)
{
	void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		const char *why = dlerror();
		if (why && strstr(why, "No such file"))
			why = "not installed";
		snprintf(missing, sizeof(missing), "RDMA: %s: %.100s; %s", file, why ? why : "", PACKAGES);
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		void *function = dlsym(handle, calls[i].name);
		if (!function && calls[i].must) {
			snprintf(missing, sizeof(missing), "RDMA: %s of this host is too old: it has no %s; newer: %s",
				 file, calls[i].name, PACKAGES);
			dlclose(handle);
			return false;
		}
		memcpy(calls[i].at, &function, sizeof(function));
	}
	return true; /* never closed: librdmacm has per-thread state and atfork handlers */
}

/* Whether the kernel has an RDMA device, which Graphwire then cannot use. */
static bool is_device_here(void)
{
	bool any = false;
	DIR *folder = opendir("/sys/class/infiniband");
	for (struct dirent *entry; folder && !any && (entry = readdir(folder));)
		any = entry->d_name[0] != '.';
	if (folder)
		closedir(folder);
	return any;
}

static void libraries_open(void)
{
	if (library_open("libibverbs.so.1", verbs_calls, sizeof(verbs_calls) / sizeof(verbs_calls[0])))
		library_open("librdmacm.so.1", cm_calls, sizeof(cm_calls) / sizeof(cm_calls[0]));
	if (missing[0])
		gw_log(is_device_here() ? GW_LOG_WARN : GW_LOG_INFO, "%s", missing);
}

gw_status gw_verbs_library(void)
{
	pthread_once(&once, libraries_open);
	return missing[0] ? gw_fail(GW_UNSUPPORTED, "%s", missing) : GW_OK;
}
