/* Opening in a launched program: the environment -> the file with the servers' addresses -> options. A malformed line
 * is an error that names the file and the line. A host that does not exist is detected only when the client connects.
 */
#include "client/launched.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/errors/options.h"
#include "core/graph/meta.h"
#include "core/memory/alloc.h"
#include "transport/address.h"

#define FILE_BYTES_MAX (1u << 20)
#define SPIN_US_MAX    1000000u
#define ADDRESS_MAX    (256 + 10) /* including brackets, a port and the terminating NUL */

static const char *launched_word(const char *name)
{
	const char *text = getenv(name);
	return text && *text ? text : NULL;
}

bool gw_is_launched(void)
{
	return launched_word("GRAPHWIRE_IP_CONFIG") != NULL;
}

/* Adds a terminating NUL. */
static gw_status launched_load(const char *path, char **text)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) != 0) {
		int error = errno;
		if (fd >= 0)
			close(fd);
		return gw_fail_errno(error == ENOENT ? GW_NOT_FOUND : GW_IO, error, "GRAPHWIRE_IP_CONFIG, %s", path);
	}
	gw_status status = GW_OK;
	if (!S_ISREG(st.st_mode) || st.st_size > FILE_BYTES_MAX)
		status = gw_fail(GW_FORMAT, "GRAPHWIRE_IP_CONFIG, %s: not a file of at most %u bytes", path,
				 FILE_BYTES_MAX);
	*text = status != GW_OK ? NULL : gw_calloc((size_t)st.st_size + 1, 1);
	if (status == GW_OK && !*text)
		status = GW_NO_MEMORY;
	ssize_t n = status != GW_OK ? 0 : read(fd, *text, (size_t)st.st_size);
	if (n < 0)
		status = gw_fail_errno(GW_IO, errno, "GRAPHWIRE_IP_CONFIG, %s", path);
	else if (n > 0 && memchr(*text, 0, (size_t)n))
		status = gw_fail(GW_FORMAT, "GRAPHWIRE_IP_CONFIG, %s: it contains a NUL byte", path);
	close(fd);
	return status;
}

/* Rejects "ADDRESS:PORT", which users know from other options. An IPv6 address without brackets cannot contain a
 * port. */
static gw_status launched_check_host(const char *host)
{
	const char *colon = strrchr(host, ':');
	bool with_port = colon && (*host == '[' ? colon[-1] == ']' : colon == strchr(host, ':'));
	if (strlen(host) > 255)
		return gw_fail(GW_FORMAT, "the name is too long");
	if (with_port && strspn(colon + 1, "0123456789") == strlen(colon + 1))
		return gw_fail(GW_FORMAT, "\"%.80s\": the port stands behind a space: %.*s %s", host,
			       (int)(colon - host), host, colon + 1);
	return GW_OK;
}

/* "10.0.0.1 30051 4 # comment" -> "10.0.0.1:30051" */
static gw_status launched_address(char *line, char out[ADDRESS_MAX])
{
	uint64_t port = GW_PORT_DEFAULT, number;
	char *rest = NULL;
	line[strcspn(line, "#")] = '\0';
	char *host = strtok_r(line, " \t\r", &rest);
	*out = '\0';
	if (!host)
		return GW_OK;
	char *column = strtok_r(NULL, " \t\r", &rest);
	gw_status status = column ? gw_parse_u64(column, 1, UINT16_MAX, &port) : GW_OK;
	column = column ? strtok_r(NULL, " \t\r", &rest) : NULL;
	if (status == GW_OK && column)
		status = gw_parse_u64(column, 1, UINT16_MAX, &number);
	if (status == GW_OK && column && strtok_r(NULL, " \t\r", &rest))
		status = gw_fail(GW_FORMAT, "more than three columns");
	if (status == GW_OK)
		status = launched_check_host(host);
	if (status != GW_OK)
		return status;
	bool bare = strchr(host, ':') && *host != '[';
	snprintf(out, ADDRESS_MAX, bare ? "[%s]:%u" : "%s:%u", host, (unsigned)port);
	return GW_OK;
}

static gw_status launched_parse(const char *path, char *text, struct gw_launched *out)
{
	char address[ADDRESS_MAX];
	uint32_t number = 0;
	for (char *line = text, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		number++;
		gw_status status = launched_address(line, address);
		if (status == GW_OK && *address && out->server_count == GW_PARTS_MAX)
			status = gw_fail(GW_LIMIT, "more than %u servers", GW_PARTS_MAX);
		if (status != GW_OK)
			return gw_context(status, "GRAPHWIRE_IP_CONFIG, %s:%u", path, number);
		if (!*address)
			continue;
		char *copy = gw_strdup(address);
		if (!copy)
			return GW_NO_MEMORY;
		out->servers[out->server_count++] = copy;
	}
	return out->server_count ? GW_OK : gw_fail(GW_FORMAT, "GRAPHWIRE_IP_CONFIG, %s: it names no server", path);
}

gw_status gw_launched_read(struct gw_launched *out)
{
	*out = (struct gw_launched){.part_config = launched_word("GRAPHWIRE_PART_CONFIG"),
				    .key_file = launched_word("GRAPHWIRE_KEY_FILE"),
				    .transport = launched_word("GRAPHWIRE_TRANSPORT")};
	const char *path = launched_word("GRAPHWIRE_IP_CONFIG"), *spin = launched_word("GRAPHWIRE_SPIN_US");
	uint64_t spin_us = 0;
	if (spin && gw_parse_u64(spin, 0, SPIN_US_MAX, &spin_us) != GW_OK)
		return gw_context(GW_INVALID, "GRAPHWIRE_SPIN_US");
	out->spin_us = (uint32_t)spin_us;
	if (!path)
		return gw_fail(GW_NOT_FOUND, "GRAPHWIRE_IP_CONFIG is not set: deploy/launch.py sets it for trainers");
	char *text = NULL;
	out->servers = gw_calloc(GW_PARTS_MAX, sizeof(*out->servers));
	gw_status status = out->servers ? launched_load(path, &text) : GW_NO_MEMORY;
	if (status == GW_OK)
		status = launched_parse(path, text, out);
	gw_free(text);
	return status;
}

void gw_launched_free(struct gw_launched *launched)
{
	for (uint32_t i = 0; i < launched->server_count; i++)
		gw_free((char *)launched->servers[i]);
	gw_free(launched->servers);
	*launched = (struct gw_launched){0};
}

void gw_launched_fill(const struct gw_launched *launched, struct gw_client_options *options)
{
	options->part_config = launched->part_config;
	options->servers = launched->servers;
	options->server_count = launched->server_count;
	if (!options->key_file && !options->insecure)
		options->key_file = launched->key_file;
	if (!options->transport)
		options->transport = launched->transport;
	if (!options->spin_us)
		options->spin_us = launched->spin_us;
}
