import { describe, expect, test } from 'vitest';
import type { CommandResult, Host } from '../../src/apply/node/host.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode } from './fake-node.ts';
import { resultOf } from '../support/printed-json.ts';

const ipvs = 'fixtures/nodeport/expected-ipvs';

interface Result {
  readonly checks: readonly { readonly text: string; readonly mode?: string }[];
  readonly warnings?: readonly string[];
}

/** A node whose tools answer as given, by their name. */
function answering(host: Host, answers: Readonly<Record<string, Partial<CommandResult & { kind: 'ended' }>>>): Host {
  return {
    ...host,
    run: async (command) => {
      const answer = answers[command.tool];
      return answer ? { kind: 'ended', status: 1, stdout: '', stderr: '', ...answer } : host.run(command);
    },
  };
}

const noIpvs = {
  ipvsadm: {
    status: 255,
    stderr:
      'modprobe: FATAL: Module ip_vs not found in directory /lib/modules/6.1.0\n' +
      "Can't initialize ipvs: No such file or directory\nAre you sure that IP Virtual Server is built in the kernel or as module?\n",
  },
};

/** A node without IPVS: whether its kernel loads modules, and which it could load, is up to the caller. */
function withoutIpvs(modules: { readonly listed: boolean; readonly dep: string | undefined }) {
  const node = createFakeNode();
  for (const path of node.files.keys()) {
    if (/^\/proc\/(net\/ip_vs|sys\/net\/ipv4\/vs)|^\/lib\/modules|^\/proc\/modules/.test(path)) node.files.delete(path);
  }
  if (modules.listed) node.files.set('/proc/modules', 'nf_conntrack 1 0 - Live\n');
  if (modules.dep !== undefined) node.files.set('/lib/modules/6.1.0/modules.dep', modules.dep);
  return answering(node.host, noIpvs);
}

test('doctor names what a node without getfacl refuses', async () => {
  const { host } = createFakeNode();
  const run: Host['run'] = async (command) => (command.tool === 'getfacl' ? { kind: 'missing' } : host.run(command));
  const { status, out } = await callApply({ ...host, run }, 'doctor', ipvs);
  expect(status).toBe(0);
  expect(out).toContain(
    'warning getfacl is missing (without it, kpc-apply refuses a bundle, key or state folder that its group may write to)\n        install the package acl\n',
  );
});

describe('doctor on a node without IPVS', () => {
  test('a kernel that loads no modules: nothing is wrong with ipvsadm, and no scheduler is there', async () => {
    const { status, out } = await callApply(withoutIpvs({ listed: false, dep: undefined }), 'doctor');
    expect(status).toBe(1);
    expect(out).toMatch(/error {3}ipvsadm does not work: .*\n {8}nothing is wrong with ipvsadm: the kernel lacks IPVS/);
    expect(out).toContain(
      'error   ip_vs and ip_vs_rr are missing: this kernel neither has them nor can load them\n        boot a kernel that has them: this one loads no modules\n',
    );
    expect(out).not.toContain('net.ipv4.vs.conntrack');
    expect(out).not.toMatch(/reinstall|ok {6}ip_vs_rr|not loaded yet/);
  });

  test('a kernel that loads no modules: none is to be loaded', async () => {
    const { host, files } = createFakeNode();
    for (const path of files.keys()) if (/^\/lib\/modules|^\/proc\/modules/.test(path)) files.delete(path);
    const { out } = await callApply(host, 'doctor', 'fixtures/quickstart/expected-iptables');
    expect(out).toContain(
      "xt_addrtype and xt_statistic are not visible, and the kernel's list of modules is missing here: they may be built in\n",
    );
    expect(out).not.toMatch(/(?:load it|run) .*modprobe/);
  });

  test('a kernel whose modules are not installed', async () => {
    const { out } = await callApply(withoutIpvs({ listed: true, dep: 'kernel/net/x.ko:\n' }), 'doctor');
    expect(out).toMatch(/error {3}ip_vs, .* are missing.*\n {8}install the modules package of this kernel/);
    expect(out).toContain('nothing is wrong with ipvsadm');
  });

  test('a container without the node’s modules: only trying tells', async () => {
    const { out } = await callApply(withoutIpvs({ listed: true, dep: undefined }), 'doctor');
    expect(out).toMatch(
      /note {4}ip_vs, ip_vs_rr.* are not visible, and the kernel's list .* missing here.*\n.*run on the host: modprobe -a ip_vs ip_vs_rr/,
    );
    expect(out).toMatch(/nothing is wrong with ipvsadm: the kernel lacks IPVS/);
  });

  test('a module that can be loaded, by root and by a container that may not', async () => {
    const dep = 'kernel/net/ip_vs.ko:\nkernel/net/ip_vs_rr.ko: kernel/net/ip_vs.ko\n';
    const node = createFakeNode();
    node.files.set('/proc/modules', '');
    for (const path of node.files.keys()) {
      if (/^\/proc\/(net\/ip_vs|sys\/net\/ipv4\/vs)/.test(path)) node.files.delete(path);
    }
    node.files.set('/lib/modules/6.1.0/modules.dep', dep);
    const able = await callApply(node.host, 'doctor');
    expect(able.out).toContain('ok      ip_vs and ip_vs_rr can be loaded\n');
    expect(able.out).not.toContain('net.ipv4.vs.conntrack');
    // NET_ADMIN alone, as a container gets it.
    node.files.set('/proc/self/status', 'Uid:\t0\t0\t0\t0\nCapEff:\t0000000000001000\n');
    const contained = await callApply(node.host, 'doctor');
    expect(contained.out).toMatch(
      /warning ip_vs and ip_vs_rr are not loaded, and cannot be loaded from here.*\n {8}run on the host: modprobe -a/,
    );
  });
});

