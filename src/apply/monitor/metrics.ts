import { failureCodes } from '../../base/findings/apply.ts';
import type { Manifest } from '../../bundle/manifest.ts';
import { changedObjects } from '../../ask/changes/kernel-change.ts';
import { isDone, type ChangeOutcome } from '../change/observe-node.ts';
import type { ListenAddresses } from './serve-ports.ts';
import { tools } from '../node/tools.ts';
import { countPlan } from '../plan/steps.ts';
import type { Failure } from '../state/failure.ts';
import type { BundleMark } from '../state/record.ts';

const gauge = (help: string) => ({ type: 'gauge', help }) as const;
const counter = (help: string) => ({ type: 'counter', help }) as const;
const histogram = (help: string) => ({ type: 'histogram', help }) as const;

export const metricFacts = {
  kpc_apply_build_info: gauge('Always 1. The version of kpc-apply.'),
  kpc_apply_bundle_info: gauge('Always 1. The bundle that the last round used, by its digest.'),
  kpc_apply_bundle_good: gauge('Whether the bundle can be applied; if not, the last good one is used.'),
  kpc_apply_healthy: gauge('Whether a round succeeded within the last two sync periods.'),
  kpc_apply_last_success_timestamp_seconds: gauge('When a round last left the node as the bundle says.'),
  kpc_apply_rounds_total: counter('Rounds, by their result.'),
  kpc_apply_round_duration_seconds: histogram('How long a round took.'),
  kpc_apply_drift_found_total: counter('Objects that differed from a bundle that was applied before.'),
  kpc_apply_drift_repaired_total: counter('Drifted objects that a round restored.'),
  kpc_apply_failures_total: counter('Rounds that failed, by the code of the error.'),
  kpc_apply_tool_failures_total: counter('Rounds that failed, by the tool that is missing, hung or failed.'),
  kpc_apply_draining_real_servers: gauge('Removed real servers that wait for their connections to end.'),
  kpc_apply_draining_connections: gauge('Open connections to those real servers.'),
};

type MetricName = keyof typeof metricFacts;
type MetricLabels = Readonly<Record<string, string>>;

/** Upper bounds of the histogram buckets, in seconds. */
const buckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const;

export class Metrics {
  readonly #values = new Map<MetricName, Map<string, number>>();

  /** Adds to a counter. Adding 0 makes the counter appear before it first grows. */
  count(name: MetricName, labels: MetricLabels, by = 1, part = ''): void {
    const series = `${name}${part}${formatLabels(labels)}`;
    const known = this.#values.get(name) ?? new Map<string, number>();
    this.#values.set(name, known.set(series, (known.get(series) ?? 0) + by));
  }

  set(name: MetricName, value: number, labels: MetricLabels = {}): void {
    this.#values.set(name, new Map([[`${name}${formatLabels(labels)}`, value]]));
  }

  observe(name: MetricName, seconds: number): void {
    for (const bound of buckets) this.count(name, { le: `${bound}` }, Number(seconds <= bound), '_bucket');
    this.count(name, { le: '+Inf' }, 1, '_bucket');
    this.count(name, {}, seconds, '_sum');
    this.count(name, {}, 1, '_count');
  }

  format(): string {
    const names = Object.keys(metricFacts) as readonly MetricName[];
    const lines = names.flatMap((name) => {
      const series = [...(this.#values.get(name) ?? [])].map(([text, value]) => `${text} ${value}`);
      const { type, help } = metricFacts[name];
      return series.length === 0 ? [] : [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...series];
    });
    return lines.map((line) => `${line}\n`).join('');
  }
}

function formatLabels(labels: MetricLabels): string {
  const escape = (value: string) => value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escape(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

export interface Round {
  readonly isGood: boolean;
  readonly bundle?:
    { readonly mark: BundleMark; readonly manifest: Manifest; readonly listenOn: ListenAddresses } | undefined;
  readonly outcome?: ChangeOutcome | undefined;
  readonly failure?: Failure | undefined;
}

const results = ['unchanged', 'changed', 'put-back', 'stuck', 'failed'] as const satisfies readonly (
  ChangeOutcome['kind'] | 'failed'
)[];

export class WatchMetrics {
  readonly #metrics = new Metrics();
  #applied: string | undefined;

  constructor(version: string) {
    const metrics = this.#metrics;
    metrics.set('kpc_apply_build_info', 1, { version });
    for (const result of results) metrics.count('kpc_apply_rounds_total', { result }, 0);
    for (const object of changedObjects) {
      metrics.count('kpc_apply_drift_found_total', { object }, 0);
      metrics.count('kpc_apply_drift_repaired_total', { object }, 0);
    }
    for (const { name: tool } of tools) metrics.count('kpc_apply_tool_failures_total', { tool }, 0);
    for (const code of failureCodes) metrics.count('kpc_apply_failures_total', { code }, 0);
  }

  /** Records a finished round. `now`: the end of the round in milliseconds since 1970. `seconds`: its duration. */
  onRound(round: Round, now: number, seconds: number): void {
    const metrics = this.#metrics;
    const { bundle, isGood, outcome } = round;
    const failure = round.failure ?? (outcome && 'failure' in outcome ? outcome.failure : undefined);
    this.#countDrift(round);
    metrics.count('kpc_apply_rounds_total', { result: outcome?.kind ?? 'failed' });
    metrics.observe('kpc_apply_round_duration_seconds', seconds);
    metrics.set('kpc_apply_bundle_good', Number(isGood));
    if (failure) metrics.count('kpc_apply_failures_total', { code: failure.code });
    if (failure?.tool !== undefined) metrics.count('kpc_apply_tool_failures_total', { tool: failure.tool });
    if (bundle) {
      const { mode, node } = bundle.manifest;
      metrics.set('kpc_apply_bundle_info', 1, { digest: bundle.mark.digest, mode, node: node.name });
    }
    if (!outcome || !isDone(outcome)) return;
    this.#applied = bundle?.mark.digest;
    metrics.set('kpc_apply_draining_real_servers', outcome.plan.draining.length);
    metrics.set('kpc_apply_draining_connections', outcome.plan.kept);
    metrics.set('kpc_apply_last_success_timestamp_seconds', now / 1000);
  }

  /** Counts drift. If the bundle was applied in an earlier round, every change in this round undoes another program's change. */
  #countDrift({ bundle, outcome }: Round): void {
    if (!outcome || bundle?.mark.digest !== this.#applied) return;
    for (const { object, number } of countPlan(outcome.plan)) {
      this.#metrics.count('kpc_apply_drift_found_total', { object }, number);
      if (outcome.kind === 'changed') this.#metrics.count('kpc_apply_drift_repaired_total', { object }, number);
    }
  }

  format(isHealthy: boolean): string {
    this.#metrics.set('kpc_apply_healthy', Number(isHealthy));
    return this.#metrics.format();
  }
}
