#!/usr/bin/env bash
# Installs Graphwire as users of other Debian releases and Pythons do, each in a root of its own:
#
#   wheel       Debian 11 (Python 3.9), Debian testing (Python 3.14), Debian 12 (Python 3.11, with PyTorch)
#   sdist       Debian 12 with the packages of the purpose build except the optional ones: METIS, jemalloc, RDMA
#   INSTALL.md  its commands in Debian 13; ./quickstart in Debian 12 and 13
#   README      its line for pip, in Debian 12 with the packages that it names, then the program in another folder
#   ./check     the steps build, unit and python in Debian 13
#
# The files of a release come from python/release.sh. pip fetches what they need on this host, for the root's Python, so
# that a root needs no network; quickstart and ./check install packages and use the host's network.
#
# soak/roots.sh [NAME…] runs the named ones only: bullseye forky torch sdist typed pip quick12 quick13 check13.
# shellcheck disable=SC2317 # functions that `holds` calls
cd "$(dirname "$0")/../../.." && . test/check/lib.sh
folder=$PWD/build/install
run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
trap 'exit 130' INT TERM
status=0
deploy/packages.sh install
. test/check/roots.sh
[ -z "$why" ] || { note "no roots: $why"; exit 0; }
mkdir -p "$folder"
wanted=" ${*:-bullseye forky torch sdist typed pip quick12 quick13 check13} "
asked() { [[ $wanted = *" $1 "* ]]; }

# holds WHAT COMMAND…: the command's output is shown if it fails. Lines of tests in it are reported in any case.
holds() {
	local what=$1
	shift
	"$@" >"$run/out" 2>&1 </dev/null
	local result=$?
	grep -E '^(not )?ok - ' "$run/out"
	if [ $result -eq 0 ]; then
		ok "roots: $what"
	else
		not_ok "roots: $what"
		tail -n 15 "$run/out"
		status=1
	fi
}

# required: removes the optional packages from a list.
required() { tr ',' '\n' | grep -vE '^lib(metis|jemalloc|ibverbs|rdmacm)-dev$' | paste -sd ,; }

# ready NAME SUITE PACKAGES: unpacks a fresh root. False, with a line, if it cannot be made.
ready() {
	root "$@" >"$run/$1.made" 2>&1 && unpack "$1" "$1-full" && return
	not_ok "roots: no root $1"
	tail -n 5 "$run/$1.made"
	status=1
	return 1
}

# wheelhouse NAME PYTHON REQUIREMENT…: fetches what a root's pip needs into its /opt/wheels.
wheelhouse() {
	local at=$run/$1/opt/wheels python=$2 glibc platforms=()
	shift 2
	for glibc in 17 24 27 28; do platforms+=(--platform "manylinux_2_${glibc}_x86_64"); done
	mkdir -p "$at" && cp "$release"/* "$at" &&
		python3 -m pip download -q --only-binary :all: --python-version "$python" --platform manylinux2014_x86_64 "${platforms[@]}" \
			--platform linux_x86_64 -d "$at" "$@"
}

# installed NAME WHAT: makes a virtual environment in the root and installs WHAT from the wheelhouse.
installed() {
	inside "$1" sh -ec 'python3 -m venv /opt/venv
		/opt/venv/bin/pip install -q --no-index --find-links /opt/wheels "$@"' sh "${@:2}"
}

# used NAME [OPTION]: test/install/wheel.py with the root's Python.
used() {
	cp test/install/wheel.py "$run/$1/opt" &&
		inside "$1" sh -ec 'mkdir /tmp/work; exec /opt/venv/bin/python /opt/wheel.py /tmp/work "$@"' sh "${@:2}"
}

release=$run/release
if asked bullseye || asked forky || asked torch || asked sdist; then
	holds "python/release.sh makes the sdist and the wheel" python/release.sh "$release"
	[ $status -eq 0 ] || exit 1
fi

# wheel NAME SUITE PACKAGES PYTHON [REQUIREMENT…]
wheel() {
	local name=$1 python=$4
	ready "$name" "$2" "$3" || return
	holds "$name: what pip fetches" wheelhouse "$name" "$python" cffi numpy "${@:5}"
	holds "$name: the wheel installs" installed "$name" graphwire "${@:5}"
	holds "$name: the wheel works" used "$name"
}
if asked bullseye; then
	wheel bullseye-python bullseye python3-venv 3.9
	rm -rf "$run/bullseye-python"
fi
if asked forky; then
	wheel forky-python forky python3-venv,libstdc++6 3.14
	rm -rf "$run/forky-python"
fi
if asked torch; then
	wheel bookworm-python bookworm python3-venv,libstdc++6 3.11 torch torch_geometric
	cp test/install/torch.sh "$run/bookworm-python/opt"
	holds "bookworm-python: from_pyg and gwke_train" inside bookworm-python bash /opt/torch.sh
	rm -rf "$run/bookworm-python"
fi
if asked sdist && ready bookworm-sdist bookworm "$(packages_of build | required),$(packages_of pip),libstdc++6"; then
	holds "sdist: what pip fetches" wheelhouse bookworm-sdist 3.11 cffi numpy 'scikit-build-core>=0.11' setuptools
	rm -f "$run/bookworm-sdist/opt/wheels"/graphwire-*.whl
	holds "sdist: it builds and installs" installed bookworm-sdist graphwire
	holds "sdist: it works, and says that METIS is missing" used bookworm-sdist --without-metis
	rm -rf "$run/bookworm-sdist"
fi
if asked typed && ready trixie-build trixie "$(packages_of build deb),apt"; then
	checkout trixie-build
	holds "INSTALL.md's commands in Debian 13" inside trixie-build bash /opt/graphwire/test/install/typed.sh 'From source' 'A Debian package'
	rm -rf "$run/trixie-build"
fi
if asked pip && ready bookworm-apt bookworm apt,ca-certificates; then
	checkout bookworm-apt
	line=$(grep -oP '^.*pip install \.(?= )' README.md)
	# shellcheck disable=SC2016 # the inner shell's
	holds "README's line for pip in Debian 12" online bookworm-apt sh -ec 'cd /opt/graphwire
		deploy/packages.sh build pip
		export HOME=/root
		eval "$1"
		cd / && PATH=~/venv/bin:$PATH
		graphwire generate rmat --scale 8 --out /tmp/g
		graphwire-launch --help >/tmp/help
		python -c "import graphwire; graphwire.open(\"/tmp/g\", numpy=True)"' sh "$line"
	rm -rf "$run/bookworm-apt"
fi
for one in quick12:bookworm quick13:trixie; do
	if asked "${one%:*}" && ready "${one#*:}-apt" "${one#*:}" apt,ca-certificates; then
		checkout "${one#*:}-apt"
		holds "./quickstart in ${one#*:}" online "${one#*:}-apt" /opt/graphwire/quickstart --epochs 1
		rm -rf "$run/${one#*:}-apt"
	fi
done
if asked check13 && ready trixie-apt trixie apt,ca-certificates,git; then
	checkout trixie-apt
	# shellcheck disable=SC2016 # the inner shell's
	holds "./check packages build unit python in Debian 13" online trixie-apt sh -ec 'cd /opt/graphwire
		git init -q . && git add -A . && git -c user.name=x -c user.email=x@localhost commit -qm x
		./check packages build unit python; status=$?
		grep -h "^not ok" build/check/*.log || :
		exit $status'
	rm -rf "$run/trixie-apt"
fi
exit $status
