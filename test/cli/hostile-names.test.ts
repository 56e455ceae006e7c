import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-names-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const service = (port: number): string =>
  `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { clusterIP: 10.96.0.9, selector: { app: web }, ports: [{ port: ${port} }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 80 }]
endpoints: [{ addresses: [10.1.0.9], conditions: { ready: true } }]
`;

const lines = "a\n::set-output name=x::y\n##[error]\u001b[2J\u202e```'`touch run`.yaml";
const run = 'b`touch run`.yaml';
const flag = '-x.yaml';
const without = ['cluster', 'services']
  .map((name) => readFileSync(`fixtures/lint/${name}.yaml`, 'utf8'))
  .join('\n---\n');
const cwd = writeFolder(join(scratch, 'in'), {
  [lines]: without,
  [run]: without,
  [flag]: without,
  'c.yaml': service(82),
});

function expectHarmless(text: string): void {
  expect(text).not.toMatch(/[^\P{Cc}\n]|\u202e|##\[/u);
  expect(text).not.toMatch(/^\s*::/m);
}

/** The words of a command as bash reads them. */
function wordsOf(command: string): readonly string[] {
  return execFileSync('bash', ['-c', `printf '%s\\0' ${command}`], { cwd })
    .toString()
    .split('\0')
    .slice(0, -1);
}

test.each([lines, run, flag])('the command beside a finding is one line, and names the file (%#)', async (file) => {
  const { stdout } = await runKpc(['lint', '--', file], { cwd });
  expectHarmless(stdout);
  const [, command = ''] = /^ {2}trace: (.*)$/m.exec(stdout) ?? [];
  expect(wordsOf(command)).toContain(file === flag ? './-x.yaml' : file);
});

test.each([lines])('Markdown holds the commands as they are (%#)', async (file) => {
  const { stdout } = await runKpc(['diff', 'c.yaml', file, '--output', 'markdown'], { cwd });
  expectHarmless(stdout);
  const [, fence = '', code = ''] = /^(`{3,})sh\n([^]*?)\n\1$/m.exec(stdout) ?? [];
  expect(code).not.toContain(fence);
  expect(code.split('\n').flatMap(wordsOf)).toContain(file);
});

test.each([lines, run])('so does a comparison of modes (%#)', async (file) => {
  const words = ['migrate', '--to', 'nftables', '--output', 'markdown', '-f', file];
  const { stdout } = await runKpc(words, { cwd });
  expectHarmless(stdout);
});

test('kpc.yaml that is written for a file name is harmless, and names it', async () => {
  const fresh = writeFolder(join(scratch, 'init'), { [lines]: without });
  expect(await runKpc(['init', lines], { cwd: fresh })).toMatchObject({ status: 0 });
  const written = readFileSync(join(fresh, 'kpc.yaml'), 'utf8');
  expectHarmless(written);
  expect(parse(written)).toMatchObject({ file: lines });
});

test('tests that are written for a file name it on one line', async () => {
  const { status, stdout } = await runKpc(['test', '--init', '-f', lines], { cwd });
  expect({ status, stdout }).toMatchObject({
    status: 0,
    stdout: expect.not.stringMatching(/^\s*(?:::|##)/m) as string,
  });
  expectHarmless(stdout);
  expect(parse(stdout)).toMatchObject({ inputs: lines });
});
