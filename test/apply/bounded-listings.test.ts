import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { keepsRuleLines, keepsSetLines, mostRead, Output, Room } from '../../src/apply/node/output.ts';
import type { ToolCommand, CommandResult, Host } from '../../src/apply/node/host.ts';
import { runTool } from '../../src/apply/node/run-tool.ts';
import { readWith } from '../../src/apply/node/tools.ts';
import { some, triesAll } from '../support/rounds.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, keepLines } from './fake-node.ts';

/** So long that no machine is busy enough to reach them. */
const limits = { fed: 250_000, unfed: 250_000, closing: 250_000 };
const shell = (script: string) => ({ tool: 'sh', args: ['-c', script] });

test('the lines that are kept are the same however the output is cut into pieces', () => {
  const text = fc
    .array(fc.constantFrom('keep é', 'drop', '', 'keep'), { maxLength: 8 })
    .map((lines) => lines.join('\n'));
  fc.assert(
    fc.property(text, fc.array(fc.nat(5)), (whole, sizes) => {
      const output = new Output(new Room(1000), (line) => line.startsWith('keep'));
      let rest = Buffer.from(whole);
      for (const size of sizes) {
        output.add(rest.subarray(0, size));
        rest = rest.subarray(size);
      }
      output.add(rest);
      const last = whole.slice(whole.lastIndexOf('\n') + 1);
      const lines = whole.split('\n').slice(0, -1);
      const kept = lines.filter((line) => line.startsWith('keep')).map((line) => `${line}\n`);
      expect([output.finish(), output.isCut]).toEqual([kept.join('') + last, false]);
    }),
  );
});

describe('a tool that prints without end', () => {
  test.each([
    ['lines', 'exec yes line'],
    ['one line', 'exec tr "\\0" x < /dev/zero'],
  ])('(%s) is ended where it is to list, and says so', async (_, script) => {
    for (const keeps of [undefined, (line: string) => line !== ''] as const) {
      const result = await runTool({ ...shell(script), keeps, room: new Room(1 << 20) }, limits);
      expect(result).toMatchObject({ cut: 'stdout', signal: 'SIGKILL' });
      expect(result.kind === 'ended' && result.stdout.length).toBeLessThanOrEqual(1 << 20);
    }
  });

  test('of what no line is kept costs nothing, and a tool that changes something goes on', async () => {
    const flood = shell('head -c 6000000 /dev/zero | tr "\\0" "\\n"; head -c 3000000 /dev/zero >&2; exit 3');
    expect(await runTool({ ...flood, keeps: () => false, room: new Room(1) }, limits)).toMatchObject({
      status: 3,
      stdout: '',
      cut: 'stderr',
    });
    expect(await runTool(flood, limits)).toMatchObject({ status: 3, cut: 'stdout' });
  });

  test('is refused as too large a node', async () => {
    const host: Host = { ...createFakeNode().host, run: (command) => runTool(command, limits) };
    const room = new Room(1000);
    await expect(readWith(host, { ...shell('yes'), room })).rejects.toMatchObject({ code: 'node-too-large' });
  });
});

test.each(['plan', 'verify', 'apply', 'doctor'])(
  '%s refuses a listing that was cut, before any change',
  async (command) => {
    const node = createFakeNode();
    const there = node.dump();
    const cut = (result: CommandResult): CommandResult =>
      result.kind === 'ended' ? { ...result, cut: 'stdout' } : result;
    const host: Host = {
      ...node.host,
      run: async (each) =>
        each.tool === 'ip' && each.args.includes('addr') ? cut(await node.host.run(each)) : node.host.run(each),
    };
    const { status, err, out } = await callApply(host, command, 'fixtures/dual-stack/expected-ipvs');
    expect([status, node.dump()]).toEqual([command === 'doctor' ? 1 : 3, there]);
    expect(err + out).toMatch(/the output of "ip -j -d addr" is too long/);
  },
);

test.each(['plan', 'apply'])(
  '%s: a bundle that the node could not be read with is refused before any change',
  async (command) => {
    const node = createFakeNode();
    const there = node.dump();
    const alias = `"ifalias":"${'x'.repeat(mostRead - 1000)}",`;
    const lengthen = (result: CommandResult): CommandResult =>
      result.kind === 'ended' ? { ...result, stdout: result.stdout.replace('{', `{${alias}`) } : result;
    const host: Host = {
      ...node.host,
      run: async (each) =>
        each.tool === 'ip' && each.args.includes('addr') ? lengthen(await node.host.run(each)) : node.host.run(each),
    };
    const { status, err, out } = await callApply(host, command, 'fixtures/dual-stack/expected-ipvs');
    expect([status, node.dump()]).toEqual([command === 'plan' ? 1 : 3, there]);
    expect(err + out).toMatch(/listings of the node would exceed the 96 MB/);
  },
);

const keptOf = (text: string, keeps: (line: string) => boolean) => text.split('\n').filter((line) => keeps(line));

test('keeps all sets, and of other programs none of the entries but those of sets of sets', () => {
  const text = [
    'create blocked hash:ip family inet',
    'add blocked 192.0.2.1',
    'create all list:set size 8',
    'add all KUBE-CLUSTER-IP',
    'create KUBE-CLUSTER-IP hash:ip,port family inet',
    'add KUBE-CLUSTER-IP 10.96.0.1,tcp:443',
    'add KPC-SWAP 10.96.0.1,tcp:443',
    'garbage',
  ];
  expect(keptOf(text.join('\n'), keepsSetLines())).toEqual(text.filter((line) => !line.startsWith('add blocked')));
});

