/** A metric of Prometheus: what it is, for people, and how it may change. */
interface MetricFact {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
}

/** The metrics of watch, in the order in which they are written. docs/monitoring.md has the same. */
export const metricFacts = {
  kpc_apply_build_info: { type: 'gauge', help: 'Always 1. The version of kpc-apply.' },
  kpc_apply_bundle_info: { type: 'gauge', help: 'Always 1. The bundle that the last round used, by its digest.' },
  kpc_apply_bundle_good: {
    type: 'gauge',
    help: 'Whether the bundle can be applied; if not, the last good one is used.',
  },
  kpc_apply_healthy: { type: 'gauge', help: 'Whether a round succeeded within the last two sync periods.' },
  kpc_apply_last_success_timestamp_seconds: {
    type: 'gauge',
    help: 'When a round last left the node as the bundle says.',
  },
  kpc_apply_rounds_total: { type: 'counter', help: 'Rounds, by their result.' },
  kpc_apply_round_duration_seconds: { type: 'histogram', help: 'How long a round took.' },
  kpc_apply_drift_found_total: {
    type: 'counter',
    help: 'Objects that differed from a bundle that was applied before.',
  },
  kpc_apply_drift_repaired_total: { type: 'counter', help: 'Drifted objects that a round restored.' },
  kpc_apply_failures_total: { type: 'counter', help: 'Rounds that failed, by the code of the error.' },
  kpc_apply_tool_failures_total: {
    type: 'counter',
    help: 'Rounds that failed, by the tool that is missing, hung or failed.',
  },
  kpc_apply_draining_real_servers: {
    type: 'gauge',
    help: 'Removed real servers that wait for their connections to end.',
  },
  kpc_apply_draining_connections: { type: 'gauge', help: 'Open connections to those real servers.' },
} as const satisfies Readonly<Record<`kpc_apply_${string}`, MetricFact>>;

type MetricName = keyof typeof metricFacts;
type NameOf<Type extends MetricFact['type']> = {
  readonly [Name in MetricName]: (typeof metricFacts)[Name]['type'] extends Type ? Name : never;
}[MetricName];
type Labels = Readonly<Record<string, string>>;

/** Upper bounds, in seconds. */
const buckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const;

/** The values of metrics. */
export interface Metrics {
  /** Adds to a counter; by 0, so that the counter is there before it first grows. */
  count(name: NameOf<'counter'>, labels: Labels, by?: number): void;
  set(name: NameOf<'gauge'>, value: number, labels?: Labels): void;
  /** Takes away all values that a metric has. */
  clear(name: NameOf<'gauge'>): void;
  observe(name: NameOf<'histogram'>, seconds: number): void;
  /** In the text format of Prometheus. */
  format(): string;
}

export function createMetrics(): Metrics {
  const values = new Map<MetricName, Map<string, number>>();
  const seriesOf = (name: MetricName): Map<string, number> => {
    const known = values.get(name) ?? new Map<string, number>();
    values.set(name, known);
    return known;
  };
  const add = (name: MetricName, series: string, by: number): void =>
    void seriesOf(name).set(series, (seriesOf(name).get(series) ?? 0) + by);

  return {
    count: (name, labels, by = 1) => add(name, `${name}${formatLabels(labels)}`, by),
    set: (name, value, labels = {}) => void seriesOf(name).set(`${name}${formatLabels(labels)}`, value),
    clear: (name) => void values.delete(name),
    observe(name, seconds) {
      for (const bound of buckets) add(name, `${name}_bucket{le="${bound}"}`, Number(seconds <= bound));
      add(name, `${name}_bucket{le="+Inf"}`, 1);
      add(name, `${name}_sum`, seconds);
      add(name, `${name}_count`, 1);
    },
    format: () =>
      Object.entries(metricFacts)
        .flatMap(([name, { type, help }]) => {
          const lines = [...(values.get(name as MetricName) ?? [])].map(([series, value]) => `${series} ${value}\n`);
          return lines.length === 0 ? [] : [`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`, ...lines];
        })
        .join(''),
  };
}

function formatLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeValue(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escapeValue(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
