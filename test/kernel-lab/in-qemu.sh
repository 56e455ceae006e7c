#!/bin/bash
# in-qemu.sh [--megabytes N] COMMAND ARGUMENT...
#
# Runs COMMAND as root in a network of its own, in a kernel that has IPVS and nftables, and exits with its status.
# Where no such kernel can be had it says so, and exits with 77.
#
# Where this machine's kernel has both, that is a fresh network namespace. Elsewhere it is Debian's own kernel under qemu,
# on one emulated processor: it starts in some fifteen seconds where a core is free. COMMAND sees this machine's files
# (9p), but what it writes goes to memory, and is gone when it ends.
#
# Installs what it needs from Debian's packages. The kernel is fetched once, and kept in /var/cache.
set -euo pipefail

megabytes=2048
if [ "${1:-}" = --megabytes ]; then
  megabytes=$2
  shift 2
fi
if [ $# -eq 0 ]; then
  sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
lab=$(dirname "$(readlink -f "$0")")
# shellcheck source=lab-tools.sh
. "$lab/lab-tools.sh"

cannot() {
  echo "in-qemu.sh: $*" >&2
  exit 77
}

has_all_modes() {
  { [ -e /proc/net/ip_vs ] || modprobe --quiet ip_vs; } &&
    unshare --net nft -c 'add table ip trial; add chain ip trial nat { type nat hook output priority -100; }'
}
if has_all_modes 2>/dev/null; then exec "$lab/in-kernel.sh" --own "$@"; fi

[ "$(uname -m)" = x86_64 ] || cannot "the kernel that it starts is for x86_64, and this machine is $(uname -m)"

install_missing qemu-system-x86 busybox-static cpio xz-utils "${tools[@]}" || cannot 'its packages cannot be installed'

find_kernel_package() {
  apt-cache search --names-only '^linux-image-6\.1\.0-[0-9]+-amd64$' | cut -d' ' -f1 | sort -V | tail -1
}

# Into the current folder. What apt knows may be older than what the archive has.
fetch_kernel() {
  local package
  package=$(find_kernel_package)
  if [ -n "$package" ] && apt download "$package" 2>/dev/null; then return; fi
  apt update || return
  package=$(find_kernel_package)
  [ -n "$package" ] && apt download "$package"
}

# unpack_kernel FILE: the kernel without its decompressor, which is slow where everything is emulated.
unpack_kernel() {
  local at
  at=$(LC_ALL=C grep -a -b -o -m1 -P '\xfd7zXZ\x00' "$1" | head -1 | cut -d: -f1) &&
    tail -c "+$((at + 1))" "$1" | xz -d -c --single-stream 2>/dev/null >"$2" &&
    [ "$(head -c 4 "$2")" = $'\x7fELF' ]
}

# Makes `kernel` and `initramfs` in the current folder: its first process mounts this machine's files, and goes on there.
build_image() {
  local kernel='./lib/modules/*/kernel' release module package=(linux-image-*.deb)
  dpkg-deb --fsys-tarfile "${package[0]}" | tar x --wildcards './boot/vmlinuz-*' './lib/modules/*/modules.*' \
    "$kernel/net/*netfilter/*" "$kernel"/net/{bridge,802,llc,sched,9p,ipv4,ipv6,sctp}/'*' "$kernel"/{lib,crypto,arch/x86/crypto}/'*' \
    "$kernel"/drivers/net/'[dvtm]*.ko' "$kernel"/drivers/{virtio,char/virtio}'*' "$kernel"/fs/{9p,netfs,fscache,overlayfs}/'*'
  rm "${package[0]}"
  release=$(basename lib/modules/*)
  depmod -b . "$release"
  unpack_kernel boot/vmlinuz-* kernel || cp boot/vmlinuz-* kernel
  mkdir -p root/bin root/dev root/host root/rw root/new root/lib
  cp "$(command -v busybox)" root/bin/busybox
  mv lib/modules root/lib/modules
  for module in virtio_pci virtio_console 9pnet_virtio 9p overlay; do
    modprobe -d root -S "$release" --show-depends "$module"
  done | sed -n 's/^insmod [^ ]*root//p' | awk '!seen[$0]++' >root/modules
  cat >root/init <<'EOF_INIT'
#!/bin/busybox sh
b=/bin/busybox
for module in $($b cat /modules); do $b insmod $module; done
options=trans=virtio,version=9p2000.L,msize=512000
$b mount -t 9p -o $options,ro,cache=loose root /host
$b mount -t tmpfs -o size=80% tmpfs /rw
$b mkdir /rw/upper /rw/work
$b mount -t overlay -o lowerdir=/host,upperdir=/rw/upper,workdir=/rw/work overlay /new
$b mount -t tmpfs tmpfs /new/run
$b mkdir /new/run/in-qemu /new/run/netns /new/run/modules
$b mount -t 9p -o $options work /new/run/in-qemu
$b mv /lib/modules/* /new/run/modules
exec $b switch_root /new /bin/bash /run/in-qemu/init
EOF_INIT
  chmod +x root/init
  (cd root && find . | cpio -o -H newc 2>/dev/null) >initramfs
  rm -r root boot lib
}

image=/var/cache/kernel-lab-qemu-$(cksum <"$0" | cut -d' ' -f1) # another version of this script makes another image
if [ ! -e "$image/initramfs" ]; then
  new=$(mktemp -d "$image.XXXXXX")
  # apt-get downloads as a user of its own.
  chmod 755 "$new"
  if ! (cd "$new" && fetch_kernel); then
    rm -rf "$new"
    cannot 'no package of a kernel can be had'
  fi
  (cd "$new" && set -e && build_image)
  # Another run may have been faster.
  mv -T "$new" "$image" 2>/dev/null || rm -rf "$new"
fi

work=$(mktemp -d /var/tmp/kernel-lab.XXXXXX)
qemu=
end_kernel() { [ -z "$qemu" ] || kill -KILL "$qemu" 2>/dev/null || true; }
trap 'end_kernel; rm -rf "$work"' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

link_legacy_tools "$work/bin"
{
  printf 'export PATH=/run/in-qemu/bin:%q:/usr/sbin:/sbin\n' "$PATH"
  write_command "$@"
} >"$work/command"
echo "${modules[@]}" nf_tables nft_chain_nat >"$work/modules"
cat >"$work/init" <<'EOF_INIT'
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t proc proc /proc
ln -sf /proc/self/fd /dev/fd
rm -rf /lib/modules
mkdir -p /lib/modules
mount --bind /run/modules /lib/modules
for port in /dev/vport*p1; do exec >$port; done
for port in /dev/vport*p2; do exec 2>$port; done
ip link set lo up
modprobe -a $(cat /run/in-qemu/modules)
: >/run/in-qemu/started
bash /run/in-qemu/command
echo $? >/run/in-qemu/status
sync
busybox poweroff -f
EOF_INIT

# boot: starts the kernel, and waits for its end. One that has not come to the command after five minutes never will.
boot() {
  local readers=() limit=$((SECONDS + 300))
  rm -f "$work/out" "$work/err"
  mkfifo "$work/out" "$work/err"
  # Held open, so that the readers end even if qemu never starts.
  exec 8<>"$work/out" 9<>"$work/err"
  cat "$work/out" 8>&- 9>&- &
  readers+=($!)
  cat "$work/err" >&2 8>&- 9>&- &
  readers+=($!)
  # Without /dev/kvm, which may hang where this machine is a virtual one itself.
  qemu-system-x86_64 -M pc,hpet=off -cpu max -accel tcg -m "$megabytes" -smp 1 -display none -no-reboot -nodefaults \
    -serial "file:$work/console" -monitor none -kernel "$image/kernel" -initrd "$image/initramfs" \
    -append 'console=ttyS0 quiet panic=-1 mitigations=off nokaslr random.trust_cpu=on audit=0 apparmor=0 tsc=reliable' \
    -virtfs local,path=/,mount_tag=root,security_model=none,multidevs=remap,readonly=on \
    -virtfs "local,path=$work,mount_tag=work,security_model=none" \
    -device virtio-serial-pci -chardev "file,path=$work/out,id=out" -device virtserialport,chardev=out,nr=1 \
    -chardev "file,path=$work/err,id=err" -device virtserialport,chardev=err,nr=2 </dev/null >&2 8>&- 9>&- &
  qemu=$!
  while [ ! -e "$work/started" ] && [ $SECONDS -lt $limit ] && kill -0 "$qemu" 2>/dev/null; do sleep 0.2; done
  [ -e "$work/started" ] || end_kernel
  wait "$qemu" 2>/dev/null || true
  qemu=
  exec 8>&- 9>&-
  wait "${readers[@]}" || true
}

# What has not begun may be begun again; a command that has begun is not run twice.
for attempt in 1 2; do
  boot
  [ ! -e "$work/started" ] || break
  echo "in-qemu.sh: the kernel did not come up (attempt $attempt)" >&2
  tail -5 "$work/console" >&2 || true
done
if [ ! -s "$work/status" ]; then
  echo 'in-qemu.sh: the kernel ended before the command did' >&2
  exit 125
fi
exit "$(cat "$work/status")"
