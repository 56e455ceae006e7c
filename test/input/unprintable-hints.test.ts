import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { callApply } from '../apply/call-apply.ts';
import { createFakeNode } from '../apply/fake-node.ts';
import { runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-hints-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const manifests = readFileSync(new URL('../../fixtures/quickstart/svc.yaml', import.meta.url), 'utf8');

test.each(['\\u202eabc', '\\u2028', '\\e[31m', '##[error]x', 'a\\tb'])(
  'a bundle of a slice with the hint "%s", which fits no zone, can be applied',
  async (hint) => {
    const file = join(scratch, 'in.yaml');
    const bundle = join(scratch, 'bundle');
    const hints = `{forZones: [{name: "${hint}"}], forNodes: [{name: "${hint}"}]}`;
    writeFileSync(
      file,
      manifests.replace(/nodeName: worker-1\n/, (found) => `${found}    hints: ${hints}\n`),
    );
    const run = await runKpc(['compile', '-f', file, '-o', bundle]);
    expect(run).toMatchObject({ status: 0, stderr: expect.stringContaining('bad-value') });
    const { status, err } = await callApply(createFakeNode().host, 'apply', bundle);
    expect({ status, err }).toMatchObject({ status: 0 });
  },
);
