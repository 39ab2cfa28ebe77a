#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# outside.sh - the instructions of gantry-plugin(7) work: the examples of the page are built outside the tree, with the
# commands of the page, against the installed headers, and run with the installed gantry
page=$top_srcdir/man/gantry-plugin.7
. "$top_srcdir/tests/tap.sh"
umask 022
shown=$tmp/out
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES GANTRY_PLUGIN_PATH

# try NAME COMMAND...
try()
{
	name=$1
	shift
	"$@" >"$tmp/out" 2>&1
	verdict $? "$name"
}

# plain - a displayed text of a page without roff escapes
plain()
{
	sed 's/\\e/\\/g; s/\\&//g'
}

# example FILE - the text of the page after the comment `file FILE`
example()
{
	$AWK -v mark=".\\\\\" file $1" '$0 == mark { on = 1; next } on && /^\.Ed/ { exit } on && !/^\.Bd/' "$page" | plain
}

# commands N - the N-th block of commands of the page
commands()
{
	$AWK -v n="$1" '/^\.\\" commands$/ { on = ++k == n; next } /^\.Ed/ { on = 0 } on && !/^\.Bd/' "$page" |
		plain | sed 's/^\$ //'
}

# wrap NAME COMMAND - the program NAME for the commands of the page
wrap()
{
	printf '#!/bin/sh\nexec %s "$@"\n' "$2" >"$tmp/bin/$1" && chmod +x "$tmp/bin/$1"
}

# thing PAGE - the installed file that the page documents
thing()
{
	case $1 in
	gantry-security.7) echo gantry-plugin.pc ;;
	gantry.1 | gantry.conf.5 | gantry-control.7 | gantry-guarantees.7 | gantry-performance.7) echo gantry-plugin.pc ;;
	gantry-plugin.7 | gantry-probes.7 | gantry-tutorial.7) echo gantry-plugin.pc ;;
	gantry-client.3) echo libgantry.so ;;
	*.3) echo gantry-plugin.pc ;;
	gantry-doca.7) echo libgantry-doca.so ;;
	gantry-fio.1 | nbdkit-*) echo "${1%.1}.so" ;;
	*) echo "$1" | sed 's/^gantry-\(.*\)\.7$/\1.so/' ;;
	esac
}

# has NAME - whether NAME is installed
has() { [ -n "$(find "$tmp/root" -name "$1")" ]; }

command -v pkg-config >/dev/null || skip "pkg-config is not installed"
need loop initiator target memory

# the umask of the installing user may be restrictive; installed files must be readable by all users
try "make install" sh -c 'umask 077 && exec "$@"' sh ${MAKE:-make} -s -C "$top_builddir" install DESTDIR="$tmp/root"
find "$tmp/root" -type f ! -perm -444 >"$tmp/out"
[ ! -s "$tmp/out" ]
verdict $? "all may read what is installed, whatever the umask is"

installed=$(find "$tmp/root" -type f -path '*/bin/*gantry*' | head -n 1)
pc=$(find "$tmp/root" -name gantry-plugin.pc)
for file in "$top_srcdir"/man/*.[1357] "$top_builddir"/man/*.3; do
	name=${file##*/}
	thing=$(thing "$name")
	has "$thing" && { has "$name*" || echo "$name is not installed"; }
	has "$thing" || { has "$name*" && echo "$name is installed, and $thing is not"; }
done >"$tmp/out"
[ ! -s "$tmp/out" ]
verdict $? "the manual pages of what is installed are, and no others"

for dir in INCLUDEDIR LIBDIR DOCDIR DATADIR; do
	grep -rlw $dir "$tmp/root" --include='*.[1-8]'
done >"$tmp/out"
[ ! -s "$tmp/out" ] && grep -rq "^\.It Pa /.*/conf/\*\.conf" "$tmp/root"
verdict $? "installed pages have the installed paths"

