import type { ChangeEvent } from '../change/observe-node.ts';
import type { ChangeOutcome } from '../change/change-node.ts';
import type { SyncResult } from '../change/watch.ts';
import { countPlan } from '../plan/describe-plan.ts';
import type { Plan } from '../plan/plan.ts';
import { failureMeanings } from '../../base/failure-codes.ts';
import type { Failure } from '../state/failure.ts';
import type { BundleMark } from '../state/record.ts';
import { tools } from '../node/tools.ts';
import type { Host } from '../node/host.ts';
import { changedObjects } from '../../diff/changes/kernel-change.ts';
import type { Manifest } from '../../bundle/manifest.ts';
import { createMetrics } from './metrics.ts';

/** What a round of watch came to. */
export interface Round {
  readonly result: SyncResult;
  /** The bundle that it used; undefined if there was none. */
  readonly bundle?: { readonly mark: BundleMark; readonly manifest: Manifest } | undefined;
  readonly outcome?: ChangeOutcome | undefined;
  readonly failure?: Failure | undefined;
}

/** Keeps the metrics of a watch. */
export interface WatchMetrics {
  onEvent(event: ChangeEvent): void;
  /** A round that has ended, how long it took, and whether its bundle was a good one. */
  onRound(round: Round, seconds: number, isGood: boolean): void;
  format(isHealthy: boolean): string;
}

const results = ['unchanged', 'changed', 'put-back', 'stuck', 'failed'] as const satisfies readonly (
  ChangeOutcome['kind'] | 'failed'
)[];

export function createWatchMetrics(version: string, host: Pick<Host, 'now'>): WatchMetrics {
  const metrics = createMetrics();
  metrics.set('kpc_apply_build_info', 1, { version });
  for (const result of results) metrics.count('kpc_apply_rounds_total', { result }, 0);
  for (const object of changedObjects) {
    metrics.count('kpc_apply_drift_found_total', { object }, 0);
    metrics.count('kpc_apply_drift_repaired_total', { object }, 0);
  }
  for (const { name: tool } of tools) metrics.count('kpc_apply_tool_failures_total', { tool }, 0);
  for (const code of Object.keys(failureMeanings)) metrics.count('kpc_apply_failures_total', { code }, 0);
  let applied: string | undefined;
  let planned: Plan | undefined;

  /** Of a round whose bundle was applied before: whatever it changes, another program changed. */
  function countDrift({ bundle, outcome }: Round): void {
    if (planned && bundle && bundle.mark.digest === applied) {
      for (const { object, number } of countPlan(planned)) {
        metrics.count('kpc_apply_drift_found_total', { object }, number);
        if (outcome?.kind === 'changed') metrics.count('kpc_apply_drift_repaired_total', { object }, number);
      }
    }
    planned = undefined;
  }

  return {
    onEvent(event) {
      if (event.kind === 'planned') planned = event.plan;
    },
    onRound(round, seconds, isGood) {
      const { result, bundle, outcome } = round;
      const failure = round.failure ?? (outcome && 'failure' in outcome ? outcome.failure : undefined);
      countDrift(round);
      metrics.count('kpc_apply_rounds_total', { result: outcome?.kind ?? 'failed' });
      metrics.observe('kpc_apply_round_duration_seconds', seconds);
      metrics.set('kpc_apply_bundle_good', Number(isGood));
      if (failure) metrics.count('kpc_apply_failures_total', { code: failure.code });
      if (failure?.tool !== undefined) metrics.count('kpc_apply_tool_failures_total', { tool: failure.tool });
      if (bundle) {
        const { mode, node } = bundle.manifest;
        metrics.clear('kpc_apply_bundle_info');
        metrics.set('kpc_apply_bundle_info', 1, { digest: bundle.mark.digest, mode, node: node.name });
      }
      if (outcome && 'plan' in outcome) {
        metrics.set('kpc_apply_draining_real_servers', outcome.plan.draining.length);
        metrics.set('kpc_apply_draining_connections', outcome.plan.kept);
      }
      if (result !== 'done') return;
      applied = bundle?.mark.digest;
      metrics.set('kpc_apply_last_success_timestamp_seconds', host.now() / 1000);
    },
    format(isHealthy) {
      metrics.set('kpc_apply_healthy', Number(isHealthy));
      return metrics.format();
    },
  };
}
