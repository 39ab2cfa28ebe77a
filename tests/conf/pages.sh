#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# pages.sh - each example of a configuration in the manual passes `gantry check`. In a page, the comment before an example
# gives its kind: `check file` a whole file, `check roles` entries of roles, `check target` members of a target.
tmp=$(mktemp -d "${TMPDIR:-/tmp}/gantry-pages.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP
chmod 700 "$tmp"
mkdir -m 700 "$tmp/run" "$tmp/files"
truncate -s 64MiB "$tmp/files/volume0" # replaces a block device
XDG_RUNTIME_DIR=$tmp/run
export XDG_RUNTIME_DIR
umask 022
cd "$tmp" || exit 1
n=0

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
		n=$((n + 1))
		whole "$file" | sed "s|path = \"/[^\"]*/|path = \"$tmp/files/|" >example.conf
		missing=
		for plugin in $(grep -oE '(role|transport|type) = "[a-z-]+"' example.conf | cut -d '"' -f 2); do
			[ -e "$GANTRY_PLUGINS/$plugin.so" ] || missing="$missing $plugin"
		done
		if [ -n "$missing" ]; then
			echo "ok $n - $name, ${file#./} # SKIP not built:$missing"
		elif "$GANTRY" check example.conf --plugin-dir "$GANTRY_PLUGINS" >out 2>&1; then
			echo "ok $n - $name, ${file#./}"
		else
			echo "not ok $n - $name, ${file#./}"
			sed 's/^/# /' out
		fi
	done
	# their examples are not configurations, or another test runs them (doca/examples.sh)
	case $name in gantry-guarantees.7 | gantry-plugin.7 | gantry.1 | gantry-doca.7) continue ;; esac
	n=$((n + 1))
	if grep -qE '^\.\\" check (file|roles|target)$' "$page"; then
		echo "ok $n - $name has an example"
	else
		echo "not ok $n - $name has an example"
	fi
done
echo "1..$n"
