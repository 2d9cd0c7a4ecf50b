/* Keys in files. A server on loopback creates a key file for its port, and clients of the same user find it. The folder
 * must belong to this user, and neither it nor the key files give other users access. So no other user of the host can
 * plant or read a key. A key file that a command names (--key-file) may also be root's, and readable for a group that
 * root chose. Fails on a folder or file that other users own or may read, and names it. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/files/replace.h"
#include "core/system/clock.h"
#include "transport/service/service_backend.h"

#define KEY_FILE_BYTES_MIN 16
#define KEY_FILE_BYTES_MAX 1024
#define YOUNG_S            3600                   /* a younger file is not touched */
#define LOCK_NS            (5 * GW_NS_PER_SECOND) /* longer than other servers hold the lock */
#define OTHERWISE                                                                                                      \
	"set XDG_RUNTIME_DIR (a server: --runtime-dir) to a folder of this user, the same for servers and clients on " \
	"this host"

/* Whether or not the folder exists. */
static bool folder_path(char path[GW_RUNTIME_PATH_MAX])
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int n = runtime && *runtime == '/'
			? snprintf(path, GW_RUNTIME_PATH_MAX, "%s/graphwire", runtime)
			: snprintf(path, GW_RUNTIME_PATH_MAX, "/tmp/graphwire-%u", (unsigned)geteuid());
	return n >= 0 && n < GW_RUNTIME_PATH_MAX - 32;
}

/* Creates the folder if `make` is set. */
static gw_status folder_find(char path[GW_RUNTIME_PATH_MAX], bool make)
{
	if (!folder_path(path))
		return gw_fail(GW_INVALID, "XDG_RUNTIME_DIR is too long");
	if (make && mkdir(path, 0700) != 0 && errno != EEXIST)
		return gw_fail_errno(GW_IO, errno, "%s: cannot make the folder of keys; %s", path, OTHERWISE);
	struct stat st;
	if (lstat(path, &st) != 0) {
		if (errno == ENOENT)
			return gw_fail(GW_NOT_FOUND, "%s: no such folder", path);
		return gw_fail_errno(GW_IO, errno, "%s", path);
	}
	if (!S_ISDIR(st.st_mode))
		return gw_fail(GW_REFUSED, "%s: not a folder; %s", path, OTHERWISE);
	if (st.st_uid != geteuid())
		return gw_fail(GW_REFUSED, "%s: user %u owns the folder, and this is user %u; %s", path,
			       (unsigned)st.st_uid, (unsigned)geteuid(), OTHERWISE);
	if (st.st_mode & 077)
		return gw_fail(GW_REFUSED, "%s: other users may enter it; chmod 700 it, or %s", path, OTHERWISE);
	return GW_OK;
}

gw_status gw_runtime_folder(char path[GW_RUNTIME_PATH_MAX])
{
	return folder_find(path, true);
}

gw_status gw_runtime_folder_find(char path[GW_RUNTIME_PATH_MAX])
{
	return folder_find(path, false);
}

gw_status gw_runtime_folder_open(bool make, int *folder)
{
	char path[GW_RUNTIME_PATH_MAX];
	*folder = -1;
	gw_status status = folder_find(path, make);
	if (status != GW_OK)
		return status;
	*folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return *folder < 0 ? gw_fail_errno(GW_IO, errno, "%s", path) : GW_OK;
}

void gw_runtime_file_touch(int folder, const char *file)
{
	struct stat st;
	struct timespec now;
	if (fstatat(folder, file, &st, AT_SYMLINK_NOFOLLOW) != 0 || clock_gettime(CLOCK_REALTIME, &now) != 0)
		return;
	if (now.tv_sec - st.st_mtim.tv_sec >= YOUNG_S || st.st_mtim.tv_sec > now.tv_sec)
		utimensat(folder, file, NULL, AT_SYMLINK_NOFOLLOW);
}

