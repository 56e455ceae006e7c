import type { Family } from '../kernel/family.ts';
import { unnamedMode, type ProxyMode } from '../kube-proxy/modes.ts';
import type { CompiledSnapshot } from './snapshot.ts';

interface CompiledFor {
  readonly node: { readonly name: string };
  readonly mode: ProxyMode;
  readonly families: readonly Family[];
  /** What was assumed; undefined if the source does not record it. */
  readonly assumed?: Pick<CompiledSnapshot['assumed'], 'node' | 'mode' | 'families'> | undefined;
}

/**
 * What a state applies to: "node node-1 (assumed), mode ipvs (nothing names a mode), ipv4". `modeFrom`, also in
 * brackets, says where the mode comes from if `assumed` is not enough.
 */
export function describeGrounds({ node: { name }, mode, families, assumed }: CompiledFor, modeFrom = ''): string {
  const mark = (isAssumed = false): string => (isAssumed ? ' (assumed)' : '');
  const where = name === '' ? 'any node' : `node ${name}${mark(assumed?.node)}`;
  const from = modeFrom === '' && assumed?.mode ? ` ${unnamedMode}` : modeFrom;
  return `${where}, mode ${mode}${from}, ${families.join(' and ')}${mark(assumed && assumed.families.length > 0)}`;
}
