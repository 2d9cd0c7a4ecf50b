/* Mapped files, and the guard over them.
 *
 *   open: mmap -> a slot of the table      fault: SIGBUS -> the slot of that address -> one line -> clean up -> exit
 *
 * The handler runs in the thread that faulted, at any moment, so it takes no lock. Slots are never freed, and no other
 * thread may close a map that a thread is reading. If several threads fault, only the first one prints.
 *
 * The fault ends the process, because code that reads a map trusts its earlier checks. If pages of zeros replaced the
 * missing ones, that code could go out of bounds. The handler cannot return an error to that code's caller either.
 */
#include "core/files/filemap.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory/alloc.h"

#define SLOTS_PER_BLOCK 64
#define PAGE_BYTES      4096u
#define LINE_BYTES      (GW_ERROR_TEXT_MAX + 256)
#define CLEAR_LINE      "\r\033[K" /* overwrites a progress line on the terminal */

struct filemap_slot {
	atomic_uintptr_t from; /* 0: free */
	size_t bytes;
	char *path;
	struct stat info; /* at the time of mapping */
};

struct block {
	struct filemap_slot slots[SLOTS_PER_BLOCK];
	struct block *_Atomic next;
};

static struct block first_block;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* taken to claim or release slots */

static const char *guard_program;
static void (*guard_clean_up)(void);
static atomic_flag spoken = ATOMIC_FLAG_INIT;

/* ---- the table ---- */

/* For address 0: a free slot. */
static struct filemap_slot *filemap_find_slot(uintptr_t address)
{
	for (struct block *block = &first_block; block; block = atomic_load(&block->next)) {
		for (int i = 0; i < SLOTS_PER_BLOCK; i++) {
			struct filemap_slot *slot = &block->slots[i];
			uintptr_t from = atomic_load(&slot->from);
			if (address == 0 ? from == 0 : from != 0 && address >= from && address - from < slot->bytes)
				return slot;
		}
	}
	return NULL;
}

