// Two bundles or goldens are compared by what they record: what neither records is named.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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

const served = (app: string, target: number): string =>
  `${serviceOf(app).replace('port: 80', `port: 80, targetPort: ${target}`)}---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints: [{ addresses: [10.244.1.10] }]
`;

test.each([
  ['two goldens with another selector', '--golden', '--golden', served('b', 8080), 1, false],
  ['two goldens with another targetPort', '--golden', '--golden', served('a', 8081), 1, false],
  ['two bundles with another targetPort', '-o', '-o', served('a', 8081), 1, true],
  ['a golden and a bundle with another targetPort', '--golden', '-o', served('a', 8081), 1, true],
  ['a golden and a bundle with another selector, which a bundle lacks', '--golden', '-o', served('b', 8080), 0, true],
])('%s', async (_, flag, other, fresh, unknown, lacksSelector) => {
  writeFolder(cwd, { 'a.yaml': served('a', 8080), 'b.yaml': fresh });
  const folders = [`a${flag}`, `b${other}`].map((name) => `./${name}-${unknown}-${fresh.length}`);
  const compile = ['compile', '-q', '--proxy-mode', 'iptables', '-f'];
  await runKpc([...compile, 'a.yaml', flag, folders[0] ?? ''], { cwd });
  await runKpc([...compile, 'b.yaml', other, folders[1] ?? ''], { cwd });
  const equivalence = await runKpc(['equivalence', '-q', ...folders, '--output', 'json'], { cwd });
  expect(resultOf(equivalence.stdout).causes).toHaveLength(unknown);
  const markdown = await runKpc(['equivalence', '-q', ...folders, '--output', 'markdown'], { cwd });
  expect(markdown.stdout).not.toMatch(/```sh\s+tcp from/);
  const { stdout } = await runKpc(['diff', '-q', ...folders, '--output', 'json'], { cwd });
  const { notCompared } = resultOf(stdout);
  expect(JSON.stringify(notCompared).includes('selectors of default/web')).toBe(lacksSelector);
});

test('rules of a golden that are not those of its Services are named', async () => {
  writeFolder(cwd, { 'rules.yaml': served('a', 8080) });
  for (const name of ['whole', 'cut'])
    await runKpc(['compile', '-q', '--proxy-mode', 'nftables', 'rules.yaml', '--golden', name], { cwd });
  const file = join(cwd, 'cut', 'default.web.txt');
  writeFileSync(file, readFileSync(file, 'utf8').replace(/.* dnat .*\n/, ''));
  for (const command of ['diff', 'equivalence'])
    for (const [other, edited] of [
      ['whole', []],
      ['cut', ['cut/default.web.txt']],
    ] as const) {
      const { stdout } = await runKpc([command, '-q', 'whole', other, '--output', 'json'], { cwd });
      const { notCompared } = resultOf(stdout) as { readonly notCompared: readonly string[] };
      const named = notCompared.flatMap((each) => /^rules in (\S+),/.exec(each)?.[1] ?? []);
      expect(named).toEqual(edited);
      expect(notCompared).toContainEqual(expect.stringContaining('ipFamilyPolicy'));
    }
});
