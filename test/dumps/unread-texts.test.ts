// A text given as a dump is read or reported, by every door.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { open } from '../../src/library/index.ts';
import { runKpc } from '../support/run-kpc.ts';

const folder = mkdtempSync(join(tmpdir(), 'kpc-unread-'));
afterAll(() => rmSync(folder, { recursive: true }));

const rules = '*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n';
const service = '{ "kind": "Service", "apiVersion": "v1", "metadata": { "name": "web" }, "spec": {} }';

describe.each([
  ['numbered lines', '     1\ttable inet fw {\n     2\t}\n', 'unread-file'],
  ['nothing', '', 'unread-file'],
  ['HTML', '<html><body>502</body></html>\n', 'unread-file'],
  ['events', '    [NEW] udp      17 30 src=10.244.1.9 dst=10.96.7.1 sport=4 dport=80\n', 'unread-output'],
  ['net-tools', 'Kernel IP routing table\nDestination Gateway Genmask Flags\n', 'unread-output'],
])('%s beside a dump', (_, text, code) => {
  test('in the library', () => {
    const { diagnostics } = open({ node: rules, fw: text });
    expect(diagnostics).toMatchObject([{ code, place: { file: 'fw' } }]);
    const origin = { folder: '.', chart: undefined };
    const named = { name: 'fw', text, origin };
    const expected = code === 'unread-file' ? [] : [{ code }];
    expect(open([{ name: 'node', text: rules }, named]).diagnostics).toMatchObject(expected);
  });

  test('by the command', async () => {
    const [node, fw] = [join(folder, 'node'), join(folder, 'fw')];
    writeFileSync(node, rules);
    writeFileSync(fw, text);
    const { stderr } = await runKpc(['describe', '-f', node, '-f', fw]);
    expect(stderr).toContain(`[${code}]`);
    expect(stderr).not.toContain('YAML');
  });
});

test('a manifest is read by its content, whatever its name', () => {
  const [side] = open({ node: rules, objects: service }).snapshots;
  expect(side?.objects.services).toHaveLength(1);
});
