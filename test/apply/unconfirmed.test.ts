import { describe, expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import { callApply, type ApplyRun } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';
import { diesDuring, mortalHost } from './mortal-host.ts';

const ipvs = 'fixtures/dual-stack/expected-ipvs';
const other = 'fixtures/loadbalancer-source-ranges/expected-ipvs';
const state = '/var/lib/kpc';
const awaiting = `${state}/awaiting.json`;
const tick = () => new Promise((resolve) => setImmediate(resolve));

/** The node as a process of its own sees it; a pid has ended where its stat file is gone. */
function processOf({ host, files }: FakeNode, pid: number): Host {
  files.set(`/proc/${pid}/stat`, `${pid} (node) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 ${pid} 0`);
  return { ...host, pid };
}

/** An apply whose process is killed as it waits: nothing of it happens any more, and its files stay. */
async function killWaiting(node: FakeNode, timeout = '60s', bundle = ipvs): Promise<string> {
  const mortal = mortalHost(processOf(node, 500));
  const death = diesDuring(mortal, 'apply', bundle, '--confirm-timeout', timeout);
  while (!node.files.has(awaiting)) await tick();
  mortal.kill();
  await death;
  node.files.delete('/proc/500/stat');
  const { id } = JSON.parse(node.files.get(`${state}/unconfirmed.json`) ?? '') as { readonly id: string };
  return id;
}

function standBy(node: FakeNode, id: string, pid = 600): Promise<ApplyRun> {
  return callApply(processOf(node, pid), 'rollback', '--unconfirmed', id);
}

const remains = ({ files }: FakeNode) =>
  ['awaiting', 'confirmed', 'unconfirmed', 'journal'].filter((name) => files.has(`${state}/${name}.json`));

describe('what stands by for an apply that is to be confirmed', () => {
  test('is started before the first change', async () => {
    const node = createFakeNode();
    const id = await killWaiting(node);
    const helper = node.commands.findIndex(({ args }) => args.includes('--unconfirmed'));
    const change = node.commands.findIndex(({ args }) => args.includes('restore') || args.includes('-R'));
    expect(node.commands[helper]).toEqual({
      tool: '/usr/bin/node',
      args: ['/usr/lib/kpc-apply.js', 'rollback', '--unconfirmed', id, '--state-dir', state],
    });
    expect(helper).toBeLessThan(change);
  });

  test('puts everything back when the time is over, and not before', async () => {
    const node = createFakeNode();
    const there = node.dump();
    const id = await killWaiting(node);
    const begun = node.host.uptime();
    const { status, out, err } = await standBy(node, id);
    expect([status, out]).toEqual([0, `standing by for apply ${id}\n`]);
    expect(err).toBe(`done: apply ${id} was not confirmed, so it was rolled back\n`);
    expect(node.dump()).toBe(there);
    expect(node.host.uptime() - begun).toBeGreaterThan(59_000);
    expect(remains(node)).toEqual([]);
  });

  test('does it once, however many stand by and however often they are started', async () => {
    const node = createFakeNode();
    const there = node.dump();
    const id = await killWaiting(node);
    const runs = await Promise.all([standBy(node, id, 600), standBy(node, id, 601)]);
    runs.push(await standBy(node, id, 602));
    expect(runs.map(({ status }) => status)).toEqual([0, 0, 0]);
    expect(runs.filter(({ err }) => err.startsWith('done: '))).toHaveLength(1);
    expect(node.dump()).toBe(there);
  });

  test('leaves it to the process itself where that is alive', async () => {
    const node = createFakeNode();
    const there = node.dump();
    const applying = callApply(processOf(node, 500), 'apply', ipvs, '--confirm-timeout', '60s');
    while (!node.files.has(awaiting)) await tick();
    const { id } = JSON.parse(node.files.get(`${state}/unconfirmed.json`) ?? '') as { readonly id: string };
    const { status, err } = await standBy(node, id);
    expect([status, err]).toEqual([0, `nothing to do: apply ${id} has been confirmed, rolled back or replaced\n`]);
    expect((await applying).status).toBe(3);
    expect([node.dump(), remains(node)]).toEqual([there, []]);
  });

  test('ends the process where that has been stopped and would hold the lock for ever', async () => {
    const node = createFakeNode();
    const there = node.dump();
    const id = await killWaiting(node, '30s');
    // Stopped and not killed: its claims of the lock are still good.
    processOf(node, 500);
    const begun = node.host.uptime();
    expect((await standBy(node, id)).err).toMatch(/^done: apply \S+ was not confirmed/);
    expect(node.files.has('/proc/500/stat')).toBe(false);
    expect(node.host.uptime() - begun).toBeGreaterThan(39_000);
    expect(node.dump()).toBe(there);
  });

  test.each(['apply', 'rollback', 'cleanup'])('does not undo a later %s', async (command) => {
    const node = createFakeNode();
    const id = await killWaiting(node);
    expect((await callApply(node.host, command, ...(command === 'apply' ? [other] : []))).status).toBe(0);
    const later = node.dump();
    expect((await standBy(node, id)).err).toMatch(/^nothing to do/m);
    expect(node.dump()).toBe(later);
  });

  test('does not undo a later apply that is to be confirmed itself', async () => {
    const node = createFakeNode();
    const first = await killWaiting(node, '60s');
    node.files.delete(awaiting);
    const second = await killWaiting(node, '600s', other);
    expect(second).not.toBe(first);
    const later = node.dump();
    expect((await standBy(node, first)).err).toMatch(/^nothing to do/);
    expect(node.dump()).toBe(later);
  });

  test('goes on standing by where a later apply does not even begin', async () => {
    const node = createFakeNode();
    const there = node.dump();
    const id = await killWaiting(node);
    expect((await callApply(node.host, 'apply', 'fixtures/none')).status).toBe(2);
    node.files.delete('/proc/net/ip_vs');
    expect((await callApply({ ...node.host, run: async () => ({ kind: 'missing' }) }, 'apply', other)).status).toBe(3);
    node.files.set('/proc/net/ip_vs', '');
    expect((await standBy(node, id)).err).toMatch(/^done: apply \S+ was not confirmed/);
    expect(node.dump()).toBe(there);
  });

  test.each([
    ['another boot', '/proc/sys/kernel/random/boot_id', 'another\n'],
    ['another network namespace', '/proc/self/ns/net', 'net:[1]'],
  ])('does nothing in %s', async (_, path, text) => {
    const node = createFakeNode();
    const id = await killWaiting(node);
    node.files.set(path, text);
    const there = node.dump();
    expect((await standBy(node, id)).err).toMatch(/^nothing to do/m);
    expect(node.dump()).toBe(there);
  });

  test('keeps what was confirmed just before its process died', async () => {
    const node = createFakeNode();
    const id = await killWaiting(node);
    await node.host.renameFile(awaiting, `${state}/confirmed.json`);
    expect((await standBy(node, id)).err).toBe(`done: apply ${id} was confirmed, so its changes stay\n`);
    expect((await callApply(node.host, 'verify', ipvs)).status).toBe(0);
    expect(remains(node)).toEqual([]);
  });

  test('tries again where not everything can be put back at once', async () => {
    const node = createFakeNode();
    const there = node.dump();
    const id = await killWaiting(node);
    const begun = node.host.uptime();
    const own = processOf(node, 600);
    const failing: Host = {
      ...own,
      run: async (command) =>
        command.args[0] === '-R' && node.host.uptime() < begun + 90_000
          ? { kind: 'ended', status: 1, stdout: '', stderr: 'no' }
          : own.run(command),
    };
    expect((await callApply(failing, 'rollback', '--unconfirmed', id)).status).toBe(0);
    expect(node.dump()).toBe(there);
  });

  test('is needed: nothing is changed where nothing can', async () => {
    const node = createFakeNode();
    const there = node.dump();
    const startApart = () => Promise.reject(new Error('spawn EAGAIN'));
    const { status, err } = await callApply({ ...node.host, startApart }, 'apply', ipvs, '--confirm-timeout', '60s');
    expect([status, node.dump(), remains(node)]).toEqual([3, there, []]);
    expect(err).toMatch(/nothing would roll back .* killed: spawn EAGAIN \[system-error\]\n {2}help: fix the cause/);
  });
});

describe('with systemd', () => {
  const withSystemd = (run: Host['run']): FakeNode => {
    const node = createFakeNode();
    node.files.set('/run/systemd/system', '').set('/proc/1/ns/pid', 'pid:[4026531836]');
    return {
      ...node,
      host: {
        ...node.host,
        run: (command) => {
          if (!command.tool.startsWith('system')) return node.host.run(command);
          node.commands.push(command);
          return run(command);
        },
      },
    };
  };
  const fine = async () => ({ kind: 'ended', status: 0, stdout: '', stderr: '' }) as const;
  const ofSystemd = ({ commands }: FakeNode) => commands.filter(({ tool }) => tool.startsWith('system'));

  test('a timer stands by too, and is stopped when the change stays', async () => {
    const node = withSystemd(fine);
    const id = await killWaiting(node, '60s');
    expect(ofSystemd(node)).toEqual([
      {
        tool: 'systemd-run',
        args: [
          '--quiet',
          '--collect',
          `--unit=kpc-apply-way-back-${id}`,
          '--on-active=65s',
          '--timer-property=AccuracySec=1s',
          '--',
          '/usr/bin/node',
          '/usr/lib/kpc-apply.js',
          'rollback',
          '--unconfirmed',
          id,
          '--state-dir',
          state,
        ],
      },
    ]);
    expect((await callApply(node.host, 'confirm')).status).toBe(0);
    expect(ofSystemd(node).at(-1)).toEqual({ tool: 'systemctl', args: ['stop', `kpc-apply-way-back-${id}.timer`] });
  });

  test('a timer that cannot be had is said to be missing, while the process stands by', async () => {
    const node = withSystemd(async () => ({ kind: 'ended', status: 1, stdout: '', stderr: 'Access denied\n' }));
    const { status, err } = await callApply(node.host, 'apply', ipvs, '--confirm-timeout', '1s');
    expect(status).toBe(3);
    expect(err).toMatch(/warning: no systemd timer would roll back .*: systemd-run ended with 1: Access denied\n/);
  });

  test('a timer is enough where no process can be started', async () => {
    const node = withSystemd(fine);
    const startApart = () => Promise.reject(new Error('spawn EAGAIN'));
    const { err } = await callApply({ ...node.host, startApart }, 'apply', ipvs, '--confirm-timeout', '1s');
    expect(err).toMatch(/warning: only a systemd timer would roll back .*: spawn EAGAIN\n/);
    expect(err).toMatch(/\[not-confirmed\]/);
  });

  test('there is no timer for another network namespace than that of process 1', async () => {
    const node = withSystemd(fine);
    node.files.set('/proc/self/ns/net', 'net:[2]').set('/proc/1/ns/net', 'net:[1]');
    await killWaiting(node);
    expect(ofSystemd(node)).toEqual([]);
  });

  test('a variable in the name of the state folder stays as it is', async () => {
    const node = withSystemd(fine);
    await callApply(node.host, 'apply', ipvs, '--confirm-timeout', '1s', '--state-dir', '/var/$HOME');
    expect(ofSystemd(node)[0]?.args.at(-1)).toBe('/var/$$HOME');
  });
});

describe('confirm', () => {
  test('makes a change stay whose process has died, for a later rollback to undo', async () => {
    const node = createFakeNode();
    const there = node.dump();
    await killWaiting(node);
    expect(await callApply(node.host, 'confirm')).toMatchObject({ status: 0, err: 'confirmed\n' });
    expect(remains(node)).toEqual([]);
    expect((await callApply(node.host, 'verify', ipvs)).status).toBe(0);
    expect((await callApply(node.host, 'rollback')).status).toBe(0);
    expect(node.dump()).toBe(there);
  });

  test('finds nothing to say yes to where the node has rebooted since', async () => {
    const node = createFakeNode();
    await killWaiting(node);
    node.files.set('/proc/sys/kernel/random/boot_id', 'another\n');
    const { status, err } = await callApply(node.host, 'confirm');
    expect(status).toBe(3);
    expect(err).toMatch(/no apply is waiting to be confirmed \[nothing-to-confirm\]/);
  });

  test('says so where the apply has not come to ask', async () => {
    const node = createFakeNode();
    await killWaiting(node);
    node.files.delete(awaiting);
    expect((await callApply(node.host, 'confirm')).err).toMatch(/an apply that was killed before that is rolled back/);
    processOf(node, 500);
    expect((await callApply(node.host, 'confirm')).err).toMatch(/process 500 .* is still changing the node/);
  });
});

test('rollback after a boot forgets the apply that was not confirmed', async () => {
  const node = createFakeNode();
  await killWaiting(node);
  node.files.set('/proc/sys/kernel/random/boot_id', 'another\n');
  const { status, err } = await callApply(node.host, 'rollback');
  expect(status).toBe(2);
  expect(err).toMatch(/\[nothing-to-roll-back\]/);
  expect(remains(node)).toEqual(['journal']);
});

test('a confirmation needs time', async () => {
  const { status, err } = await callApply(createFakeNode().host, 'cleanup', '--confirm-timeout', '0s');
  expect(status).toBe(2);
  expect(err).toContain('long enough');
});
