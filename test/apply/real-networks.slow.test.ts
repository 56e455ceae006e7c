// Network namespaces of a real kernel, with the built programs.
import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { runsAsRoot } from '../support/other-user.ts';
import { projectFolder } from '../support/run-kpc.ts';

const tools = ['unshare', 'ip', 'nft', 'iptables', 'perl'];
const hasTools = tools.every((tool) => spawnSync('sh', ['-c', `command -v ${tool}`]).status === 0);
const isPossible = runsAsRoot && hasTools && spawnSync('unshare', ['-n', '-m', 'true']).status === 0;

/** $A is kpc-apply; /run/a and /run/z are two bundles of nftables mode, and /run/u one of userspace mode. */
const prepare = `
mount --make-rprivate /; mount -t tmpfs -o mode=0755 tmpfs /run; mkdir -p /var/lib/kpc /run/netns /run/bin
mount -t tmpfs -o mode=0755 tmpfs /var/lib/kpc; ip link set lo up
A="${process.execPath} dist/kpc-apply.js"; f=fixtures/quickstart/svc.yaml
sed 's/ready: false/ready: true/' $f > /run/z.yaml
compile() { ${process.execPath} dist/kpc.js compile --ip-family ipv4 "$@" >/dev/null 2>&1; }
compile -f $f --proxy-mode nftables -o /run/a; compile -f /run/z.yaml --proxy-mode nftables -o /run/z
printf '#!/bin/sh\\n[ "$1" = -v ] && echo nginx version: nginx/1.22.1 >&2 && exit 0\\necho "$@" >> /run/checked\\n' > /run/bin/nginx
chmod +x /run/bin/nginx; export PATH=/run/bin:$PATH
rules() { nft list ruleset | sha256sum; }
same() { if [ "$1" = "$2" ]; then echo same; else echo changed; fi; }
`;

/** What a script prints in a network and mounts of its own. */
function print(script: string): string {
  const { stdout, stderr } = spawnSync('unshare', ['-n', '-m', 'bash', '-c', prepare + script], {
    cwd: projectFolder,
    encoding: 'utf8',
  });
  return stdout === '' ? stderr : stdout;
}

describe.runIf(isPossible).concurrent('in a real kernel', () => {
  test('a network that is made anew with the same number is another', () => {
    const script = `
      ip netns add one; before=$(stat -Lc %i /run/netns/one)
      ip netns exec one $A apply /run/a >/dev/null 2>&1; echo $?
      for i in $(seq 50); do
        ip netns del one; ip netns add one; [ $before = $(stat -Lc %i /run/netns/one) ] && break
      done
      ip netns exec one nft -f /run/z/nftables.nft
      there=$(ip netns exec one nft list ruleset | sha256sum)
      for command in "apply /run/a" cleanup rollback "watch /run/a"; do
        timeout -s INT 4 ip netns exec one $A $command > /run/said 2>&1
        same "$there" "$(ip netns exec one nft list ruleset | sha256sum)"
        grep -c 'owns nothing' /run/said
      done`;
    expect(print(script)).toBe(`0\n${'same\n1\n'.repeat(4)}`);
  });

  test('a mark is there after everything else that a network holds was flushed', () => {
    const script = `
      $A apply /run/a >/dev/null 2>&1; echo $?
      nft flush ruleset; iptables -F; iptables -t nat -F; ip addr flush dev lo; ip route flush table all 2>/dev/null
      ip rule flush; ip link set lo down; ip link set lo up
      $A apply /run/z >/dev/null 2>/run/said; echo $?; grep -c network- /run/said
      ls /var/lib/kpc | grep -c network-`;
    expect(print(script)).toBe('0\n0\n0\n1\n');
  });

  test('a network within a network is another, and the outer one keeps its own', () => {
    const script = `
      $A apply /run/a >/dev/null 2>&1; there=$(rules)
      unshare -n bash -c "nft -f /run/z/nftables.nft; $A cleanup; nft list tables" 2>/dev/null
      same "$there" "$(rules)"; $A verify /run/a >/dev/null; echo $?
      $A cleanup >/dev/null 2>&1; nft list tables`;
    expect(print(script)).toBe('table ip kube-proxy\nsame\n0\n');
  });

  test('a network that lost its mark owns nothing, and has all back with it', () => {
    const script = `
      $A apply /run/a >/dev/null 2>&1; there=$(rules)
      mark=$(ip -j link show lo | grep -o 'kpc-[0-9a-f]*')
      ip link property del dev lo altname $mark
      $A apply /run/z 2>&1 | grep -c "lost its mark $mark"; same "$there" "$(rules)"
      ip link property del dev lo altname $(ip -j link show lo | grep -o 'kpc-[0-9a-f]*')
      ip link property add dev lo altname $mark; $A apply /run/z >/dev/null 2>&1; echo $?`;
    expect(print(script)).toBe('1\nsame\n0\n');
  });
});

