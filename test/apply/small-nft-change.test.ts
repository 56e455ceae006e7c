import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Command, CommandResult, Host } from '../../src/apply/node/host.ts';
import { ended } from '../support/tool-faults.ts';
import type { Editable } from '../bundle/forge.ts';
import { callApply } from './call-apply.ts';
import { writeEdited, writeWithEndpoints } from './edited-bundle.ts';
import { createNetlinkNode, type NetlinkNode } from './fake-netlink.ts';

// In nftables mode a small change needs no list of the whole table: what is known of it still holds where the kernel has
// counted no transaction but our own, and what is new is read back by itself. Wherever that is unknown, the table is
// listed, and everything is as if none of this were there.

const scratch = mkdtempSync(join(tmpdir(), 'kpc-small-nft-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** The dual-stack example as kpc compiles it when its Services are edited. */
function edited(name: string, edit: (services: Editable) => void): string {
  return writeEdited(join(scratch, name), 'nftables', edit);
}

/** With these endpoints more in the first Service port. */
function moved(...addresses: readonly string[]): string {
  return writeWithEndpoints(join(scratch, addresses.join('_')), 'nftables', addresses);
}

/** With the first endpoint of `moved`, and a Service more. */
function withService(name: string, settings: Editable): string {
  return edited(name, ({ services, servicePorts }) => {
    const [port] = servicePorts as Editable[];
    const namesake = (services as Editable[]).find((each) => each['name'] === port?.['service']);
    port?.['endpoints'].push({ ...port['endpoints'][0], address: first });
    services.push({ ...namesake, name });
    const { nodePort, externalIPs, loadBalancerIPs, sourceRanges, ...rest } = port ?? {};
    const own = { ...rest, service: name, clusterIP: '10.96.88.88', ...settings };
    servicePorts.push({ ...own, endpoints: settings['endpoints'] ?? port?.['endpoints'].slice(0, 2) });
  });
}

const [first, second] = ['10.244.7.1', '10.244.7.2'];
const isListing = ({ tool, args }: Command) => tool === 'nft' && args.includes('list') && !args.includes('tables');
const isChange = ({ tool, args }: Command) => tool === 'nft' && args[0] === '-f';
const isAsking = ({ tool }: Command) => tool === 'perl';
const isRehearsal = ({ tool }: Command) => tool === 'unshare';
const indexFile = '/var/lib/kpc/settled/index.json';
const stampOf = ({ node }: NetlinkNode) => (JSON.parse(node.files.get(indexFile) ?? '{}') as Editable)['nftables'];

async function settled(): Promise<NetlinkNode> {
  const made = createNetlinkNode();
  expect((await callApply(made.host, 'apply', moved(first))).status).toBe(0);
  expect(stampOf(made)).toMatchObject({ network: '4026531840 cookie 1', generation: 3 });
  made.commands.length = 0;
  return made;
}

/** Whether it is as a node that never had anything but this bundle. */
async function expectAsFresh({ node }: NetlinkNode, bundle: string): Promise<void> {
  const fresh = createNetlinkNode();
  await callApply(fresh.host, 'apply', bundle);
  expect(node.dump()).toBe(fresh.node.dump());
  expect((await callApply(node.host, 'verify', bundle)).status).toBe(0);
}

describe('no table is listed', () => {
  test('where an endpoint changes, again and again', async () => {
    const made = await settled();
    for (const bundle of [moved(second), moved(first, second), moved('10.244.7.9'), moved(first)]) {
      const { status, err } = await callApply(made.host, 'apply', bundle);
      expect([status, err]).toEqual([0, expect.stringMatching(/^done: .*1 chain changed/m)]);
      expect(made.commands.filter(isListing)).toEqual([]);
      await expectAsFresh(made, bundle);
    }
  });

  test('where nothing is to be changed', async () => {
    const made = await settled();
    expect((await callApply(made.host, 'apply', moved(first))).err).toBe(
      'nothing to do: the node matches the bundle\n',
    );
    expect(made.commands.filter((command) => isListing(command) || isChange(command))).toEqual([]);
  });

  test('and what was there is put back by rollback', async () => {
    const made = await settled();
    const there = made.node.dump();
    await callApply(made.host, 'apply', moved(second));
    expect((await callApply(made.host, 'rollback')).status).toBe(0);
    expect(made.node.dump()).toBe(there);
  });

  test.each<[string, Editable]>([
    ['zz-plain', {}],
    ['zz-sticky', { affinitySeconds: 600 }],
    ['zz-idle', { endpoints: [] }],
    ['zz-ranges', { loadBalancerIPs: ['192.0.2.77'], sourceRanges: ['203.0.113.0/24', '198.51.100.7/32'] }],
    ['zz-node-port', { nodePort: 31999 }],
  ])('where a Service comes and goes: %s', async (name, settings) => {
    const made = await settled();
    for (const bundle of [withService(name, settings), moved(first)]) {
      const { status, err } = await callApply(made.host, 'apply', bundle);
      expect([status, err]).toEqual([0, expect.stringContaining('done: ')]);
      expect(made.commands.filter(isListing)).toEqual([]);
      await expectAsFresh(made, bundle);
    }
  });
});

describe('the table is listed', () => {
  test('where the time of session affinity changes: a set must not be in use when it is made anew', async () => {
    const made = await settled();
    await callApply(made.host, 'apply', withService('zz-sticky', { affinitySeconds: 600 }));
    made.commands.length = 0;
    const bundle = withService('zz-sticky', { affinitySeconds: 900 });
    expect((await callApply(made.host, 'apply', bundle)).status).toBe(0);
    expect(made.commands.filter(isListing)).not.toEqual([]);
    const change = made.commands.find(isChange)?.stdin ?? '';
    const sets = [...change.matchAll(/^delete set (ip6? kube-proxy affinity-\S+)$/gm)].map(([, set = '']) => set);
    expect(sets).not.toEqual([]);
    for (const set of sets) {
      const [, hash = ''] = /affinity-(\w+)-/.exec(set) ?? [];
      expect(change).toMatch(new RegExp(`^flush chain ip6? kube-proxy endpoint-${hash}-`, 'm'));
    }
    await expectAsFresh(made, bundle);
  });

  test('where another program has changed anything in nftables, and drift is repaired', async () => {
    const made = await settled();
    await made.disturb('add chain ip kube-proxy stray\n');
    expect((await callApply(made.host, 'apply', moved(first))).err).toMatch(/^done: 1 chain removed$/m);
    expect(made.commands.filter(isListing)).not.toEqual([]);
    await expectAsFresh(made, moved(first));
  });

  test('once, where that was no change to kube-proxy’s tables', async () => {
    const made = await settled();
    await made.disturb();
    expect((await callApply(made.host, 'apply', moved(first))).err).toContain('nothing to do');
    expect(made.commands.filter(isListing)).toHaveLength(2);
    made.commands.length = 0;
    expect((await callApply(made.host, 'apply', moved(second))).err).toContain('done: ');
    expect(made.commands.filter(isListing)).toEqual([]);
  });

  test.each<[string, (made: NetlinkNode) => unknown]>([
    ['after a reboot', ({ node }) => node.files.set('/proc/sys/kernel/random/boot_id', 'another\n')],
    ['in a network namespace that has the number of one that ended', (made) => void (made.cookie = 2)],
    ['in another network namespace', ({ node }) => node.files.set('/proc/self/ns/net', 'net:[1]')],
    [
      'where the bundle that was settled is damaged',
      ({ node }) => {
        const file = '/var/lib/kpc/settled/bundle-nftables.nft';
        node.files.set(file, (node.files.get(file) ?? '').replace(/\n\tchain nat-prerouting \{\n[\s\S]*?\n\t\}\n/, ''));
      },
    ],
    ['where the stamp is damaged', ({ node }) => node.files.set(indexFile, node.files.get(indexFile)?.slice(9) ?? '')],
    [
      'where the count of chains is another',
      ({ node }) => node.files.set(indexFile, (node.files.get(indexFile) ?? '').replace(/ (\d+)\\n/, ' 1$1\\n')),
    ],
  ])('%s', async (when, change) => {
    const made = await settled();
    await change(made);
    const { status } = await callApply(
      made.host,
      'apply',
      ...(when === 'after a reboot' ? ['--adopt'] : []),
      moved(second),
    );
    expect(status).toBe(0);
    expect(made.commands.filter(isListing)).not.toEqual([]);
    await expectAsFresh(made, moved(second));
  });

  /** Commands that go wrong, and how. */
  const faults: readonly (readonly [
    string,
    (command: Command) => boolean,
    (result: CommandResult) => CommandResult,
  ])[] = [
    ['perl is missing', isAsking, () => ({ kind: 'missing' })],
    ['perl may not ask', isAsking, () => ended(1, 'refused: -1\n')],
    [
      'perl is killed',
      isAsking,
      () => ({ kind: 'ended', status: undefined, signal: 'SIGALRM', stdout: '', stderr: '' }),
    ],
    ['the kernel says nothing', isAsking, () => ended(0)],
    ['an answer is cut short', isAsking, (result) => replaced(result, (text) => text.slice(0, -3))],
    ['an answer is another', isAsking, (result) => replaced(result, (text) => text.replace('rule ', 'rule x'))],
    ['an answer has a line too much', isAsking, (result) => replaced(result, (text) => text.replace('.\n', '.\n.\n'))],
    ['an answer is hostile', isAsking, () => ended(0, `generation ${'9'.repeat(400)}\n\u0000\n`)],
    ['a namespace is not to be had', isRehearsal, () => ended(1, 'unshare: unshare failed: Operation not permitted\n')],
    ['unshare is missing', isRehearsal, () => ({ kind: 'missing' })],
    [
      'the rehearsal shows another rule',
      isRehearsal,
      (result) => replaced(result, (text) => text.replace('10.244.7.2', '10.244.7.3')),
    ],
    [
      'the rehearsal shows an element that cannot be asked for',
      isRehearsal,
      (result) => replaced(result, (text) => text.replace(/^element [\da-f]+ /m, 'element  ')),
    ],
    ['the rehearsal shows nothing', isRehearsal, () => ended(0)],
  ];

  test.each(faults)('where %s: the change is made all the same', async (_, isIt, spoil) => {
    const made = await settled();
    const host: Host = {
      ...made.host,
      run: async (command) => {
        const result = await made.host.run(command);
        return isIt(command) ? spoil(result) : result;
      },
    };
    const { status, err } = await callApply(host, 'apply', moved(second));
    expect([status, err]).toEqual([0, expect.stringContaining('done: ')]);
    expect(made.commands.filter(isListing)).not.toEqual([]);
    await expectAsFresh(made, moved(second));
  });

  describe.each<[string, (command: Command) => boolean]>([
    ['at once', isChange],
    ['after the rehearsal', isRehearsal],
  ])('where another program changes nftables just after the change, %s', (_, isMoment) => {
    /** Applies; after the first command of that kind, another program is given its turn. */
    async function applyDisturbed(made: NetlinkNode, input?: string): Promise<number> {
      let isDone = false;
      const run = async (command: Command) => {
        const result = await made.host.run(command);
        if (isMoment(command) && !isDone) {
          isDone = true;
          await made.disturb(input);
        }
        return result;
      };
      return (await callApply({ ...made.host, run }, 'apply', moved(second))).status;
    }

    test('in a table of its own: the change stays', async () => {
      const made = await settled();
      expect(await applyDisturbed(made)).toBe(0);
      expect(made.commands.filter(isListing)).not.toEqual([]);
      expect((await callApply(made.node.host, 'verify', moved(second))).status).toBe(0);
    });

    test('in kube-proxy’s table: all is put back', async () => {
      const made = await settled();
      const there = made.node.dump();
      expect(await applyDisturbed(made, 'add chain ip kube-proxy stray\n')).toBe(3);
      expect(made.node.dump()).toBe(there);
    });
  });
});

test('watch lists the table where something has changed in nftables, and not else', async () => {
  const made = await settled();
  const start = made.host.uptime();
  const listings: number[] = [];
  let isDone = false;
  const host: Host = {
    ...made.host,
    sleep: async (milliseconds) => {
      await made.host.sleep(milliseconds);
      const elapsed = made.host.uptime() - start;
      listings.push(...made.commands.splice(0).flatMap((command) => (isListing(command) ? elapsed : [])));
      if (elapsed > 35_000 && !isDone) {
        isDone = true;
        await made.disturb('add chain ip kube-proxy stray\n');
      }
      if (elapsed > 75_000) process.emit('SIGTERM');
    },
  };
  const { err } = await callApply(host, 'watch', moved(first), '--sync-period', '10s');
  expect(err).toMatch(/^done: 1 chain removed$/m);
  expect(listings.length).toBeGreaterThan(0);
  expect(listings.filter((elapsed) => elapsed < 35_000 || elapsed > 55_000)).toEqual([]);
  await expectAsFresh(made, moved(first));
});

describe('nft lies, and the node is as before', () => {
  const lies: Readonly<Record<string, (command: Command, host: Host) => Promise<CommandResult>>> = {
    'it does nothing': async () => ended(0),
    'it does something else in one transaction': (command, host) =>
      host.run({ ...command, stdin: 'add chain ip kube-proxy stray\n' }),
    'it does something else besides': (command, host) =>
      host.run({ ...command, stdin: `${command.stdin}add chain ip kube-proxy stray\n` }),
    'it leaves out a rule': (command, host) =>
      host.run({ ...command, stdin: command.stdin?.replace(/^add rule .*\n/m, '') }),
    'it leaves out an element': (command, host) =>
      host.run({ ...command, stdin: command.stdin?.replace(/^add element .*\n/m, '') }),
    'it does not delete an element': (command, host) =>
      host.run({ ...command, stdin: command.stdin?.replace(/^delete element .*\n/m, '') }),
    'it writes another address': (command, host) =>
      host.run({ ...command, stdin: command.stdin?.replaceAll('10.244.7.2', '10.244.7.3') }),
  };

  test.each(Object.entries(lies))('%s', async (_, lie) => {
    const made = await settled();
    const there = made.node.dump();
    let seen = 0;
    const host: Host = {
      ...made.host,
      run: (command) => (isChange(command) && seen++ === 0 ? lie(command, made.host) : made.host.run(command)),
    };
    const { status, err } = await callApply(host, 'apply', moved(second));
    expect([status, err]).toEqual([3, expect.stringContaining('The node is as it was before.')]);
    expect(made.node.dump()).toBe(there);
  });
});

function replaced(result: CommandResult, edit: (text: string) => string): CommandResult {
  return result.kind === 'ended' ? { ...result, stdout: edit(result.stdout) } : result;
}
