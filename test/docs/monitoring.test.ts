// The dashboard, the alert rules and the page name metrics: those that watch serves.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { WatchMetrics, metricFacts } from '../../src/apply/monitor/metrics.ts';
import { readPage } from '../support/markdown.ts';
import { projectFolder } from '../support/run-kpc.ts';
import { expectWrittenPage, plainText, tableRow } from '../support/written-page.ts';

const page = 'docs/monitoring.md';
const facts = Object.entries(metricFacts);
const served = new Set(
  facts.flatMap(([name, { type }]) =>
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
  const rows = facts.map(([name, { type, help }]) => tableRow([`\`${name}\``, type, plainText(help)]));
  const written = readPage(page).replace(
    /^(\| metric +\| type +\| meaning +\|\n\|[ -|]+\|\n)(?:\|.*\n)*/m,
    (_, head: string) => `${head}${rows.join('\n')}\n`,
  );
  await expectWrittenPage(page, written);
});

/** What a watch serves after a round. */
function serve(): string {
  const metrics = new WatchMetrics('1.0');
  metrics.onRound({ isGood: true }, 0, 0.2);
  return metrics.format(true);
}

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

/** What a node's series are, one sample a minute for an hour, and which alert then fires. */
const troubles: readonly (readonly [alert: string, series: Readonly<Record<string, string>>])[] = [
  ['KpcApplyDown', { up: '0x60' }],
  ['KpcApplyUnhealthy', { kpc_apply_healthy: '0x60' }],
  ['KpcApplyUnhealthy', { kpc_apply_last_success_timestamp_seconds: '0x60' }],
  ['KpcApplyStuck', { 'kpc_apply_rounds_total{result="stuck"}': '0x55 1x5' }],
  ['KpcApplyBundleBad', { kpc_apply_bundle_good: '0x60' }],
  [
    'KpcApplyDriftNotRepaired',
    {
      'kpc_apply_drift_found_total{object="chain"}': '0x55 9x5',
      'kpc_apply_drift_repaired_total{object="chain"}': '0x60',
    },
  ],
  [
    'KpcApplyDriftReturns',
    {
      'kpc_apply_drift_found_total{object="set"}': '0+1x60',
      'kpc_apply_drift_repaired_total{object="set"}': '0+1x60',
    },
  ],
  ['KpcApplyToolFails', { 'kpc_apply_tool_failures_total{tool="nft"}': '0+1x60' }],
  [
    'KpcApplySlow',
    {
      'kpc_apply_round_duration_seconds_bucket{le="30"}': '0x60',
      'kpc_apply_round_duration_seconds_bucket{le="60"}': '0+1x60',
      'kpc_apply_round_duration_seconds_bucket{le="+Inf"}': '0+1x60',
    },
  ],
];

/** A node on which all is well: what each case begins with. */
const well = {
  up: '1x60',
  kpc_apply_healthy: '1x60',
  kpc_apply_last_success_timestamp_seconds: '0+60x60',
  kpc_apply_bundle_good: '1x60',
};

/** Which alerts fire after that hour must be the expected ones. */
function expectAlerts(series: Readonly<Record<string, string>>, alerts: readonly string[]): void {
  const node = 'job="kpc-apply", instance="worker-1:9810"';
  const input = Object.entries({ ...well, ...series }).map(([name, values]) => ({
    series: name.endsWith('}') ? `${name.slice(0, -1)}, ${node}}` : `${name}{${node}}`,
    values,
  }));
  const labels = alerts.map((alert) => `{alertname="${alert}"}`);
  const rules = {
    rule_files: [join(projectFolder, 'examples/monitoring/alerts.yml')],
    evaluation_interval: '1m',
    tests: [
      {
        interval: '1m',
        input_series: input,
        promql_expr_test: [
          {
            expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
            eval_time: '1h',
            exp_samples: labels.map((each) => ({ labels: each, value: 1 })),
          },
        ],
      },
    ],
  };
  const folder = mkdtempSync(join(tmpdir(), 'kpc-alerts-'));
  try {
    writeFileSync(join(folder, 'tests.yml'), JSON.stringify(rules));
    execFileSync('promtool', ['test', 'rules', join(folder, 'tests.yml')], { encoding: 'utf8' });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test.runIf(hasPromtool)('no alert fires on a node on which all is well', () => {
  expectAlerts({}, []);
});

test.runIf(hasPromtool).each(troubles)('%s fires alone, in its case', (alert, series) => {
  expectAlerts(series, [alert]);
});

test('each alert has a case in which it fires', () => {
  const named = readPage('examples/monitoring/alerts.yml').match(/(?<=alert: )\w+/g);
  expect([...new Set(troubles.map(([alert]) => alert))]).toEqual(named);
});

test.runIf(hasPromtool)('promtool finds nothing wrong with what watch serves', () => {
  expect(execFileSync('promtool', ['check', 'metrics'], { input: serve(), encoding: 'utf8' })).toBe('');
});

test.runIf(hasPromtool)('promtool reads each query of the dashboard', () => {
  const { panels } = JSON.parse(readPage('examples/monitoring/dashboard.json')) as {
    readonly panels: readonly { readonly targets: readonly { readonly expr: string }[] }[];
  };
  const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
  expect(queries.length).toBeGreaterThan(10);
  const rules = queries.map((expr, i) => ({
    record: `query:${i}`,
    expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*'),
  }));
  const folder = mkdtempSync(join(tmpdir(), 'kpc-queries-'));
  try {
    writeFileSync(join(folder, 'rules.yml'), JSON.stringify({ groups: [{ name: 'queries', rules }] }));
    const said = execFileSync('promtool', ['check', 'rules', join(folder, 'rules.yml')], { encoding: 'utf8' });
    expect(said).toContain(`SUCCESS: ${queries.length} rules found`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
