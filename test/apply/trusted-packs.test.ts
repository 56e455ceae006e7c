import { chownSync, copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import { realHost } from '../../src/apply/node/real-host.ts';
import { packFiles, readPack } from '../../src/bundle/pack/pack.ts';
import { runKpc } from '../support/run-kpc.ts';
import { makeKey } from '../support/signing-key.ts';
import { callApply } from './call-apply.ts';
import { createFakeNode, examineAs, rootsLevel, type FakeNode } from './fake-node.ts';

const bundle = 'fixtures/dual-stack/expected-ipvs';
const other = 'fixtures/loadbalancer-source-ranges/expected-ipvs';
const scratch = mkdtempSync(join(tmpdir(), 'kpc-trusted-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const at = (name: string) => join(scratch, name);
const [mine, theirs] = [makeKey(scratch, 'mine'), makeKey(scratch, 'theirs')];

async function pack(name: string, folder: string, ...options: readonly string[]): Promise<string> {
  const { status, stderr } = await runKpc(['bundle', 'pack', folder, '-o', at(name), ...options]);
  expect(status, stderr).toBe(0);
  return at(name);
}

const unsigned = await pack('unsigned.tgz', bundle);
const signed = await pack('signed.tgz', bundle, '--sign', mine.secret);
const foreign = await pack('foreign.tgz', bundle, '--sign', theirs.secret);
const first = await pack('first.tgz', bundle, '--sign', mine.secret, '--serial', '1');
const second = await pack('second.tgz', other, '--sign', mine.secret, '--serial', '2');

/** A pack with something else in one of its files. */
async function edit(source: string, change: (files: Map<string, string>) => void): Promise<string> {
  const files = new Map(await readPack(source));
  change(files);
  writeFileSync(at('edited.tgz'), packFiles(files));
  return at('edited.tgz');
}

async function wanted(folder: string): Promise<string> {
  const node = createFakeNode();
  await callApply(node.host, 'apply', folder);
  return node.dump();
}

/** Nothing was asked of the node, let alone changed. */
async function expectRefusal(args: readonly string[], why: RegExp, node = createFakeNode()): Promise<void> {
  const before = node.commands.length;
  const { status, err } = await callApply(node.host, ...args);
  expect(err).toMatch(why);
  expect(err).toContain('[not-trusted]');
  expect(status).toBe(2);
  expect(node.commands.length).toBe(before);
}

describe('a pack without --trust', () => {
  test.each([
    ['unsigned', unsigned, /: digest (?:[\da-f]{8} ?){8}, not signed\n/],
    ['signed', signed, /, signed by key [\da-f]{16}, which was not checked \(no --trust\)\n/],
  ])('is applied as its folder is, and says that it is %s', async (_, path, said) => {
    const node = createFakeNode();
    const { status, err } = await callApply(node.host, 'apply', path);
    expect(status).toBe(0);
    expect(err).toMatch(said);
    expect(node.dump()).toBe(await wanted(bundle));
    expect(await callApply(node.host, 'verify', path)).toMatchObject({ status: 0 });
    expect(await callApply(node.host, 'plan', path)).toMatchObject({ status: 0 });
  });

  test('is named in a record of --log-format json', async () => {
    const { err } = await callApply(createFakeNode().host, 'apply', unsigned, '--log-format', 'json');
    const records = err.trimEnd().split('\n');
    expect(records.map((line) => JSON.parse(line))[0]).toMatchObject({
      level: 'info',
      message: expect.stringMatching(/: digest .*, not signed$/),
    });
  });
});

describe('--trust', () => {
  test('takes a pack that a trusted key signed', async () => {
    const node = createFakeNode();
    for (const command of ['apply', 'verify', 'plan']) {
      const { status, err } = await callApply(node.host, command, signed, '--trust', mine.trusted);
      expect(status, err).toBe(0);
      expect(err).toMatch(/, signed by key [\da-f]{16}\n/);
    }
    expect(node.dump()).toBe(await wanted(bundle));
  });

  test('takes a signed pack of any owner', async () => {
    const { host } = createFakeNode();
    const loose = { owner: 1000, group: 1000, mode: 0o777, isParent: false, isReadOnly: false };
    const examine = examineAs((path) =>
      path === signed || path === at('loose.pub') ? [{ path, ...loose }] : [rootsLevel(path)],
    );
    const args = ['apply', signed, '--trust'];
    expect(await callApply({ ...host, examine }, ...args, mine.trusted)).toMatchObject({ status: 0 });
    copyFileSync(mine.trusted, at('loose.pub'));
    const { status, err } = await callApply({ ...host, examine }, ...args, at('loose.pub'));
    expect(status).toBe(2);
    expect(err).toMatch(/other users can change the keys in .*loose\.pub/);
  });

  test.each(['apply', 'verify', 'plan', 'doctor'])('of %s refuses all others', async (command) => {
    const trust = ['--trust', mine.trusted];
    await expectRefusal([command, unsigned, ...trust], /is not signed/);
    await expectRefusal([command, bundle, ...trust], /is not signed/);
    await expectRefusal([command, foreign, ...trust], /is signed by key [\da-f]{16}, which is not trusted/);
  });

  test('refuses a pack in which anything has changed since it was signed', async () => {
    const trust = ['--trust', mine.trusted];
    const spaced = await edit(signed, (files) => files.set('manifest.json', `${files.get('manifest.json')} `));
    await expectRefusal(['apply', spaced, ...trust], /has changed since it was signed/);
    const renumbered = await edit(first, (files) => {
      files.set('signature.json', (files.get('signature.json') ?? '').replace('"serial": 1', '"serial": 9'));
    });
    await expectRefusal(['apply', renumbered, ...trust], /has changed since it was signed/);
    const broken = await edit(signed, (files) => files.set('signature.json', '{"keyId":'));
    await expectRefusal(['apply', broken, ...trust], /the signature of .* is damaged/);
    for (const [from, to] of [
      ['"serial": 1', '"serial": 9, "serial": 1'],
      ['"serial": 1', '"serial": 1e0'],
      ['{', '{"more": 1,'],
    ] as const) {
      const respelled = await edit(first, (files) => {
        files.set('signature.json', (files.get('signature.json') ?? '').replace(from, to));
      });
      await expectRefusal(['apply', respelled, ...trust], /the signature of .* is damaged/);
    }
    // The signature is of the manifest, which has the checksums of the rest.
    const line = await edit(signed, (files) => files.set('ip.batch', 'link add x type dummy\n'));
    const { host, commands } = createFakeNode();
    expect((await callApply(host, 'apply', line, ...trust)).status).toBe(2);
    expect(commands).toEqual([]);
  });

  test('refuses a signature of another bundle', async () => {
    const signature = (await readPack(second))?.get('signature.json') ?? '';
    const moved = await edit(first, (files) => files.set('signature.json', signature));
    await expectRefusal(['apply', moved, '--trust', mine.trusted], /has changed since it was signed/);
  });

  test('takes several keys, in one file or in several', async () => {
    writeFileSync(at('both.pub'), `${readFileSync(theirs.trusted, 'utf8')}${readFileSync(mine.trusted, 'utf8')}`);
    for (const trust of [
      ['--trust', at('both.pub')],
      ['--trust', theirs.trusted, '--trust', mine.trusted],
    ]) {
      for (const path of [signed, foreign]) {
        expect(await callApply(createFakeNode().host, 'apply', path, ...trust)).toMatchObject({ status: 0 });
      }
    }
  });

  test.each([
    ['a private key', () => mine.secret, /it holds a private key, which belongs to the signer alone/],
    ['no key', () => join(bundle, 'manifest.json'), /it holds no public ed25519 key in PEM/],
    ['nothing', () => at('missing.pub'), /missing\.pub: no such file/],
  ])('says so if its file holds %s', async (_, file, why) => {
    const { status, err } = await callApply(createFakeNode().host, 'apply', signed, '--trust', file());
    expect(err).toMatch(why);
    expect(status).not.toBe(0);
  });
});

describe('a serial', () => {
  const trust = ['--trust', mine.trusted];

  test('keeps an older pack from being applied again', async () => {
    const node = createFakeNode();
    for (const path of [first, second]) {
      expect(await callApply(node.host, 'apply', path, ...trust)).toMatchObject({ status: 0 });
    }
    await expectRefusal(['apply', first, ...trust], /has serial 1, but this node already had serial 2/, node);
    await expectRefusal(['apply', signed, ...trust], /has serial 0, but this node already had serial 2/, node);
  });

  test('is no step back in a pack that the node is on, even after a rollback and a reboot', async () => {
    const node = createFakeNode();
    for (const path of [first, second]) await callApply(node.host, 'apply', path, ...trust);
    expect(await callApply(node.host, 'rollback')).toMatchObject({ status: 0 });
    const ofOther = await pack('other.tgz', 'fixtures/dns/expected-ipvs', '--sign', mine.secret, '--serial', '1');
    await expectRefusal(['apply', ofOther, ...trust], /has serial 1, but this node already had serial 2/, node);
    expect(await callApply(node.host, 'apply', first, ...trust)).toMatchObject({ status: 0 });
    node.files.set('/proc/sys/kernel/random/boot_id', 'another\n');
    const { status, err } = await callApply(node.host, 'apply', first, '--adopt', ...trust);
    expect(status, err).toBe(0);
  });

  test.each<readonly [string, (node: FakeNode) => Promise<number>]>([
    [
      'confirmed',
      async ({ host }) => (await callApply(host, 'apply', second, '--confirm-timeout', '2s', ...trust)).status,
    ],
    [
      'carried out',
      async ({ host }) => {
        const run: Host['run'] = (command) =>
          command.tool === 'ipvsadm' && command.args[0] === '-R'
            ? Promise.resolve({ kind: 'ended', status: 1, stdout: '', stderr: 'no' })
            : host.run(command);
        return (await callApply({ ...host, run }, 'apply', second, ...trust)).status;
      },
    ],
    [
      'allowed to begin',
      async ({ host, files }) => {
        files.set('/proc/77/comm', 'kube-proxy\n');
        files.set('/proc/77/status', 'Uid:\t0\t0\t0\t0\n');
        const { status } = await callApply(host, 'apply', second, ...trust);
        files.delete('/proc/77/comm');
        return status;
      },
    ],
  ])('is not kept of an apply that was not %s: the pack before is good still', async (_, fail) => {
    const node = createFakeNode();
    expect(await callApply(node.host, 'apply', first, ...trust)).toMatchObject({ status: 0 });
    expect(await fail(node)).not.toBe(0);
    for (const command of ['verify', 'apply']) {
      const { status, err } = await callApply(node.host, command, first, ...trust);
      expect(status, err).toBe(0);
    }
  });

  test('is kept only by what may change the node', async () => {
    const node = createFakeNode();
    for (const args of [
      ['plan', second],
      ['verify', second],
      ['apply', second, '--dry-run'],
    ]) {
      await callApply(node.host, ...args, ...trust);
    }
    expect(await callApply(node.host, 'apply', first, ...trust)).toMatchObject({ status: 0 });
  });
});

describe('watch', () => {
  const pathOfPack = at('node.tgz');

  async function watchFor(
    node: FakeNode,
    seconds: number,
    events: Readonly<Record<number, () => void>>,
    { keys = mine.trusted, change = {} }: { readonly keys?: string; readonly change?: Partial<Host> } = {},
  ) {
    const begun = node.host.uptime();
    const due = new Map(Object.entries(events));
    const sleep = async (milliseconds: number) => {
      await node.host.sleep(milliseconds);
      const elapsed = (node.host.uptime() - begun) / 1000;
      for (const [time, event] of due) {
        if (Number(time) > elapsed) continue;
        due.delete(time);
        event();
      }
      if (elapsed >= seconds) process.emit('SIGTERM');
    };
    const args = ['watch', pathOfPack, '--sync-period', '10s', '--trust', keys];
    return (await callApply({ ...node.host, sleep, ...change }, ...args)).err;
  }

  test('takes up a new pack at once, and stays on the last good one if the next is not trusted', async () => {
    const node = createFakeNode();
    copyFileSync(first, pathOfPack);
    const dumps: string[] = [];
    const look = () => void dumps.push(node.dump());
    const said = await watchFor(node, 60, {
      2: () => copyFileSync(second, pathOfPack),
      5: look,
      15: () => copyFileSync(foreign, pathOfPack),
      40: look,
    });
    expect(dumps).toEqual([await wantedAfter(), await wantedAfter()]);
    expect(said.match(/\[not-trusted\]/g)).toHaveLength(1);
    expect(said.match(/digest/g)).toHaveLength(2);
    expect(said).toContain('the node stays on the last good bundle');
    // The one that it keeps for later is checked again, by the keys of that time.
    expect(await watchFor(node, 5, {})).toContain('the node stays on the last good bundle');
  });

  test.runIf(process.getuid?.() === 0)('refuses keys that another user puts where none were', async () => {
    const node = createFakeNode();
    const keys = at('late.pub');
    const before = node.dump();
    const seen: boolean[] = [];
    copyFileSync(foreign, pathOfPack);
    const said = await watchFor(
      node,
      45,
      {
        12: () => (copyFileSync(theirs.trusted, keys), chownSync(keys, 65534, 65534)),
        28: () => (seen.push(node.dump() === before), chownSync(keys, 0, 0)),
      },
      { keys, change: { examine: realHost.examine } },
    );
    expect(seen).toEqual([true]);
    expect(said).toMatch(/late\.pub: no such file or directory \[bad-usage\]/);
    expect(said.match(/other users can change the keys in .* belongs to user 65534 \[bad-bundle\]/g)).toHaveLength(1);
    expect(node.dump()).toBe(await wanted(bundle));
  });

  async function wantedAfter(): Promise<string> {
    const node = createFakeNode();
    await callApply(node.host, 'apply', bundle);
    await callApply(node.host, 'apply', other);
    return node.dump();
  }
});
