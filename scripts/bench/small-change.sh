#!/bin/bash
# small-change.sh VARIANT BEFORE AFTER RUNS PROGRAM...
#
# In a network of its own: applies the bundle BEFORE, then AFTER and BEFORE in turn, and beside each reads the node once
# with the tools alone. Prints "apply" or "read", and seconds of wall, user and system time. VARIANT of iptables: legacy,
# nft, or "any" for what stands in PATH.
set -euo pipefail
variant=$1 before=$2 after=$3 runs=$4
shift 4
mount -t tmpfs tmpfs /run
ip link set lo up
if [ "$variant" != any ]; then
  mkdir /run/bin
  for tool in ip{,6}tables{,-save,-restore}; do ln -s "$(command -v "xtables-$variant-multi")" "/run/bin/$tool"; done
  export PATH=/run/bin:$PATH
fi
read_once() {
  iptables-save
  ip6tables-save
  if [ -d /sys/module/ip_set ]; then ipset save; fi
  if [ -e /proc/net/ip_vs ]; then ipvsadm -Sn; fi
}
apply() { "$@" --state-dir /run/kpc; }
apply "$@" apply "$before" >/dev/null 2>&1
for ((i = 0; i < runs; i++)); do
  for bundle in "$after" "$before"; do
    TIMEFORMAT='apply %R %U %S'
    time apply "$@" apply "$bundle" >/dev/null 2>/run/said || { cat /run/said >&2; exit 1; }
    TIMEFORMAT='read %R %U %S'
    time read_once >/dev/null 2>&1
  done
done 2>&1
