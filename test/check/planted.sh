# shellcheck shell=bash
# Sourced by checks of includes. planted CHECK <TABLE: each line of the table plants files, FILE:INCLUDED …|VERDICT, in a
# folder. Prints whether `CHECK FOLDER` prints something (caught) or nothing (allowed), as the verdict says. Returns 1 if
# a verdict is another one.
planted() {
	local check=$1 root failed=0
	root=$(mktemp -d)
	while IFS='|' read -r files verdict; do
		local pair found=allowed
		for pair in $files; do
			mkdir -p "$root/$(dirname "${pair%%:*}")"
			printf '#include "%s"\n' "${pair#*:}" >>"$root/${pair%%:*}"
		done
		[ -n "$("$check" "$root")" ] && found=caught
		if [ "$found" = "$verdict" ]; then
			echo "ok - $files is $verdict"
		else
			echo "not ok - $files is $found, not $verdict"
			failed=1
		fi
		rm -rf "${root:?}"/*
	done
	rm -rf "$root"
	return $failed
}
