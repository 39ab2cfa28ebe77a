#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Root uses no configuration and no plugin that another user could have written, unless the environment lists that user.

setup() {
	umask 022
	[ "$(id -u)" -eq 0 ] || skip "only root can give a file away"
	[ -e "$GANTRY_PLUGINS/noop.so" ] || skip "built without the plugin noop"
	unset GANTRY_TRUST_UID
	dir=$BATS_TEST_TMPDIR/etc
	conf=$dir/t.conf
	mkdir -p "$dir/plugins"
	cp -L "$GANTRY_PLUGINS/noop.so" "$dir/plugins/"
	chmod 755 "$dir/plugins/noop.so"
	printf '@include "more.conf"\n' >"$conf"
	printf 'runtime = { plugin_dirs = [ "%s/plugins" ]; };\n' "$dir" >"$dir/more.conf"
}

gantry() {
	run "$GANTRY" "$@"
	echo "$output"
}

says() {
	[[ "$output" == *"$1"* ]] || { echo "expected: $1"; return 1; }
}

loads() {
	gantry plugins -c "$conf" noop
	[ "$status" -eq 0 ]
	says "$dir/plugins/noop.so"
}

rejects() { # TEXT
	gantry plugins -c "$conf" noop
	[ "$status" -eq 2 ]
	says "$1"
}

@test "a configuration of root is used, also by a relative path" {
	loads
	cd "$dir"
	conf=t.conf
	loads
}

@test "a configuration of another user" {
	chown 12345 "$conf"
	rejects "gantry: $conf: the file $conf belongs to neither root nor the user that runs gantry (owner=12345, mode=0644): fix "
	for command in "check" "run" "copy volume: $dir/out -c" "devices" "options -c"; do
		# shellcheck disable=SC2086 # several words
		gantry $command "$conf"
		[ "$status" -eq 2 ]
		says "gantry: $conf: the file $conf belongs to neither root nor"
	done
}

@test "a configuration that others, or a group, may write" {
	chmod 646 "$conf"
	rejects "gantry: $conf: the file $conf is writable by all users (owner=0, mode=0646): fix its owner or mode"
	chown 0:12345 "$conf"
	chmod 664 "$conf"
	rejects "gantry: $conf: the file $conf is writable by its group (owner=0, mode=0664): fix its owner or mode"
}

@test "an included file of another user" {
	chown 12345 "$dir/more.conf"
	rejects "gantry: $conf:1: $dir/more.conf: the file $dir/more.conf belongs to neither root nor"
	chown 0 "$dir/more.conf"
	chmod 666 "$dir/more.conf"
	rejects "gantry: $conf:1: $dir/more.conf: the file $dir/more.conf is writable by all users"
}

@test "a directory in which others can replace the configuration; one with the sticky bit is none" {
	sed -i 's|/plugins"|&, "/nowhere"|' "$dir/more.conf"
	chmod 777 "$dir"
	rejects "gantry: $conf: the directory $dir is writable by all users (owner=0, mode=0777): fix its owner or mode"
	chmod 1777 "$dir"
	loads
	chown 12345 "$dir"
	rejects "gantry: $conf: the directory $dir belongs to neither root nor the user that runs gantry (owner=12345, mode=1777)"
}

@test "a link of another user that leads to a configuration" {
	mkdir -m 1777 "$BATS_TEST_TMPDIR/shared"
	chmod 1777 "$BATS_TEST_TMPDIR/shared"
	ln -s "$conf" "$BATS_TEST_TMPDIR/shared/t.conf"
	cp "$dir/more.conf" "$BATS_TEST_TMPDIR/shared/"
	conf=$BATS_TEST_TMPDIR/shared/t.conf
	loads
	chown -h 12345 "$conf"
	rejects "$conf: symbolic link of another user in a directory that other users can write to"
}

@test "plugins and their directory, however they are named" {
	chown 12345 "$dir/plugins/noop.so"
	rejects "$dir/plugins/noop.so: the file belongs to neither root nor the user that runs gantry (owner=12345, mode=0755): fix"
	gantry plugins -p "$dir/plugins" noop
	[ "$status" -eq 2 ]
	says "$dir/plugins/noop.so: the file belongs to neither"
	chown 0 "$dir/plugins/noop.so"
	chown 12345 "$dir/plugins"
	rejects "$dir/plugins/noop.so: the directory $dir/plugins belongs to neither root"
	GANTRY_PLUGIN_PATH=$dir/plugins gantry plugins noop
	[ "$status" -eq 2 ]
	says "$dir/plugins/noop.so: the directory $dir/plugins belongs to neither root"
}

@test "GANTRY_TRUST_UID lists other owners; write permissions still count" {
	chown -R 12345 "$dir"
	rejects "list the owner in GANTRY_TRUST_UID"
	export GANTRY_TRUST_UID=1,12345
	loads
	chmod 666 "$conf"
	rejects "is writable by all users"
	chmod 644 "$conf"
	export GANTRY_TRUST_UID=12346
	rejects "belongs to neither root"
	# sudo(8) names its caller in the environment, which does not make the caller trusted
	unset GANTRY_TRUST_UID
	SUDO_UID=12345 rejects "belongs to neither root"
}

@test "another user than root uses a configuration of a third one" {
	command -v setpriv >/dev/null || skip "setpriv is not installed"
	open=$(mktemp -d /tmp/gantry-trust.XXXXXX)
	chmod 711 "$open"
	echo 'devices = {};' >"$open/t.conf"
	chown 12345 "$open/t.conf"
	run setpriv --reuid=65534 --regid=65534 --clear-groups "$GANTRY" check -p / "$open/t.conf"
	rm -r "$open"
	[[ "$output" != *"Permission denied"* ]] || skip "another user cannot reach the build"
	[[ "$output" != *belongs* ]]
}
