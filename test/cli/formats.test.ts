// The formats that every finding command has, of an answer and of a call that is refused.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-formats-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const web = (policy: string): string => `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: NodePort, internalTrafficPolicy: ${policy}, selector: { app: web }, ports: [{ port: 80, targetPort: 8080 }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec: { replicas: 1, selector: { matchLabels: { app: web } }, template: { metadata: { labels: { app: web } }, spec: { containers: [{ name: c, image: c, ports: [{ containerPort: 8080 }] }] } } }
`;

beforeAll(async () => {
  writeFileSync(join(cwd, 'old.yaml'), web('Cluster'));
  writeFileSync(join(cwd, 'new.yaml'), web('Local'));
  writeFileSync(join(cwd, 'bad.yaml'), web('Cluster').replace('port: 80', 'port: 80808'));
  writeFileSync(join(cwd, 'test.yaml'), 'tests: [{ from: pod, to: svc/web, expect: refused }]\n');
  await runKpc(['compile', '-q', 'old.yaml', '--assume', '--golden', 'golden'], { cwd });
});

const commands: Readonly<Record<string, readonly string[]>> = {
  lint: ['lint', 'new.yaml'],
  test: ['test', 'test.yaml', '-f', 'old.yaml'],
  diff: ['diff', 'old.yaml', 'new.yaml'],
  equivalence: ['equivalence', 'old.yaml', 'new.yaml'],
  migrate: ['migrate', 'new.yaml', '--from', 'iptables'],
  'compile --check': ['compile', 'new.yaml', '--assume', '--check', 'golden'],
  'compile --check of the same': ['compile', 'old.yaml', '--assume', '--check', 'golden'],
  'lint of bad input': ['lint', 'bad.yaml'],
  'diff of bad input': ['diff', 'old.yaml', 'bad.yaml'],
  'migrate without input': ['migrate'],
  'equivalence of a missing file': ['equivalence', 'old.yaml', 'none.yaml'],
};

describe.each(Object.entries(commands))('%s', (_, words) => {
  const print = (output: string) => runKpc([...words, '-q', '--output', output], { cwd });

  test('sarif: each result has a place, as code scanning wants it', async () => {
    const [run] = JSON.parse((await print('sarif')).stdout).runs;
    for (const { locations, ruleIndex, ruleId, partialFingerprints } of run.results) {
      expect(locations[0].physicalLocation.artifactLocation.uri).not.toBe('');
      expect(run.tool.driver.rules[ruleIndex].id).toBe(ruleId);
      expect(Object.values(partialFingerprints)).toEqual([expect.stringMatching(/./)]);
    }
  });

  test('gitlab: each entry has what a report needs', async () => {
    const entry = {
      description: expect.stringMatching(/./),
      fingerprint: expect.stringMatching(/./),
      severity: expect.stringMatching(/^(?:major|minor|info)$/),
      location: { path: expect.stringMatching(/./), lines: { begin: expect.any(Number) } },
    };
    for (const each of JSON.parse((await print('gitlab')).stdout)) expect(each).toMatchObject(entry);
  });

  test('junit: a failure where the status is not 0, and only there', async () => {
    const { status, stdout } = await print('junit');
    const [, failures = ''] = /<testsuites [^>]*failures="(\d+)"/.exec(stdout) ?? [];
    expect(Number(failures) > 0, stdout).toBe(status !== 0);
  });

  test('github and markdown: an error where the status says that the input is wrong', async () => {
    const [github, markdown] = [await print('github'), await print('markdown')];
    expect(github.status).toBe(markdown.status);
    const isRefused = github.status === 2;
    expect(github.stdout.includes('::error ') || !isRefused).toBe(true);
    expect(markdown.stdout.includes('**error**') || !isRefused).toBe(true);
  });
});
