#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# packages.sh - Debian packages of tests/packages: which of them are missing, and their installation
#
# ./dev reads this file, progress.sh and the functions `say` and `with_progress` before it. Missing packages are printed before
# anything is installed. Where they cannot be installed, the command for an administrator is printed and ./dev goes on:
# configure reports what the build cannot do without.

missing="" # packages that are still missing after `provide`, separated by spaces
apt_log=build/apt.log
as_root=()

# packages GROUP... - print the packages of these groups; a line of tests/packages with one word is of the group "build"
packages()
{
	awk -v groups=" $* " '!/^#/ && NF && index(groups, " " (NF > 1 ? $1 : "build") " ") { print $NF }' tests/packages
}

# find_missing GROUP... - set `missing`
find_missing()
{
	missing=""
	command -v dpkg-query >/dev/null || { say "this system is not Debian: tests/packages lists what is needed"; return 0; }
	missing=$(packages "$@" |
		grep -vxFf <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p') | xargs)
}

# become_root - set `as_root` to the words before a command that needs root; sudo may ask for a password on a terminal.
# Returns non-zero if this user cannot become root.
become_root()
{
	as_root=()
	[ "$(id -u)" -ne 0 ] || return 0
	as_root=(sudo -n)
	command -v sudo >/dev/null || return 1
	sudo -n true 2>/dev/null || { [ -t 2 ] && sudo -v; }
}

# run_apt ARGUMENT... - apt-get as root, without questions
run_apt()
{
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" >>$apt_log 2>&1
}

# planned PACKAGE... - print how many packages apt-get would install. Returns non-zero if it does not know one of them.
planned()
{
	apt-get -qq -s install --no-install-recommends "$@" 2>/dev/null | grep -c '^Inst ' | grep -vx 0
}

# installed_so_far - print how many of `total` packages apt-get has installed
installed_so_far()
{
	count_lines '^Setting up ' $apt_log "${total:-0}" packages
}

# install_packages PACKAGE... - install them; if that fails, update the lists of packages and try again
install_packages()
{
	run_apt install --no-install-recommends "$@" && return
	run_apt update
	run_apt install --no-install-recommends "$@"
}

# provide PURPOSE GROUP... - install the missing packages of these groups. Returns non-zero if packages are still missing, after
# printing their names and the reason.
provide()
{
	local purpose=$1 total words
	shift
	find_missing "$@"
	[ -n "$missing" ] || return 0
	read -ra words <<<"$missing"
	say "$purpose: packages missing (number=${#words[@]}): $missing"
	if ! become_root; then
		say "$purpose: no root to install them; for an administrator: apt-get install --no-install-recommends $missing"
		return 1
	fi
	mkdir -p build
	: >$apt_log
	total=$(planned "${words[@]}") || {
		with_progress "updating the lists of packages" "" run_apt update
		total=$(planned "${words[@]}")
	}
	say "$purpose: installing packages (number with dependencies=${total:-unknown}, log=$apt_log)"
	with_progress "installing packages" installed_so_far install_packages "${words[@]}" && missing="" && return
	tail -n 5 $apt_log
	say "$purpose: apt-get failed (log=$apt_log); packages missing: $missing"
	return 1
}
