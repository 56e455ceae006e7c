#!/bin/bash
# in-kernel.sh [--megabytes N] [--own | --legacy | --uml] COMMAND ARGUMENT...
#
# Runs COMMAND as root in a network of its own, in a kernel that has IPVS, and exits with its status.
#
# Where this machine's kernel has IPVS that is a fresh network namespace. Elsewhere (many cloud machines and CI runners
# have none, and load no modules) it is Debian's User Mode Linux kernel over this machine's own files: an ordinary
# process that boots in about three seconds where a core is free. Files that COMMAND writes stay, but for /run, which is empty and its own;
# what it does to the network is gone when it ends.
#
# --own takes this machine's kernel in any case, IPVS or not; --legacy takes it where it has all that the rules of iptables mode ask
# of the legacy variant of iptables, whose tools COMMAND then has; --uml takes User Mode Linux.
#
# Installs what it needs from Debian's packages. Times taken in User Mode Linux compare only with each other: system
# calls and new processes cost several times more there.
set -euo pipefail

megabytes=3072
if [ "${1:-}" = --megabytes ]; then
  megabytes=$2
  shift 2
fi
which=
case "${1:-}" in --own | --legacy | --uml)
  which=$1
  shift
  ;;
esac
if [ $# -eq 0 ]; then
  sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi

lab=$(dirname "$(readlink -f "$0")")
# shellcheck source=lab-tools.sh
. "$lab/lab-tools.sh"

has_ipvs() { [ -e /proc/net/ip_vs ] || modprobe --quiet ip_vs 2>/dev/null; }

# Tries what the rules of iptables mode ask of a kernel.
has_legacy_tables() {
  unshare --net bash -e -o pipefail -c '
    # try TOOL ADDRESS
    try() {
      "$1-legacy-restore" --noflush <<EOF_RULES
*filter
:TRIAL - [0:0]
-A TRIAL -p sctp -m sctp --dport 1 -m conntrack --ctstate INVALID -m comment --comment "of a trial" -j REJECT
COMMIT
*nat
:TRIAL - [0:0]
-A TRIAL -m addrtype --dst-type LOCAL -m statistic --mode random --probability 0.5 -m mark --mark 0x1/0x1 -j MARK --or-mark 0x2
-A TRIAL -p tcp -m tcp --dport 1 -m recent --name TRIAL --set -j DNAT --to-destination $2:1
-A TRIAL -j MASQUERADE --random-fully
COMMIT
EOF_RULES
    }
    try iptables 10.0.0.1
    try ip6tables [fd00::1]' 2>/dev/null
}

if [ "$which" = --legacy ]; then
  install_missing "${tools[@]}"
  if has_legacy_tables; then export -f link_legacy_tools; else which=; fi
fi
if [ "$which" = --own ] || [ "$which" = --legacy ] || { [ "$which" != --uml ] && has_ipvs; }; then
  install_missing "${tools[@]}"
  for module in "${modules[@]}"; do modprobe --quiet "$module" 2>/dev/null || true; done
  exec unshare --net --mount bash -c '
    mount -t tmpfs tmpfs /run
    mount -t sysfs sys /sys 2>/dev/null || true
    mkdir -p /run/netns
    ip link set lo up
    if [ "$0" = --legacy ]; then
      link_legacy_tools /run/bin
      PATH=/run/bin:$PATH
    fi
    exec "$@" </dev/null' "${which:-in-kernel}" "$@"
fi

install_missing user-mode-linux "${tools[@]}"
# The guest looks for its modules under /lib/modules, as every kernel does.
if [ ! -e /lib/modules ]; then ln -s /usr/lib/uml/modules /lib/modules; fi
release=$(basename "$(ls -d /usr/lib/uml/modules/* | head -1)")
if [ ! -e "/lib/modules/$release" ]; then ln -s "/usr/lib/uml/modules/$release" "/lib/modules/$release"; fi
if [ ! -e "/lib/modules/$release/modules.dep" ]; then depmod "$release"; fi

work=$(mktemp -d /var/tmp/kernel-lab.XXXXXX)
trap 'rm -rf "$work"' EXIT

# This kernel has no nft_compat for nat.
link_legacy_tools "$work/bin"

write_command "$@" >"$work/command"

cat >"$work/init" <<EOF_INIT
#!/bin/bash
export PATH=$work/bin:$PATH:/usr/sbin:/sbin HOME=/root TERM=dumb
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmpfs /run
mkdir -p /run/netns
ip link set lo up
modprobe -a ${modules[*]}
: > $work/started
bash $work/command
echo \$? > $work/status
sync
poweroff -f
EOF_INIT
chmod +x "$work/init"

# That kernel ends in its first process where the processor has AMX, of which it does not know: whole-registers.c helps.
# KPC_LAB_WIDE_HOST=1 makes any processor look so, for the test of that.
build_library() {
  command -v cc >/dev/null || install_missing gcc libc6-dev
  cc -shared -fPIC -O1 -o "$work/$1.so" "$lab/$1.c"
}
shim=
use_shim() {
  build_library whole-registers
  shim=$work/whole-registers.so
}
host=
if [ -n "${KPC_LAB_WIDE_HOST:-}" ]; then
  build_library wide-host
  host=$work/wide-host.so
elif grep -q -m1 -w amx_tile /proc/cpuinfo; then use_shim; fi

# On one core its processes take turns, and none waits for another core to wake: up to three times as fast. KPC_LAB_SLOT says
# which of the suites that run at once this is.
pick_core() {
  local cores=() range
  for range in $(sed -n 's/^Cpus_allowed_list:\s*//p' /proc/self/status | tr , ' '); do
    mapfile -t -O ${#cores[@]} cores < <(seq "${range%-*}" "${range#*-}")
  done
  echo "${cores[${KPC_LAB_SLOT:-0} % ${#cores[@]}]}"
}
core=$(pick_core)

kernel=
end_kernel() { [ -z "$kernel" ] || kill -KILL -- "-$kernel" 2>/dev/null || true; }
trap 'end_kernel; rm -rf "$work"' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# Boots the kernel, and waits for its end. One that has not come to the command after five minutes never will.
boot() {
  rm -f "$work/console"
  mkfifo "$work/console"
  grep --line-buffered -v -a -E \
    '^(SELinux:|mmapper_init|Failed to initialize ubd|Powering off|reboot: System halted|Core dump limits|Checking (that|environment|PROT|if)|Adding [0-9]+ bytes)' \
    <"$work/console" &
  local filter=$! limit=$((SECONDS + 300))
  # In a process group of its own, with all the processes that it makes.
  LD_PRELOAD=$shim:$host setsid taskset -c "$core" linux.uml mem="${megabytes}M" root=/dev/root rootfstype=hostfs rootflags=/ rw \
    init="$work/init" con=null con0=fd:0,fd:1 quiet </dev/null >"$work/console" &
  kernel=$!
  while [ ! -e "$work/started" ] && [ $SECONDS -lt $limit ] && kill -0 "$kernel" 2>/dev/null; do sleep 0.2; done
  if [ -e "$work/started" ]; then wait "$kernel" || true; fi
  end_kernel
  wait "$kernel" 2>/dev/null || true
  kernel=
  wait "$filter" || true
}

# What has not begun may be begun again; a command that has begun is not run twice.
for attempt in 1 2 3; do
  boot
  [ ! -e "$work/started" ] || break
  echo "in-kernel.sh: the kernel did not come up (attempt $attempt)" >&2
  # A processor with more that it does not know.
  [ -n "$shim" ] || use_shim
done
if [ ! -s "$work/status" ]; then
  echo 'in-kernel.sh: the kernel ended before the command did' >&2
  exit 125
fi
exit "$(cat "$work/status")"
