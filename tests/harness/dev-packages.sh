#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# dev-packages.sh - ./dev names missing packages before it installs them, and goes on where it cannot install them
#
# The commands of Debian are scripts in bin/: they log their arguments in `calls`, and report the packages in `have` as installed.
# The product is a makefile.
. "$top_srcdir/tests/tap.sh"
cd "$tmp" || exit 1
shown=out

# put FILE - standard input into FILE, which is executable
put()
{
	mkdir -p "${1%/*}" && cat >"$1" && chmod +x "$1"
}

# dev ARGUMENT... - ./dev of this tree; its output goes to `out`
dev()
{
	: >calls
	PATH=$tmp/bin:$PATH GANTRY_UNITY=shim GANTRY_FIO=no HOME=$tmp/home bash ./dev "$@" >out 2>&1
}

# count PATTERN - lines of the output that match
count()
{
	grep -cE -- "$1" out
}

cp "$top_srcdir/dev" . && mkdir -p tests/dev m4 && cp "$top_srcdir"/tests/dev/*.sh tests/dev/ || exit 1
put bin/id <<<'cat '"$tmp/uid"
put bin/sudo <<<'exit 1'
put bin/dpkg-query <<END
#!/bin/sh
sed 's/^/installed /' $tmp/have
END
# a simulation names each package and one that it depends on; an installation succeeds unless there is a file \`offline\`
put bin/apt-get <<END
#!/bin/sh
echo "apt-get \$*" >>$tmp/calls
case "\$*" in
*" -s "*) [ -e $tmp/offline ] || printf 'Inst %s\n' one-1 two-1 libone libtwo ;;
*install*)
	[ ! -e $tmp/offline ] || exit 1
	printf 'Setting up %s\n' libone libtwo one-1 two-1
	printf '%s\n' one-1 two-1 >>$tmp/have
	;;
esac
END
put tests/packages <<'END'
# comment
check-1
demo here
demo one-1
demo two-1
vm machine
END
put ./configure.ac </dev/null
put ./configure <<'END'
#!/bin/sh
[ ! -e ../../broken ] || { echo "error: no libone"; exit 1; }
echo "$*" >arguments.seen
mkdir -p tests
cat >Makefile <<'MAKE'
all: ; @echo "  CC       x.o"
check: ; @printf ':test-result: PASS case\n' >tests/case.trs
MAKE
: >config.status
END
touch -d '1 minute ago' configure.ac
put tests/demo/demo.sh <<<'echo "demo of $1"'

echo here >have
echo 0 >uid
dev demo
is "the demo runs" "demo of $tmp/build/demo" "$(tail -n 1 out)"
is "it names its missing packages and their number first" "$(head -n 1 out)" \
	"== ./dev demo: packages missing (number=2): one-1 two-1"
is "then how many are installed with them" "$(sed -n 2p out)" \
	"== ./dev demo: installing packages (number with dependencies=4, log=build/apt.log)"
is "only those are installed" "apt-get -qq -o Dpkg::Use-Pty=0 install --no-install-recommends one-1 two-1" \
	"$(grep -v -- ' -s ' calls)"
is "no library of another part is looked for" 1 \
	"$(grep -c -- '--disable-doca --disable-client .*--without-libibverbs' build/demo/arguments.seen)"

dev demo
is "nothing is missing: nothing is called" "" "$(cat calls)"
is "and nothing is printed of packages" 0 "$(count 'packages missing')"

echo here >have
echo 1000 >uid
dev demo
is "no root: the demo runs if it can be built" "demo of $tmp/build/demo" "$(tail -n 1 out)"
is "packages are named" 1 "$(count 'packages missing \(number=2\): one-1 two-1$')"
is "with the command for an administrator" 1 "$(count 'for an administrator: apt-get install --no-install-recommends one-1 two-1$')"
is "nothing is installed" "" "$(grep -w install calls)"

dev build
is "no root: so does a build" 1 "$(count '^== built: ')"
is "it names its packages as well" 1 "$(count 'packages missing \(number=3\): check-1 one-1 two-1$')"

dev check
is "no root: so do the tests of the fast tier" "0 2 passed, 0 failed, 0 skipped, 0 flaky" "$? $(tail -n 1 out)"

rm -rf build
: >broken
dev demo
is "no root, and it cannot be built: it fails" 1 $?
is "it says what configure lacks" 1 "$(count '^error: no libone')"
is "and which packages are missing" "== build failed, perhaps because packages are missing: one-1 two-1" "$(tail -n 1 out)"
rm broken

echo 0 >uid
: >offline
dev demo
is "no network: the demo runs if it can be built" "demo of $tmp/build/demo" "$(tail -n 1 out)"
is "the failure of apt-get is reported" 1 "$(count 'apt-get failed \(log=build/apt.log\); packages missing: one-1 two-1$')"

printf '#!/bin/sh\n[ "$2" = true ] || { shift; exec "$@"; }\n' >bin/sudo
rm offline
echo 1000 >uid
dev demo
is "sudo without a password is used" 1 "$(grep -v -- ' -s ' calls | grep -c install)"
done_testing
