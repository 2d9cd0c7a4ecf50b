/* Finds the processes that still map memory of servers that have ended.
 *
 *   /proc/PID/maps of every process -> the mappings of graphwire memfds, by inode -> one is a server's: it lives
 *                                                                                -> else: each mapping keeps the memory
 *
 * A server's own mapping is writable while the server lives. A server that took over the memory of another one cannot
 * write to it, and has a private mapping of it (core/memory/arena_pages.h). Clients map the memory shared and
 * read-only, which the seals enforce. The result becomes part of an error text. Processes that cannot be read, or do
 * not fit into the text, are left out.
 */
#include "server/leftover_memory.h"

#include <ctype.h>
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/errors/units.h"

#define NAME        "/memfd:graphwire-" /* memfds of a part's arrays and of tensors' rows */
#define FILES_MAX   256
#define LISTED_MAX  4
#define COMMAND_MAX 80

struct memory_file {
	unsigned device[2];
	unsigned long inode;
	bool alive; /* a server maps it */
};

struct search {
	struct memory_file files[FILES_MAX];
	uint32_t file_count;
};

/* A line of a maps file that describes a graphwire memfd. */
struct memory_mapping {
	struct memory_file file;
	uint64_t bytes;
};

static bool mapping_parse(const char *line, struct memory_mapping *out)
{
	unsigned long long from, to;
	char rights[5];
	*out = (struct memory_mapping){0};
	if (!strstr(line, NAME) || sscanf(line, "%llx-%llx %4s %*x %x:%x %lu", &from, &to, rights, &out->file.device[0],
					  &out->file.device[1], &out->file.inode) != 6)
		return false;
	out->file.alive = rights[1] == 'w' || rights[3] == 'p';
	out->bytes = to > from ? to - from : 0;
	return true;
}

static struct memory_file *search_find(struct search *search, const struct memory_file *file)
{
	for (uint32_t i = 0; i < search->file_count; i++) {
		struct memory_file *at = &search->files[i];
		if (at->inode == file->inode && at->device[0] == file->device[0] && at->device[1] == file->device[1])
			return at;
	}
	return NULL;
}

static void search_note(struct search *search, const struct memory_mapping *mapping)
{
	struct memory_file *file = search_find(search, &mapping->file);
	if (file)
		file->alive |= mapping->file.alive;
	else if (search->file_count < FILES_MAX)
		search->files[search->file_count++] = mapping->file;
}

/* note = true: notes the files that a process maps. note = false: returns how many bytes the process maps of noted
 * files that are not alive. */
static uint64_t search_process(struct search *search, const char *root, const char *pid, bool note)
{
	char path[512], line[1024];
	uint64_t bytes = 0;
	snprintf(path, sizeof(path), "%s/proc/%s/maps", root, pid);
	FILE *maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		struct memory_mapping mapping;
		if (!mapping_parse(line, &mapping))
			continue;
		if (note)
			search_note(search, &mapping);
		const struct memory_file *file = note ? NULL : search_find(search, &mapping.file);
		bytes += file && !file->alive ? mapping.bytes : 0;
	}
	if (maps)
		fclose(maps);
	return bytes;
}

static const struct dirent *next_process(DIR *processes)
{
	const struct dirent *entry;
	while ((entry = readdir(processes)) && !isdigit((unsigned char)entry->d_name[0]))
		;
	return entry;
}

/* "process 12 (python3 train.py) still maps 3.1 GiB" */
static void leftover_log(const char *root, const char *pid, uint64_t held, char *text, size_t bytes)
{
	char path[512], command[COMMAND_MAX] = "", amount[GW_UNIT_TEXT_MAX];
	snprintf(path, sizeof(path), "%s/proc/%s/cmdline", root, pid);
	FILE *file = fopen(path, "re");
	size_t n = file ? fread(command, 1, sizeof(command) - 1, file) : 0;
	if (file)
		fclose(file);
	while (n && !command[n - 1])
		n--;
	for (size_t i = 0; i < n; i++)
		command[i] = command[i] && isprint((unsigned char)command[i]) ? command[i] : ' ';
	command[n] = 0;
	size_t used = strlen(text);
	snprintf(text + used, bytes - used, "%sprocess %s (%s) still maps %s", used ? ", " : "", pid, command,
		 gw_text_bytes(amount, (double)held));
}

bool gw_leftover_memory_find(const char *root, char *text, size_t bytes)
{
	struct search search = {.file_count = 0};
	char path[512];
	uint32_t found = 0;
	text[0] = 0;
	snprintf(path, sizeof(path), "%s/proc", root);
	DIR *processes = opendir(path);
	if (!processes)
		return false;
	for (const struct dirent *entry; (entry = next_process(processes));)
		search_process(&search, root, entry->d_name, true);
	rewinddir(processes);
	for (const struct dirent *entry; search.file_count && (entry = next_process(processes));) {
		uint64_t held = search_process(&search, root, entry->d_name, false);
		if (held && found++ < LISTED_MAX)
			leftover_log(root, entry->d_name, held, text, bytes);
	}
	closedir(processes);
	size_t used = strlen(text);
	if (found > LISTED_MAX)
		snprintf(text + used, bytes - used, ", and %u more", found - LISTED_MAX);
	used = strlen(text);
	if (found)
		snprintf(text + used, bytes - used,
			 " of a server that has ended: clients release it within seconds, unless they are suspended; "
			 "continue or end them");
	return found > 0;
}
