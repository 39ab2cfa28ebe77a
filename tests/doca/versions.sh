#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# versions.sh - the layer of `gantry doca check` calls the version of a function that the program was linked with
. "$top_srcdir/tests/tap.sh"
[ -e "$top_builddir/doca/gantry-doca" ] || skip "libgantry-doca is not built"
grep -q -e -fsanitize "$top_builddir/doca/Makefile" && skip "not with sanitizers"
command -v jq >/dev/null || skip "jq is not installed"
cd "$tmp" || exit 1

# a library whose first release has version 1 of the function, and whose second has both
cat >old.c <<'EOF2'
int doca_pe_create(void **pe) { *pe = (void *)1; return 0; }
int doca_pe_destroy(void *pe) { return pe != (void *)1; }
EOF2
cat >new.c <<'EOF2'
__attribute__((symver("doca_pe_create@V1"))) int create_1(void **pe) { *pe = (void *)1; return 0; }
__attribute__((symver("doca_pe_create@@V2"))) int create_2(void **pe) { *pe = (void *)2; return 0; }
__attribute__((symver("doca_pe_destroy@@V1"))) int destroy_1(void *pe) { return pe != (void *)1; }
EOF2
cat >program.c <<'EOF2'
int doca_pe_create(void **pe);
int doca_pe_destroy(void *pe);
int main(void) { void *pe = 0; return doca_pe_create(&pe) || doca_pe_destroy(pe); }
EOF2
echo 'V1 { global: doca_pe_create; doca_pe_destroy; local: *; };' >old.map
echo 'V1 { global: doca_pe_create; doca_pe_destroy; local: *; }; V2 { global: doca_pe_create; } V1;' >new.map
cc=${CC:-cc}
$cc -shared -fPIC -Wl,-soname,libdoca.so -Wl,--version-script=old.map -o libdoca.so old.c 2>err &&
	$cc -o program program.c ./libdoca.so -Wl,-rpath,"$tmp" 2>>err &&
	$cc -shared -fPIC -Wl,-soname,libdoca.so -Wl,--version-script=new.map -o libdoca.so new.c 2>>err ||
	skip "the compiler has no versions of symbols: $(head -n 1 err)"
ok "the program gets version 1" ./program
"$GANTRY" doca check --json -- ./program >out 2>err
verdict $? "also under the layer, without a finding" out err
jq -e '.calls == 2 and .programs[0].ok' out >/dev/null
verdict $? "both calls were judged" out
done_testing