describe('doctor on rights and tools', () => {
  test('root without the capability is in a container', async () => {
    const { host, files } = createFakeNode();
    files.set('/proc/self/status', 'Uid:\t0\t0\t0\t0\nCapEff:\t0000000000000000\n');
    expect((await callApply(host, 'doctor')).out).toContain(
      '/proc/self/status shows no CAP_NET_ADMIN\n        run it as root; a container also needs the capability NET_ADMIN\n',
    );
  });

  test.for([
    [
      'Kernel error received: Operation not permitted',
      'run it as root; a container also needs the capability NET_ADMIN',
    ],
    ['something else', 'see what "ipset --version" says'],
  ])('ipset says "%s": %s', async ([complaint = '', advice = '']) => {
    const { host, files } = createFakeNode();
    files.set('/proc/self/status', 'Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n');
    const failing = answering(host, {
      ipset: { stdout: 'ipset v7.17, protocol version: 7\n', stderr: `${complaint}\n` },
    });
    expect((await callApply(failing, 'doctor')).out).toContain(
      `error   ipset does not work: ${complaint}\n        ${advice}\n`,
    );
  });

  test('a kernel without what iptables asks for, though iptables tells its version', async () => {
    const { host } = createFakeNode();
    const failing = answering(host, {
      'iptables-save': { stderr: 'Failed to initialize nft: Protocol not supported\n' },
    });
    const { status, out } = await callApply(failing, 'doctor');
    expect(status).toBe(1);
    expect(out).toMatch(
      /error {3}"iptables-save" exited with status 1: Failed to initialize nft.*\n {8}.*switch to the legacy variant/,
    );
  });

  test('the other variant of iptables is not asked in a way that makes its tables', async () => {
    const { host, commands, files } = createFakeNode();
    files.set('/proc/modules', `${files.get('/proc/modules')}nf_tables 1 0 - Live\n`);
    await callApply(host, 'doctor', ipvs);
    expect(commands.filter(({ tool }) => /-(nft|legacy)-save$/.test(tool)).map(({ args }) => args)).toEqual([[], []]);
  });
});

describe('doctor on settings', () => {
  test('a setting that is as wanted needs no right to set it; another one does', async () => {
    const { host, files } = createFakeNode();
    const readOnly: Host = { ...host, isWritable: async () => false };
    const refused = await callApply(readOnly, 'doctor', ipvs);
    expect(refused.out).toContain('error   net.ipv4.ip_forward is 0, and cannot be set to 1 from here\n');
    files.set('/proc/sys/net/ipv4/ip_forward', '1\n');
    const fine = await callApply(readOnly, 'doctor', ipvs);
    expect(fine.out).toContain('ok      net.ipv4.ip_forward is 1\n');
    expect((await callApply(host, 'doctor', ipvs)).out).toContain(
      'ok      net.ipv4.vs.conntrack is 0, and can be set to 1\n',
    );
  });

  test.each([
    ['iptables', true],
    ['ipvs', false],
  ])('warns of a node that forwards nothing, unless the mode sets that: %s', async (mode, isWarned) => {
    const bundle = `fixtures/quickstart/expected-${mode}`;
    const forwardsNothing = expect.stringMatching(/^net\.ipv4\.ip_forward is 0:/);
    const { host } = createFakeNode();
    const { checks }: Result = resultOf((await callApply(host, 'doctor', bundle, '--output', 'json')).out);
    const { warnings = [] }: Result = resultOf((await callApply(host, 'plan', bundle, '--output', 'json')).out);
    const warned = isWarned ? [{ severity: 'warning', subject: 'sysctls', text: forwardsNothing }] : [];
    expect(checks.filter(({ text }) => text.startsWith('net.ipv4.ip_forward is 0:'))).toMatchObject(warned);
    expect(warnings).toEqual(warned.map(({ text }) => text));
    const { checks: ofAll }: Result = resultOf((await callApply(host, 'doctor', '--output', 'json')).out);
    const modes = ofAll.flatMap(({ text, mode: of }) => (text.startsWith('net.ipv4.ip_forward is 0:') ? [of] : []));
    expect(modes).toEqual(['iptables', 'nftables']);
  });
});

