#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rdma_tcp.sh - the tests of RDMA over the transport tcp, on the loopback interface of a network namespace of their own, because
# their ports are fixed
. "$top_srcdir/tests/tap.sh"
need tcp
[ -x "$top_builddir/tests/doca/rdma" ] || skip "libgantry-doca is not built"
if [ "${1:-}" != --inside ]; then
	how=--net
	[ "$(id -u)" -eq 0 ] || how="--user --map-root-user --net"
	# shellcheck disable=SC2086 # words
	unshare $how ip link set lo up 2>/dev/null || skip "no network namespaces here"
	rm -rf "$tmp"
	# shellcheck disable=SC2086 # words
	exec unshare $how sh "$0" --inside
fi
ip link set lo up || exit 1
GANTRY_DOCA_CONF=$tmp/doca.conf GANTRY_PLUGIN_PATH=$GANTRY_PLUGINS
export GANTRY_DOCA_CONF GANTRY_PLUGIN_PATH
cat >"$GANTRY_DOCA_CONF" <<-END
	doca = { functions = "none"; };
	devices = {
		dpu = { transport = "tcp"; pci = "03:00.0"; ibdev = "mlx5_0"; iface = "lo"; profile = "dpu"; auth = "none"; };
		host = { transport = "tcp"; pci = "b1:00.0"; ibdev = "mlx5_1"; iface = "lo"; profile = "host"; auth = "none"; };
	};
END
for program in rdma rdma_conns rdma_events rdma_hostile rdma_remote rdma_revoke rdma_rules; do
	ok "$program" timeout 300 "$top_builddir/tests/doca/$program"
done
done_testing
