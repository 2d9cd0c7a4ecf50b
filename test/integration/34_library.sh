#!/usr/bin/env bash
# The installed library: it exports exactly what the header declares, needs only the documented libraries, and the
# example runs with it, standalone and from servers.
# shellcheck source=test/integration/lib.sh
. "$(dirname "$0")/lib.sh"
built=$(dirname "$GRAPHWIRE")
library=$built/libgraphwire.so
cd "$work" || exit 1
export XDG_RUNTIME_DIR=$work/runtime
mkdir -m 700 "$XDG_RUNTIME_DIR"

# Names before an opening parenthesis in a declaration marked GW_API.
cat "$top"/include/graphwire/*.h | sed 's|/\*.*\*/||' | tr '\n' ' ' | grep -oE 'GW_API [^;]*;' |
	grep -oE 'gw_[a-z_0-9]+\(' | tr -d '(' | sort -u >declared
nm -D --defined-only "$library" | awk '$2 ~ /[A-Z]/ && $2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u >exported
if [ "$(wc -l <declared)" -gt 20 ] && diff declared exported >difference; then
	ok "the library exports the $(wc -l <declared) functions of its header and nothing else"
else
	not_ok "the library's exports differ from the header's declarations:"
	cat difference
fi
if readelf -d "$library" | grep 'NEEDED' | grep -qE 'jemalloc|tcmalloc|metis'; then
	not_ok "the library brings an allocator or a tool's library: $(readelf -d "$library" | grep NEEDED)"
else
	ok "the library brings no allocator of its own"
fi
# A program unloads the library while a thread of the library resolves a name. The code stays mapped, so the program
# continues.
cat >unload.c <<'C'
#include <dlfcn.h>
#include <graphwire/graphwire.h>
int main(int count, char **given)
{
	void *library = dlopen(given[count - 1], RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return 3;
	const char *(*last_error)(void) = (const char *(*)(void))dlsym(library, "gw_last_error");
	gw_status (*open_client)(const struct gw_client_options *, struct gw_client **) =
		(gw_status (*)(const struct gw_client_options *, struct gw_client **))dlsym(library, "gw_client_open");
	const char *servers[] = {"nosuch-host.invalid:1"};
	struct gw_client_options options = {.servers = servers, .server_count = 1, .timeout_ms = 1, .reconnect_ms = 1};
	struct gw_client *client = 0;
	if (open_client(&options, &client) == GW_OK || dlclose(library) != 0)
		return 4;
	return last_error()[0] == 0; /* its code, after it was unloaded */
}
C
if cc -I"$top/include" unload.c -o unload -ldl; then
	holds "the library stays mapped when a program unloads it" ./unload "$library"
else
	not_ok "a program that unloads the library does not compile"
fi
# C++ and a strict C compiler accept the header.
printf '#include <graphwire/graphwire.h>\nint main(void) { return gw_last_error()[0]; }\n' >header.c
holds "the header in strict C" cc -std=c11 -pedantic -Wall -Wextra -Werror -I"$top/include" -c header.c -o header.o
sed 's/(void)/()/' header.c >header.cc
if command -v c++ >/dev/null; then
	holds "the header in C++" c++ -Wall -Wextra -Werror -I"$top/include" -c header.cc -o header.o
fi

holds "a graph" "$GRAPHWIRE" generate rmat --scale 12 --features 8 --out graph --quiet
holds "its parts" "$GRAPHWIRE" partition graph --num-parts 2 --method random --out parts
addresses=()
for part in 0 1; do
	"$GRAPHWIRE" serve --part-config parts --part $part --listen 127.0.0.1:0 >$part.log 2>&1 </dev/null &
	started+=($!)
	within 100 grep -q '^serving part' $part.log
	addresses+=("$(sed -n 's/^serving part .* at \([^ ]*\): .*/\1/p' $part.log)")
done
holds "the example, standalone" "$built/example-minibatch" parts
mv out alone
holds "the example, from servers" "$built/example-minibatch" parts "${addresses[@]}"
if grep -q '^5 mini-batches' alone && cmp -s out alone; then
	ok "it counts the same edges"
else
	not_ok "it counts the same edges: $(cat alone out)"
fi
refuses "the example without a graph" 1 'minibatch: .*absent' "$built/example-minibatch" absent
