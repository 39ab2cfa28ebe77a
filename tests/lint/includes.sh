#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# includes.sh - checks which headers each module includes. A module of the core or of doca includes only headers of modules that
# precede it. A plugin includes <gantry/...>, its own directory and the system, but no header of the core. Transports also include
# transport/common, backends include backend/common, and the two transports over RDMA share transport/verbs-common. Only
# one module uses libltdl, and only one uses libconfig.
. "$(dirname "$0")/lib.sh"

seed()
{
	echo '#include "session/session.h"' | put "$1/core/memory/up.c"
	echo '#include "../base/log.h"' | put "$1/core/io/dots.c"
	echo '#include "pipeline/chain_priv.h"' | put "$1/core/session/private.c"
	echo '#include <ltdl.h>' | put "$1/core/cli/ltdl.c"
	echo '#include <libconfig.h>' | put "$1/core/loader/conf.c"
	printf '#include "base/log.h"\n#include <gantry/io.h>\n#include "other.h"\n' | put "$1/plugins/stage/x/x.c"
	echo '#include "base/log.h"' | put "$1/include/gantry/x.h"
	: | put "$1/plugins/transport/common/ring.h"
	echo '#include "../common/ring.h"' | put "$1/plugins/transport/rope/right.c"
	echo '#include "../common/none.h"' | put "$1/plugins/transport/rope/none.c"
	echo '#include "../common/ring.h"' | put "$1/plugins/stage/x/far.c"
	: | put "$1/plugins/backend/common/name.h"
	echo '#include "../common/name.h"' | put "$1/plugins/backend/disk/right.c"
	echo '#include "../common/ring.h"' | put "$1/plugins/backend/disk/far.c"
	: | put "$1/plugins/transport/verbs-common/verbs.h"
	echo '#include "verbs.h"' | put "$1/plugins/transport/rxe/rxe.c"
	echo '#include "verbs.h"' | put "$1/plugins/transport/rope/rope.c"
	printf '#include "base/clock.h"\n#include "engine/pe.h"\n#include "rdma/rdma.h"\n' | put "$1/doca/comch/x.c"
	echo '#include "link.h"' | put "$1/doca/rdma/x.c"
}

check()
{
	files "$1" '*.[ch]' | grep -E '^(core|plugins|include|doca)/' | while read -r file; do
		sed -n "s|^[[:space:]]*#[[:space:]]*include[[:space:]]*\([<\"][^>\"]*\).*|$file \1|p" "$1/$file"
	done | $awk -v root="$1" '
	BEGIN {
		shared = "plugins/transport/verbs-common"
		may["base"] = "base"
		may["io"] = may["base"] " io"
		may["memory"] = may["io"] " memory"
		may["pipeline"] = may["memory"] " pipeline"
		may["secure"] = "base secure"
		may["transport"] = may["pipeline"] " secure transport"
		may["config"] = "base config"
		may["loader"] = "base config secure loader"
		may["engine"] = may["io"] " engine"
		may["session"] = may["transport"] " engine session"
		may["topology"] = may["session"] " config loader topology"
		may["report"] = may["topology"] " report"
		may["control"] = may["report"] " control"
		may["top"] = may["report"] " top"
		may["trace"] = may["io"] " trace"
		may["cli"] = may["control"] " top trace cli"
		n = split("common argp device engine mmap buf sync_event compute dma comch dpa rdma", doca)
		in_doca["common"] = "base config secure loader common"
		for (i = 2; i <= n; i++) in_doca[doca[i]] = in_doca[doca[i - 1]] " " doca[i]
		in_doca["check"] = "check"
		in_doca["tool"] = "check tool" # only the table of rules
	}
	function bug(text) { print $1 ": " text }
	function there(name) { return (getline line < (root "/" name)) >= 0 }
	function beside(name) {
		return there(dir "/" name) || (dir ~ /\/(rdma-verbs|rxe)$/ && there(shared "/" name))
	}
	{
		n = split($1, p, "/")
		name = substr($2, 2)
		dir = $1
		sub(/\/[^\/]*$/, "", dir)
		split(name, q, "/")
		own = $2 ~ /^"/ && name !~ /^gantry\//
		common = p[2] ~ /^(transport|backend)$/ && name ~ /^\.\.\/common\/[^\/]*$/ &&
			there("plugins/" p[2] "/" substr(name, 4))
		if (name ~ /\.\./ && !(p[1] == "plugins" && common)) bug("includes by way of ..: " name)
		else if (p[1] == "include") { if (own) bug("a public header includes " name) }
		else if (p[1] == "doca") {
			if (own && !index(" " in_doca[p[2]] " ", " " q[1] " "))
				bug(name ~ /\// ? p[2] " may not include " name : "a header without its module: " name)
		} else if (p[1] == "plugins") {
			if (own && !common && !(name !~ /\// && beside(name))) bug("a plugin includes " name)
		} else {
			if (own && name ~ /\// && !index(" " may[p[2]] " ", " " q[1] " ")) bug(p[2] " may not include " name)
			else if (name ~ /_priv\.h$/ && q[1] != p[2]) bug("includes a private header of another module: " name)
			if (name == "ltdl.h" && p[2] != "loader") bug("only the loader uses libltdl")
			if (name == "libconfig.h" && p[2] != "config") bug("only config uses libconfig")
		}
	}'
}

run_lint 14 "each module includes only permitted headers"
