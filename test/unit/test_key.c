/* Keys in files. Clients of the same user find a server's key, and no other client does. Keys that other users could
 * have read or planted are refused. */
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "test/support/scratch.h"
#include "transport/service/service.h"

#define NOBODY 65534

struct place {
	char root[64];
	char folder[128]; /* root/graphwire */
	char file[160];   /* folder/key-7 */
};

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	assert_non_null(place);
	strcpy(place->root, "/tmp/gw-test-key-XXXXXX");
	gw_scratch_make(place->root);
	snprintf(place->folder, sizeof(place->folder), "%s/graphwire", place->root);
	snprintf(place->file, sizeof(place->file), "%s/key-7", place->folder);
	setenv("XDG_RUNTIME_DIR", place->root, 1);
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(gw_remove_tree(place->root), GW_OK);
	free(place);
	return 0;
}

static mode_t mode_of(const char *path)
{
	struct stat st;
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	return st.st_mode & 07777;
}

static int entries(const char *folder)
{
	DIR *dir = opendir(folder);
	int count = -2; /* "." and ".." */
	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* Byte i is i. */
static void put(const char *path, size_t bytes, mode_t mode)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	for (size_t i = 0; i < bytes; i++)
		fputc((int)(i & 255), file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void expect_error(gw_status status, gw_status expected, const char *path)
{
	assert_int_equal(status, expected);
	assert_non_null(strstr(gw_last_error(), path));
}

static void made_found_and_removed(void **state)
{
	struct place *place = *state;
	uint8_t first[GW_KEY_BYTES] = {0}, second[GW_KEY_BYTES] = {0}, found[GW_KEY_BYTES];
	static const uint8_t zero[GW_KEY_BYTES];
	expect_error(gw_key_find(7, found), GW_NOT_FOUND, place->folder);
	gw_key_remove(7);
	assert_int_equal(entries(place->root), 0); /* a search creates nothing */
	assert_int_equal(gw_key_make(7, first), GW_OK);
	assert_memory_not_equal(first, zero, GW_KEY_BYTES);
	assert_int_equal(gw_key_find(7, found), GW_OK);
	assert_memory_equal(found, first, GW_KEY_BYTES);
	expect_error(gw_key_find(8, found), GW_NOT_FOUND, "key-8");
	/* A new server on the port has a new key; other ports have other keys. */
	assert_int_equal(gw_key_make(7, second), GW_OK);
	assert_memory_not_equal(first, second, GW_KEY_BYTES);
	assert_int_equal(gw_key_find(7, found), GW_OK);
	assert_memory_equal(found, second, GW_KEY_BYTES);
	assert_int_equal(gw_key_make(65535, first), GW_OK);
	assert_memory_not_equal(first, second, GW_KEY_BYTES);
	assert_int_equal(entries(place->folder), 2); /* no temporary file remains */
	gw_key_remove(7);
	expect_error(gw_key_find(7, found), GW_NOT_FOUND, place->file);
	assert_int_equal(gw_key_find(65535, found), GW_OK);
	assert_memory_equal(found, first, GW_KEY_BYTES);
}

static void closed_whatever_the_umask(void **state)
{
	struct place *place = *state;
	uint8_t key[GW_KEY_BYTES];
	char path[GW_RUNTIME_PATH_MAX];
	mode_t before = umask(0);
	gw_status status = gw_key_make(7, key);
	umask(before);
	assert_int_equal(status, GW_OK);
	assert_int_equal(mode_of(place->folder), 0700);
	assert_int_equal(mode_of(place->file), 0600);
	assert_int_equal(gw_runtime_folder(path), GW_OK);
	assert_string_equal(path, place->folder);
}

static void folder_is_refused_and_unchanged(struct place *place)
{
	uint8_t key[GW_KEY_BYTES];
	char path[GW_RUNTIME_PATH_MAX];
	expect_error(gw_key_make(8, key), GW_REFUSED, place->folder);
	expect_error(gw_key_find(7, key), GW_REFUSED, place->folder);
	expect_error(gw_runtime_folder(path), GW_REFUSED, place->folder);
	gw_key_remove(7);
}

static void open_folders_are_refused(void **state)
{
	static const mode_t modes[] = {0701, 0710, 0720, 0740, 0750, 0755, 0704, 0702, 0777, 01777};
	struct place *place = *state;
	uint8_t key[GW_KEY_BYTES];
	assert_int_equal(gw_key_make(7, key), GW_OK);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		assert_int_equal(chmod(place->folder, modes[i]), 0);
		folder_is_refused_and_unchanged(place);
	}
	assert_int_equal(chmod(place->folder, 0700), 0);
	assert_int_equal(gw_key_find(7, key), GW_OK);
	assert_int_equal(entries(place->folder), 1);
}

static void what_is_no_folder_is_refused(void **state)
{
	struct place *place = *state;
	char real[128];
	put(place->folder, 32, 0600);
	folder_is_refused_and_unchanged(place);
	assert_int_equal(unlink(place->folder), 0);
	/* A link could lead anywhere, and change later. */
	snprintf(real, sizeof(real), "%s/real", place->root);
	assert_int_equal(mkdir(real, 0700), 0);
	assert_int_equal(symlink(real, place->folder), 0);
	folder_is_refused_and_unchanged(place);
	assert_int_equal(entries(real), 0);
}

/* Only root can create files of other users. */
static void what_others_own_is_refused(void **state)
{
	struct place *place = *state;
	uint8_t key[1024];
	uint32_t bytes;
	if (geteuid() != 0)
		skip();
	assert_int_equal(gw_key_make(7, key), GW_OK);
	assert_int_equal(chown(place->folder, NOBODY, NOBODY), 0);
	folder_is_refused_and_unchanged(place);
	assert_int_equal(chown(place->folder, 0, 0), 0);
	assert_int_equal(gw_key_find(7, key), GW_OK);
	assert_int_equal(chown(place->file, NOBODY, NOBODY), 0);
	expect_error(gw_key_find(7, key), GW_REFUSED, place->file);
	expect_error(gw_key_read(place->file, key, &bytes), GW_REFUSED, place->file);
	/* The next server replaces it by its own. */
	assert_int_equal(gw_key_make(7, key), GW_OK);
	assert_int_equal(mode_of(place->file), 0600);
}

static void expect_read(struct place *place, bool wanted)
{
	uint8_t key[1024];
	uint32_t bytes;
	if (wanted)
		assert_int_equal(gw_key_read(place->file, key, &bytes), GW_OK);
	else
		expect_error(gw_key_read(place->file, key, &bytes), GW_REFUSED, place->file);
}

/* Every mode of a file with two owners: this user alone; and root, which may let a group read. */
static void modes_of_files(void **state)
{
	struct place *place = *state;
	uint8_t key[1024];
	assert_int_equal(mkdir(place->folder, 0700), 0);
	put(place->file, GW_KEY_BYTES, 0600);
	bool root = geteuid() == 0;
	for (mode_t mode = 0; mode < 01000; mode++) {
		assert_int_equal(chmod(place->file, mode), 0);
		if (!root && !(mode & 0400))
			continue; /* this user cannot open it */
		expect_read(place, !(mode & 027) && (root || !(mode & 070)));
		gw_status status = gw_key_find(7, key); /* a server's own key belongs to its user alone */
		assert_int_equal(status, mode & 077 ? GW_REFUSED : GW_OK);
	}
}

/* As another user, the files of an orchestrator: root's file, readable to one group or through an access control list,
 * whose mask is in the group's bits. */
static void keys_that_root_gives_to_a_user(void **state)
{
	static const struct {
		uid_t owner;
		gid_t group;
		mode_t mode;
		bool read;
	} files[] = {
		{0, NOBODY, 0440, true},      {0, NOBODY, 0640, true},       {0, NOBODY, 0460, false},
		{0, NOBODY, 0444, false},     {0, NOBODY, 0441, false},      {NOBODY, NOBODY, 0400, true},
		{NOBODY, NOBODY, 0600, true}, {NOBODY, NOBODY, 0440, false}, {NOBODY, NOBODY, 0640, false},
		{1, NOBODY, 0440, false},     {1, NOBODY, 0460, false},
	};
	struct place *place = *state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(place->folder, 0755), 0);
	assert_int_equal(chmod(place->root, 0755), 0);
	put(place->file, GW_KEY_BYTES, 0600);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		assert_int_equal(chown(place->file, files[i].owner, files[i].group), 0);
		assert_int_equal(chmod(place->file, files[i].mode), 0);
		gid_t groups[64];
		int count = getgroups(64, groups);
		assert_true(count >= 0);
		assert_int_equal(setgroups(0, NULL), 0);
		assert_int_equal(setegid(NOBODY), 0);
		assert_int_equal(seteuid(NOBODY), 0);
		expect_read(place, files[i].read);
		assert_int_equal(seteuid(0), 0);
		assert_int_equal(setegid(0), 0);
		assert_int_equal(setgroups((size_t)count, groups), 0);
	}
}

