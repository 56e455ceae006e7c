#!/bin/bash
# small-change.sh VARIANT BEFORE AFTER RUNS PROGRAM...
#
# In a network of its own: does with the tools alone what an apply cannot do without that must read the node first: it starts
# Node, reads, restores what differs, and reads back what that changed. Then applies the bundle AFTER and BEFORE in turn,
# and beside each reads the node once with the tools alone. Prints "floor", "apply" or "read", and seconds of wall, user
# and system time.
# VARIANT of iptables: legacy, nft, or "any" for what is in PATH.
set -euo pipefail
trap 'echo "small-change.sh: line $LINENO failed: $BASH_COMMAND" >&2' ERR
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
  iptables-save && ip6tables-save || return
  if [ -d /sys/module/ip_set ]; then ipset save || return; fi
  if [ -e /proc/net/ip_vs ]; then ipvsadm -Sn; fi
}
apply() { "$@" --state-dir /run/kpc; }
# Runs a command without a word, unless it fails: then says what it said, and ends.
quietly() {
  "$@" >/run/out 2>/run/said || {
    local status=$?
    { tail -n 20 /run/said && echo "failed with status $status: $*"; } >&2
    exit 1
  }
}
# As quietly, and prints $1 with the times.
timed() {
  TIMEFORMAT="$1 %R %U %S"
  shift
  time quietly "$@"
}
# What leads from one bundle to the other, as inputs of the tools that restore it, in the folder $3. Real servers and entries of
# sets go by the two bundles: what an apply does with a real server that goes it does in steps. Rules by what --dry-run
# prints under "# iptables-restore".
prepare() {
  local from=$1 to=$2 inputs=$3
  shift 3
  mkdir "$inputs"
  if [ "$mode" = iptables ]; then
    apply "$@" apply "$to" --dry-run | awk '/^# /{on=($2=="iptables-restore")} on && !/^# /' >"$inputs/rules"
    return
  fi
  changed_lines "$from/ipset.restore" "$to/ipset.restore" >"$inputs/lines"
  sed -n 's/^> //p' "$inputs/lines" >"$inputs/add-entries"
  sed -n 's/^< add/del/p' "$inputs/lines" >"$inputs/delete-entries"
  changed_lines "$from/ipvsadm.restore" "$to/ipvsadm.restore" >"$inputs/lines"
  sed -n 's/^> //p; s/^< -a \(-. [^ ]* -r [^ ]* -m\) .*/-e \1 -w 0/p' "$inputs/lines" >"$inputs/add-servers"
  sed -n 's/^< -a \(-. [^ ]* -r [^ ]*\) .*/-d \1/p' "$inputs/lines" >"$inputs/delete-servers"
}
changed_lines() { diff "$1" "$2" || [ $? = 1 ]; }
change_and_read() {
  if [ "$mode" = iptables ]; then
    iptables-restore --noflush --wait 10 <"$1/rules" && iptables-save
    return
  fi
  ipset restore <"$1/add-entries" && ipvsadm -R <"$1/add-servers" && ipset restore <"$1/delete-entries" &&
    ipvsadm -R <"$1/delete-servers" && ipset save && ipvsadm -Sn
}
floor() { "$node" -e 0 && read_once && ip -j -d addr && change_and_read "$1"; }
if [ -s "$before/ipvsadm.restore" ]; then mode=ipvs; else mode=iptables; fi
node=$1
quietly apply "$@" apply "$before"
prepare "$before" "$after" /run/there "$@"
quietly apply "$@" apply "$after"
prepare "$after" "$before" /run/back "$@"
quietly apply "$@" apply "$before"
{
  for ((i = 0; i < runs; i++)); do
    for way in there back; do timed floor floor /run/$way; done
  done
  # What the tools changed just now, kpc-apply takes for another program's work.
  quietly apply "$@" apply "$before"
  for ((i = 0; i < runs; i++)); do
    for bundle in "$after" "$before"; do
      timed apply apply "$@" apply "$bundle"
      timed read read_once
    done
  done
} 2>&1
