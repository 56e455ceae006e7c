import { describe, expect, test } from 'vitest';
import type { ToolCommand, Host } from '../../src/apply/node/host.ts';
import { triesAll } from '../support/rounds.ts';
import { failOnce, restoreFaults } from '../support/tool-faults.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, type FakeNode } from './fake-node.ts';

const before = 'fixtures/dual-stack/expected-ipvs';
const after = 'fixtures/loadbalancer-source-ranges/expected-ipvs';

/** A node with a virtual server and a rule of another program. */
async function startEmptyNode(): Promise<FakeNode> {
  const node = createFakeNode();
  const servers = '-A -t 100.64.9.1:80 -s rr\n-a -t 100.64.9.1:80 -r 100.64.9.7:80 -g -w 7\n';
  await node.host.run({ tool: 'ipvsadm', args: ['-R'], stdin: servers });
  const rules = '*filter\n-A INPUT -s 100.64.9.9/32 -j DROP\nCOMMIT\n';
  await node.host.run({ tool: 'iptables-restore', args: ['--noflush'], stdin: rules });
  return node;
}

/** The same with a bundle applied to it. */
async function startNode(): Promise<FakeNode> {
  const node = await startEmptyNode();
  const { status, err } = await callApply(node.host, 'apply', before);
  expect(err).toMatch(/^done: /);
  expect(status).toBe(0);
  node.commands.length = 0;
  return node;
}

/** What the node holds after an apply that nothing disturbed. */
async function wantedDump(): Promise<string> {
  const node = await startNode();
  expect((await callApply(node.host, 'apply', after)).status).toBe(0);
  return node.dump();
}

function isChange({ tool, args }: ToolCommand): boolean {
  return tool.endsWith('-restore')
    ? args[0] !== '--version'
    : args[0] === '-R' || args[0] === '-batch' || args[0] === 'restore';
}

describe('a tool goes wrong', async () => {
  const steps = await countChanges();
  // In `npm test`, each other change, in turn.
  for (const [kind, [how, fault]] of Object.entries(restoreFaults).entries()) {
    for (let at = 0; at < steps; at++) {
      if (!triesAll && (at + kind) % 2 !== 0) continue;
      test(`the node is as before where change ${at + 1} of ${steps} ${how}`, async () => {
        const node = await startNode();
        const there = node.dump();
        const host = failOnce(node.host, isChange, fault, at + 1);
        const { status, err } = await callApply(host, 'apply', after);
        expect(err).toMatch(/help: .+\nThe node is as it was before\.\n$/s);
        expect(status).toBe(3);
        expect(node.dump()).toBe(there);
        expect((await callApply(node.host, 'verify', before)).status).toBe(0);
      });
    }
  }
});

async function countChanges(): Promise<number> {
  const node = await startNode();
  await callApply(node.host, 'apply', after);
  return node.commands.filter(isChange).length;
}

/** What dies with the process: nothing after it happens. */
class Killed extends Error {}

/** A host whose process dies at the nth thing that it changes: before it is done, or just after. */
function dieAt(node: FakeNode, nth: number, when: 'before' | 'after'): Host {
  let seen = 0;
  let dead = false;
  const step = async <T>(work: () => Promise<T>): Promise<T> => {
    if (dead) throw new Killed();
    dead = seen++ === nth;
    if (dead && when === 'before') throw new Killed();
    const result = await work();
    if (dead) throw new Killed();
    return result;
  };
  const alive = async <T>(work: () => Promise<T>): Promise<T> => {
    if (dead) throw new Killed();
    return work();
  };
  const { host } = node;
  return {
    ...host,
    run: (command) => (isChange(command) ? step : alive)(() => host.run(command)),
    writeFile: (path, text) => step(() => host.writeFile(path, text)),
    replaceFile: (path, text) => step(() => host.replaceFile(path, text)),
    renameFile: (from, to) => step(() => host.renameFile(from, to)),
    remove: (path) => step(() => host.remove(path)),
  };
}

/** Runs an apply that dies, and takes the process away. False if it came to its end before it could die. */
async function killApply(node: FakeNode, nth: number, when: 'before' | 'after'): Promise<boolean> {
  const outcome = await callApply(dieAt(node, nth, when), 'apply', after).then(
    ({ status }) => status,
    (error: unknown) => error,
  );
  // Another process comes after it, under another id.
  const stat = node.files.get('/proc/100/stat') ?? '';
  node.files.delete('/proc/100/stat');
  node.files.set('/proc/101/stat', stat.replace(/^100/, '101').replace('4711', '4712'));
  return outcome !== 0;
}

/** Kills an apply at each thing it changes, one after the other (each fifth in `npm test`), and gives each node that this leaves. */
async function* killEverywhere(when: 'before' | 'after'): AsyncGenerator<{
  readonly nth: number;
  readonly node: FakeNode;
  /** The next process on it. */
  readonly host: Host;
  /** What the node held before the apply that was killed. */
  readonly there: string;
}> {
  for (let nth = 0; ; nth += triesAll ? 1 : 5) {
    const node = await startNode();
    const there = node.dump();
    if (!(await killApply(node, nth, when))) return;
    yield { nth, node, host: { ...node.host, pid: 101 }, there };
  }
}

describe.each(['before', 'after'] as const)('kpc-apply is killed just %s anything it changes', (when) => {
  test('the next apply makes the node whole', async () => {
    const wanted = await wantedDump();
    let deaths = 0;
    for await (const { nth, node, host } of killEverywhere(when)) {
      deaths++;
      const { status, err } = await callApply(host, 'apply', after);
      expect(status, `${nth}: ${err}`).toBe(0);
      expect(node.dump(), `${nth}`).toBe(wanted);
      expect((await callApply(host, 'verify', after)).status).toBe(0);
      expect((await callApply(host, 'cleanup')).status).toBe(0);
      expect(node.dump(), 'it knew what was its own').not.toContain('KUBE-');
    }
    expect(deaths).toBeGreaterThan(triesAll ? 10 : 2);
  });

  test('the next rollback makes the node whole', async () => {
    const empty = (await startEmptyNode()).dump();
    let deaths = 0;
    for await (const { nth, node, host, there } of killEverywhere(when)) {
      deaths++;
      const { status, err } = await callApply(host, 'rollback');
      expect(status, `${nth}: ${err}`).toBe(0);
      // Killed before there was a snapshot, it left the apply before it to roll back; killed after the last check,
      // itself.
      const unfinished = /did not finish/.test(err);
      expect(unfinished ? [there] : [there, empty], `${nth}: ${err}`).toContain(node.dump());
    }
    expect(deaths).toBeGreaterThan(triesAll ? 10 : 2);
  });
});

test('what ipvsadm complains of is the reason that is given, although it ends with status 0', async () => {
  const node = await startNode();
  const there = node.dump();
  const host: Host = {
    ...node.host,
    run: async (command) => {
      const result = await node.host.run(command);
      return command.args[0] === '-R' ? { ...result, stderr: 'Memory allocation problem\n' } : result;
    },
  };
  const { status, err } = await callApply(host, 'apply', after);
  expect(status).toBe(3);
  expect(err).toContain('error: "ipvsadm -R" exited with status 0\nMemory allocation problem');
  expect(node.dump()).toBe(there);
});