test('keeps the rules of the chains of kube-proxy and of the kernel, and others that name one of kube-proxy', () => {
  const dropped = [':f2b-sshd - [0:0]', '-A f2b-sshd -s 192.0.2.1/32 -j REJECT', '[1:2] -A f2b-sshd -j RETURN'];
  const kept = [
    '*filter',
    ':INPUT ACCEPT [0:0]',
    '-A INPUT -j f2b-sshd',
    ':KUBE-FORWARD - [0:0]',
    '-A KUBE-FORWARD -j ACCEPT',
    '-A mine -j KUBE-SERVICES',
    '-A mine -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT',
    'COMMIT',
    'garbage',
  ];
  expect(keptOf([...dropped, ...kept].join('\n'), keepsRuleLines())).toEqual(kept);
});

test('keeps all that follows a comment of several lines', () => {
  const text = ['-A mine -m comment --comment "one', '-A mine two', 'COMMIT" -j ACCEPT', '-A mine -j RETURN'];
  expect(keptOf(text.join('\n'), keepsRuleLines())).toEqual(text);
});

test('what others have made is left out of what an apply stores', async () => {
  const node = createFakeNode();
  const bundle = 'fixtures/dual-stack/expected-ipvs';
  const host: Host = {
    ...node.host,
    run: async (command) => {
      const result = await node.host.run({ ...command, keeps: undefined });
      if (result.kind === 'missing' || command.tool !== 'ipset' || command.args[0] !== 'save')
        return keepLines(result, command);
      const others = `create blocked hash:ip family inet\n${'add blocked 192.0.2.1\n'.repeat(1000)}`;
      return keepLines({ ...result, stdout: `${others}${result.stdout}` }, command);
    },
  };
  expect((await callApply(host, 'apply', bundle)).status).toBe(0);
  expect((await callApply(host, 'verify', bundle)).status).toBe(0);
  expect([...node.files.values()].join('')).not.toContain('add blocked');
});

test('a table of another program with many elements costs nft nothing', async () => {
  const { host, files, commands } = createFakeNode();
  files.set('/proc/modules', `${files.get('/proc/modules') ?? ''}nf_tables 1 0 - Live\n`);
  for (const mode of ['ipvs', 'iptables', 'nftables']) {
    expect((await callApply(host, 'apply', `fixtures/dual-stack/expected-${mode}`)).status).toBe(0);
  }
  const asked = commands.filter(({ tool, args }) => tool === 'nft' && args.includes('list'));
  // All else makes nft read what is in all tables.
  const isCheap = /^(?:-s list table|-t list sets table) ip6? \S+$/;
  expect(asked.map(({ args }) => args.join(' ')).filter((words) => !isCheap.test(words))).toEqual([]);
  expect(asked.some(({ args }) => args.includes('sets'))).toBe(true);
});

const many = (count: number, each: (i: number) => string) => Array.from({ length: count }, (_, i) => each(i)).join('');
const [linkCount, memberCount] = triesAll ? [20_000, 1_000_000] : [1000, 20_000];
const links = many(
  linkCount,
  (i) => `,{"ifname":"d${i}","addr_info":[{"family":"inet","local":"10.9.${i >> 8}.${i & 255}","prefixlen":32}]}`,
);
const members = `create flood hash:ip family inet\n${many(memberCount, (i) => `add flood 10.${i}\n`)}`;

describe.each<[string, (command: ToolCommand, out: string) => string]>([
  [
    `${linkCount} links`,
    ({ tool, args }, out) => (tool === 'ip' && args.includes('addr') ? out.replace(/\]\s*$/, `${links}]`) : out),
  ],
  [
    `a set of ${memberCount} members`,
    ({ tool, args }, out) => (tool === 'ipset' && args[0] === 'save' ? members + out : out),
  ],
])('a node with %s of another program', (_, lengthen) => {
  test.each(some(['ipvs', 'nftables']))('is changed, put back and cleaned up as any other: %s', async (mode) => {
    const node = createFakeNode();
    node.files.set('/proc/modules', `${node.files.get('/proc/modules') ?? ''}nf_tables 1 0 - Live\n`);
    const host: Host = {
      ...node.host,
      run: async (command) => {
        const result = await node.host.run({ ...command, keeps: undefined });
        if (result.kind === 'missing') return result;
        return keepLines({ ...result, stdout: lengthen(command, result.stdout) }, command);
      },
    };
    const there = node.dump();
    const bundle = `fixtures/dual-stack/expected-${mode}`;
    expect((await callApply(host, 'plan', bundle)).status).toBe(1);
    expect(node.dump()).toEqual(there);
    expect((await callApply(host, 'apply', bundle)).status).toBe(0);
    expect((await callApply(host, 'verify', bundle)).status).toBe(0);
    expect((await callApply(host, 'rollback')).status).toBe(0);
    expect(node.dump()).toEqual(there);
    expect((await callApply(host, 'apply', bundle)).status).toBe(0);
    expect((await callApply(host, 'cleanup')).status).toBe(0);
  });
});
