/* Runs fio as a process, and reads one figure of its line for machines (version 3: fields between semicolons). */
#include "bench/fio.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIO_VERSION    "3;"
#define FIO_READ_IOPS  7  /* indices of fields, from 0: reads a second */
#define FIO_WRITE_RATE 47 /* KiB written a second */
#define FIO_LINE_MAX   8192

static gw_status fio_parse(const char *line, int number, double *figure)
{
	const char *field = line;
	for (int i = 0; field && i < number; i++)
		field = (field = strchr(field, ';')) ? field + 1 : NULL;
	double rate = field ? strtod(field, NULL) : 0;
	if (strncmp(line, FIO_VERSION, strlen(FIO_VERSION)) != 0 || !(rate > 0))
		return gw_fail(GW_IO, "fio reports: %.200s", line);
	*figure = rate;
	return GW_OK;
}

static gw_status fio_run(char *const *arguments, char line[FIO_LINE_MAX])
{
	int ends[2], wait_status = 0;
	pid_t child;
	posix_spawn_file_actions_t actions;
	size_t used = 0;
	ssize_t got;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return gw_fail_errno(GW_IO, errno, "pipe");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	int error = posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	while (!error && used + 1 < FIO_LINE_MAX && (got = read(ends[0], line + used, FIO_LINE_MAX - 1 - used)) > 0)
		used += (size_t)got;
	line[used] = 0;
	close(ends[0]);
	if (error == ENOENT)
		return gw_fail(GW_NOT_FOUND, "fio is not installed");
	if (error)
		return gw_fail_errno(GW_IO, error, "fio");
	while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR)
		;
	return wait_status ? gw_fail(GW_IO, "fio failed: %.200s", line) : GW_OK;
}

gw_status gw_bench_fio_write(const char *folder, uint64_t bytes, uint64_t block_bytes, double *figure)
{
	char line[FIO_LINE_MAX], directory[FIO_LINE_MAX], size[64], block[64];
	snprintf(directory, sizeof(directory), "--directory=%s", folder);
	snprintf(size, sizeof(size), "--size=%llu", (unsigned long long)bytes);
	snprintf(block, sizeof(block), "--bs=%llu", (unsigned long long)(block_bytes < bytes ? block_bytes : bytes));
	char *arguments[] = {
		"fio",        "--name=graphwire-bench", directory,       size,         block,       "--rw=write",
		"--direct=1", "--ioengine=psync",       "--end_fsync=1", "--unlink=1", "--minimal", NULL};
	gw_status status = fio_run(arguments, line);
	if (status == GW_OK)
		status = fio_parse(line, FIO_WRITE_RATE, figure);
	*figure *= 1024 * 1e-9;
	return status;
}

gw_status gw_bench_fio_read(const char *path, uint64_t block_bytes, unsigned depth, unsigned seconds, double *figure)
{
	char line[FIO_LINE_MAX], name[FIO_LINE_MAX], block[64], in_flight[64], runtime[64];
	snprintf(name, sizeof(name), "--filename=%s", path);
	snprintf(block, sizeof(block), "--bs=%llu", (unsigned long long)block_bytes);
	snprintf(in_flight, sizeof(in_flight), "--iodepth=%u", depth);
	snprintf(runtime, sizeof(runtime), "--runtime=%u", seconds);
	char *arguments[] = {"fio",
			     "--name=graphwire-bench",
			     name,
			     block,
			     in_flight,
			     runtime,
			     "--rw=randread",
			     "--readonly",
			     "--direct=1",
			     "--ioengine=io_uring",
			     "--time_based",
			     "--minimal",
			     NULL};
	gw_status status = fio_run(arguments, line);
	if (status == GW_OK)
		status = fio_parse(line, FIO_READ_IOPS, figure);
	*figure *= 1e-3;
	return status;
}