# the installation is below a temporary directory: the paths in its files must be adapted
mkdir "$tmp/bin" "$tmp/pc" "$tmp/work"
sed -E "s|^([a-z_]+)=/|\\1=$tmp/root/|" "$pc" >"$tmp/pc/gantry-plugin.pc"
wrap gantry "$installed"
wrap cc "$CC"
[ -z "${CXX:-}" ] || wrap c++ "$CXX"
PKG_CONFIG_LIBDIR=$tmp/pc PATH=$tmp/bin:$PATH
export PKG_CONFIG_LIBDIR PATH
cd "$tmp/work" || exit 1
for file in mine.c mine.conf cap.c heap.c plus.cc; do
	example $file >$file
done

sed -n '/^#define/,$p' "$top_srcdir/plugins/stage/noop/noop.c" | sed 's/noop/mine/g' >noop.c
try "the first example is the stage noop by another name" diff noop.c mine.c

commands 1 >first.sh
try "the commands build mine.c and run it" sh -e first.sh
grep -q '10000' "$tmp/out"
verdict $? "the run did its IO"

commands 2 >second.sh
try "the commands build cap.c and show its options" sh -e second.sh
grep -q '64KiB' "$tmp/out"
verdict $? "its option is there"
sed 's/type = "mine"/type = "cap"; max = "1KiB"/' mine.conf >cap.conf
gantry run cap.conf --json --plugin-dir . --plugin-dir "$(pkg-config --variable=plugindir gantry-plugin)" >"$tmp/out" 2>&1
[ $? -eq 1 ] && grep -q '"too_long_ops": [1-9]' "$tmp/out"
verdict $? "it fails long IO, and counts it"

sed 's/backend = .*/backend = { type = "heap"; };/' mine.conf >heap.conf
commands 3 >backend.sh
try "the commands build heap.c and run it" sh -e backend.sh
grep -q '10000' "$tmp/out"
verdict $? "the backend did the IO"
# two lanes would call one `self` from two threads; a stage without open() has no `self`
check_lanes()
{
	sed 's/role = "target";/& lanes = 2;/' "$1.conf" >lanes.conf
	gantry check lanes.conf --plugin-dir . --plugin-dir "$(pkg-config --variable=plugindir gantry-plugin)"
}
check_lanes heap >"$tmp/out" 2>&1
[ $? -eq 2 ] && grep -q 'lanes.conf:7: roles.store.lanes: the role has 2 lanes, but the plugin "heap" serves one' "$tmp/out"
verdict $? "a backend without start() is rejected in a role with two lanes"
try "a stage without state is accepted there" check_lanes mine
sed -i '/max_io/d' heap.c
sh -e backend.sh >"$tmp/out" 2>&1
[ $? -eq 1 ] && grep -q 'heap: describes an impossible volume: its max_io is less than its block_size' "$tmp/out"
verdict $? "open() of the backend reports an invalid volume with the reason"
example heap.c >heap.c
sed -i '/gantry_complete/d' heap.c
mkfifo log
exec 3<>log # keeps both ends of the fifo open
sed 's/gantry run/exec gantry run --set roles.load.workload.deadline=100ms/' backend.sh >holds.sh
sh -e holds.sh >"$tmp/out" 2>log &
held=$!
timeout 60 grep -m 1 'roles.store has not ended yet' <log >>"$tmp/out"
told=$?
kill -TERM $held
timeout 60 grep -m 1 'stopping' <log >>"$tmp/out" # the next signal is SIGTERM again: nohup(1) ignores SIGHUP
kill -TERM $held
wait $held
[ $? -eq 3 ] && [ $told -eq 0 ]
verdict $? "a backend that never completes an IO delays the end, which gantry reports, until a second signal"
example heap.c >heap.c

if command -v c++ >/dev/null; then
	commands 4 >third.sh
	try "the commands build plus.cc" sh -e third.sh
	sed 's/"mine"/"plus"/' mine.conf >plus.conf
	try "it runs" gantry run plus.conf --plugin-dir . \
		--plugin-dir "$(pkg-config --variable=plugindir gantry-plugin)"
	try "C++17 with all warnings" c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only \
		"-I$(pkg-config --variable=includedir gantry-plugin)" plus.cc
else
	skipped C++ "no c++"
fi
for file in mine.c cap.c heap.c; do
	try "$file in C11 with all warnings" cc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only \
		"-I$(pkg-config --variable=includedir gantry-plugin)" $file
done
done_testing
