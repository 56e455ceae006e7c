// What kpc lint says of many Services: the same once, and of one code no more than --limit.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-many-'));
afterAll(() => rmSync(cwd, { recursive: true }));

function write(name: string, workloadOf: (i: number) => string): void {
  const objects = Array.from(
    { length: 30 },
    (_, i) => `apiVersion: v1
kind: Service
metadata: { name: web-${i} }
spec: { selector: { app: web-${i} }, ports: [{ port: 80, targetPort: 8081 }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: ${workloadOf(i)} }
spec:
  selector: { matchLabels: { app: web-${i} } }
  template: { metadata: { labels: { app: web-${i} } }, spec: { containers: [{ name: web, image: web, ports: [{ containerPort: 8080 }] }] } }
`,
  );
  writeFileSync(join(cwd, name), objects.join('---\n'));
}

write('same.yaml', (i) => `web-${i}`);
write('other.yaml', (i) => `deployment-${i}`);

const found = (stdout: string): number => stdout.match(/ note: default\/web-\d+: no container/g)?.length ?? 0;

async function lint(...words: readonly string[]): Promise<string> {
  const { stdout } = await runKpc(['lint', ...words, '--kpc-yaml', 'none'], { cwd });
  return stdout;
}

test('what is equal but for the names of Services is said once, with the others', async () => {
  const stdout = await lint('same.yaml');
  expect(found(stdout)).toBe(1);
  expect(stdout).toContain(
    '; the same for default/web-1, default/web-2, default/web-3, default/web-4, default/web-5 and 24 more',
  );
  expect(stdout).toContain('30 notes in 1 file');
});

test.each([
  [[], 20, ['note: 10 more like this: default/web-20']],
  [['--limit', '3'], 3, ['note: 27 more like this: default/web-3']],
  [['--limit', '29'], 30, []],
  [['--limit', '0'], 30, []],
] as const)('with %j, of one code %d are printed', async (flags, printed, rest) => {
  const stdout = await lint('other.yaml', ...flags);
  expect(found(stdout)).toBe(printed);
  expect(stdout.match(/note: \d+ more like this: [^,]*/g) ?? []).toEqual(rest);
  expect(stdout).toContain('30 notes in 1 file');
});

test('programs get all', async () => {
  const { findings } = JSON.parse(await lint('same.yaml', '--output', 'json')) as { findings: readonly unknown[] };
  expect(findings).toHaveLength(30);
  const { status, stderr } = await runKpc(['lint', 'same.yaml', '--limit', '3', '--output', 'sarif'], { cwd });
  expect({ status, stderr }).toMatchObject({ status: 2, stderr: expect.stringContaining('--limit') });
});
