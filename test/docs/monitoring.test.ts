// The dashboard, the alert rules and the page name metrics: those that watch serves.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { metricFacts } from '../../src/apply/monitor/metrics.ts';
import { readPage } from '../support/markdown.ts';
import { projectFolder } from '../support/run-kpc.ts';
import { expectWrittenPage, plainText, tableRow } from '../support/written-page.ts';

const page = 'docs/monitoring.md';
const metrics = Object.entries(metricFacts);
const served = new Set(
  metrics.flatMap(([name, { type }]) =>
    type === 'histogram' ? ['bucket', 'sum', 'count'].map((part) => `${name}_${part}`) : [name],
  ),
);

test.each(['examples/monitoring/alerts.yml', 'examples/monitoring/dashboard.json'])('%s names no others', (path) => {
  const named = readFileSync(join(projectFolder, path), 'utf8').match(/\bkpc_apply_\w+/g) ?? [];
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((name) => !served.has(name))).toEqual([]);
});

test('the dashboard shows all but what says the same', () => {
  const named = new Set(readPage('examples/monitoring/dashboard.json').match(/\bkpc_apply_\w+/g));
  expect([...served].filter((name) => !named.has(name))).toEqual([]);
});

test('the page describes each', async () => {
  const rows = metrics.map(([name, { type, help }]) => tableRow([`\`${name}\``, type, plainText(help)]));
  const written = readPage(page).replace(
    /^(\| metric +\| type +\| meaning +\|\n\|[ -|]+\|\n)(?:\|.*\n)*/m,
    (_, head: string) => `${head}${rows.join('\n')}\n`,
  );
  await expectWrittenPage(page, written);
});

const hasPromtool = (() => {
  try {
    execFileSync('promtool', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

test.runIf(hasPromtool)('promtool finds nothing wrong with the alert rules', () => {
  const args = ['check', 'rules', join(projectFolder, 'examples/monitoring/alerts.yml')];
  expect(execFileSync('promtool', args, { encoding: 'utf8' })).toContain('SUCCESS: 8 rules found');
});
