// Two bundles or goldens are compared by what they record: what neither records is named.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-both-stored-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const serviceOf = (app: string): string => `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { clusterIP: 10.96.0.11, selector: { app: ${app} }, ports: [{ port: 80 }] }
`;

test.each(['-o', '--golden'])('written with %s', async (flag) => {
  writeFolder(cwd, { 'old.yaml': serviceOf('a'), 'new.yaml': serviceOf('b') });
  for (const name of ['old', 'new'])
    await runKpc(['compile', '-q', '-f', `${name}.yaml`, flag, `${name}${flag}`], { cwd });
  const { stdout } = await runKpc(['diff', '-q', `./old${flag}`, `./new${flag}`, '--output', 'json'], { cwd });
  expect(resultOf(stdout).notCompared).toContainEqual(expect.stringContaining('which neither side records'));
});

const node = (name: string, pods: string): string =>
  `---\napiVersion: v1\nkind: Node\nmetadata: { name: ${name} }\nspec: { podCIDRs: [${pods}] }\n`;

test('Nodes of which none is named are named once', async () => {
  writeFolder(cwd, {
    'old.yaml': serviceOf('a') + node('n1', '10.244.1.0/24') + node('n2', '10.244.2.0/24'),
    'new.yaml': serviceOf('a').replace('80 }', '81 }') + node('n1', '10.244.1.0/24') + node('n2', '10.244.3.0/24'),
  });
  const { stdout } = await runKpc(['diff', '-q', 'old.yaml', 'new.yaml'], { cwd });
  expect(stdout.match(/none is named|no node is named/g)).toHaveLength(1);
});
