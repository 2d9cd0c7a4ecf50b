# Roots: file systems of Debian releases with the named packages only, made by mmdebstrap from the mirror that apt uses
# here, and entered in their own namespaces. Needs root. Sourced after lib.sh; the caller sets:
#
#   folder   keeps the roots as tarballs, for a week
#   run      a temporary folder; a root that is unpacked is $run/NAME
#
# After it: $why says why no root can be made here, or is empty; $mirror is apt's.
# shellcheck shell=bash disable=SC2154,SC2034 # variables of the caller and for it

namespaces() {
	mkdir "$run/probe" && unshare --mount --pid --net --fork sh -c "mount -t proc proc '$run/probe' && ip link set lo up"
}

why=''
# shellcheck disable=SC2016 # apt's variables
mirror=$(apt-get indextargets --format '$(SITE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
	awk '$1 ~ /debian/ && $1 !~ /security/ && $2 == "main" { print $1; exit }')
if [ "$(id -u)" -ne 0 ]; then
	why="needs root"
elif ! command -v mmdebstrap >/dev/null; then
	why="no mmdebstrap"
elif [ -z "$mirror" ]; then
	why="apt has no Debian mirror here"
elif ! namespaces 2>/dev/null; then
	why="namespaces cannot be made here"
fi

# reached SUITE: whether the mirror has it.
reached() { /usr/lib/apt/apt-helper download-file "$mirror/dists/$1/Release" "$run/Release-$1" >/dev/null 2>&1; }

# packages_of PURPOSE…: the packages of deploy/packages, separated by commas. Those with "?" are left out.
packages_of() {
	local purpose
	for purpose in "$@"; do sed -n "s/^$purpose: *//p" deploy/packages; done | tr ' ' '\n' | grep -v '?$' | paste -sd ,
}

# root NAME SUITE PACKAGES: makes $folder/NAME-full.tar, a root of the essential packages and PACKAGES (separated by
# commas). If NAME is SUITE, also $folder/NAME-bare.tar, without PACKAGES. A mirror's copy of a suite may be older than the
# suite's date of expiry allows; that is no fault here.
root() {
	local name=$1 suite=$2 packages=$3 stamp bare=()
	stamp=$(printf '%s %s %s %s' "$mirror" "$suite" "$packages" "$(date +%Y-%V)" | sha1sum)
	[ "$(cat "$folder/$name.stamp" 2>/dev/null)" = "$stamp" ] && return
	rm -f "$folder/$name"-*.tar "$folder/$name.stamp"
	local without='--exclude=./dev/* --exclude=./proc/* --exclude=./sys/* --exclude=./var/lib/apt/lists/* --exclude=./var/cache/apt/*'
	[ "$name" = "$suite" ] && bare=(--essential-hook="tar -C \"\$1\" $without -cf '$folder/$name-bare.tar' .")
	mmdebstrap --mode=root --variant=essential --aptopt='Acquire::Retries "3"' --aptopt='Acquire::Check-Valid-Until "false"' \
		${packages:+--include="$packages"} "${bare[@]}" "$suite" "$folder/$name-full.tar" "$mirror" &&
		echo "$stamp" >"$folder/$name.stamp"
}

# unpack NAME TAR: unpacks a root into $run/NAME.
unpack() { mkdir "$run/$1" && tar -C "$run/$1" -xf "$folder/$2.tar" && mkdir -p "$run/$1/opt/tour"; }

# checkout NAME: copies this checkout's files, not its builds, to /opt/graphwire of a root.
checkout() {
	mkdir -p "$run/$1/opt/graphwire"
	# shellcheck disable=SC2016 # the inner shell's
	git ls-files -z --cached --others --exclude-standard | xargs -0 sh -c 'for file; do [ ! -e "$file" ] || printf "%s\0" "$file"; done' sh |
		tar --null -T - -c | tar -C "$run/$1/opt/graphwire" -x
}

# inside ROOT COMMAND…: runs a command in a root, without the host's processes and networks. online does the same with the
# host's network and certificates. pip reads the host's settings there, and sees the folders that they name: a host may
# reach PyPI by a mirror only. A root has devices of its own, because a package that is installed there may change them.
inside() {
	local at=$run/$1
	shift
	enter "$at" --net 'ip link set lo up; ip addr add 10.77.7.7/32 dev lo' "$@"
}
online() {
	local at=$run/$1 file setup=:
	shift
	for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do
		[ ! -e "$file" ] || { mkdir -p "$at${file%/*}" && cp -L "$file" "$at$file"; }
	done
	pip config list 2>/dev/null | sed -n "s/^global\.\([a-z-]*\)='\(.*\)'$/\1 = \2/p" | sed '1i [global]' >"$at/etc/pip.conf"
	while read -r file; do
		if [ -f "$file" ]; then
			mkdir -p "$at${file%/*}" && cp -L "$file" "$at$file"
		elif [ -d "$file" ]; then # an index names files of its neighbours
			file=$(cut -d / -f 1-3 <<<"$file")
			setup="$setup; mkdir -p '$at$file'; mount --bind '$file' '$at$file'"
		fi
	done < <(grep -oE '(^| |file://)/[^ ]+' "$at/etc/pip.conf" | sed 's#^ *##; s#^file://##')
	enter "$at" --ipc "$setup" "$@"
}
enter() { # enter FOLDER NAMESPACE SETUP COMMAND…
	local at=$1 namespace=$2 setup=$3
	shift 3
	# shellcheck disable=SC2016 # the inner shell's
	unshare --mount --pid "$namespace" --fork --kill-child sh -ec "$setup"'
		mount -t proc proc "$0/proc"
		mount -t tmpfs -o mode=755 tmpfs "$0/dev"
		for one in null zero full random urandom tty; do cp -a "/dev/$one" "$0/dev"; done
		mkdir "$0/dev/shm" "$0/dev/pts"
		mount -t tmpfs tmpfs "$0/dev/shm"
		mount -t devpts -o newinstance,ptmxmode=666 devpts "$0/dev/pts"
		ln -s pts/ptmx "$0/dev/ptmx"
		ln -s /proc/self/fd "$0/dev/fd"
		mount -t tmpfs tmpfs "$0/tmp"
		cd /
		exec chroot "$0" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@"' "$at" "$@"
}
