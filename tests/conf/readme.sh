#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# readme.sh - checks that the configuration and the plugin of README work, and that README lists each module and plugin
readme=$top_srcdir/README
. "$top_srcdir/tests/tap.sh"
umask 022
mkdir -m 700 "$tmp/run"
XDG_RUNTIME_DIR=$tmp/run
export XDG_RUNTIME_DIR
cd "$tmp" || exit 1

# section TITLE - print the text between that title and the next one
section()
{
	awk -v title="$1" '/^-+$/ { on = before == title } on { print } { before = $0 }' "$readme"
}

gantry()
{
	"$GANTRY" "$@" --plugin-dir "$GANTRY_PLUGINS" --plugin-dir "$tmp"
}

# run ARGUMENT... - a short run of the configuration
run()
{
	gantry run "$tmp/first.conf" --set roles.load.workload.ops=300 "$@"
}

# swap TRANSPORT DEVICE - gantry check of the configuration with this device; nothing else changes
swap()
{
	[ -e "$GANTRY_PLUGINS/$1.so" ] || return 0
	sed "s|wire = { transport = \"loop\"; };|wire = { transport = \"$1\"; $2 };|" "$tmp/first.conf" >"$tmp/swapped.conf"
	grep -q "\"$1\"" "$tmp/swapped.conf" && gantry check "$tmp/swapped.conf"
}

# swap_run TRANSPORT FIRST SECOND - a short run of the configuration with this device, which maps its services to these addresses
swap_run()
{
	[ -e "$GANTRY_PLUGINS/$1.so" ] || return 0
	swap "$1" "auth = \"none\"; services = { disk = \"$2\"; volume0 = \"$3\"; };" || return
	gantry run -v "$tmp/swapped.conf" --set roles.load.workload.ops=300 >run.log 2>&1 || return
	cat run.log
	[ "$(grep -c "service=disk address=$2" run.log)" -ge 2 ]
}

# line PATTERN - the command of the plugin that begins so, with the directories of this tree and build
line()
{
	section "A plugin in a dozen lines" |
		sed "s|build/gcc|$top_builddir|g; s|-Iinclude|-I$top_srcdir/include|; s|FILE|first.conf|" |
		sed -n "s|^    \($1 .*\)|\1|p" | grep . || echo false
}

compile()
{
	eval "$(line cc | sed "s|^cc |${CC:-cc} -Wall -Werror |")"
}

# run_plugin - a short run with the command of the plugin
run_plugin()
{
	eval "$(line '[^ ]*/gantry run') --set roles.load.workload.ops=300"
}

# modules - directories that README does not name
modules()
{
	[ -z "$(
		cd "$top_srcdir" && for folder in core/*/ plugins/*/ examples/; do
			section "Source tree" | grep -q "\(^\|[ ;]\) *$folder" || echo "$folder"
		done | tee /dev/stderr
	)" ]
}

# plugins - plugins that README does not name in the line of their kind
plugins()
{
	[ -z "$(
		cd "$top_srcdir" && for folder in plugins/*/*/; do
			name=$(basename "$folder")
			section "Source tree" | grep "^ *${folder%"$name/"}" | grep -qw -e "$name" || echo "$folder"
		done | tee /dev/stderr
	)" ]
}

# same_versions NAME FILE... - each of these files requires the same version of NAME
same_versions()
{
	name=$1
	shift
	versions=$(for file; do
		grep -oE "$name [0-9.]+[0-9] or later" "$top_srcdir/$file" || echo "no $name in $file"
	done | sort -u)
	echo "$versions"
	[ "$(echo "$versions" | wc -l)" -eq 1 ]
}

# demo_packages - README names as many packages for the demo as tests/packages has
demo_packages()
{
	grep -q "(tests/packages; $(grep -c '^demo ' "$top_srcdir/tests/packages") for the demo)" "$readme"
}

need loop shm-comch target memory gateway stats initiator
section "A first configuration" | grep '^    ' >first.conf
section "A plugin in a dozen lines" | sed -n '/^    #define/,/^    };/p' >keep.c
ok "the configuration passes gantry check" gantry check "$tmp/first.conf"
ok "it runs" run
ok "it runs over shared memory" run --set devices.wire.transport=shm-comch
addresses='auth = "none"; services = { disk = "192.0.2.7:7471"; volume0 = "192.0.2.7:7472"; };'
ok "another device moves it to shm-comch" swap shm-comch ""
ok "a device with addresses serves it over loop" swap_run loop "first address" "second address"
ok "and over shm-comch" swap_run shm-comch "first address" "second address"
loopback=127.$(($$ / 65536)).$(($$ / 256 % 256)).$(($$ % 256)) # no other test has this address
ok "and over tcp" swap_run tcp "$loopback:4791" "$loopback:4792"
ok "another device moves it to rdma-verbs" swap rdma-verbs "ibdev = \"none0\"; $addresses"
ok "another device moves it to tcp" swap tcp "$addresses"
ok "another device moves it to rxe" swap rxe "netdev = \"none0\"; $addresses"
ok "the plugin compiles with the command of the page" compile
ok "it runs in the path with the command of the page" run_plugin
ok "each module is named" modules
ok "each plugin is named" plugins
ok "README, gantry(1) and configure require the same glibc" same_versions glibc README man/gantry.1 configure.ac
ok "README and gantry(1) require the same kernel" same_versions Linux README man/gantry.1
ok "the number of packages for the demo is that of tests/packages" demo_packages
ok "it is short" [ "$(wc -l <"$readme")" -le 150 ]
done_testing
