#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# build.sh - builds the programs of a list from a copy of a checkout, with the build files of the checkout
#
# run.sh reads this file. $out is the directory of all results: $out/source has the copy, $out/SIDE the programs of a side, and
# $out/env.SIDE the environment of `gantry env SIDE`. built[SIDE PROGRAM] is "yes", "no", or "skip" with a reason.

declare -A built=()
san="" # flags of the sanitizers of the library: they link the runtime of the sanitizers to the programs

# copy_source DIR - copy the directories of the programs, and what they include. The copies of meson.build.public become
# meson.build.
copy_source()
{
	local file dirs=()
	for file in VERSION samples applications; do
		[ ! -e "$1/$file" ] || dirs+=("$1/$file")
	done
	[ ${#dirs[@]} -gt 0 ] || return 1
	rm -rf "$out/source"
	mkdir -p "$out/source"
	# -p keeps the times, so that ninja compiles only what has changed
	cp -Rp "${dirs[@]}" "$out/source" || return 1
	find "$out/source" -name meson.build.public | while read -r file; do
		cp -p "$file" "${file%.public}" || return 1
	done
}

# prepare_sides - write the environment of both sides
prepare_sides()
{
	local side
	for side in dpu host; do
		mkdir -p "$out/$side"
		"$build/core/gantry" env $side >"$out/env.$side" || return 1
	done
	san=$(sed -n 's/^GANTRY_LDFLAGS = //p' "$build/doca/Makefile" | tr ' ' '\n' | grep -e -fsanitize | tr '\n' ' ')
	CC=$(sed -n 's/^CC = //p' "$build/doca/Makefile")
	# the flags of the sanitizers are those of this compiler
	case $CC in *clang*) CXX=clang++ ;; *) CXX=g++ ;; esac
	export CC CXX
}

# missing_need SIDE NEEDS - print the first module or library that is missing
missing_need()
(
	# shellcheck source=/dev/null
	. "$out/env.$1"
	for need in ${2//,/ }; do
		case $need in
		HAVE_*) grep -q "^#define $need 1" "$build/config.h" || { echo "gantry is built without ${need#HAVE_}"; return; } ;;
		*) pkg-config --exists "$need" || { echo "there is no module $need"; return; } ;;
		esac
	done
)

# project DIRECTORY - print the directory of the meson project and the name of its build directory. The applications are one
# project.
project()
{
	case $1 in
	applications/*) echo "applications applications" ;;
	*) echo "$1 ${1##*/}" ;;
	esac
}

# options SIDE - print the options that select the applications of the list
options()
{
	local name
	echo "-Denable_all_applications=false"
	for name in "${names[@]}"; do
		case ${directory[$name]} in
		applications/*) [ "${built[$1 $name]:-}" ] || echo "-Denable_${directory[$name]#applications/}=true" ;;
		esac
	done | sort -u
}

# make_project SIDE DIRECTORY NAME [OPTION]... - configure and compile one project in $out/SIDE/NAME; NAME.log is its log
make_project()
(
	local side=$1 source=$out/source/$2 name=$3 dir=$out/$1/$3
	shift 3
	# shellcheck source=/dev/null
	. "$out/env.$side"
	export LDFLAGS="$san ${LDFLAGS:-}"
	if [ "$*" != "$(cat "$dir.options" 2>/dev/null)" ] || ! [ -d "$dir" ]; then
		rm -rf "$dir"
		meson setup "$@" "$dir" "$source" && echo "$*" >"$dir.options"
	fi >"$dir.log" 2>&1
	ninja -C "$dir" -k 0 -j "$jobs" >>"$dir.log" 2>&1
)

# find_program SIDE NAME - print the path of a program
find_program()
{
	local name
	read -r _ name <<<"$(project "${directory[$2]}")"
	find "$out/$1/$name" -type f -name "doca_$2" -perm -u+x 2>/dev/null | head -n 1
}

# build_programs - build all programs of ${names[@]} that can be built, and set built[]
build_programs()
{
	local side name reason source target
	declare -A projects=()
	for name in "${names[@]}"; do
		for side in ${sides[$name]//,/ }; do
			reason=$(missing_need "$side" "${needs[$name]}")
			[ -z "$reason" ] || { built[$side $name]="skip $reason"; continue; }
			read -r source target <<<"$(project "${directory[$name]}")"
			[ -d "$out/source/$source" ] || { built[$side $name]="no"; continue; }
			projects["$side $source $target"]=1
		done
	done
	while read -r side source target; do
		[ -n "$side" ] || continue
		if [ "$source" = applications ]; then
			# shellcheck disable=SC2046 # one word for each option
			make_project "$side" "$source" "$target" $(options "$side")
		else
			make_project "$side" "$source" "$target"
		fi
	done < <(printf '%s\n' "${!projects[@]}" | sort)
	for name in "${names[@]}"; do
		for side in ${sides[$name]//,/ }; do
			[ -n "${built[$side $name]:-}" ] && continue
			[ -n "$(find_program "$side" "$name")" ] && built[$side $name]=yes || built[$side $name]=no
		done
	done
}
