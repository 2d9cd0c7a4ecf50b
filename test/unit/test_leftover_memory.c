/* Finds processes that still map the memory of ended servers. The processes are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "server/leftover_memory.h"
#include "test/support/doctor_host.h"

#define PART    "/memfd:graphwire-part (deleted)\n"
#define TENSOR  "/memfd:graphwire-tensor (deleted)\n"
#define MIB_12  "7f0000000000-7f0000c00000 r--s 00000000 00:01 12 " PART
#define LIBRARY "7f1000000000-7f1000001000 r-xp 00000000 08:01 11 /usr/lib/libc.so.6\n"

static struct doctor_host host;

static void put(const char *pid, const char *maps, const char *command, size_t command_bytes)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	doctor_host_put(&host, path, maps);
	snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
	doctor_host_put_bytes(&host, path, command, command_bytes);
}

static bool finds(char text[512])
{
	return gw_leftover_memory_find(host.root, text, 512);
}

static void the_living_are_not_named(void **state)
{
	(void)state;
	char text[512];
	doctor_host_make(&host);
	assert_false(finds(text));
	/* A server, its client, and one that maps other memory. */
	put("10", LIBRARY "7f0000000000-7f0000c00000 rw-s 00000000 00:01 11 " PART, "graphwire\0serve", 15);
	put("11", LIBRARY "7f0000000000-7f0000c00000 r--s 00000000 00:01 11 " PART, "python3\0train.py", 16);
	put("12", "7f0000000000-7f0000c00000 r--s 00000000 00:01 13 /memfd:pulseaudio (deleted)\n", "music", 5);
	assert_false(finds(text));
	/* The same inode number on another device. */
	put("13", "7f0000000000-7f0000c00000 r--s 00000000 00:2f 11 " PART, "python3\0old.py", 14);
	assert_true(finds(text));
	doctor_has(text, "process 13 (python3 old.py) still maps 12.0 MiB");
	assert_null(strstr(text, "process 1 "));
	assert_null(strstr(text, "10"));
	assert_null(strstr(text, "process 11"));
	/* A successor that cannot write to the memory has a private mapping of it. */
	doctor_host_remove(&host, "/proc/13");
	put("14",
	    LIBRARY "7f0000000000-7f0000c00000 r--s 00000000 00:01 11 " PART
		    "7f0000d00000-7f0000d01000 r--p 00000000 00:01 11 " PART,
	    "graphwire\0serve", 15);
	doctor_host_remove(&host, "/proc/10");
	assert_false(finds(text));
	/* When a server ends, its clients still map its memory. */
	doctor_host_remove(&host, "/proc/14");
	assert_true(finds(text));
	doctor_has(text, "process 11 (python3 train.py) still maps 12.0 MiB");
	doctor_host_end(&host);
}

static void all_mappings_are_added_up(void **state)
{
	(void)state;
	char text[512], small[40];
	doctor_host_make(&host);
	put("20",
	    MIB_12 "7f0001000000-7f0001400000 r--s 00400000 00:01 14 " TENSOR
		   "7f0002000000-7f0002400000 r--s 00000000 00:01 14 " TENSOR,
	    "a\001b\033[31m", 8);
	assert_true(finds(text));
	doctor_has(text, "process 20 (a b [31m) still maps 20.0 MiB of a server");
	for (int i = 21; i < 27; i++) {
		char pid[8];
		snprintf(pid, sizeof(pid), "%d", i);
		put(pid, MIB_12, "python3", 7);
	}
	assert_true(finds(text));
	doctor_has(text, ", and 3 more of a server");
	/* Text that does not fit is cut. */
	assert_true(gw_leftover_memory_find(host.root, small, sizeof(small)));
	assert_true(strlen(small) < sizeof(small));
	doctor_host_end(&host);
}

static void what_cannot_be_read_is_left_out(void **state)
{
	(void)state;
	char text[512];
	doctor_host_make(&host);
	doctor_host_put(&host, "/proc/30/cmdline", "no maps");
	put("31", "not a line of maps /memfd:graphwire-part\n\n7f00 r--s\n", "odd", 3);
	assert_false(finds(text));
	assert_false(gw_leftover_memory_find("/nowhere", text, sizeof(text)));
	assert_string_equal(text, "");
	doctor_host_end(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_living_are_not_named),
		cmocka_unit_test(all_mappings_are_added_up),
		cmocka_unit_test(what_cannot_be_read_is_left_out),
	};
	return cmocka_run_group_tests_name("leftover_memory", tests, NULL, NULL);
}
