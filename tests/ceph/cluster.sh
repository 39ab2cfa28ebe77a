#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# cluster.sh - a Ceph cluster on loopback for tests: one monitor, one manager and three OSDs that keep data in memory. Needs no
# root, no systemd and no authentication.
#
#   cluster.sh start DIR   make the cluster in DIR, which must be empty; prints the reason and returns 77 if it cannot start
#   cluster.sh stop DIR    end its processes, and remove DIR
#   cluster.sh osd DIR N   start OSD N again after it has ended
#   cluster.sh end-osd DIR N
#                          end OSD N in an orderly way
#
# DIR/ceph.conf is the configuration for clients; DIR/run/NAME.pid has the process ids.
set -u
dir=$2 conf=$2/ceph.conf osds="0 1 2"
export CEPH_CONF=$conf

cannot()
{
	echo "the cluster cannot start: $*"
	tail -n 5 "$dir"/log/*.log 2>/dev/null
	end KILL "$dir"/run/*.pid
	exit 77
}

# end SIGNAL FILE... - end the processes of the cluster whose ids are in these files
end()
{
	local signal=$1 file pid pids=""
	shift
	for file in "$@"; do
		[ -s "$file" ] || continue
		pid=$(cat "$file")
		# the id must still be that of a process of this cluster
		grep -qsF "$conf" "/proc/$pid/cmdline" || continue
		kill "-$signal" "$pid" 2>/dev/null
		kill -CONT "$pid" 2>/dev/null
		pids+=" $pid"
	done
	for pid in $pids; do
		while [ -d "/proc/$pid" ] && ! grep -qs '^State:.Z' "/proc/$pid/status"; do
			sleep 0.05 # lint: allowed, not a child: nothing to wait for
		done
	done
}

# write_conf PORT - the ports from PORT on are free
write_conf()
{
	cat >"$conf" <<-END
	[global]
	fsid = $fsid
	mon_host = [v2:127.0.0.1:$1,v1:127.0.0.1:$(($1 + 1))]
	public_network = 127.0.0.0/8
	cluster_network = 127.0.0.0/8
	ms_bind_ipv6 = false
	ms_bind_port_min = $(($1 + 2))
	ms_bind_port_max = $(($1 + 60))
	auth_cluster_required = none
	auth_service_required = none
	auth_client_required = none
	run_dir = $dir/run
	log_file = $dir/log/\$name.log
	mon_cluster_log_file = $dir/log/cluster.log
	admin_socket = $dir/run/\$name.\$pid.asok
	pid_file = $dir/run/\$name.pid
	crash_dir = $dir/crash
	osd_pool_default_size = 3
	osd_pool_default_min_size = 1
	osd_pool_default_pg_num = 8
	osd_pool_default_pgp_num = 8
	osd_pool_default_pg_autoscale_mode = off
	osd_crush_chooseleaf_type = 0
	mon_allow_pool_delete = true
	mon_osd_min_down_reporters = 1
	mon_osd_adjust_heartbeat_grace = false
	osd_heartbeat_grace = 6
	osd_heartbeat_interval = 1
	osd_client_watch_timeout = 10
	[client]
	log_file =
	admin_socket =
	[mon]
	mon_data = $dir/mon.\$id
	mon_initial_members = a
	mon_data_avail_warn = 1
	mon_data_avail_crit = 1
	[mon.a]
	host = localhost
	[mgr]
	mgr_data = $dir/mgr.\$id
	mgr_initial_modules =
	[osd]
	osd_data = $dir/osd.\$id
	osd_objectstore = memstore
	memstore_device_bytes = 1073741824
	osd_memory_target = 939524096
	END
}

start_osd()
{
	timeout 60 ceph-osd -i "$1" -c "$conf" >"$dir/log/osd.$1.start" 2>&1
}

add_osd()
{
	local uuid
	uuid=$(cat /proc/sys/kernel/random/uuid)
	mkdir "$dir/osd.$1"
	timeout 30 ceph -c "$conf" osd new "$uuid" >/dev/null 2>&1 || return 1
	timeout 60 ceph-osd -i "$1" --mkfs --osd-uuid "$uuid" -c "$conf" >"$dir/log/osd.$1.mkfs" 2>&1 || return 1
	start_osd "$1"
}

# free_port - print a port from which on 60 ports are free
free_port()
{
	local port used
	used=$(awk 'FNR > 1 { split($2, a, ":"); print a[2] }' /proc/net/tcp /proc/net/tcp6 | sort -u)
	port=$((41000 + ($$ % 150) * 64))
	while for p in $(seq $port $((port + 61))); do printf '%04X\n' "$p"; done | grep -qxFf <(echo "$used"); do
		port=$((port + 64))
	done
	echo $port
}

start()
{
	local port osd program
	for program in ceph-mon ceph-mgr ceph-osd ceph rbd monmaptool; do
		command -v $program >/dev/null || cannot "$program is not installed"
	done
	mkdir "$dir"/{mon.a,mgr.x,run,log,crash} || cannot "$dir"
	port=$(free_port)
	fsid=$(cat /proc/sys/kernel/random/uuid)
	write_conf "$port"
	monmaptool --create --fsid "$fsid" --addv a "[v2:127.0.0.1:$port,v1:127.0.0.1:$((port + 1))]" "$dir/monmap" \
		>"$dir/log/monmap" 2>&1 || cannot monmap
	timeout 60 ceph-mon --mkfs -i a --monmap "$dir/monmap" -c "$conf" >"$dir/log/mkfs" 2>&1 || cannot "monitor, mkfs"
	timeout 60 ceph-mon -i a -c "$conf" >"$dir/log/mon" 2>&1 || cannot monitor
	timeout 60 ceph-mgr -i x -c "$conf" >"$dir/log/mgr" 2>&1 || cannot manager
	timeout 30 ceph -c "$conf" config set mon mon_warn_on_insecure_global_id_reclaim_allowed false >/dev/null 2>&1
	for osd in $osds; do
		add_osd "$osd" || cannot "OSD $osd"
	done
	timeout 60 ceph -c "$conf" osd pool create rbd 8 8 replicated >/dev/null 2>&1 || cannot pool
	timeout 60 rbd -c "$conf" pool init rbd >/dev/null 2>&1 || cannot "pool init"
}

case $1 in
start) start ;;
stop) end KILL "$dir"/run/*.pid; rm -rf "$dir" ;;
osd) start_osd "$3" ;;
end-osd) end TERM "$dir/run/osd.$3.pid" ;;
*) echo "usage: cluster.sh start|stop|osd|end-osd DIR" >&2; exit 2 ;;
esac