static void lengths(void **state)
{
	static const uint32_t good[] = {16, 17, 31, 32, 33, 1023, 1024}, bad[] = {0, 1, 15, 1025, 1026, 100000};
	struct place *place = *state;
	uint8_t key[1024], untouched[1024];
	uint32_t bytes;
	memset(untouched, 0xee, sizeof(untouched));
	assert_int_equal(mkdir(place->folder, 0700), 0);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		memset(key, 0xee, sizeof(key));
		put(place->file, good[i], 0600);
		assert_int_equal(gw_key_read(place->file, key, &bytes), GW_OK);
		assert_int_equal(bytes, good[i]);
		for (uint32_t b = 0; b < 1024; b++)
			assert_int_equal(key[b], b < bytes ? b & 255 : 0xee);
		/* A server's own key has a fixed length. */
		gw_status status = gw_key_find(7, key);
		assert_int_equal(status, good[i] == GW_KEY_BYTES ? GW_OK : GW_INVALID);
	}
	memset(key, 0xee, sizeof(key));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put(place->file, bad[i], 0600);
		expect_error(gw_key_read(place->file, key, &bytes), GW_INVALID, place->file);
		expect_error(gw_key_find(7, key), GW_INVALID, place->file);
		assert_memory_equal(key, untouched, sizeof(key));
	}
}

