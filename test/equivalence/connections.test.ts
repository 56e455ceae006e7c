// Connections that fail though their first packet arrives are one fact, which all commands use.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { fixturesFolder } from '../support/fixtures.ts';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-connections-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const node = readFileSync(join(fixturesFolder, 'connections/node.txt'), 'utf8');
const sysctl = 'net.bridge.bridge-nf-call-iptables';
const unseen = node.replace(`${sysctl} = 1`, `${sysctl} = 0`);
writeFileSync(join(cwd, 'seen.txt'), node);
writeFileSync(join(cwd, 'unseen.txt'), unseen);

interface Report {
  readonly causes: readonly {
    readonly cause: string;
    readonly severity: string;
    readonly reasons: readonly string[];
    readonly effects: readonly { readonly from: string; readonly to: string; readonly example: unknown }[];
  }[];
}

async function compare(from: string, to: string): Promise<Report['causes']> {
  const { stdout } = await runKpc(['equivalence', from, to, '--output', 'json', '-q'], { cwd });
  return (resultOf(stdout) as Report).causes;
}

describe('kpc equivalence', () => {
  test.each([
    ['seen.txt', 'unseen.txt', 'breaks', ['delivered', 'delivered, but the connection fails']],
    ['unseen.txt', 'seen.txt', 'opens', ['delivered, but the connection fails', 'delivered']],
  ])('%s to %s: %s', async (from, to, severity, [before, after]) => {
    const causes = await compare(from, to);
    expect(causes).toMatchObject([{ cause: 'connection', severity, effects: [{ from: before, to: after }] }]);
    expect(causes[0]?.effects[0]?.example).toMatchObject({ from: '10.244.1.250', to: '10.96.0.1:80' });
    expect(causes[0]?.reasons.join()).toContain(sysctl);
  });

  test('what fails on both sides, or is not known on one, differs in nothing', async () => {
    writeFileSync(join(cwd, 'unrouted.txt'), node.slice(0, node.indexOf('$ ip rule')));
    expect(await compare('unseen.txt', 'unseen.txt')).toEqual([]);
    expect(await compare('seen.txt', 'unrouted.txt')).toEqual([]);
  });
});

describe('kpc test', () => {
  const run = (input: string, expected: string, from = '10.244.1.250') => {
    const text = `inputs: ${input}\ntests:\n  - {from: ${from}, to: "10.96.0.1:80", expect: ${expected}}\n`;
    writeFileSync(join(cwd, 'tests.yaml'), text);
    return runKpc(['test', 'tests.yaml', '-q'], { cwd });
  };

  test.each([
    ['delivered', 1],
    ['["10.244.1.11:8080"]', 1],
    ['{"10.244.1.11:8080": 1}', 1],
    ['fails', 0],
  ])('a connection that fails: expect %s', async (expected, status) => {
    expect(await run('unseen.txt', expected)).toMatchObject({ status });
  });

  test.each([
    ['delivered', 0],
    ['fails', 1],
  ])('one that works: expect %s', async (expected, status) => {
    expect(await run('seen.txt', expected)).toMatchObject({ status });
  });

  test('says why', async () => {
    const { stdout } = await run('unseen.txt', 'delivered');
    expect(stdout).toContain(`the packet is delivered, but the connection fails: the answer crosses bridge cni0`);
  });
});

test('kpc test --init holds connections that fail for what they are', async () => {
  const { stdout } = await runKpc(['test', '--init', '-f', 'unseen.txt', '-q'], { cwd });
  expect(stdout).toContain('expect: fails');
  writeFileSync(join(cwd, 'held.yaml'), stdout);
  expect(await runKpc(['test', 'held.yaml', '-q'], { cwd })).toMatchObject({ status: 0 });
});
