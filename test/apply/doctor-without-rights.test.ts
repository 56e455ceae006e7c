import { expect, test } from 'vitest';
import type { CommandResult, Host } from '../../src/apply/node/host.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode } from './fake-node.ts';

const failed = (stderr: string): CommandResult => ({ kind: 'ended', status: 1, stdout: '', stderr });

/** A process that may look at nothing of the network, as each tool says it. */
function ofUser(uid: number, refuse: Host['run']): Host {
  const node = createFakeNode();
  node.files.set('/proc/modules', 'nf_tables 1 0 - Live\nnf_conntrack 1 0 - Live\n');
  node.files.set('/proc/self/status', `Uid:\t${uid}\t${uid}\t${uid}\t${uid}\nCapEff:\t0000000000000000\n`);
  const isVersion = (args: readonly string[]) => args.some((arg) => /version|-V/.test(arg));
  return { ...node.host, run: (command) => (isVersion(command.args) ? node.host.run(command) : refuse(command)) };
}

const findings = (out: string) => out.split('\n').filter((line) => /^(?:error|warning|note) /.test(line));

test.each([0, 1000])(
  'nftables mode, user %i: says that it is not allowed to, and not that the kernel cannot',
  async (uid) => {
    const host = ofUser(uid, async () =>
      failed('netlink: Error: cache initialization failed: Operation not permitted\n'),
    );
    const { status, out } = await callApply(host, 'doctor', 'fixtures/dual-stack/expected-nftables');
    expect(status).toBe(1);
    expect(out).not.toContain('this kernel cannot');
    expect(findings(out).filter((line) => line.includes('Operation not permitted'))).toEqual([
      'error   nft is not allowed to change anything here: cache initialization failed: Operation not permitted',
    ]);
    expect(out).toContain('run it as root; a container also needs the capability NET_ADMIN');
  },
);

test('a kernel that tells nft nothing at all is one finding', async () => {
  const node = createFakeNode();
  node.files.set('/proc/modules', 'nf_tables 1 0 - Live\nnf_conntrack 1 0 - Live\n');
  const host: Host = {
    ...node.host,
    run: async (command) =>
      command.tool === 'nft' && !command.args.includes('--version')
        ? failed('netlink: Error: cache initialization failed: Invalid argument\n')
        : node.host.run(command),
  };
  const { status, out } = await callApply(host, 'doctor', 'fixtures/dual-stack/expected-nftables');
  expect(status).toBe(1);
  expect(findings(out).filter((line) => line.includes('cache initialization'))).toEqual([
    'error   nft cannot work with this kernel: cache initialization failed: Invalid argument',
  ]);
});

test('iptables mode: a tool that may not look is not called missing', async () => {
  const host = ofUser(1000, async ({ tool }) => failed(`${tool} v1.8.9: Permission denied (you must be root)\n`));
  const { out } = await callApply(host, 'doctor', 'fixtures/quickstart/expected-iptables');
  expect(out).not.toContain('without iptables-');
  expect(out).not.toContain('Permission denied');
});
