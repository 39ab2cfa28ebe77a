#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Completion in bash: offers exactly the commands and options that the program has, each where the program accepts it.

setup() {
	lib=/usr/share/bash-completion/bash_completion
	[ -e $lib ] || skip "bash-completion is not installed"
	main=$top_srcdir/core/cli/main.c
	cd "$BATS_TEST_TMPDIR" || return
	export PATH="${GANTRY%/*}:$PATH" GANTRY_PLUGIN_PATH=$GANTRY_PLUGINS behind=''
	cat >tab.bash <<-EOF
	. $lib
	. "$top_srcdir/bash-completion/gantry"
	EOF
	# words as bash splits them; the cursor is at the start of "$behind", or at its first word if no word precedes it
	cat >>tab.bash <<-'EOF'
	compopt() { [[ $* != *nospace* ]] || echo NOSPACE; }
	COMP_LINE="$*"
	COMP_POINT=${#COMP_LINE} COMP_LINE+=$behind COMP_WORDS=()
	for word; do
		[[ -n $word$behind ]] || COMP_WORDS+=("")
		while [[ $word =~ ^([^=:]*)([=:])(.*)$ ]]; do
			[[ -z ${BASH_REMATCH[1]} ]] || COMP_WORDS+=("${BASH_REMATCH[1]}")
			COMP_WORDS+=("${BASH_REMATCH[2]}")
			word=${BASH_REMATCH[3]}
		done
		[[ -z $word ]] || COMP_WORDS+=("$word")
	done
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	[[ -z $behind || -n ${!#} ]] || ((COMP_CWORD++))
	COMP_WORDS+=($behind)
	_gantry
	printf '%s\n' "${COMPREPLY[@]}"
	EOF
	cat >a.conf <<-'EOF'
	devices = { wire = { transport = "loop"; }; };
	roles = {
		store = { role = "target"; listen = { device = "wire"; name = "a"; }; backend = { type = "memory"; }; };
		load = { role = "initiator"; connect = { device = "wire"; name = "a"; }; workload = { time = "1s"; }; };
	};
	EOF
}

# tab WORD... - set $output to the completions of the last word
tab() {
	run bash --norc tab.bash "$@" </dev/null
}

# offers WORDS TABBED... - exactly these words, in any order
offers() {
	local expected=$1
	shift
	tab "$@"
	# not by the echo of xargs, for which --help is an option
	[ "$(sort <<<"$output" | xargs printf '%s ')" = "$expected " ] || {
		echo "expected: $expected"
		echo "offered: $output"
		return 1
	}
}

# rows NAME - the first word of each row of that table of the program
rows() {
	sed -n "/[ }]$1\[\] = {/,/^};/s/^\t{\"\([a-z-]*\)\".*/\1/p" "$main" | sort
}

needs() {
	for plugin; do [ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"; done
}

@test "every command of the table" {
	[ "$(rows commands | wc -l)" -ge 9 ]
	offers "$(rows commands | xargs)" gantry ""
	offers run gantry -p /nix r
	offers run gantry --plugin-dir=/nix -v r
}

@test "every option of the table, where the program takes it" {
	[ "$(rows options | wc -l)" -ge 11 ]
	# conform and doca pass their words to another program
	for command in "" $(rows commands | grep -vxE 'conform|doca'); do
		taken=
		for option in $(rows options); do
			# shellcheck disable=SC2086 # no word, or one
			run "$GANTRY" $command "--$option=1" --help
			[[ "$output" == *"unknown option"* ]] || taken+="--$option "
		done
		offers "${taken% }" gantry ${command:+"$command"} --
		[[ "$taken" == *--help* ]]
	done
}

@test "plugins, and sections where they are wanted" {
	plugins=$(cd "$GANTRY_PLUGINS" && printf '%s\n' *.so | sed 's/\.so$//' | sort | xargs)
	offers "$plugins" gantry plugins ""
	offers "$plugins" gantry plugins --options noop ""
	offers "$(tr ' ' '\n' <<<"$plugins listen allow connect device role runtime" | sort | xargs)" gantry options ""
	offers listen gantry options loop li
	mkdir empty
	offers "" gantry plugins -p empty ""
	offers "$plugins" gantry plugins -p empty --plugin-dir="$GANTRY_PLUGINS" ""
	GANTRY_PLUGIN_PATH=:$PWD/empty::$GANTRY_PLUGINS: offers "$plugins" gantry plugins ""
}

@test "roles of the configuration on the line" {
	offers "load store" gantry run a.conf --role ""
	offers store gantry check a.conf --role=s
	offers load gantry run --set x=y a.conf --role store --role l
	offers "" gantry run --role ""
	behind=" a.conf" offers "load store" gantry run --role ""
	behind=" volume: -c a.conf" offers load gantry copy --role l
	cp a.conf "a b.conf"
	offers store gantry run 'a\ b.conf' --role s
	offers store gantry run '"a b.conf"' --role s
	HOME=$PWD offers store gantry run \~/a.conf --role s
}

@test "keys of the configuration, which the program knows, and their values" {
	needs loop initiator target memory
	tab gantry run a.conf --set ""
	[[ "$output" == *$'\nroles.load.workload.pattern=\n'*$'\nNOSPACE'* || "$output" == NOSPACE*roles.load.workload.pattern=* ]]
	for key in runtime.spin devices.wire. roles.store.lanes roles.store.listen.sessions roles.store.backend.size; do
		[[ "$output" == *$'\n'$key* ]] || { echo "missing: $key"; return 1; }
	done
	[[ "$output" != *roles.load.workload=* && "$output" != *roles.load.listen* && "$output" != *roles.store.workload* ]]
	sets=()
	for key in $(grep "=" <<<"$output"); do sets+=(--set "${key}x"); done
	[ ${#sets[@]} -gt 80 ]
	run "$GANTRY" check a.conf "${sets[@]}"
	[[ "$output" == *roles.load.lanes* && "$output" != *"unknown key"* && "$output" != *"--set "* ]]
	offers "randread randrw randwrite read readwrite" gantry run a.conf --set roles.load.workload.pattern=r
	offers "false true" gantry run a.conf --set=roles.load.workload.fua=
	offers "" gantry run a.conf --set roles.load.lanes=
}

@test "a configuration with mistakes" {
	sed -i 's/"target"/"tarket"/; s/listen/lizten/' a.conf
	offers "load store" gantry run a.conf --role ""
	echo "}" >>a.conf
	offers "" gantry run a.conf --role ""
}

@test "volumes and files of a copy, arguments of env, and no word where none is valid" {
	needs initiator
	touch vo.img
	offers "vo.img volume: volume:load" gantry copy -c a.conf v
	offers load gantry copy -c a.conf volume:l
	offers vo.img gantry copy -c a.conf volume:load vo.
	offers "" gantry copy volume:load vo.img v
	offers "dpu host" gantry env ""
	offers "" gantry env host ""
	offers "" gantry stat ""
	offers "" gantry frob ""
}

@test "arguments of new-plugin" {
	offers "backend observer role stage transport" gantry new-plugin ''
	mkdir place
	offers place gantry new-plugin stage mine pla
}

@test "options of conform, and files" {
	offers "--case --connector --discards --help --limit --list --listener --service --set" gantry conform --
	touch some.so
	offers some.so gantry conform --list so
}

@test "commands of doca, their options, and programs" {
	[ -x "$top_builddir/doca/gantry-doca" ] || skip "built with --disable-doca"
	local commands
	commands=$("$GANTRY" doca --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' | sort | xargs)
	[[ " $commands " == *" run "* ]]
	offers "$commands" gantry doca ''
	offers run gantry doca ru
	offers --thread-start-shim gantry doca run --thread
	tab gantry doca run --thread-start-shim -- gantr
	grep -qx gantry <<<"$output"
	touch argument-of-a-program
	offers argument-of-a-program gantry doca run -- true argument-of
}

@test "formats and files of traces" {
	offers "blkparse chrome fio json text" gantry trace --format ""
	offers chrome gantry trace -f c
	offers a.conf gantry trace a.co
	offers a.conf gantry trace --summary a.conf name=a.co
}

@test "files and directories" {
	mkdir dir
	offers a.conf gantry run a
	offers "a.conf dir tab.bash" gantry devices ""
	offers a.conf gantry plugins --config=a
	offers dir gantry stat --dir ""
	offers dir gantry run a.conf --plugin-dir=
	mkdir pci-00:1f
	offers 1f gantry copy pci-00:
}

@test "no plugin is loaded that only a configuration asks for" {
	umask 022
	mkdir own
	echo 'int creat(const char *, int); __attribute__((constructor)) static void x(void) { creat("loaded", 0600); }' |
		${CC:-cc} -shared -fPIC -x c -o own/spy.so -
	sed -i 's/"target"/"spy"/' a.conf
	echo "runtime = { plugin_dirs = [ \"$PWD/own\" ]; };" >>a.conf
	"$GANTRY" options -c a.conf
	[ -e loaded ]
	rm loaded
	for GANTRY_PLUGIN_PATH in "" "$GANTRY_PLUGINS"; do
		offers "load store" gantry run a.conf --role ""
		tab gantry run a.conf --set roles
	done
	[ ! -e loaded ]
}
