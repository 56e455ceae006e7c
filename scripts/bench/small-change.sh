#!/bin/bash
# small-change.sh VARIANT BEFORE AFTER RUNS PROGRAM...
#
# Runs in a network of its own. First does with the tools alone what no apply that reads the node can avoid: starts Node, reads,
# restores what differs, and reads the changed parts back. Then applies the bundles AFTER and BEFORE in turn, and beside each
# apply reads the node once with the tools alone. Prints "floor", "apply" or "read", and seconds of wall, user and system time.
# VARIANT of iptables: legacy, nft, or "any" for the variant in PATH.
set -euo pipefail
trap 'echo "small-change.sh: line $LINENO failed: $BASH_COMMAND" >&2' ERR
# Node reads these certificates at every start, and nothing here uses them.
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
# Runs a command silently. If the command fails, prints its output and exits.
quietly() {
  "$@" >/run/out 2>/run/said || {
    local status=$?
    { tail -n 20 /run/said && echo "failed with status $status: $*"; } >&2
    exit 1
  }
}
# Does the same, and prints $1 with the times.
timed() {
  TIMEFORMAT="$1 %R %U %S"
  shift
  time quietly "$@"
}
# Writes the changes from one bundle to the other to the folder $3, as inputs of the tools that restore. Real servers and set
# entries come from comparing the bundles, because an apply removes a real server in steps. Rules come from what --dry-run prints
# under "# iptables-restore".
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
  # kpc-apply takes what the tools have just changed for another program's work.
  quietly apply "$@" apply "$before"
  for ((i = 0; i < runs; i++)); do
    for bundle in "$after" "$before"; do
      timed apply apply "$@" apply "$bundle"
      timed read read_once
    done
  done
} 2>&1
