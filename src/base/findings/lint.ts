import type { Family } from '../../kernel/address.ts';
import type { Release, Behaviour } from '../../kube-proxy/releases.ts';
import { row, byProblem, severityBy, type By, type None, type Strings, type Numbers, type Lists } from './rows.ts';

export interface OnNodes extends Lists<'nodes'>, Numbers<'of'> {
  /** The family, if the Service has two and the finding is about one. */
  readonly family?: Family | undefined;
}

export type OfService = Strings<'service'>;

export type Asking = OfService & Strings<'field'>;

export interface Unready extends Numbers<'endpoints'> {
  readonly publishes: boolean;
  /** The owners of the Pods that the Service selects, such as "Deployment default/web". Set only if the Service has no endpoints. */
  readonly owner?: string | undefined;
  readonly isScaledToZero: boolean;
  readonly unused?: Unused | undefined;
  /** The reasons why no selected Pod is an endpoint, without duplicates. */
  readonly pods?: readonly UnfitPod[] | undefined;
}

/** The reason why a Pod is not an endpoint: it has ended, has no address yet, or has no address in the Service's families. */
export type UnfitPod = (typeof unfitPods)[number];

export const unfitPods = ['ended', 'pending', 'other-family'] as const;

/** Why kube-proxy skips all slices of a Service: because of their address types, or because ports lack numbers. */
export type Unused = { readonly by: 'address-type'; readonly types: readonly string[] } | { readonly by: 'port' };

/** Where clients outside the cluster reach a Service. `at`: the port or address, if known. */
export interface FromOutside extends Partial<Strings<'at'>> {
  readonly way: 'nodePort' | 'externalIP' | 'loadBalancerIP';
}

export interface RangedPort extends Numbers<'nodePort'>, Strings<'range'> {
  readonly what: 'nodePort' | 'healthCheckNodePort';
  /** Whether the range is a default, which neither the input nor a flag states. */
  readonly isUsual: boolean;
}

export interface MissingObject extends Strings<'owner' | 'missing'> {
  readonly near?: string | undefined;
  /** Another program's object that may create the Service. */
  readonly maker?: string | undefined;
}

/** Reports whether it may be intended that the Service has no endpoints, because its workload was scaled to zero. */
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
        /** The Pods' nodes are unknown, but there are fewer Pods than nodes. */
        'internal-few': OfService & Numbers<'pods' | 'among'>;
        external: OfService & FromOutside & OnNodes;
        unplaced: OfService & FromOutside;
        unsteered: OfService;
      }
    >
  >(severityBy('traffic', 'warning', { 'internal-tainted': 'note', 'internal-few': 'note', unsteered: 'note' })),
  'undetected-pods': row<
    OfService & Strings<'address'> & { readonly lacks: 'podCIDRs' | 'clusterCIDR' | Family } & OnNodes
  >('warning'),
  'no-ready-endpoint': row<OfService & Unready>({
    among: ['warning', 'note'],
    weigh: (details: Unready) => (isIdle(details) ? 'note' : 'warning'),
  }),
  'family-without-endpoints': row<OfService & Strings<'address'> & { readonly family: Family; readonly other: Family }>(
    'warning',
  ),
  'unserved-address': row<OfService & Strings<'address'> & { readonly family: Family }>('warning'),
  'headless-addresses': row<OfService & Lists<'addresses'>>('warning'),
  'headless-port': row<OfService & Numbers<'port' | 'target'> & Strings<'owner'>>('note'),
  'undeclared-port': row<OfService & Strings<'port' | 'owner'> & Lists<'ports'>>('note'),
  'taken-health-check-port': row<
    By<
      'taken',
      {
        'as-node-port': OfService & Numbers<'port'> & Strings<'holder'>;
        'as-health-check-port': OfService & Numbers<'port'> & Strings<'holder'>;
      }
    >
  >('warning'),
  'cluster-ip-endpoint': row<OfService & Strings<'address' | 'holder'>>('warning'),
  'unused-slice-port': row<OfService & Strings<'port'> & Lists<'ports'>>('warning'),
  // `ports` are like "30080/TCP"; empty before the API server assigns them.
  'open-node-port': row<OfService & Lists<'ports'>>('warning'),
  'unbound-source-ranges': byProblem<{
    'ip-mode-proxy': OfService & Strings<'address'>;
    hostname: OfService & Strings<'hostname'>;
    'other-family': OfService & Strings<'address'> & { readonly family: Family };
  }>('warning'),
  'node-shut-out': row<OfService & Strings<'address'> & OnNodes>('note'),
  'node-port-range': row<RangedPort>('warning'),
  'refused-cluster-ip': byProblem<{
    taken: OfService & Strings<'address' | 'holder'>;
    'out-of-range': OfService & Strings<'address'> & Lists<'networks'>;
  }>('warning'),
  'unnamed-mode': row<None>('warning'),
  'idle-hints': byProblem<{
    'policy-local': Asking;
    'not-in-release': Asking & {
      readonly release: Release;
      readonly behaviour: Behaviour;
    };
    'no-hints': Asking & Numbers<'endpoints'>;
    'endpoint-without-hint': OfService & Strings<'endpoint'> & OnNodes;
    'node-without-zone': OfService & OnNodes;
    'none-for-zone': OfService & Lists<'zones'> & OnNodes;
  }>(severityBy('problem', 'warning', { 'none-for-zone': 'note' })),
  'idle-affinity': byProblem<{
    headless: OfService;
    scheduler: OfService & Strings<'scheduler'> & Numbers<'seconds'>;
  }>('note'),
  'full-set': row<Strings<'set'> & Numbers<'entries' | 'limit'> & OnNodes>('warning'),
  'lax-arp': row<Strings<'by'>>('warning'),
  'host-port': row<OfService & Strings<'owner'> & Lists<'ports'> & { readonly beside: 'cluster-ip' | 'source-ranges' }>(
    severityBy('beside', 'note', { 'source-ranges': 'warning' }),
  ),
  'policy-port': row<OfService & Strings<'policy' | 'owner' | 'protocol'> & Numbers<'port' | 'target'>>('warning'),
  'unknown-service': byProblem<{
    backend: MissingObject;
    port: OfService & Strings<'owner' | 'port'> & Lists<'ports'>;
    'service-name': MissingObject;
  }>(severityBy('problem', 'note', { port: 'warning' })),
  'ignored-service': row<OfService & Strings<'label'>>('note'),
  'misspelled-key': row<OfService & Strings<'key' | 'near'> & { readonly field: 'annotations' | 'labels' }>('warning'),
  'idle-ignore': byProblem<{
    'matches-nothing': Strings<'by' | 'code'> & { readonly service?: string | undefined };
    error: Strings<'by' | 'code'>;
    'no-such-code': Strings<'by' | 'code'> & { readonly near?: string | undefined };
  }>(severityBy('problem', 'warning', { 'matches-nothing': 'note' })),
};
