import { unnamedMode } from '../kube-proxy/modes.ts';
import type { CompiledSnapshot } from './snapshot.ts';

/**
 * Describes what a state applies to: "node node-1 (assumed), mode ipvs (nothing names a mode), ipv4". `modeFrom`: where the mode comes
 * from, in brackets, if `assumed` does not show it.
 */
export function describeGrounds({ nodeName, mode, families, assumed }: CompiledSnapshot, modeFrom = ''): string {
  const mark = (isAssumed: boolean): string => (isAssumed ? ' (assumed)' : '');
  const where = nodeName === '' ? 'any node' : `node ${nodeName}${mark(assumed.node)}`;
  const from = modeFrom === '' && assumed.mode ? ` ${unnamedMode}` : modeFrom;
  return `${where}, mode ${mode}${from}, ${families.join(' and ')}${mark(assumed.families.length > 0)}`;
}
