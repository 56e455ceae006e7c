import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ToolCommand, CommandResult, Host } from '../../src/apply/node/host.ts';
import { rounds } from '../support/rounds.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';
import { moveInto, neighbours } from './neighbours.ts';

// A tool that exits with status 0 may have printed nothing, a part, or what another tool prints. What kpc-apply takes for the
// state of the node is what it would put back, so that it must not begin with such a reading, nor rely on one at the end.

const modes = ['ipvs', 'iptables', 'nftables'] as const;
type Mode = (typeof modes)[number];
const first = (mode: Mode) => `fixtures/dual-stack/expected-${mode}`;
const second = (mode: Mode) => `fixtures/loadbalancer-source-ranges/expected-${mode}`;

const readers: { readonly [M in Mode]: readonly string[] } = {
  ipvs: ['iptables-save', 'ip6tables-save', 'ipset', 'ipvsadm', 'ip'],
  iptables: ['iptables-save', 'ip6tables-save', 'ip'],
  nftables: ['nft', 'ip'],
};

function isReading({ tool, args }: ToolCommand): boolean {
  switch (tool) {
    case 'iptables-save':
    case 'ip6tables-save':
      return args.length === 0;
    case 'ipset':
      return args[0] === 'save' || args[0] === 'list';
    case 'ipvsadm':
      return args[0] === '-Sn' || args[0] === '-L';
    case 'nft':
      return args.includes('list');
    case 'ip':
      return args[0] === '-j';
    default:
      return false;
  }
}

const others = [
  '[{"ifname":"eth0","addr_info":[]}',
  'create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536\n',
  '-A -t 10.96.0.1:443 -s rr\n',
  '*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n-A\n',
  'table inet filter {\n}\n',
  '{"nftables": [{"metainfo": {"version": "1.0.6"}}]}\n',
  'Segmentation fault\n',
  '\0\u{fffd}\u{1}x',
  '\n',
];

type Garble = (text: string) => string;

const garbles: fc.Arbitrary<Garble> = fc.oneof(
  fc.constant<Garble>(() => ''),
  fc.nat().map(
    (at): Garble =>
      (text) =>
        text.slice(0, at % Math.max(1, text.length - 1)),
  ),
  fc.nat().map((at): Garble => (text) => {
    const lines = text.split(/(?<=\n)/);
    return lines.slice(0, at % Math.max(1, lines.length)).join('');
  }),
  fc.nat().map((at): Garble => (text) => {
    const lines = text.split(/(?<=\n)/);
    return lines
      .slice(at % Math.max(1, lines.length))
      .join('')
      .slice(1);
  }),
  fc.constantFrom(...others).map(
    (other): Garble =>
      () =>
        other,
  ),
);

/** A host one of whose tools prints something else from its nth reading on. */
function garbled(host: Host, tool: string, garble: Garble, from: number): Host {
  let seen = 0;
  return {
    ...host,
    run: async (command): Promise<CommandResult> => {
      const result = await host.run(command);
      if (command.tool !== tool || !isReading(command) || result.kind !== 'ended' || result.status !== 0) return result;
      return seen++ < from ? result : { ...result, stdout: garble(result.stdout) };
    },
  };
}

/** Whether an apply says of the node what is so. */
function isTrue(
  status: number,
  err: string,
  dump: string,
  { before, after }: { readonly before: string; readonly after: string },
): boolean {
  if (status === 0) return dump === after;
  return status === 3 ? dump === before : status === 4 && err.includes('NOT everything could be rolled back');
}

async function startNode(mode: Mode): Promise<FakeNode> {
  const node = createFakeNode();
  node.files.set('/proc/modules', `${node.files.get('/proc/modules') ?? ''}nf_tables 1 0 - Live\n`);
  expect((await callApply(node.host, 'apply', first(mode))).status).toBe(0);
  return node;
}

test('a table that another program makes while rules are read is read on a second look', async () => {
  const node = createFakeNode();
  const path = '/proc/net/ip_tables_names';
  node.files.set(path, 'nat\nfilter\n');
  const host: Host = {
    ...node.host,
    run: async (command) => {
      const result = await node.host.run(command);
      if (command.tool !== 'iptables-save' || result.kind !== 'ended') return result;
      const isThere = node.files.get(path)?.includes('mangle');
      node.files.set(path, 'nat\nfilter\nmangle\n');
      return isThere ? result : { ...result, stdout: result.stdout.replace(/^\*mangle\n[\s\S]*?COMMIT\n/m, '') };
    },
  };
  expect(await callApply(host, 'apply', first('iptables'))).toMatchObject({ status: 0 });
});