describe('doctor on processes', () => {
  test('in a container, it does not say that no kube-proxy runs on the node', async () => {
    const { host } = createFakeNode();
    const contained: Host = {
      ...host,
      readLink: async (path) => (path === '/proc/self/ns/pid' ? 'pid:[4026532999]' : host.readLink(path)),
    };
    const { out } = await callApply(contained, 'doctor');
    expect(out).toContain('the processes of the node are not visible here');
    expect(out).not.toContain('kube-proxy is not running in this network namespace');
  });
});

describe('doctor on a node that answers ARP for addresses on kube-ipvs0', () => {
  const path = '/proc/sys/net/ipv4/conf/all/arp_ignore';
  const answers = 'net.ipv4.conf.all.arp_ignore is 0: the node answers ARP for every address on kube-ipvs0';

  test.each([
    ['0', 'fixtures/nodeport/expected-ipvs', true],
    ['1', 'fixtures/nodeport/expected-ipvs', false],
    ['0', 'fixtures/strict-arp/expected-ipvs', false],
    ['0', 'fixtures/nodeport/expected-iptables', false],
  ])('arp_ignore %s, %s: %s', async (value, bundle, isNoted) => {
    const { host, files } = createFakeNode();
    files.set(path, `${value}\n`);
    const { out } = await callApply(host, 'doctor', bundle);
    expect(out.includes(answers)).toBe(isNoted);
  });
});

describe('doctor on routes', () => {
  const header = 'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n';
  const route = (destination: string, mask: string) =>
    `eth0\t${destination}\t0132A8C0\t0003\t0\t0\t100\t${mask}\t0\t0\t0\n`;
  const [link, usual] = [route('0032A8C0', '00FFFFFF'), route('00000000', '00000000')];
  const warning = 'the node has no default route for IPv4: its own connections to cluster IPs fail';

  test.each([
    ['iptables', link, true],
    ['nftables', link, true],
    ['iptables', link + usual, false],
    // Cluster IPs are addresses of kube-ipvs0.
    ['ipvs', link, false],
  ] as const)('%s mode', async (mode, routes, isWarned) => {
    const { host, files } = createFakeNode();
    files.set('/proc/net/route', `${header}${routes}`);
    const { out } = await callApply(host, 'doctor', `fixtures/quickstart/expected-${mode}`);
    expect(out.includes(warning)).toBe(isWarned);
  });
});

test.each([
  ['nothing', [], 0, 'fit for IPVS mode and iptables mode, but not for nftables mode'],
  ['IPVS', ['ipvsadm'], 0, 'fit for iptables mode, but not for IPVS mode and nftables mode'],
  ['what each needs', ['ip'], 1, 'not fit for any mode yet'],
])('doctor without a bundle says for which modes a node is fit that lacks %s', async (_, lacks, status, words) => {
  const { host } = createFakeNode();
  const run: Host['run'] = async (command) => (lacks.includes(command.tool) ? { kind: 'missing' } : host.run(command));
  const answer = await callApply({ ...host, run }, 'doctor');
  expect(answer.out).toMatch(new RegExp(`\\nThis node is ${words}\\n$`));
  expect(answer.status).toBe(status);
});

test('doctor counts what it found, and prints nothing twice', async () => {
  const { host, files } = createFakeNode();
  files.delete('/proc/modules');
  files.delete('/lib/modules/6.1.0/modules.dep');
  files.delete('/lib/modules/6.1.0/modules.builtin');
  const { out } = await callApply(host, 'doctor');
  const lines = out.trimEnd().split('\n');
  expect(lines.at(-2)).toMatch(/^.*(?:error|warning|note|nothing to fix).*; \d+ checks passed$/);
  const findings = lines.filter((line) => /^(?:ok|note|warning|error) /.test(line));
  expect(new Set(findings).size).toBe(findings.length);
  expect(findings.filter((line) => line.includes('list of modules is missing')).length).toBeLessThanOrEqual(3);
});
