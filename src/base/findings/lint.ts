import type { Family } from '../../kernel/family.ts';
import type { Release, Behaviour } from '../../kube-proxy/releases.ts';
import { row, byProblem, severityBy, type By, type None, type Texts, type Numbers, type Lists } from './rows.ts';

/** The nodes on which something holds, of `of` nodes in the input. */
export interface OnNodes extends Lists<'nodes'>, Numbers<'of'> {}

export type OfService = Texts<'service'>;

export type Asking = OfService & Texts<'field'>;

export interface Unready extends Numbers<'endpoints'> {
  readonly publishes: boolean;
  /** What it selects, if it has no endpoints: "Deployment default/web". */
  readonly owner?: string | undefined;
  readonly isScaledToZero: boolean;
  readonly unused?: Unused | undefined;
  /** Why none of the Pods that it selects is an endpoint. */
  readonly pods?: 'ended' | 'pending' | undefined;
}

/** Why kube-proxy skips all slices of a Service: their address types, or ports without numbers. */
export type Unused = { readonly by: 'address-type'; readonly types: readonly string[] } | { readonly by: 'port' };

export interface RangedPort extends Numbers<'nodePort'>, Texts<'range'> {
  readonly what: 'node port' | 'health check node port';
  /** Whether the range is a default that nothing names. */
  readonly isUsual: boolean;
}

/** The object that names a missing Service ("namespace/name"). */
export interface Missing extends Texts<'owner' | 'missing'> {
  /** A Service of the input with a similar name. */
  readonly near?: string | undefined;
  /** An object of another program that may create it. */
  readonly maker?: string | undefined;
}

/** Whether nothing need be wrong with it. */
export function isIdle({ owner, isScaledToZero }: Unready): boolean {
  return isScaledToZero && owner !== undefined;
}

export const lintFindings = {
  'local-without-endpoint': row<
    By<
      'traffic',
      {
        internal: OfService & OnNodes;
        'internal-tainted': OfService & OnNodes;
        /** Its Pods' nodes are unknown, but there are fewer Pods than nodes. */
        'internal-few': OfService & Numbers<'pods' | 'among'>;
        external: OfService & Texts<'way'> & OnNodes;
        unplaced: OfService & Texts<'way'>;
        unsteered: OfService;
      }
    >
  >(severityBy('traffic', 'warning', { 'internal-tainted': 'note', 'internal-few': 'note', unsteered: 'note' })),
  'undetected-pods': row<OfService & Texts<'address' | 'lacks'> & OnNodes>('warning'),
  'no-ready-endpoint': row<OfService & Unready>({
    among: ['warning', 'note'],
    weigh: (details: Unready) => (isIdle(details) ? 'note' : 'warning'),
  }),
  'family-without-endpoints': row<OfService & Texts<'address'> & { readonly family: Family; readonly other: Family }>(
    'warning',
  ),
  'unserved-address': row<OfService & Texts<'address'> & { readonly family: Family }>('warning'),
  'headless-addresses': row<OfService & Lists<'addresses'>>('warning'),
  'headless-port': row<OfService & Numbers<'port' | 'target'> & Texts<'owner'>>('note'),
  'undeclared-port': row<OfService & Texts<'port' | 'owner'> & Lists<'ports'>>('note'),
  'taken-health-check-port': row<
    By<
      'taken',
      {
        'as-node-port': OfService & Numbers<'port'> & Texts<'holder'>;
        'as-health-check-port': OfService & Numbers<'port'> & Texts<'holder'>;
      }
    >
  >('warning'),
  'cluster-ip-endpoint': row<OfService & Texts<'address' | 'holder'>>('warning'),
  'unused-slice-port': row<OfService & Texts<'port'> & Lists<'ports'>>('warning'),
  // `ports`: each as "30080/TCP"; empty before the API server assigns them.
  'open-node-port': row<OfService & Lists<'ports'>>('warning'),
  'unbound-source-ranges': byProblem<{
    'ip-mode-proxy': OfService & Texts<'address'>;
    hostname: OfService & Texts<'hostname'>;
    'other-family': OfService & Texts<'address'> & { readonly family: Family };
  }>('warning'),
  'node-shut-out': row<OfService & Texts<'address'> & OnNodes>('note'),
  'node-port-range': row<RangedPort>('warning'),
  'refused-cluster-ip': byProblem<{
    taken: OfService & Texts<'address' | 'holder'>;
    'out-of-range': OfService & Texts<'address'> & Lists<'networks'>;
  }>('warning'),
  'unnamed-mode': row<None>('warning'),
  'idle-hints': byProblem<{
    'policy-local': Asking;
    'not-in-release': Asking & {
      readonly release: Release;
      readonly behaviour: Behaviour;
    };
    'no-hints': Asking & Numbers<'endpoints'>;
    'endpoint-without-hint': OfService & Texts<'endpoint'> & OnNodes;
    'node-without-zone': OfService & OnNodes;
    'none-for-zone': OfService & Lists<'zones'> & OnNodes;
  }>(severityBy('problem', 'warning', { 'none-for-zone': 'note' })),
  'idle-affinity': byProblem<{
    headless: OfService;
    scheduler: OfService & Texts<'scheduler'> & Numbers<'seconds'>;
  }>('note'),
  'full-set': row<Texts<'set'> & Numbers<'entries' | 'limit'> & OnNodes>('warning'),
  'lax-arp': row<Texts<'by'>>('warning'),
  'host-port': row<OfService & Texts<'owner'> & Lists<'ports'> & { readonly beside: 'cluster-ip' | 'source-ranges' }>(
    severityBy('beside', 'note', { 'source-ranges': 'warning' }),
  ),
  'policy-port': row<OfService & Texts<'policy' | 'owner' | 'protocol'> & Numbers<'port' | 'target'>>('warning'),
  'unknown-service': byProblem<{
    backend: Missing;
    port: OfService & Texts<'owner' | 'port'> & Lists<'ports'>;
    'service-name': Missing;
  }>(severityBy('problem', 'note', { port: 'warning' })),
  'ignored-service': row<OfService & Texts<'label'>>('note'),
  'misspelled-key': row<OfService & Texts<'key' | 'near'> & { readonly field: 'annotations' | 'labels' }>('warning'),
  'idle-ignore': byProblem<{
    'matches-nothing': Texts<'by' | 'code'> & { readonly service?: string | undefined };
    error: Texts<'by' | 'code'>;
    'no-such-code': Texts<'by' | 'code'> & { readonly near?: string | undefined };
  }>(severityBy('problem', 'warning', { 'matches-nothing': 'note' })),
};
