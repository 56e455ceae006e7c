import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { projectFolder, runKpc } from '../support/run-kpc.ts';

/** UPDATE_GOLDEN=1 writes what comes out over what is expected; the difference is then read in git. */
const update = process.env['UPDATE_GOLDEN'] === '1';

const cases = join(projectFolder, 'test/diff/cases');

const outputs = [
  ['review', 'review.txt'],
  ['text', 'txt'],
  ['markdown', 'md'],
  ['json', 'json'],
  ['unified', 'diff'],
] as const;

describe('what a change of manifests is said to be', () => {
  for (const name of readdirSync(cases)) {
    for (const mode of ['ipvs', 'iptables', 'nftables']) {
      test.for(outputs)(`${name}: ${mode}, %s`, async ([output, extension]) => {
        const cwd = join(cases, name);
        const how = output === 'review' ? [] : output === 'text' ? ['--rules'] : ['--output', output];
        const args = ['diff', 'before', 'after', '--proxy-mode', mode, ...how];
        const run = await runKpc(args, { cwd });
        const file = join(cwd, `expected-${mode}.${extension}`);
        if (update) writeFileSync(file, run.stdout);
        expect(run.status).toBe(1);
        expect(run.stdout).toBe(existsSync(file) ? readFileSync(file, 'utf8') : '');
        expect(run.stderr).toBe(`Both sides: manifests, compiled for node node-1, mode ${mode}, ipv4\n`);
      });
    }
  }
});
