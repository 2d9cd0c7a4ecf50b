/* One server per part and host: a lock on a file in the user's runtime folder, held as long as the process lives, so
 * that a server that was killed leaves nothing to clean up. The file's text says who holds it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "server/server.h"

static gw_status find_path(const struct gw_server *server, char **path)
{
	char folder[GW_RUNTIME_PATH_MAX];
	gw_status status = gw_runtime_folder(folder);
	if (status != GW_OK)
		return status;
	*path = gw_format("%s/part-%016llx-%u.lock", folder, (unsigned long long)server->meta->graph_id,
			  server->options.part);
	return *path ? GW_OK : GW_NO_MEMORY;
}

static gw_status name_holder(int fd, const struct gw_server *server)
{
	char holder[256] = "";
	ssize_t n = pread(fd, holder, sizeof(holder) - 1, 0);
	holder[n > 0 ? n : 0] = 0;
	return gw_fail(GW_BUSY, "this host serves part %u of %s already: %s; use that server, or stop it first",
		       server->options.part, server->meta->graph_name,
		       *holder ? holder : "by a process that is starting");
}

gw_status gw_server_guard(struct gw_server *server)
{
	gw_status found = find_path(server, &server->guard_path);
	if (found != GW_OK)
		return found;
	int fd = open(server->guard_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return gw_fail_errno(GW_IO, errno, "%s", server->guard_path);
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		gw_status status = errno == EWOULDBLOCK ? name_holder(fd, server)
							: gw_fail_errno(GW_IO, errno, "%s", server->guard_path);
		close(fd);
		return status;
	}
	char text[GW_ADDRESS_MAX + 64], address[GW_ADDRESS_MAX];
	int n = snprintf(text, sizeof(text), "pid %ld at %s", (long)getpid(),
			 gw_address_text(&server->options.listen, address));
	if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n) {
		gw_status status = gw_fail_errno(GW_IO, errno, "%s", server->guard_path);
		close(fd);
		return status;
	}
	server->guard_fd = fd;
	return GW_OK;
}

void gw_server_unguard(struct gw_server *server)
{
	if (server->guard_fd >= 0) {
		/* The file stays: removing it would let a third process lock a new one of its name beside the second's.
		 */
		close(server->guard_fd);
		server->guard_fd = -1;
	}
	gw_free(server->guard_path);
	server->guard_path = NULL;
}
