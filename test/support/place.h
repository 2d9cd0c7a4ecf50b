/* A folder of its own for each test, and the name in it that a writer makes. */
#ifndef GW_TEST_PLACE_H
#define GW_TEST_PLACE_H

struct place {
	char root[64];
	char final[128];
};

int place_set_up(void **state);
int place_tear_down(void **state);

/* How many entries a folder has; -2: it does not exist. */
int place_entries(const char *folder);
void place_put(const char *folder, const char *name, const char *text);

#endif
