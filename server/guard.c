/* One server per part and host: a lock on a file in the user's runtime folder, held as long as the process lives, so
 * that a server that was killed leaves nothing to clean up. The file's text says who holds it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

/* The text of a lock: who has it, "" if he has not said so yet. */
static void read_text(int fd, char *text, size_t bytes)
{
	ssize_t n = pread(fd, text, bytes - 1, 0);
	text[n > 0 ? n : 0] = 0;
}

static gw_status name_holder(int fd, const struct gw_server *server)
{
	char holder[256];
	read_text(fd, holder, sizeof(holder));
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

/* Whether the file's text, "pid 12 at 127.0.0.1:30050", is of the port and of a process that lives. Its lock is not
 * tried: that would be in the way of a server that takes it just then. */
static bool is_of_port(int folder, const char *name, uint16_t port, char *holder, size_t bytes)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), pid;
	if (fd < 0)
		return false;
	read_text(fd, holder, bytes);
	close(fd);
	const char *colon = strrchr(holder, ':');
	return colon && strtoul(colon + 1, NULL, 10) == port && sscanf(holder, "pid %d at ", &pid) == 1 && pid > 0 &&
	       kill(pid, 0) == 0;
}

bool gw_server_find_holder(uint16_t port, char *holder, size_t bytes)
{
	char path[GW_RUNTIME_PATH_MAX];
	DIR *folder = gw_runtime_folder(path) == GW_OK ? opendir(path) : NULL;
	bool found = false;
	for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
		if (strncmp(entry->d_name, "part-", 5) == 0)
			found = is_of_port(dirfd(folder), entry->d_name, port, holder, bytes);
	}
	if (folder)
		closedir(folder);
	return found;
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
