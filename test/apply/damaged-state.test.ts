import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import { realHost } from '../../src/apply/node/real-host.ts';
import { callApply, type ApplyRun } from './call-apply.ts';
import { triesAll } from '../support/rounds.ts';
import { createFakeNode } from './fake-node.ts';
import { diesDuring, mortalHost } from './mortal-host.ts';

const first = 'fixtures/nodeport/expected-ipvs';
const second = 'fixtures/quickstart/expected-ipvs';
const scratch = mkdtempSync(join(tmpdir(), 'kpc-damaged-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

interface Damaged {
  readonly state: string;
  readonly run: (...args: readonly string[]) => Promise<ApplyRun>;
}

/** A node in memory whose state folder is on the disk, with a first bundle, and with half of a second where asked for. */
async function prepareNode(unfinished: boolean): Promise<Damaged> {
  const state = mkdtempSync(join(scratch, 'state-'));
  const { host } = createFakeNode();
  const pick = (path: string): Host => (path.startsWith(state) ? realHost : host);
  const mixed: Host = {
    ...host,
    readFile: (path) => pick(path).readFile(path),
    replaceFile: (path, text) => pick(path).replaceFile(path, text),
    renameFile: (from, to) => pick(from).renameFile(from, to),
    remove: (path) => pick(path).remove(path),
    list: (path) => pick(path).list(path),
  };
  const run = (...args: readonly string[]) => callApply(mixed, ...args, '--state-dir', state);
  await run('apply', first);
  if (unfinished) {
    // Its process is gone after the second step, and nothing has been put back.
    let steps = 0;
    const dying = mortalHost(mixed, ({ stdin }) => stdin !== undefined && ++steps > 2);
    if (!(await diesDuring(dying, 'apply', second, '--state-dir', state))) throw new Error('it came to its end');
    rmSync(join(state, 'lock'), { recursive: true });
  }
  return { state, run };
}

/** Does what the advice says, word by word: removes the file, and adds the flag that it names. */
async function follow(node: Damaged, args: readonly string[], path: string): Promise<ApplyRun> {
  const run = await node.run(...args);
  if (run.status === 0) return run;
  const advice = /help: (.*)\n/.exec(run.err)?.[1] ?? '';
  expect(run.err).toContain(path);
  expect(advice).toMatch(/^remove /);
  rmSync(path, { recursive: true });
  return node.run(...args, ...(advice.includes('with --adopt') ? ['--adopt'] : []));
}

const damages: readonly [string, (path: string) => void][] = [
  ['is empty', (path) => writeFileSync(path, '')],
  ['is cut short', (path) => writeFileSync(path, '{"id":')],
  ['is something else', (path) => writeFileSync(path, '{"bootId":1}')],
  ['is a folder', (path) => mkdirSync(join(path, 'x'), { recursive: true })],
];
const files = [
  'record.json',
  'journal.json',
  'state-1.json',
  'last-command.json',
  'doing.json',
  'lock',
  'lock/1-1',
  'awaiting.json',
  'confirmed.json',
  'unconfirmed.json',
  'last-good-bundle.json',
];

/** Each damage of each file; in `npm test` one of each file, in turn. */
const damaged = files.flatMap((file, i) =>
  damages
    .filter((_, j) => triesAll || (i + j) % damages.length === 0)
    .map(([what, damage]) => [file, what, damage] as const),
);

test.each(damaged)('where %s %s, the advice leads to a working node', async (file, _, damage) => {
  for (const unfinished of /^(record|journal)/.test(file) ? [false, true] : [false]) {
    const node = await prepareNode(unfinished);
    const path = join(node.state, file);
    rmSync(path, { recursive: true, force: true });
    if (file === 'lock/1-1') mkdirSync(join(node.state, 'lock'), { recursive: true });
    damage(path);
    const applied = await follow(node, ['apply', second], path);
    expect(applied.err).toMatch(/^(done|nothing to do): /);
    expect(applied.status).toBe(0);
    expect((await node.run('verify', second)).status).toBe(0);
    expect(existsSync(join(node.state, 'journal.json'))).toBe(false);
    expect((await node.run('cleanup')).status).toBe(0);
    expect((await node.run('rollback')).status).toBe(0);
  }
});

const foreignSetting = ['names a file that is no sysctl of the network', nameForeignSetting] as const;

function nameForeignSetting(path: string): void {
  const snapshot = JSON.parse(readFileSync(path, 'utf8')) as { reading: { settings: Record<string, string> } };
  snapshot.reading.settings['/etc/passwd'] = 'x';
  writeFileSync(path, JSON.stringify(snapshot));
}

test.each([...damages, foreignSetting])(
  'where state-1.json %s, rollback says what to do instead',
  async (_, damage) => {
    const node = await prepareNode(false);
    const path = join(node.state, 'state-1.json');
    if (damage !== nameForeignSetting) rmSync(path);
    damage(path);
    const { status, err } = await node.run('rollback');
    expect(status).toBe(3);
    expect(err).toMatch(/state-1\.json is damaged: .*\n {2}help: remove the file: .* apply the bundle that you want/);
    rmSync(path, { recursive: true });
    expect((await node.run('apply', second)).status).toBe(0);
    expect((await node.run('rollback')).status).toBe(0);
    expect((await node.run('verify', first)).status).toBe(0);
  },
);

// A folder in the place of a file has no owner: it stays, and the next command says so.
test.each(damages.slice(0, 3))(
  'where record.json %s, rollback of what did not end writes it anew',
  async (_, damage) => {
    const node = await prepareNode(true);
    const path = join(node.state, 'record.json');
    rmSync(path);
    damage(path);
    expect(await node.run('rollback')).toMatchObject({ status: 0, err: expect.stringMatching(/^done: /) });
    expect((await node.run('verify', first)).status).toBe(0);
    expect(existsSync(join(node.state, 'journal.json'))).toBe(false);
  },
);

test.each(damages)('where awaiting.json %s, confirm says what to do', async (_, damage) => {
  const node = await prepareNode(false);
  const path = join(node.state, 'awaiting.json');
  damage(path);
  const { status, err } = await node.run('confirm');
  expect(status).toBe(3);
  expect(err).toMatch(/awaiting\.json is damaged: .* \[bad-state-folder\]\n {2}help: remove the file and apply again/);
  rmSync(path, { recursive: true });
  expect((await node.run('apply', second)).status).toBe(0);
});
