#!/bin/bash
# typed.sh SECTION…: types the commands of these sections of docs/INSTALL.md, line by line, in the checkout where this
# script lies. Ends at the first command that fails.
set -euo pipefail
cd "$(dirname "$0")/../.."
for section in "$@"; do
	commands=$(awk -v section="## $section" '
		/^## / { here = $0 == section }
		here && /^```/ { code = !code; if (code) text = ($0 == "```"); next }
		here && code && text' docs/INSTALL.md)
	[ -n "$commands" ] || { echo "docs/INSTALL.md has no commands in \"$section\"" >&2; exit 1; }
	bash -euxc "$commands"
done