describe.each(modes)('in %s mode', (mode) => {
  test.each(readers[mode])(
    'whatever %s prints of the node, it is refused before the first change, or all ends right',
    async (tool) => {
      const wanted = await startNode(mode);
      expect((await callApply(wanted.host, 'apply', second(mode))).status).toBe(0);
      await fc.assert(
        fc.asyncProperty(garbles, async (garble) => {
          const node = await startNode(mode);
          const before = node.dump();
          const { status, err } = await callApply(garbled(node.host, tool, garble, 0), 'apply', second(mode));
          const end = status === 0 ? [0, wanted.dump(), false] : [3, before, false];
          expect([status, node.dump(), err.includes('The node is as it was')], err).toEqual(end);
        }),
        { numRuns: rounds(12, 6) },
      );
    },
  );

  test.each(readers[mode])('where %s prints something else later, nothing false is said', async (tool) => {
    const wanted = await startNode(mode);
    expect((await callApply(wanted.host, 'apply', second(mode))).status).toBe(0);
    await fc.assert(
      fc.asyncProperty(garbles, fc.integer({ min: 1, max: 4 }), async (garble, from) => {
        const node = await startNode(mode);
        const before = node.dump();
        const { status, err } = await callApply(garbled(node.host, tool, garble, from), 'apply', second(mode));
        expect(isTrue(status, err, node.dump(), { before, after: wanted.dump() }), err).toBe(true);
      }),
      { numRuns: rounds(8, 4) },
    );
  });
});

test.each(['', 'Segmentation fault\n'])(
  'where ipset prints "%s" on a new node, nothing false is said',
  async (printed) => {
    const node = createFakeNode();
    const before = node.dump();
    const { status, err } = await callApply(
      garbled(node.host, 'ipset', () => printed, 0),
      'apply',
      first('ipvs'),
    );
    expect(isTrue(status, err, node.dump(), { before, after: '' }), err).toBe(true);
  },
);

test('a sysctl that is no number, and a list of IPVS that is not the kernel’s, are not believed', async () => {
  for (const [path, text] of [
    ['/proc/sys/net/ipv4/ip_forward', ''],
    ['/proc/net/ip_vs', 'IP Virtual'],
    ['/proc/net/ip_vs', 'IP Virtual Server version 1.2.1 (size=4096)\nProt'],
  ] as const) {
    const node = createFakeNode();
    const before = node.dump();
    const host: Host = { ...node.host, readFile: async (each) => (each === path ? text : node.host.readFile(each)) };
    const { status, err } = await callApply(host, 'apply', first('ipvs'));
    expect([status, node.dump()], err).toEqual([3, before]);
    expect(err).toContain(`${path} `);
  }
});

test('doctor names a tool whose output is not whole', async () => {
  const { host } = createFakeNode();
  const { status, out } = await callApply(
    garbled(host, 'iptables-save', () => '*nat\n', 0),
    'doctor',
    first('ipvs'),
  );
  expect([status, out]).toEqual([1, expect.stringContaining('its output is incomplete: the table nat is incomplete')]);
});

// Another program's table has nothing that apply needs, but what is read after the change would be cut there, too.
test.each(modes.filter((mode) => mode !== 'nftables'))(
  'in %s mode, a list that ends before a table of other programs is refused before the first change',
  async (mode) => {
    const node = await startNode(mode);
    await moveInto(node.host, neighbours.docker, neighbours.calico);
    const before = node.dump();
    const cut: Garble = (text) => text.slice(0, text.indexOf('*mangle\n'));
    const { status, err } = await callApply(garbled(node.host, 'iptables-save', cut, 0), 'apply', second(mode));
    expect([status, node.dump()], err).toEqual([3, before]);
    expect(err).toContain('it lacks the table mangle, which the kernel has');
  },
);

test('where the node cannot be read any more, that is said', async () => {
  const node = await startNode('ipvs');
  const later = garbled(node.host, 'ipset', () => '?', 2);
  const { status, err } = await callApply(later, 'apply', second('ipvs'));
  expect(status, err).toBe(4);
  expect(err).toContain('NOT everything could be rolled back, and the node cannot be read.\n');
});
