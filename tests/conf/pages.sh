#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# pages.sh - each example of a configuration in the manual passes `gantry check`. In a page, the comment before an example
# gives its kind: `check file` a whole file, `check roles` entries of roles, `check target` members of a target.
. "$top_srcdir/tests/tap.sh"
chmod 700 "$tmp"
mkdir -m 700 "$tmp/run" "$tmp/files"
# replace block devices
truncate -s 64MiB "$tmp/files/volume0" "$tmp/files/nvme-uuid.7d3c8a52-0f64-4c1e-9b1d-5a2f60c7e811"
XDG_RUNTIME_DIR=$tmp/run
export XDG_RUNTIME_DIR
umask 022
cd "$tmp" || exit 1

# split PAGE - write its examples to 1.KIND, 2.KIND ...
split()
{
	rm -f ./*.file ./*.roles ./*.target
	$AWK '
	/^\.\\" check (file|roles|target)$/ { file = ++n "." $3; next }
	/^\.Ed/ { file = "" }
	file && !/^\.Bd/ { print > file }' "$1"
	for file in ./*.file ./*.roles ./*.target; do
		[ -e "$file" ] && sed -i 's/\\e/\\/g; s/\\&//g' "$file"
	done
}

# whole FILE - print an example as a complete configuration
whole()
{
	case $1 in
	*.file) cat "$1" ;;
	*.roles) # their targets may be in another process
		echo 'devices = { wire = { transport = "shm-comch"; }; }; roles = {'
		cat "$1"
		echo '};'
		;;
	*.target)
		echo 'devices = { wire = { transport = "loop"; }; };'
		echo 'roles = { store = { role = "target"; listen = { device = "wire"; name = "volume0"; };'
		cat "$1"
		grep -q 'backend =' "$1" || echo 'backend = { type = "memory"; size = "64MiB"; };'
		echo '}; };'
		;;
	esac
}

for page in "$top_srcdir"/man/*.[1357]; do
	name=${page##*/}
	split "$page"
	for file in ./*.file ./*.roles ./*.target; do
		[ -e "$file" ] || continue
		whole "$file" | sed "s|path = \"/[^\"]*/|path = \"$tmp/files/|" >example.conf
		missing=
		for plugin in $(grep -oE '(role|transport|type) = "[a-z-]+"' example.conf | cut -d '"' -f 2); do
			[ -e "$GANTRY_PLUGINS/$plugin.so" ] || missing="$missing $plugin"
		done
		if [ -n "$missing" ]; then
			skipped "$name, ${file#./}" "not built:$missing"
		else
			ok "$name, ${file#./}" "$GANTRY" check example.conf --plugin-dir "$GANTRY_PLUGINS"
		fi
	done
	# their examples are not configurations, or another test runs them (doca/examples.sh, conf/security.sh)
	case $name in
	gantry-guarantees.7 | gantry-launcher.7 | gantry-plugin.7 | gantry-probes.7 | gantry.1 | gantry-metrics.1) continue ;;
	gantry-doca.7 | gantry-doca-check.1 | gantry-security.7 | gantry-key.1) continue ;;
	esac
	ok "$name has an example" grep -qE '^\.\\" check (file|roles|target)$' "$page"
done
done_testing
