#!/bin/bash
# small-change.sh VARIANT BEFORE AFTER RUNS PROGRAM...
#
# In a network of its own: does with the tools alone what an apply cannot do without that must read the node first: it starts
# Node, reads, restores what differs, and reads back what that changed. Then applies the bundle AFTER and BEFORE in turn,
# and beside each reads the node once with the tools alone. Prints "floor", "apply" or "read", and seconds of wall, user
# and system time.
# VARIANT of iptables: legacy, nft, or "any" for what stands in PATH.
set -euo pipefail
# Node reads the certificates that this names at every start, and nothing here uses any.
unset NODE_EXTRA_CA_CERTS
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
# The input of the tool that $1 names, out of what --dry-run prints for the bundle $2: the part under "# TOOL …".
differences() {
  local tool=$1 bundle=$2
  shift 2
  apply "$@" apply "$bundle" --dry-run | awk -v tool="$tool" '/^# /{on=($2==tool)} on && !/^# /'
}
if [ -s "$before/ipvsadm.restore" ]; then restore=(ipvsadm -R) save=(ipvsadm -Sn); else
  restore=(iptables-restore --noflush --wait 10) save=(iptables-save)
fi
floor() {
  "$node" -e 0
  read_once
  ip -j -d addr
  "${restore[@]}" <"$1"
  "${save[@]}"
}
node=$1
apply "$@" apply "$before" >/dev/null 2>&1
differences "${restore[0]}" "$after" "$@" >/run/there
apply "$@" apply "$after" >/dev/null 2>&1
differences "${restore[0]}" "$before" "$@" >/run/back
apply "$@" apply "$before" >/dev/null 2>&1
{
  for ((i = 0; i < runs; i++)); do
    for way in there back; do
      TIMEFORMAT='floor %R %U %S'
      time floor /run/$way >/dev/null 2>&1
    done
  done
  # What the tools changed just now, kpc-apply takes for another program's work.
  apply "$@" apply "$before" >/dev/null 2>&1
  for ((i = 0; i < runs; i++)); do
    for bundle in "$after" "$before"; do
      TIMEFORMAT='apply %R %U %S'
      time apply "$@" apply "$bundle" >/dev/null 2>/run/said || { cat /run/said >&2; exit 1; }
      TIMEFORMAT='read %R %U %S'
      time read_once >/dev/null 2>&1
    done
  done
} 2>&1
