/* Servers on record: server-PORT.json in the folder of home.c, written when a server starts, removed when it has ended.
 * A record is valid only while the process for which it was written runs: it has the process's pid, time of start and
 * boot. By the records, launches find kept servers and their keys, and `cluster.py` finds all servers.
 */
#include "tools/agent/agent.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/files/regular.h"
#include "core/files/replace.h"
#include "core/memory/alloc.h"
#include "core/system/sysfile.h"

#define RECORD_BYTES_MAX (1u << 20)

void gw_agent_boot(char out[GW_AGENT_BOOT_MAX])
{
	gw_sysfile_read(out, GW_AGENT_BOOT_MAX, "/proc/sys/kernel/random/boot_id");
	out[strcspn(out, "\n")] = '\0';
}

static gw_status record_path(uint16_t port, char path[GW_AGENT_PATH_MAX + 64])
{
	gw_status status = gw_agent_home(path);
	if (status == GW_OK)
		snprintf(path + strlen(path), 64, "/server-%u.json", port);
	return status;
}

gw_status gw_agent_record_write(const struct gw_agent *agent, const json_t *server, pid_t pid, const char *log,
				pid_t successor)
{
	char home[GW_AGENT_PATH_MAX], name[64], boot[GW_AGENT_BOOT_MAX];
	gw_status status = gw_agent_home(home);
	if (status != GW_OK)
		return status;
	gw_agent_boot(boot);
	json_t *record = json_deep_copy(server);
	json_object_set_new(record, "pid", json_integer(pid));
	json_object_set_new(record, "start", json_integer((json_int_t)gw_agent_start_of(pid)));
	if (successor > 0) {
		json_object_set_new(record, "successor", json_integer(successor));
		json_object_set_new(record, "successor_start", json_integer((json_int_t)gw_agent_start_of(successor)));
	}
	json_object_set_new(record, "boot", json_string(boot));
	json_object_set_new(record, "job", json_string(agent->job));
	json_object_set_new(record, "kept", json_boolean(agent->keep));
	json_object_set_new(record, "workspace", json_string(agent->workspace));
	json_object_set_new(record, "log", json_string(log));
	json_object_set_new(record, "folder", json_string(agent->folder));
	char *text = json_dumps(record, JSON_COMPACT);
	json_decref(record);
	if (!text)
		return gw_fail(GW_NO_MEMORY, "out of memory for the record of a server");
	snprintf(name, sizeof(name), "server-%u.json",
		 (unsigned)json_integer_value(json_object_get(server, "port")) & 0xffff);
	status = gw_file_replace(home, name, text, strlen(text));
	free(text);
	return status;
}

/* NULL: no readable record exists. */
static json_t *record_load(const char *path)
{
	struct gw_error_kept kept;
	char *text;
	size_t bytes;
	gw_error_keep(&kept);
	gw_status status = gw_regular_read(path, RECORD_BYTES_MAX, &text, &bytes);
	json_t *record = status == GW_OK ? json_loadb(text, bytes, 0, NULL) : NULL;
	gw_free(text);
	gw_error_restore(&kept);
	return record;
}

static bool record_runs(const json_t *record, const char *pid_name, const char *start_name)
{
	pid_t pid = (pid_t)json_integer_value(json_object_get(record, pid_name));
	uint64_t start = (uint64_t)json_integer_value(json_object_get(record, start_name));
	return pid > 0 && start > 0 && gw_agent_start_of(pid) == start;
}

/* The server has ended while a successor takes its place. */
static void record_succeed(json_t *record)
{
	json_object_set(record, "before", json_object_get(record, "pid"));
	json_object_set(record, "pid", json_object_get(record, "successor"));
	json_object_set(record, "start", json_object_get(record, "successor_start"));
}

json_t *gw_agent_record_read(uint16_t port)
{
	char path[GW_AGENT_PATH_MAX + 64], boot[GW_AGENT_BOOT_MAX];
	if (record_path(port, path) != GW_OK)
		return NULL;
	json_t *record = record_load(path);
	if (!record)
		return NULL;
	gw_agent_boot(boot);
	const char *then = json_string_value(json_object_get(record, "boot"));
	if (json_is_object(record) && then && strcmp(then, boot) == 0) {
		if (record_runs(record, "pid", "start"))
			return record;
		if (record_runs(record, "successor", "successor_start")) {
			record_succeed(record);
			return record;
		}
	}
	json_decref(record);
	unlink(path);
	return NULL;
}

/* Removes the record only if it is of this pid: the next server of the port may have written its own record already. */
void gw_agent_record_remove(uint16_t port, pid_t pid)
{
	char path[GW_AGENT_PATH_MAX + 64];
	json_t *record = record_path(port, path) == GW_OK ? record_load(path) : NULL;
	if (record && json_integer_value(json_object_get(record, "pid")) == pid)
		unlink(path);
	json_decref(record);
}

json_t *gw_agent_records(void)
{
	char home[GW_AGENT_PATH_MAX];
	json_t *records = json_array();
	DIR *folder = gw_agent_home(home) == GW_OK ? opendir(home) : NULL;
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		char *end;
		if (strncmp(entry->d_name, "server-", 7) != 0)
			continue;
		unsigned long port = strtoul(entry->d_name + 7, &end, 10);
		json_t *record = strcmp(end, ".json") == 0 && port > 0 && port < 65536
					 ? gw_agent_record_read((uint16_t)port)
					 : NULL;
		if (record)
			json_array_append_new(records, record);
	}
	if (folder)
		closedir(folder);
	return records;
}
