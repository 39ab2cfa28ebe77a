#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# examples.sh - builds the examples with the commands in their first comments, which need only pkg-config, and runs them: two
# processes that communicate through the emulated card
. "$top_srcdir/tests/tap.sh"
[ -e "$top_builddir/doca/.libs/libgantry-doca.so" ] || skip "libgantry-doca is not built"
command -v pkg-config >/dev/null || skip "pkg-config is not installed"
mkdir -m 700 "$tmp/run"
XDG_RUNTIME_DIR=$tmp/run
export XDG_RUNTIME_DIR
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
unset PKG_CONFIG_PATH LD_LIBRARY_PATH GANTRY_PLUGIN_PATH GANTRY_DOCA_CONF GANTRY_DOCA_PROFILE
cp "$top_srcdir"/examples/doca/* "$tmp"
cd "$tmp" || exit 1
san=$(sed -n "s/^GANTRY_LDFLAGS = //p" "$top_builddir/doca/Makefile" | tr ' ' '\n' | grep -e -fsanitize | tr '\n' ' ')
touch dpu.out host.out
shown="dpu.out host.out"

# compile NAME - compile with the command of the file's comment; the environment selects the files of pkg-config
compile()
{
	command=$(sed -n 's|^ \*[[:space:]]*cc |'"${CC:-cc} -Wall -Wextra -Werror $san"' |p' "$1.c")
	eval "$command"
}

# compile_readme NAME - compile with the command of README
compile_readme()
{
	command=$(sed -n "s|^    cc -o $1 examples/doca/\(.*\) && .*|${CC:-cc} -Wall -Wextra -Werror $san -o $1 \1|p" \
		"$top_srcdir/README")
	[ -n "$command" ] && eval "$command"
}

# build PROFILE NAME [FUNCTION] - compile in a shell with the variables that `gantry env` prints
build()
(
	eval "$("$GANTRY" env "$1")" || exit
	"${3:-compile}" "$2"
)

# side PROFILE ARGUMENT... - run a program with the variables that `gantry env` prints
side()
{
	eval "$("$GANTRY" env "$1")"
	shift
	exec timeout 60 "$@"
}

# install - install the library and its headers below root/, with that prefix in their pkg-config files
install()
{
	for folder in include doca; do
		${MAKE:-make} -s -C "$top_builddir/$folder" install DESTDIR="$tmp/root" || return
	done
	lib=$(dirname "$(find root -name libgantry-doca.so)")
	sed -i -E "s|^([a-z]+)=/|\\1=$tmp/root/|" "$lib"/gantry/doca/*/pkgconfig/*.pc
}

# build_installed PROFILE NAME - build from installed files only
build_installed()
(
	PKG_CONFIG_LIBDIR=$lib/gantry/doca/$1/pkgconfig
	export PKG_CONFIG_LIBDIR
	rm -f "$2"
	compile "$2"
)

# said WHAT - print the text of the page after this mark
said()
{
	awk -v mark=".\\\\\" functions $1" '
	$0 == mark { on = 1; next } /^\.Ed/ { on = 0 } on && !/^\.Bd/
	' "$top_srcdir/man/gantry-doca.7"
}

# sees - a program on the DPU prints the devices that the page shows
sees()
{
	(GANTRY_DOCA_CONF=$tmp/functions.conf && export GANTRY_DOCA_CONF && side dpu ./devices) | diff - seen
}

# appears TEXT FILE - wait until the file contains the text, for a minute
appears()
{
	i=0
	until grep -q "$1" "$2"; do
		i=$((i + 1))
		[ $i -lt 6000 ] && kill -0 "$pid" || return 1
		sleep 0.01 # lint: allowed, between two checks
	done
}

# serve COMMAND... - start a server as $pid, with its output in dpu.out; the file is empty before the server starts
serve()
{
	: >dpu.out
	("$@") >dpu.out 2>&1 &
	pid=$!
}

# line NAME - the command that runs a program, from its first comment
line()
{
	sed -n 's|^ \*[[:space:]]*\(\./.*\)|\1|p' "$1.c"
}

# pair NAME - build both sides of a pair, run them with the commands of their comments, and compare what they receive
pair()
{
	ok "$1: the server is built" build dpu "$1-server"
	ok "$1: the client is built" build host "$1-client"
	serve side dpu sh -c "exec $(line "$1-server")"
	ok "$1: the server waits" appears "waiting" dpu.out
	(side host sh -c "exec $(line "$1-client")") >host.out 2>&1
	ok "$1: the client succeeds" [ $? -eq 0 ]
	ok "$1: it has received the text of the server" grep -qx "received: hello from the DPU" host.out
	wait "$pid"
	ok "$1: the server succeeds" [ $? -eq 0 ]
	pid=
	ok "$1: it has received the text of the client" grep -qx "received: hello from the host" dpu.out
}

# over TRANSPORT - hello runs with this configuration: nothing but the transport of its devices differs
over()
{
	mapped=greeting-$1-$$
	cat >over.conf <<-END
		runtime = { plugin_dirs = ( "$GANTRY_PLUGINS", "$top_builddir/tests/.libs" ); };
		devices = {
			dpu = { transport = "$1"; pci = "03:00.0"; services = { hello = "$mapped"; }; };
			host = { transport = "$1"; pci = "b1:00.0"; services = { hello = "$mapped"; }; };
		};
	END
	serve configured dpu ./hello-dpu
	ok "over $1: the server waits" appears "waiting" dpu.out
	ok "over $1: it listens at the mapped service" grep -q "$mapped" /proc/net/unix
	(configured host ./hello-host "good morning") >host.out 2>&1
	ok "over $1: the client has its answer" grep -qx "DPU received: good morning" host.out
	wait "$pid"
	ok "over $1: the server is content" [ $? -eq 0 ]
	pid=
}

# configured PROFILE COMMAND... - as side, with the configuration over.conf
configured()
{
	eval "$("$GANTRY" env "$1")"
	shift
	unset GANTRY_PLUGIN_PATH
	GANTRY_DOCA_CONF=$tmp/over.conf
	export GANTRY_DOCA_CONF
	exec timeout 60 "$@"
}

# job STEP - run the commands of a step of check-job.yml, with the compiler of this build
job()
(
	eval "$("$GANTRY" env host)"
	mkdir -p bin
	compiler=${CC:-cc}
	[ "$compiler" != cc ] || compiler=$(command -v cc)
	printf '#!/bin/sh\nexec %s -Wall -Wextra -Werror %s "$@"\n' "$compiler" "$san" >bin/cc
	chmod +x bin/cc
	PATH=$tmp/bin:$(dirname "$GANTRY"):$PATH
	export PATH
	awk -v step="      - name: $1" '
	/^      - / { on = $0 == step } on && /^          / { print }' check-job.yml >job.sh
	[ -s job.sh ] && sh -e job.sh
)

# rejects TEXT PROFILE ARGUMENT... - a program ends with status 1 and that text
rejects()
{
	text=$1
	shift
	(side "$@") >host.out 2>&1
	[ $? -eq 1 ] && grep -q -e "$text" host.out
}

ok "the DPU's side is built" build dpu hello-dpu
ok "the host's side is built" build host hello-host
serve side dpu ./hello-dpu
ok "the server waits" appears "waiting" dpu.out
(side host ./hello-host "good morning") >host.out 2>&1
ok "the client is content" [ $? -eq 0 ]
ok "it has its answer" grep -qx "DPU received: good morning" host.out
wait "$pid"
ok "the server is content" [ $? -eq 0 ]
pid=
ok "it saw the client come and go" [ "$(tail -n 2 dpu.out | tr '\n' '.')" = "client connected.client disconnected." ]
over shm-comch
over unix-socket
ok "README builds the DPU's side" build dpu hello-dpu compile_readme
ok "and the host's" build host hello-host compile_readme
said file >functions.conf
said seen >seen
ok "the list of functions is built" build dpu devices
ok "a configuration adds functions as the page says" sees
ok "a program of the WorkQ time is built" build dpu workq-copy
(side dpu ./workq-copy "as it was done then") >copy.out 2>&1
ok "it copies" grep -qx "as it was done then" copy.out
ok "a program with code for the DPA is built" build dpu dpa-thread
(side dpu ./dpa-thread 7) >dpa.out 2>&1
ok "its thread on the DPA has run" grep -qx "the DPA ran with 7" dpa.out
pair ctrl-path
pair fast-path
ok "an address without a device is rejected" rejects "no device 09:00.0" host ./ctrl-path-client -p 09:00.0
ok "so is one without a representor" rejects "no representor b1:00.1" dpu ./fast-path-server --rep-pci b1:00.1
ok "and a text that is too long" rejects "not a text of 1 to 199 bytes" dpu ./ctrl-path-server -t "$(printf '%0200d' 0)"
ok "a client needs a server" rejects "no server: start it first" host ./fast-path-client
if [ -e "$top_builddir/doca/gantry-doca" ]; then
	shown=job.out
	job build >job.out 2>&1
	ok "the job for CI builds its programs" [ $? -eq 0 ]
	job check >job.out 2>&1
	ok "they pass the check, also with trouble that they can survive" [ $? -eq 0 ]
	ok "the findings are written" [ -s findings.sarif -a -s findings.xml ]
fi
ok "it is installed" install
ok "the DPU's side is built with what is installed" build_installed dpu hello-dpu
ok "and the host's" build_installed host hello-host
ok "and a program of the WorkQ time" build_installed dpu workq-copy
ok "and a program with code for the DPA" build_installed dpu dpa-thread
(GANTRY_PLUGIN_PATH=$GANTRY_PLUGINS LD_LIBRARY_PATH=$lib exec timeout 60 ./hello-host) >host.out 2>&1
ok "without a server the client fails" [ $? -eq 1 ]
ok "and says why" grep -q 'no server "hello"' host.out
done_testing