gw_status gw_runtime_folder_lock(int folder)
{
	uint64_t end = gw_now_ns() + LOCK_NS;
	while (flock(folder, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return gw_fail_errno(GW_IO, errno, "cannot lock the runtime folder");
		if (gw_now_ns() >= end)
			return gw_fail(
				GW_BUSY,
				"another server of this user has locked the runtime folder and does not release it; "
				"is it stopped?");
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return GW_OK;
}

void gw_runtime_folder_sweep(int folder, bool (*is_stale)(int folder, const char *file))
{
	int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = again < 0 ? NULL : fdopendir(again);
	if (!list) {
		if (again >= 0)
			close(again);
		return;
	}
	for (struct dirent *entry; (entry = readdir(list));) {
		if (is_stale(folder, entry->d_name))
			unlinkat(folder, entry->d_name, 0);
	}
	closedir(list);
}

static gw_status path_find(char path[GW_RUNTIME_PATH_MAX], uint16_t port)
{
	gw_status status = folder_find(path, false);
	if (status == GW_OK)
		sprintf(path + strlen(path), "/key-%u", port);
	return status;
}

/* A key that a server created is in this user's folder: only this user may own and read it. */
static gw_status check_own(const char *path, const struct stat *st)
{
	if (st->st_uid != geteuid())
		return gw_fail(GW_REFUSED, "key file %s: user %u owns it; chown it to user %u", path,
			       (unsigned)st->st_uid, (unsigned)geteuid());
	return st->st_mode & 077 ? gw_fail(GW_REFUSED, "key file %s: others may read it; chmod 600 it", path) : GW_OK;
}

/* A key file that the user named may come from a service manager or an orchestrator. Such a manager gives one user
 * access to root's file, in one of two ways: an access control list, whose mask is in the group bits of the mode
 * (systemd's credentials), or a group (a Kubernetes Secret with fsGroup). In both ways root has decided which users may
 * read the file. The checks below refuse every file that a user other than root and this one could have written. */
static gw_status check_named(const char *path, const struct stat *st)
{
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return gw_fail(GW_REFUSED, "key file %s: user %u owns it, neither root nor user %u; chown it", path,
			       (unsigned)st->st_uid, (unsigned)geteuid());
	if (st->st_mode & 07)
		return gw_fail(GW_REFUSED, "key file %s: every user has access to it; chmod o= it", path);
	if (st->st_mode & 020)
		return gw_fail(GW_REFUSED, "key file %s: its group may write it; chmod g-w it", path);
	if ((st->st_mode & 070) && st->st_uid != 0)
		return gw_fail(GW_REFUSED, "key file %s: its group may read it, and root does not own it; chmod 600 it",
			       path);
	return GW_OK;
}

/* Reads a file of min to max bytes, all of it. */
static gw_status file_read(const char *path, gw_status (*check)(const char *, const struct stat *), uint8_t *key,
			   uint32_t min, uint32_t max, uint32_t *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return gw_fail_errno(errno == ENOENT ? GW_NOT_FOUND : GW_IO, errno, "key file %s", path);
	gw_status status = GW_OK;
	struct stat st;
	uint8_t buffer[KEY_FILE_BYTES_MAX + 1];
	ssize_t n = 0;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		status = gw_fail(GW_INVALID, "key file %s: not a regular file", path);
	else if ((status = check(path, &st)) != GW_OK)
		;
	else if ((n = read(fd, buffer, sizeof(buffer))) < 0)
		status = gw_fail_errno(GW_IO, errno, "key file %s", path);
	else if (n < (ssize_t)min || n > (ssize_t)max)
		status = gw_fail(GW_INVALID, "key file %s: not %u to %u bytes", path, min, max);
	close(fd);
	if (status == GW_OK) {
		memcpy(key, buffer, (size_t)n);
		*bytes = (uint32_t)n;
	}
	explicit_bzero(buffer, sizeof(buffer));
	return status;
}

static gw_status key_write(uint16_t port, const uint8_t key[GW_KEY_BYTES])
{
	char folder[GW_RUNTIME_PATH_MAX], file[32];
	gw_status status = folder_find(folder, true);
	if (status != GW_OK)
		return status;
	snprintf(file, sizeof(file), "key-%u", port);
	status = gw_file_replace(folder, file, key, GW_KEY_BYTES);
	return status == GW_OK ? GW_OK : gw_advise(status, "free space there, or " OTHERWISE);
}

gw_status gw_key_make(uint16_t port, uint8_t key[GW_KEY_BYTES])
{
	if (getrandom(key, GW_KEY_BYTES, 0) != GW_KEY_BYTES)
		return gw_fail_errno(GW_IO, errno, "no random bytes for a key");
	return key_write(port, key);
}

gw_status gw_key_keep(uint16_t port, const struct gw_service *service)
{
	uint8_t found[GW_KEY_BYTES];
	char file[32];
	int folder;
	assert(service->key_bytes == GW_KEY_BYTES);
	bool there = gw_key_find(port, found) == GW_OK && memcmp(found, service->key, GW_KEY_BYTES) == 0;
	explicit_bzero(found, sizeof(found));
	if (!there)
		return key_write(port, service->key);
	gw_status status = gw_runtime_folder_open(false, &folder);
	if (status != GW_OK)
		return status;
	snprintf(file, sizeof(file), "key-%u", port);
	gw_runtime_file_touch(folder, file);
	close(folder);
	return GW_OK;
}

gw_status gw_key_find(uint16_t port, uint8_t key[GW_KEY_BYTES])
{
	char path[GW_RUNTIME_PATH_MAX];
	uint32_t bytes;
	gw_status status = path_find(path, port);
	return status != GW_OK ? status : file_read(path, check_own, key, GW_KEY_BYTES, GW_KEY_BYTES, &bytes);
}

char *gw_key_place(uint16_t port, char path[GW_RUNTIME_PATH_MAX])
{
	if (folder_path(path))
		sprintf(path + strlen(path), "/key-%u", port);
	else
		path[0] = '\0';
	return path;
}

void gw_key_remove(uint16_t port)
{
	char path[GW_RUNTIME_PATH_MAX];
	if (path_find(path, port) == GW_OK)
		unlink(path);
}

gw_status gw_key_read(const char *path, uint8_t key[1024], uint32_t *key_bytes)
{
	return file_read(path, check_named, key, KEY_FILE_BYTES_MIN, KEY_FILE_BYTES_MAX, key_bytes);
}
