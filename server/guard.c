/* Ensures one server per part and host, by a lock on a file in the user's runtime folder, held while the process lives.
 * The file's text names the process. Files are created and removed under a lock of the folder. The next server that
 * starts removes the files of killed servers. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/server.h"

#define PREFIX         "part-"
#define SUFFIX         ".lock"
#define NAME_MAX_BYTES 64

static void name_lock(const struct gw_server *server, char name[NAME_MAX_BYTES])
{
	snprintf(name, NAME_MAX_BYTES, PREFIX "%016llx-%u" SUFFIX, (unsigned long long)server->meta->graph_id,
		 server->options.part);
}

/* "" if the process that has the lock has not written the text yet. */
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

/* Returns an error that contains the folder's path, so that the user recognises a full folder or the folder of another
 * session. */
static gw_status guard_failed(const char *name, int error)
{
	char path[GW_RUNTIME_PATH_MAX];
	if (gw_runtime_folder_find(path) != GW_OK)
		path[0] = '\0';
	return gw_fail_errno(GW_IO, error, "%s/%s", path, name);
}

static gw_status guard_write(const struct gw_server *server, int fd, const char *name)
{
	char text[GW_ADDRESS_MAX + 64], address[GW_ADDRESS_MAX];
	int n = snprintf(text, sizeof(text), "pid %ld at %s", (long)getpid(),
			 gw_address_text(&server->options.listen, address));
	errno = ENOSPC; /* the error of a short write */
	return ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n ? guard_failed(name, errno) : GW_OK;
}

gw_status gw_server_guard_sign(struct gw_server *server)
{
	char name[NAME_MAX_BYTES];
	name_lock(server, name);
	return server->guard_fd < 0 ? GW_OK : guard_write(server, server->guard_fd, name);
}

/* Opens and locks the file. The caller has locked the folder, so that no server removes the file in between. Releases
 * the server's earlier lock, whose file was removed. */
static gw_status guard_take(struct gw_server *server, int folder, const char *name)
{
	int fd = openat(folder, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return guard_failed(name, errno);
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		gw_status status = errno == EWOULDBLOCK ? name_holder(fd, server) : guard_failed(name, errno);
		close(fd);
		return status;
	}
	gw_status status = guard_write(server, fd, name);
	if (status != GW_OK) {
		close(fd);
		return status;
	}
	if (server->guard_fd >= 0)
		close(server->guard_fd);
	server->guard_fd = fd;
	return GW_OK;
}

static bool is_own_lock(const struct gw_server *server, int folder, const char *name)
{
	struct stat there, ours;
	return fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && fstat(server->guard_fd, &ours) == 0 &&
	       there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
}

static bool is_lock(const char *name)
{
	size_t n = strlen(name);
	return n > strlen(PREFIX SUFFIX) && strncmp(name, PREFIX, strlen(PREFIX)) == 0 &&
	       strcmp(name + n - strlen(SUFFIX), SUFFIX) == 0;
}

/* Whether a lock file is one that no process has locked: that of a killed server. The caller has locked the folder, so
 * no server takes a lock now. */
static bool is_abandoned(int folder, const char *name)
{
	int fd = is_lock(name) ? openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
	bool abandoned = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
	if (fd >= 0)
		close(fd);
	return abandoned;
}

gw_status gw_server_guard(struct gw_server *server)
{
	char name[NAME_MAX_BYTES];
	int folder;
	gw_status status = gw_runtime_folder_open(true, &folder);
	if (status != GW_OK)
		return status;
	name_lock(server, name);
	status = gw_runtime_folder_lock(folder);
	if (status == GW_OK)
		status = guard_take(server, folder, name);
	if (status == GW_OK)
		gw_runtime_folder_sweep(folder, is_abandoned);
	close(folder);
	return status;
}

gw_status gw_server_guard_keep(struct gw_server *server)
{
	char name[NAME_MAX_BYTES];
	int folder;
	if (server->guard_fd < 0)
		return GW_OK; /* the lock was never available; the start has logged this */
	gw_status status = gw_runtime_folder_open(true, &folder);
	if (status != GW_OK)
		return status;
	name_lock(server, name);
	if (is_own_lock(server, folder, name)) {
		gw_runtime_file_touch(folder, name);
	} else {
		status = gw_runtime_folder_lock(folder);
		if (status == GW_OK)
			status = guard_take(server, folder, name);
	}
	close(folder);
	return status;
}

/* Whether the file's text, "pid 12 at 127.0.0.1:30050", has this port and a living process. Does not try the lock,
 * which would disturb a server that takes the lock at this moment. */
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
		if (is_lock(entry->d_name))
			found = is_of_port(dirfd(folder), entry->d_name, port, holder, bytes);
	}
	if (folder)
		closedir(folder);
	return found;
}

void gw_server_unguard(struct gw_server *server)
{
	char name[NAME_MAX_BYTES];
	int folder;
	if (server->guard_fd < 0)
		return;
	/* Under the folder's lock, since another server may be about to lock the file that this one removes. */
	if (gw_runtime_folder_open(false, &folder) == GW_OK) {
		name_lock(server, name);
		if (gw_runtime_folder_lock(folder) == GW_OK && is_own_lock(server, folder, name))
			unlinkat(folder, name, 0);
		close(folder);
	}
	close(server->guard_fd);
	server->guard_fd = -1;
}