test.runIf(isPossible)("an endless file in the place of one of the kernel's is refused", () => {
  const script = `
    mount --bind /dev/zero /proc/sys/kernel/random/boot_id
    $A plan /run/a 2>&1 | grep -c 'boot_id: it is too long'; echo \${PIPESTATUS[0]}`;
  expect(print(script)).toBe('1\n3\n');
});

describe.runIf(isPossible).concurrent('the file of the balancer, in a real kernel', () => {
  const userspace = 'compile -f $f --proxy-mode userspace --kubernetes-version 1.25 -o /run/u\n';
  const file = '/var/lib/kpc/balancer.conf';

  test('that is not recorded stays, and a bundle of another mode needs no nginx', () => {
    const script = `${userspace}
      cp /run/u/balancer.conf ${file}; there=$(sha256sum < ${file})
      for command in "apply /run/a" cleanup "apply /run/z"; do
        $A $command >/run/said 2>&1; echo $?; same "$there" "$(sha256sum < ${file})"
      done
      ls /run/checked 2>/dev/null`;
    expect(print(script)).toBe('0\nsame\n'.repeat(3));
  });

  test('is written to the state folder alone, whoever has the usual one', () => {
    const script = `${userspace}
      chown 65534 /var/lib/kpc
      $A apply /run/u --state-dir /run/sd >/dev/null 2>&1; echo $?
      cat /run/checked; ls -A /var/lib/kpc; ls /run/sd | grep balancer
      $A verify /run/u --state-dir /run/sd >/dev/null; echo $?
      $A apply /run/u 2>&1 | grep -c bad-state-folder`;
    expect(print(script)).toBe('0\n-t -q -c /run/sd/balancer.conf.new\nbalancer.conf\nbalancer.json\n0\n1\n');
  });

  test('is changed while it holds what was recorded, in this network or before a boot, and no longer', () => {
    const changed = 'compile -f /run/z.yaml --proxy-mode userspace --kubernetes-version 1.25 -o /run/v\n';
    const script = `${userspace}${changed}
      $A apply /run/u >/dev/null 2>&1; echo $?
      sed -i 's/"bootId":"[^"]*"/"bootId":"another"/' /var/lib/kpc/balancer.json
      $A apply /run/v >/dev/null 2>&1; echo $?; cmp ${file} /run/v/balancer.conf
      unshare -n $A apply /run/u 2>&1 | grep -c 'file ${file}.*\\[conflict\\]\\|: file ${file}'
      cmp ${file} /run/v/balancer.conf
      echo '# mine' >> ${file}; there=$(sha256sum < ${file})
      $A apply /run/u >/dev/null 2>&1; echo $?; same "$there" "$(sha256sum < ${file})"
      $A cleanup >/dev/null 2>&1; echo $?; same "$there" "$(sha256sum < ${file})"`;
    expect(print(script)).toBe('0\n0\n1\n3\nsame\n0\nsame\n');
  });

  test("that --adopt took over is not kpc-apply's once it is put back", () => {
    const script = `${userspace}
      compile -f /run/z.yaml --proxy-mode userspace --kubernetes-version 1.25 -o /run/v
      cp /run/u/balancer.conf ${file}
      $A apply /run/v >/dev/null 2>&1; echo $?; cmp ${file} /run/u/balancer.conf
      $A apply /run/v --adopt --confirm-timeout 1s >/dev/null 2>&1; echo $?; cmp ${file} /run/u/balancer.conf
      $A apply /run/v >/dev/null 2>&1; echo $?; cmp ${file} /run/u/balancer.conf
      $A apply /run/u --adopt >/dev/null 2>&1; echo $?; $A apply /run/v >/dev/null 2>&1; echo $?; cmp ${file} /run/v/balancer.conf`;
    expect(print(script)).toBe('3\n3\n3\n0\n0\n');
  });
});