static struct filemap_slot *filemap_claim_slot(void)
{
	struct filemap_slot *slot = filemap_find_slot(0);
	if (slot)
		return slot;
	struct block *last = &first_block;
	struct block *block = mmap(NULL, sizeof(*block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (block == MAP_FAILED)
		return NULL;
	while (atomic_load(&last->next))
		last = atomic_load(&last->next);
	atomic_store(&last->next, block);
	return &block->slots[0];
}

static gw_status register_map(void *mapping, size_t bytes, const char *path, const struct stat *info)
{
	char *copy = gw_strdup(path);
	if (!copy)
		return GW_NO_MEMORY;
	pthread_mutex_lock(&lock);
	struct filemap_slot *slot = filemap_claim_slot();
	if (slot) {
		slot->bytes = bytes;
		slot->path = copy;
		slot->info = *info;
		atomic_store(&slot->from, (uintptr_t)mapping);
	}
	pthread_mutex_unlock(&lock);
	if (slot)
		return GW_OK;
	gw_free(copy);
	return gw_fail(GW_NO_MEMORY, "%s: no memory to map it", path);
}

gw_status gw_filemap_open(int fd, const char *path, size_t bytes, void **out)
{
	struct stat info;
	*out = NULL;
	if (fstat(fd, &info))
		return gw_fail_errno(GW_IO, errno, "%s: cannot stat", path);
	void *mapping = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (mapping == MAP_FAILED)
		return gw_fail_errno(GW_IO, errno, "%s: cannot map %zu bytes", path, bytes);
	gw_status status = register_map(mapping, bytes, path, &info);
	if (status != GW_OK) {
		munmap(mapping, bytes);
		return status;
	}
	*out = mapping;
	return GW_OK;
}

void gw_filemap_close(void *mapping, size_t bytes)
{
	char *path = NULL;
	pthread_mutex_lock(&lock);
	struct filemap_slot *slot = filemap_find_slot((uintptr_t)mapping);
	if (slot) {
		path = slot->path;
		slot->path = NULL;
		atomic_store(&slot->from, 0);
	}
	pthread_mutex_unlock(&lock);
	munmap(mapping, bytes);
	gw_free(path);
}

/* A file that a rename has replaced stays intact under its map. A file whose name is gone cannot be checked. Neither
 * counts as changed. */
static bool has_changed(const struct filemap_slot *slot, struct stat *now)
{
	const struct stat *then = &slot->info;
	if (stat(slot->path, now) || now->st_dev != then->st_dev || now->st_ino != then->st_ino)
		return false;
	return now->st_size != then->st_size || now->st_mtim.tv_sec != then->st_mtim.tv_sec ||
	       now->st_mtim.tv_nsec != then->st_mtim.tv_nsec;
}

void gw_filemap_drop(const void *begin, const void *end)
{
	uintptr_t from = (uintptr_t)begin / PAGE_BYTES * PAGE_BYTES;
	uintptr_t to = ((uintptr_t)end + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	if (begin && begin != end)
		madvise((void *)from, to - from, MADV_DONTNEED);
}

gw_status gw_filemap_check(void)
{
	gw_status status = GW_OK;
	struct stat now;
	pthread_mutex_lock(&lock);
	for (struct block *block = &first_block; block && status == GW_OK; block = atomic_load(&block->next)) {
		for (int i = 0; i < SLOTS_PER_BLOCK && status == GW_OK; i++) {
			const struct filemap_slot *slot = &block->slots[i];
			if (atomic_load(&slot->from) && has_changed(slot, &now))
				status = gw_fail(GW_IO,
						 "%s: written to while it was read (%lld bytes long then, %lld now): "
						 "run it again when the file is complete",
						 slot->path, (long long)slot->info.st_size, (long long)now.st_size);
		}
	}
	pthread_mutex_unlock(&lock);
	return status;
}

bool gw_filemap_has(const struct stat *file)
{
	bool found = false;
	pthread_mutex_lock(&lock);
	for (struct block *block = &first_block; block && !found; block = atomic_load(&block->next)) {
		for (int i = 0; i < SLOTS_PER_BLOCK && !found; i++) {
			const struct filemap_slot *slot = &block->slots[i];
			found = atomic_load(&slot->from) && slot->info.st_dev == file->st_dev &&
				slot->info.st_ino == file->st_ino;
		}
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* ---- the guard ---- */

struct line {
	char text[LINE_BYTES];
	size_t used;
};

/* A signal handler must not call snprintf. */
static void add_text(struct line *line, const char *text)
{
	for (; *text && line->used + 1 < sizeof(line->text); text++)
		line->text[line->used++] = *text;
	line->text[line->used] = 0;
}

static void add_number(struct line *line, uint64_t number)
{
	char digits[24];
	size_t at = sizeof(digits) - 1;
	digits[at] = 0;
	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	add_text(line, digits + at);
}

/* "<program>: <file>: what happened: what to do". */
static void filemap_describe(struct line *line, const struct filemap_slot *slot, uint64_t offset)
{
	struct stat now;
	bool known = stat(slot->path, &now) == 0;
	if (known && now.st_dev == slot->info.st_dev && now.st_ino == slot->info.st_ino &&
	    (uint64_t)now.st_size <= offset) {
		add_text(line, ": cut short while it was read: ");
		add_number(line, (uint64_t)now.st_size);
		add_text(line, " bytes long now, ");
		add_number(line, (uint64_t)slot->info.st_size);
		add_text(line, " before: run it again when the file is complete");
		return;
	}
	add_text(line, ": cannot be read at byte ");
	add_number(line, offset);
	add_text(line, ": the disk or its file system failed, or the file was cut short: "
		       "read the kernel's log, or copy the file again");
}

static void filemap_speak(const struct filemap_slot *slot, uint64_t offset)
{
	static struct line line; /* static, because the thread's stack may be small; only one thread gets here */
	if (isatty(STDERR_FILENO))
		add_text(&line, CLEAR_LINE);
	size_t start = line.used;
	add_text(&line, guard_program);
	add_text(&line, ": ");
	add_text(&line, slot->path);
	filemap_describe(&line, slot, offset);
	gw_text_keep_plain(line.text + start);
	add_text(&line, "\n");
	const char *at = line.text;
	size_t left = line.used;
	while (left > 0) {
		ssize_t done = write(STDERR_FILENO, at, left);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			break;
		at += done;
		left -= (size_t)done;
	}
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	(void)context;
	uintptr_t address = (uintptr_t)info->si_addr;
	/* A SIGBUS that kill sent has a sender and no address. */
	const struct filemap_slot *slot = info->si_code > 0 && address ? filemap_find_slot(address) : NULL;
	if (!slot) {
		signal(number, SIG_DFL);
		raise(number); /* takes effect when this handler returns */
		return;
	}
	while (atomic_flag_test_and_set(&spoken))
		pause(); /* another thread ends the process */
	filemap_speak(slot, address - atomic_load(&slot->from));
	if (guard_clean_up)
		guard_clean_up();
	_exit(1);
}

void gw_filemap_guard(const char *program, void (*clean_up)(void))
{
	guard_program = program;
	guard_clean_up = clean_up;
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}
