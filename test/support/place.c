/* A folder of its own for each test. */
#include "test/support/place.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "test/support/scratch.h"

int place_set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	strcpy(place->root, "/tmp/gw-test-place-XXXXXX");
	gw_scratch_make(place->root);
	snprintf(place->final, sizeof(place->final), "%s/graph", place->root);
	*state = place;
	return 0;
}

int place_tear_down(void **state)
{
	struct place *place = *state;
	assert_int_equal(gw_remove_tree(place->root), GW_OK);
	assert_int_equal(access(place->root, F_OK), -1);
	free(place);
	return 0;
}

int place_entries(const char *folder)
{
	DIR *dir = opendir(folder);
	int count = -2; /* "." and ".." */
	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

void place_put(const char *folder, const char *name, const char *text)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}
