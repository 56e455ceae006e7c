import { describe, expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import { createFakeNode, examineAs, rootsLevel, type FakeNode } from './fake-node.ts';
import { callApply, type ApplyRun } from './call-apply.ts';
import { diesDuring, heirOf, mortalHost } from './mortal-host.ts';

const b1 = 'fixtures/dual-stack/expected-ipvs';
const b2 = 'fixtures/loadbalancer-source-ranges/expected-ipvs';
const b3 = 'fixtures/nodeport/expected-ipvs';
const state = '/var/lib/kpc';
const run = (node: FakeNode, ...args: readonly string[]): Promise<ApplyRun> => callApply(node.host, ...args);

/** A node on which both bundles have been applied, and what it held after each. */
async function appliedTwice(): Promise<{ readonly node: FakeNode; readonly first: string; readonly second: string }> {
  const node = createFakeNode();
  expect((await run(node, 'apply', b1)).status).toBe(0);
  const first = node.dump();
  expect((await run(node, 'apply', b2)).status).toBe(0);
  return { node, first, second: node.dump() };
}

/** One round of watch, and what others did before it. */
async function watchOnce(node: FakeNode, bundle: string): Promise<void> {
  let slept = 0;
  const host: Host = {
    ...node.host,
    sleep: async (milliseconds) => {
      await node.host.sleep(milliseconds);
      if (++slept === 2) process.emit('SIGTERM');
    },
  };
  expect((await callApply(host, 'watch', bundle)).status).toBe(0);
}

const states = async (node: FakeNode): Promise<readonly number[]> => {
  const { out } = await run(node, 'rollback', '--list');
  return [...out.matchAll(/^ {2}(\d+) /gm)].map(([, id]) => Number(id));
};

describe('a rollback has nothing to undo after an apply that', () => {
  const cases: readonly (readonly [string, (node: FakeNode) => Promise<ApplyRun>, number, RegExp])[] = [
    ['changed nothing', (node) => run(node, 'apply', b2), 0, /"apply \S+" at \S+Z, changed nothing: there is/],
    [
      'was not confirmed',
      (node) => run(node, 'apply', b3, '--confirm-timeout', '1s'),
      3,
      /rolled everything back \(no confirmation within 1 s\)/,
    ],
    [
      'had a bad bundle',
      (node) => run(node, 'apply', 'fixtures/none'),
      2,
      /was refused and changed nothing \(.* not a bundle/,
    ],
    [
      'failed',
      (node) => {
        let isFirst = true;
        const fail: Host['run'] = async (command) => {
          if (!isFirst || command.args[0] !== '-R') return node.host.run(command);
          isFirst = false;
          return { kind: 'ended', status: 1, stdout: '', stderr: 'no' };
        };
        return callApply({ ...node.host, run: fail }, 'apply', b3);
      },
      3,
      /rolled everything back \("ipvsadm -R" exited with status 1\)/,
    ],
    [
      'was refused',
      async (node) => {
        await node.host.run({ tool: 'ipvsadm', args: ['-R'], stdin: '-A -t 10.96.0.80:80 -s wlc\n' });
        return run(node, 'apply', 'fixtures/quickstart/expected-ipvs');
      },
      3,
      /was refused and changed nothing \(these exist already/,
    ],
  ];
  test.each(cases)('%s', async (_, spoil, status, why) => {
    const { node, first } = await appliedTwice();
    expect((await spoil(node)).status).toBe(status);
    const there = node.dump();
    const refused = await run(node, 'rollback');
    expect([refused.status, node.dump()]).toEqual([2, there]);
    expect(refused.err).toMatch(why);
    expect(refused.err).toMatch(
      /\[nothing-to-undo\]\n {2}help: "kpc-apply rollback --to ID" goes to one of these: state 2 \(bundle \S+dual-stack/,
    );
    expect((await run(node, 'rollback')).status).toBe(2);
    expect((await run(node, 'rollback', '--dry-run')).status).toBe(2);
    expect((await run(node, 'rollback', '--list')).out).toMatch(
      /"kpc-apply rollback" has nothing to undo: the last command/,
    );
    expect((await run(node, 'rollback', '--to', '2')).status).toBe(0);
    if (there === first) return;
    expect((await run(node, 'verify', b1)).status).toBe(0);
    // The rollback is the last command now.
    expect((await run(node, 'rollback')).status).toBe(0);
    expect((await run(node, 'verify', b2)).status).toBe(0);
  });

  test('had a bundle that others can write', async () => {
    const { node } = await appliedTwice();
    const examine = examineAs((path) => (path.startsWith(state) ? [] : [{ ...rootsLevel(path), owner: 1000 }]));
    expect((await callApply({ ...node.host, examine }, 'apply', b3, '--dry-run')).status).toBe(2);
    expect((await run(node, 'rollback', '--dry-run')).status).toBe(0);
    expect((await callApply({ ...node.host, examine }, 'apply', b3)).status).toBe(2);
    expect((await run(node, 'rollback')).err).toMatch(/was refused and changed nothing \(other users can change/);
  });

  test('was the first, on a node with no other state', async () => {
    const node = createFakeNode();
    await run(node, 'apply', b1, '--confirm-timeout', '1s');
    const { status, err } = await run(node, 'rollback');
    expect(status).toBe(2);
    expect(err).toMatch(/help: no earlier state is kept/);
  });
});

describe('a rollback', () => {
  test('says where it goes, and that a second one undoes it', async () => {
    const { node, first, second } = await appliedTwice();
    const { status, err } = await run(node, 'rollback');
    expect([status, node.dump()]).toEqual([0, first]);
    expect(err).toMatch(
      /^done: back to state 2 \(bundle \S+dual-stack\/expected-ipvs \([\da-f]{12}\), applied 2023-11-14T\S+Z\): \d.*\n"kpc-apply rollback" again undoes this\n$/,
    );
    expect((await run(node, 'rollback')).err).toMatch(/^done: back to state 3 \(bundle \S+source-ranges/);
    expect(node.dump()).toBe(second);
    for (const id of [4, 5, 6, 7]) {
      expect((await run(node, 'rollback')).err).toContain(`back to state ${id} `);
      expect(node.dump()).toBe(id % 2 === 0 ? first : second);
    }
    expect(await states(node)).toEqual([8, 7, 6, 5, 4]);
  });

  test('undoes a cleanup', async () => {
    const { node, second } = await appliedTwice();
    expect((await run(node, 'cleanup')).status).toBe(0);
    expect((await run(node, 'rollback')).err).toMatch(/^done: back to state 3 /);
    expect(node.dump()).toBe(second);
    expect((await run(node, 'rollback', '--list')).out).toMatch(/ {2}4 {2}nothing of kpc-apply, after cleanup 2023-/);
  });

  test('that fails can be tried again', async () => {
    const { node, first, second } = await appliedTwice();
    let isFirst = true;
    const fail: Host['run'] = async (command) => {
      if (!isFirst || command.args[0] !== '-R') return node.host.run(command);
      isFirst = false;
      return { kind: 'ended', status: 1, stdout: '', stderr: 'no' };
    };
    const failed = await callApply({ ...node.host, run: fail }, 'rollback');
    expect([failed.status, node.dump()]).toEqual([3, second]);
    expect((await run(node, 'rollback')).status).toBe(0);
    expect(node.dump()).toBe(first);
  });

  test('of an apply that did not end leaves nothing for a second one to undo', async () => {
    const { node, second } = await appliedTwice();
    let steps = 0;
    const dying = mortalHost(node.host, ({ stdin }) => stdin !== undefined && ++steps > 1);
    expect(await diesDuring(dying, 'apply', b3)).toBe(true);
    const host = heirOf(node);
    expect((await callApply(host, 'rollback', '--list')).out).toMatch(/did not finish/);
    expect((await callApply(host, 'rollback', '--dry-run')).out).toMatch(
      /^back to the state before the apply that did not/,
    );
    expect((await callApply(host, 'rollback')).status).toBe(0);
    expect(node.dump()).toBe(second);
    const again = await callApply(host, 'rollback');
    expect([again.status, node.dump()]).toEqual([2, second]);
    expect(again.err).toMatch(/rolled everything back \(an apply did not finish\)/);
  });

  test('goes to any state that is kept, over several changes, sysctls and all', async () => {
    const node = createFakeNode();
    const dumps = [node.dump()];
    for (const bundle of ['fixtures/dual-stack/expected-nftables', b2, 'fixtures/nodeport/expected-iptables']) {
      node.files.set('/proc/modules', `${node.files.get('/proc/modules') ?? ''}nf_tables 1 0 - Live\n`);
      expect((await run(node, 'apply', bundle)).status).toBe(0);
      dumps.push(node.dump());
    }
    for (const id of [1, 3, 2, 4, 6]) {
      const { status, err } = await run(node, 'rollback', '--to', `${id}`);
      expect([status, err.split('\n')[0]]).toEqual([0, expect.stringContaining(`back to state ${id} (`)]);
      // The second rollback left state 5, to which the first had brought the node, and so on.
      expect(node.dump()).toBe(dumps[(id === 6 ? 3 : id) - 1]);
      expect(await run(node, 'rollback', '--to', `${id}`)).toMatchObject({
        status: 0,
        err: expect.stringMatching(/^nothing to do: the node is as in state/),
      });
    }
  });

  test('--dry-run shows the plan and changes nothing', async () => {
    const { node, second } = await appliedTwice();
    const files = new Map(node.files);
    const { status, out } = await run(node, 'rollback', '--dry-run');
    expect([status, node.dump(), new Map(node.files)]).toEqual([0, second, files]);
    expect(out).toMatch(/^back to state 2 \(bundle \S+dual-stack[^\n]*:\n/);
    expect(out).toMatch(/\n {2}[+~-] virtual server /);
  });

  test.each([['9'], ['0'], ['99999999']])('--to %s, which is not kept, names the states that are', async (id) => {
    const { node, second } = await appliedTwice();
    const { status, err } = await run(node, 'rollback', '--to', id);
    expect([status, node.dump()]).toEqual([2, second]);
    expect(err).toMatch(
      /there is no state \d+ to go back to \[bad-usage\]\n.*state 2 \(.*; state 1 \(what kpc-apply found\)/,
    );
  });

  test.each([['../../etc/passwd'], ['-1'], ['x'], ['1.5'], ['']])('--to %j is no state', async (id) => {
    expect((await run(createFakeNode(), 'rollback', '--to', id)).status).toBe(2);
  });
});

describe('a repair', () => {
  async function drifted(): Promise<{ readonly node: FakeNode; readonly first: string; readonly second: string }> {
    const applied = await appliedTwice();
    const server = /^-A (-t \S+)/m.exec(applied.second)?.[1] ?? '';
    await applied.node.host.run({ tool: 'ipvsadm', args: ['-R'], stdin: `-D ${server}\n` });
    expect(applied.node.dump()).not.toBe(applied.second);
    return applied;
  }
  test('by watch is no state: a rollback goes to the bundle before', async () => {
    const { node, first, second } = await drifted();
    await watchOnce(node, b2);
    expect(node.dump()).toBe(second);
    expect(await states(node)).toEqual([2, 1]);
    expect((await run(node, 'rollback')).err).toMatch(/^done: back to state 2 /);
    expect(node.dump()).toBe(first);
  });

  test('a new bundle by watch is a state', async () => {
    const { node, second } = await appliedTwice();
    await watchOnce(node, b3);
    expect(await states(node)).toEqual([3, 2, 1]);
    expect((await run(node, 'rollback')).status).toBe(0);
    expect(node.dump()).toBe(second);
  });

  test('after another bundle that needed no change, too', async () => {
    const { node, first } = await drifted();
    const named = JSON.parse(node.files.get(`${state}/record.json`) ?? '') as { state: { bundle: { digest: string } } };
    named.state.bundle.digest = 'another';
    node.files.set(`${state}/record.json`, JSON.stringify(named));
    await run(node, 'apply', b2);
    await run(node, 'apply', b2);
    expect((await run(node, 'rollback')).status).toBe(2);
    expect(node.dump()).not.toBe(first);
  });
});

describe('a new bundle that watch cannot apply', () => {
  test('leaves a rollback nothing to undo, until it can', async () => {
    const { node, second } = await appliedTwice();
    let fails = true;
    const host: Host = {
      ...node.host,
      run: async (command) => {
        if (!fails || command.args[0] !== '-R') return node.host.run(command);
        fails = false;
        return { kind: 'ended', status: 1, stdout: '', stderr: 'no' };
      },
    };
    await watchOnce({ ...node, host }, b3);
    expect(node.dump()).toBe(second);
    const { status, err } = await run(node, 'rollback');
    expect(status).toBe(2);
    expect(err).toMatch(/the last command, "watch \S+nodeport\S+" at \S+, rolled everything back/);
    await watchOnce(node, b3);
    expect((await run(node, 'rollback')).status).toBe(0);
    expect(node.dump()).toBe(second);
  });

  test('is forgotten once watch keeps the bundle before it again', async () => {
    const { node, first } = await appliedTwice();
    await run(node, 'apply', b2);
    await watchOnce(node, b2);
    expect((await run(node, 'rollback')).status).toBe(2);
    node.files.delete(`${state}/last-command.json`);
    await watchOnce(node, b2);
    expect((await run(node, 'rollback')).status).toBe(0);
    expect(node.dump()).toBe(first);
  });
});

describe('what is kept', () => {
  const bundles = [b1, b2, b3];
  async function applyTimes(times: number): Promise<FakeNode> {
    const node = createFakeNode();
    for (let i = 0; i < times; i++) {
      expect((await run(node, 'apply', bundles[i % bundles.length] ?? '')).status).toBe(0);
    }
    return node;
  }

  test('is the last five states', async () => {
    const node = await applyTimes(9);
    expect(await states(node)).toEqual([9, 8, 7, 6, 5]);
    expect((await run(node, 'rollback', '--to', '5')).status).toBe(0);
    expect((await run(node, 'verify', bundles[0] ?? '')).status).toBe(0);
  });

  test('gives way to a journal for which there is no space', async () => {
    const node = await applyTimes(4);
    const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
    const host: Host = {
      ...node.host,
      replaceFile: async (path, text) => {
        const kept = [...node.files.keys()].filter((name) => name.startsWith(`${state}/state-`));
        if (path.endsWith('/journal.json') && kept.length > 1) throw full;
        return node.host.replaceFile(path, text);
      },
    };
    expect((await callApply(host, 'apply', bundles[1] ?? '')).status).toBe(0);
    expect((await run(node, 'rollback')).status).toBe(0);
    expect((await run(node, 'verify', bundles[0] ?? '')).status).toBe(0);
  });

  test('ends with a boot', async () => {
    const { node } = await appliedTwice();
    node.files.set('/proc/sys/kernel/random/boot_id', 'another\n');
    expect(await states(node)).toEqual([]);
    expect((await run(node, 'rollback')).err).toMatch(/\[nothing-to-roll-back\]/);
  });
});

describe('a forged state', () => {
  const forge = async (change: (snapshot: Record<string, Record<string, unknown>>) => void): Promise<FakeNode> => {
    const { node } = await appliedTwice();
    const path = `${state}/state-2.json`;
    const snapshot = JSON.parse(node.files.get(path) ?? '') as Record<string, Record<string, unknown>>;
    change(snapshot);
    node.files.set(path, JSON.stringify(snapshot));
    return node;
  };

  test.each<[string, (snapshot: Record<string, Record<string, unknown>>) => void, RegExp]>([
    [
      'that would write into any file',
      ({ reading }) => Object.assign(reading?.['settings'] ?? {}, { '/etc/passwd': 'root::0:0::/:/bin/sh' }),
      /must be an object with paths of network sysctls/,
    ],
    [
      'that leaves the folder of sysctls',
      ({ reading }) => Object.assign(reading?.['settings'] ?? {}, { '/proc/sys/net/../kernel/core_pattern': '|/x' }),
      /must be an object with paths of network sysctls/,
    ],
    [
      'that is another',
      (snapshot) => Object.assign(snapshot['state'] ?? {}, { id: 7 }),
      /it holds a state with another id/,
    ],
    [
      'with an id that is none',
      (snapshot) => Object.assign(snapshot['state'] ?? {}, { id: '../x' }),
      /state\.id must be/,
    ],
  ])('%s is refused', async (_, change, why) => {
    const node = await forge(change);
    const there = node.dump();
    for (const args of [[], ['--to', '2'], ['--to', '1'], ['--dry-run']]) {
      const { status, err } = await run(node, 'rollback', ...args);
      expect([status, node.dump()]).toEqual([3, there]);
      expect(err).toMatch(why);
      expect(err).toMatch(/\[bad-state-folder\]\n {2}help: remove (?:it|the file)/);
    }
    expect((await run(node, 'rollback', '--list')).out).toMatch(/ {2}! \/var\/lib\/kpc\/state-2\.json is damaged/);
  });

  test.each([[{ owner: 1000 }], [{ mode: 0o100666 }]])('that others can write is refused: %j', async (exposed) => {
    const { node } = await appliedTwice();
    const host: Host = {
      ...node.host,
      examine: examineAs((path) => [{ ...rootsLevel(path), ...(path.endsWith('state-2.json') ? exposed : {}) }]),
    };
    expect((await callApply(host, 'rollback')).err).toMatch(/\[bad-state-folder\]/);
  });

  test('shows nothing that a terminal would act on', async () => {
    const node = await forge((snapshot) => {
      const mark = snapshot['state'] as { bundle: { folder: string }; since: number };
      mark.bundle.folder = '\u001b[2J\n::error::x';
      mark.since = 1e300;
    });
    for (const args of [['--list'], ['--dry-run'], []]) {
      const { out, err } = await run(node, 'rollback', ...args);
      expect(`${out}${err}`).toMatch(/state 2|goes to one of these/);
      expect(`${out}${err}`).not.toMatch(/^::/m);
      expect(`${out}${err}`).not.toContain('\u001b');
    }
  });
});

test('the plan of a rollback names sysctls', async () => {
  const node = createFakeNode();
  await callApply(node.host, 'apply', 'fixtures/quickstart/expected-iptables');
  node.files.set('/proc/sys/net/ipv4/conf/all/route_localnet', '1\n');
  const { out } = await callApply(node.host, 'rollback', '--dry-run');
  expect(out).toContain('net.ipv4.conf.all.route_localnet');
  expect(out).not.toContain('/proc/sys');
});
