# lab-tools.sh: what in-kernel.sh and in-qemu.sh both need, to be sourced.

# Tools that tests use, by Debian package, and modules of the kernel that they need.
tools=(perl kmod iptables nftables ipset ipvsadm conntrack iproute2 iputils-ping procps nginx-light libnginx-mod-stream)
modules=(ip_vs ip_vs_rr nf_conntrack ip_set xt_set xt_ipvs iptable_nat iptable_filter ip6table_nat ip6table_filter dummy veth br_netfilter sctp)

# Another apt-get may be at work: waits for it.
apt() { DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 "$@" >&2; }

install_missing() {
  local missing=() package
  for package in "$@"; do
    dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; }; then
    echo "these packages cannot be installed: ${missing[*]}" >&2
    return 1
  fi
}

# link_legacy_tools FOLDER: the legacy variants of iptables under their plain names.
link_legacy_tools() {
  local tool
  mkdir "$1"
  for tool in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
    ln -s "/usr/sbin/${tool/tables/tables-legacy}" "$1/$tool"
  done
}

# write_command COMMAND ARGUMENT...: prints a script that goes on as COMMAND, in this folder and this environment.
write_command() {
  export -p | grep -v -E ' (PATH|HOME|TERM|SHLVL|OLDPWD|PWD|_)='
  printf 'cd %q\n' "$PWD"
  printf 'exec '
  printf '%q ' "$@"
  printf '</dev/null\n'
}
