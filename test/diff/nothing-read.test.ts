import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { projectFolder, runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-nothing-read-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function dump(name: string, file: string, text: string): string {
  const folder = join(scratch, name);
  mkdirSync(folder);
  writeFileSync(join(folder, file), text);
  return folder;
}

const listed = dump('listed', 'ipvsadm-save', '10.96.0.1 is the API server, and nothing else\n');
const sets = dump('sets', 'ipset-save', 'KUBE-CLUSTER-IP has one entry\n');
const empty = '*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n';

describe('two dumps that tell nothing of the same part of a node', () => {
  const ruled = dump('ruled', 'iptables-save', empty);
  const ruled6 = dump('ruled6', 'ip6tables-save', empty);

  test.each([
    ['neither of which could be read', listed, sets],
    ['that are the same unreadable folder', listed, listed],
    ['one with IPv4 rules and one with IPv6 rules', ruled, ruled6],
    ['only one of which could be read', ruled, sets],
  ])('%s: status 2, and no word of being equal', async (_, from, to) => {
    for (const output of ['text', 'json', 'markdown', 'unified']) {
      const run = await runKpc(['diff', from, to, '--output', output]);
      expect(run.status, run.stderr).toBe(2);
      const answer: unknown = output === 'json' ? JSON.parse(run.stdout).result : run.stdout;
      expect(answer ?? '').toMatch(output === 'markdown' ? /^\*\*No answer\*\*\n\n- \*\*error\*\* / : /^$/);
      expect(run.stderr).toContain('does not show how packets reach the endpoints of Services');
    }
  });

  test('a dump that could not be read is called so', async () => {
    const run = await runKpc(['diff', listed, listed]);
    expect(run.stderr).toContain('a dump of a node, of which no file could be read');
  });
});

test('two nodes without anything of kube-proxy are compared, and do not differ', async () => {
  const one = dump('one', 'iptables-save', empty);
  const other = dump('other', 'iptables-save', empty);
  const run = await runKpc(['diff', one, other]);
  expect(run.status, run.stderr).toBe(0);
  expect(run.stdout).toContain('No difference in what could be compared');
});

test('of manifests, the side without any object is named, whichever it is', async () => {
  const values = dump('values', 'values.yaml', 'replicas: 2\n');
  const cluster = join(projectFolder, 'fixtures/quickstart/svc.yaml');
  for (const sides of [
    [values, cluster],
    [cluster, values],
  ]) {
    const { status, stdout } = await runKpc(['diff', ...sides, '--output', 'json']);
    expect(status).toBe(2);
    const { findings } = JSON.parse(stdout) as { readonly findings: readonly object[] };
    expect(findings).toContainEqual(expect.objectContaining({ code: 'no-input', place: { file: values } }));
  }
});
