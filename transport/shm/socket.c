/* The names of servers on this host: sockets "shm-NAME" in the user's runtime folder, which other users cannot enter.
 * Both sides still ask the kernel whether the other side is the same user.
 *
 *   listen: lock the folder -> bind "new", listen -> is the name alive? -> rename -> sweep sockets of dead servers
 *   dial:   connect, which succeeds or fails at once
 *
 * A socket gets its name after it listens, so a named socket that refuses belongs to a dead server. The lock lets one
 * server at a time take a name. Otherwise two servers could both find a name free, or one could sweep the new socket of
 * the other. Fails on a name that a live server has, on a folder that is not the user's, and on a name without a
 * listener.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "transport/shm/shm.h"

#define PREFIX     "shm-"
#define UNFINISHED "new" /* never a server's name, since those begin with the prefix */
#define BACKLOG    4096
#define FILE_MAX   (sizeof(PREFIX) + GW_ADDRESS_NAME_MAX)

/* An address has room for a path of 107 bytes, and folders may be longer. So the path goes through the folder's
 * descriptor. */
static struct sockaddr_un address_in(int folder, const char *file)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%.*s", folder, (int)FILE_MAX, file);
	return address;
}

static_assert(sizeof("/proc/self/fd/2147483647/") + FILE_MAX <= sizeof(((struct sockaddr_un *)0)->sun_path), "fits");

/* Whether no socket is bound to the file any more. The check connects with another socket type: the kernel reports
 * whether a socket is bound, and the listener does not notice the attempt. */
static bool is_dead(int folder, const char *file)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	struct sockaddr_un address = address_in(folder, file);
	bool dead = connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 && errno == ECONNREFUSED;
	close(fd);
	return dead;
}

static bool shm_socket_exists(int folder, const char *file)
{
	struct stat ignored;
	return fstatat(folder, file, &ignored, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_dead_server(int folder, const char *file)
{
	return strncmp(file, PREFIX, strlen(PREFIX)) == 0 && strlen(file) < FILE_MAX && is_dead(folder, file);
}

static gw_status shm_socket_nobody(const char *name)
{
	return gw_fail(GW_PEER_LOST, "shm:%s: no server of this user has the name on this host", name);
}

gw_status gw_shm_admit(int fd)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0)
		return gw_fail_errno(GW_REFUSED, errno, "the kernel does not report the owner of the socket");
	if (peer.uid != geteuid())
		return gw_fail(GW_REFUSED,
			       "the other side is user %u, not %u; memory is shared with the same user only",
			       (unsigned)peer.uid, (unsigned)geteuid());
	return GW_OK;
}

gw_status gw_shm_dial(const struct gw_address *address, int *out)
{
	char file[FILE_MAX];
	int folder;
	*out = -1;
	if (!gw_address_name_check(address->host))
		return gw_fail(GW_INVALID, "shm:%.64s is not a valid name", address->host);
	snprintf(file, sizeof(file), PREFIX "%.64s", address->host);
	gw_status status = gw_runtime_folder_open(false, &folder);
	if (status != GW_OK)
		return status == GW_NOT_FOUND ? shm_socket_nobody(address->host) : status;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		status = gw_fail_errno(GW_IO, errno, "socket");
		goto close_folder;
	}
	struct sockaddr_un to = address_in(folder, file);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
		int error = errno;
		if (error == ENOENT || error == ECONNREFUSED)
			status = shm_socket_nobody(address->host);
		else
			status = gw_fail_errno(GW_PEER_LOST, error, "shm:%s", address->host);
	} else {
		status = gw_shm_admit(fd);
	}
	if (status != GW_OK)
		close(fd);
	else
		*out = fd;
close_folder:
	close(folder);
	return status;
}

/* The caller has locked the folder. */
static gw_status listen_and_name_socket(int folder, int fd, const char *name)
{
	char file[FILE_MAX];
	snprintf(file, sizeof(file), PREFIX "%.64s", name);
	unlinkat(folder, UNFINISHED, 0); /* left by a server that died at this point */
	struct sockaddr_un at = address_in(folder, UNFINISHED);
	gw_status status = GW_OK;
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0)
		return gw_fail_errno(GW_IO, errno, "shm:%s: cannot make its socket", name);
	if (listen(fd, BACKLOG) != 0)
		status = gw_fail_errno(GW_IO, errno, "shm:%s", name);
	else if (shm_socket_exists(folder, file) && !is_dead(folder, file))
		status = gw_fail(GW_BUSY, "shm:%s is taken by another server of this user", name);
	else if (renameat(folder, UNFINISHED, folder, file) != 0)
		status = gw_fail_errno(GW_IO, errno, "shm:%s: cannot name its socket", name);
	if (status != GW_OK)
		unlinkat(folder, UNFINISHED, 0);
	return status;
}

gw_status gw_shm_socket_listen(const char *name, int *out)
{
	int folder;
	*out = -1;
	gw_status status = gw_runtime_folder_open(true, &folder);
	if (status != GW_OK)
		return status;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		status = gw_fail_errno(GW_IO, errno, "socket");
	else
		status = gw_runtime_folder_lock(folder);
	if (status == GW_OK)
		status = listen_and_name_socket(folder, fd, name);
	if (status == GW_OK) {
		gw_runtime_folder_sweep(folder, is_dead_server);
		*out = fd;
	} else if (fd >= 0) {
		close(fd);
	}
	close(folder);
	return status;
}

/* No other server takes the name while this one lives, so a live socket under the name is this server's. */
gw_status gw_shm_socket_keep(const char *name, int *out)
{
	char file[FILE_MAX];
	int folder;
	*out = -1;
	gw_status status = gw_runtime_folder_open(true, &folder);
	if (status != GW_OK)
		return status;
	snprintf(file, sizeof(file), PREFIX "%.64s", name);
	bool there = shm_socket_exists(folder, file) && !is_dead(folder, file);
	if (there)
		gw_runtime_file_touch(folder, file);
	close(folder);
	return there ? GW_OK : gw_shm_socket_listen(name, out);
}

void gw_shm_socket_forget(const char *name)
{
	char file[FILE_MAX];
	int folder;
	if (gw_runtime_folder_open(false, &folder))
		return;
	snprintf(file, sizeof(file), PREFIX "%.64s", name);
	unlinkat(folder, file, 0);
	close(folder);
}
