import { describe, expect, test } from 'vitest';
import { Failure } from '../../src/apply/state/failure.ts';
import { formatCommand, type ToolCommand, type Host } from '../../src/apply/node/host.ts';
import { some } from '../support/rounds.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';
import { diesDuring, mortalHost } from './mortal-host.ts';

const bundle = 'fixtures/dual-stack/expected-nftables';
const ipvs = 'fixtures/dual-stack/expected-ipvs';
const state = '/var/lib/kpc';
const usualMilliseconds = 15 * 60_000;

function nodeWithNftables(): FakeNode {
  const node = createFakeNode();
  node.files.set('/proc/modules', `${node.files.get('/proc/modules') ?? ''}nf_tables 1 0 - Live\n`);
  return node;
}

/** A process of its own, which has ended where its stat file is gone. */
function processOf({ host, files }: FakeNode, pid: number): Host {
  files.set(`/proc/${pid}/stat`, `${pid} (node) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 ${pid} 0`);
  return { ...host, pid, toolMark: `KPC_APPLY_RUN=00000000-0000-4000-8000-000000000${pid}` };
}

/** A host on which a tool hangs wherever `hangs` says so, and is ended as the real host ends it. */
function hanging(host: Host, hangs: (command: ToolCommand) => boolean): Host {
  return {
    ...host,
    run: async (command, patience) => {
      if (!hangs(command)) return host.run(command, patience);
      const { limit = usualMilliseconds, onWaiting } = patience ?? {};
      await host.sleep(Math.min(10_000, limit));
      if (limit > 10_000) onWaiting?.(10_000, limit);
      await host.sleep(Math.max(0, limit - 10_000));
      throw new Failure('tool-failed', {
        problem: 'late',
        command: formatCommand(command),
        tool: command.tool,
        seconds: limit / 1000,
      });
    },
  };
}

const isChange = ({ tool, args }: ToolCommand) => tool === 'nft' && args[0] === '-f';

describe('with --confirm-timeout, a tool that hangs', () => {
  test.each([1, 2])('in transaction %d is ended soon, and everything is put back', async (nth) => {
    const node = nodeWithNftables();
    const there = node.dump();
    const begun = node.host.uptime();
    let seen = 0;
    const host = hanging(node.host, (command) => isChange(command) && ++seen === nth);
    const { status, err } = await callApply(host, 'apply', bundle, '--confirm-timeout', '10s');
    expect([status, node.dump()]).toEqual([3, there]);
    expect(node.host.uptime() - begun).toBeLessThan(30_000);
    expect(err).toMatch(
      /^kpc-apply: waiting for "nft -f -" since 2023-11-14T22:13:20Z; kpc-apply stops it after 20 s\n/m,
    );
    expect(err).toMatch(/"nft -f -" has not ended within 20 s \[tool-failed\]/);
  });

  test.each<[string, (command: ToolCommand) => boolean]>([
    ['each change', isChange],
    ['each reading', ({ args }) => args.includes('list')],
  ])('at %s, also on the way back, keeps it up for minutes at most', async (_, hangs) => {
    const node = nodeWithNftables();
    await callApply(node.host, 'apply', bundle);
    const begun = node.host.uptime();
    let changes = 0;
    const host = hanging(node.host, (command) => {
      if (isChange(command)) changes++;
      return changes > 1 && hangs(command);
    });
    const other = 'fixtures/loadbalancer-source-ranges/expected-nftables';
    const { status } = await callApply(host, 'apply', other, '--confirm-timeout', '10s');
    expect(status).toBe(4);
    expect(node.host.uptime() - begun).toBeLessThan(5 * 60_000);
    expect((await callApply(node.host, 'rollback')).status).toBe(0);
    expect((await callApply(node.host, 'verify', bundle)).status).toBe(0);
  });

  test.each(
    some([
      [200_000, 60],
      [2_000_000, 180],
    ]),
  )('of a node with %d lines has %d s', async (lines, seconds) => {
    const node = nodeWithNftables();
    const padding = '#\n'.repeat(lines);
    const large: Host = {
      ...node.host,
      run: async (command) => {
        const result = await node.host.run(command);
        const isList = command.tool === 'ip6tables-save';
        return isList && result.kind === 'ended' ? { ...result, stdout: `${padding}${result.stdout}` } : result;
      },
    };
    const { err } = await callApply(hanging(large, isChange), 'apply', bundle, '--confirm-timeout', '10s');
    expect(err).toContain(`"nft -f -" has not ended within ${seconds} s`);
  });

  test('is waited for as long as ever without it, but on the way back', async () => {
    const node = nodeWithNftables();
    const there = node.dump();
    const begun = node.host.uptime();
    let seen = 0;
    const host = hanging(node.host, (command) => isChange(command) && [2, 3].includes(++seen));
    const { err } = await callApply(host, 'apply', bundle);
    expect(err).toMatch(/waiting for "nft -f -" since \S+Z; kpc-apply stops it after 900 s\n/);
    expect(node.dump()).toBe(there);
    expect(node.host.uptime() - begun).toBeLessThan(usualMilliseconds + 60_000);
  });

  test.each(['systemd-run', 'systemctl'])('as %s does not hold it up', async (tool) => {
    const node = nodeWithNftables();
    node.files.set('/run/systemd/system', '');
    const begun = node.host.uptime();
    const host = hanging(node.host, (command) => command.tool === tool);
    expect((await callApply(host, 'apply', bundle, '--confirm-timeout', '1s')).status).toBe(3);
    expect(node.host.uptime() - begun).toBeLessThan(60_000);
  });
});