static void what_is_no_file_is_refused(void **state)
{
	struct place *place = *state;
	uint8_t key[1024];
	uint32_t bytes;
	assert_int_equal(mkdir(place->folder, 0700), 0);
	expect_error(gw_key_read(place->file, key, &bytes), GW_NOT_FOUND, place->file);
	assert_int_equal(mkfifo(place->file, 0600), 0); /* no process writes to it, so the read must not block */
	expect_error(gw_key_read(place->file, key, &bytes), GW_INVALID, place->file);
	expect_error(gw_key_find(7, key), GW_INVALID, place->file);
	assert_int_equal(unlink(place->file), 0);
	assert_int_equal(mkdir(place->file, 0700), 0);
	expect_error(gw_key_read(place->file, key, &bytes), GW_INVALID, place->file);
	expect_error(gw_key_make(7, key), GW_IO, place->file);
	assert_int_equal(entries(place->folder), 1); /* the file that could not be renamed is gone */
}

static void planted_links_are_not_followed(void **state)
{
	struct place *place = *state;
	uint8_t key[GW_KEY_BYTES], found[GW_KEY_BYTES];
	char victim[128], link[200];
	struct stat st;
	snprintf(victim, sizeof(victim), "%s/victim", place->root);
	snprintf(link, sizeof(link), "%s.%ld", place->file, (long)getpid());
	put(victim, 5, 0600);
	assert_int_equal(mkdir(place->folder, 0700), 0);
	assert_int_equal(symlink(victim, link), 0);
	assert_int_equal(symlink(victim, place->file), 0);
	assert_int_equal(gw_key_make(7, key), GW_OK);
	assert_int_equal(stat(victim, &st), 0);
	assert_int_equal(st.st_size, 5);
	assert_int_equal(mode_of(place->file), 0600);
	assert_int_equal(gw_key_find(7, found), GW_OK);
	assert_memory_equal(found, key, GW_KEY_BYTES);
	assert_int_equal(entries(place->folder), 1);
}

static void where_the_folder_is(void **state)
{
	static const char *const unusable[] = {"", "relative/folder"};
	uint8_t key[GW_KEY_BYTES];
	char fallback[64], longest[GW_RUNTIME_PATH_MAX + 1];
	(void)state;
	snprintf(fallback, sizeof(fallback), "/tmp/graphwire-%u", (unsigned)geteuid());
	for (int i = 0; i < 3; i++) {
		if (i < 2)
			setenv("XDG_RUNTIME_DIR", unusable[i], 1);
		else
			unsetenv("XDG_RUNTIME_DIR");
		assert_int_not_equal(gw_key_find(1, key), GW_OK); /* no server has this port */
		assert_non_null(strstr(gw_last_error(), fallback));
	}
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[GW_RUNTIME_PATH_MAX] = 0;
	setenv("XDG_RUNTIME_DIR", longest, 1);
	expect_error(gw_key_make(7, key), GW_INVALID, "XDG_RUNTIME_DIR");
	longest[200] = 0; /* too long for the folder's path */
	setenv("XDG_RUNTIME_DIR", longest, 1);
	expect_error(gw_key_make(7, key), GW_IO, longest);
}

#define EACH(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(made_found_and_removed),
		EACH(closed_whatever_the_umask),
		EACH(open_folders_are_refused),
		EACH(what_is_no_folder_is_refused),
		EACH(what_others_own_is_refused),
		EACH(modes_of_files),
		EACH(keys_that_root_gives_to_a_user),
		EACH(lengths),
		EACH(what_is_no_file_is_refused),
		EACH(planted_links_are_not_followed),
		EACH(where_the_folder_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