describe('what stands by', () => {
  /** An apply that has stopped for ever in the middle of its changes: its process is there, and so is what it runs. */
  async function stopMidway(node: FakeNode): Promise<string> {
    const mortal = mortalHost(processOf(node, 500), (command) => command.tool === 'nft' && isSecond(command));
    let seen = 0;
    function isSecond(command: ToolCommand): boolean {
      return isChange(command) && ++seen === 2;
    }
    expect(await diesDuring(mortal, 'apply', bundle, '--confirm-timeout', '60s')).toBe(true);
    const { toolMark } = mortal.host;
    node.files.set('/proc/501/stat', '501 (nft) S 500 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 501 0');
    node.files.set('/proc/501/environ', `LC_ALL=C\0${toolMark}\0`);
    node.files.set('/proc/502/environ', `LC_ALL=C\0${toolMark}0\0`);
    const { id } = JSON.parse(node.files.get(`${state}/unconfirmed.json`) ?? '') as { readonly id: string };
    return id;
  }

  test('ends a process that hangs before it asks, and its tools, and puts everything back', async () => {
    const node = nodeWithNftables();
    const there = node.dump();
    const id = await stopMidway(node);
    const begun = node.host.uptime();
    const waiting = await callApply(node.host, 'confirm');
    expect(waiting.err).toMatch(/process 500 .* is still changing the node/);
    const ended: number[] = [];
    const own = processOf(node, 600);
    const kill: Host['kill'] = async (pid) => {
      ended.push(pid);
      for (const name of ['stat', 'environ']) node.files.delete(`/proc/${pid}/${name}`);
    };
    const { status, err } = await callApply({ ...own, kill }, 'rollback', '--unconfirmed', id);
    expect([status, err]).toEqual([0, `done: apply ${id} was not confirmed, so it was rolled back\n`]);
    expect(node.dump()).toBe(there);
    expect(ended).toEqual([500, 501]);
    expect(node.host.uptime() - begun).toBeLessThan(90_000);
    expect(node.host.uptime() - begun).toBeGreaterThan(50_000);
    expect((await callApply(node.host, 'rollback')).status).toBe(2);
  });

  test('leaves one alone that works on', async () => {
    const node = nodeWithNftables();
    const id = await stopMidway(node);
    const own = processOf(node, 600);
    let polls = 0;
    const working: Host = {
      ...own,
      sleep: async (milliseconds) => {
        await own.sleep(milliseconds);
        const doing = { id, until: node.host.uptime() + 1000 };
        if (++polls < 1000) node.files.set(`${state}/doing.json`, JSON.stringify(doing));
      },
    };
    await callApply(working, 'rollback', '--unconfirmed', id);
    expect(polls).toBeGreaterThan(1000);
  });

  test.each(['apply', 'rollback', 'cleanup'])('%s ends the tools of an apply that was killed', async (command) => {
    const node = nodeWithNftables();
    await stopMidway(node);
    node.files.delete('/proc/500/stat');
    const ended: number[] = [];
    const kill: Host['kill'] = async (pid) => {
      ended.push(pid);
      node.files.delete(`/proc/${pid}/environ`);
    };
    const args = command === 'apply' ? [ipvs] : [];
    expect((await callApply({ ...processOf(node, 600), kill }, command, ...args)).status).toBe(0);
    expect(ended).toEqual([501]);
  });

  test('ends nothing for a mark that is not one of kpc-apply', async () => {
    const node = nodeWithNftables();
    await stopMidway(node);
    node.files.delete('/proc/500/stat');
    const journal = JSON.parse(node.files.get(`${state}/journal.json`) ?? '') as object;
    node.files.set(`${state}/journal.json`, JSON.stringify({ ...journal, toolMark: 'LC_ALL=C' }));
    const { status, err } = await callApply(processOf(node, 600), 'rollback');
    expect([status, node.files.has('/proc/501/stat')]).toEqual([3, true]);
    expect(err).toMatch(/journal\.json is damaged: toolMark must be a mark of kpc-apply/);
  });
});
