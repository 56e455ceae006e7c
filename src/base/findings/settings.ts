import type { Family } from '../../kernel/address.ts';
import type { LineFault } from '../../kernel/lines.ts';
import type { Unread } from '../unread.ts';
import type { GateFault } from '../../kube-proxy/feature-gates.ts';
import type { ProxyMode, UnnamedBy } from '../../kube-proxy/modes.ts';
import type { Release } from '../../kube-proxy/releases.ts';
import { row, ofCompiling, byProblem, severityBy, type None, type Strings, type Numbers, type Lists } from './rows.ts';

/** `name` is undefined if the finding is about the compiled mode, not about a flag or field. */
export interface ModeOfRelease {
  readonly name?: string | undefined;
  readonly mode: ProxyMode;
  readonly release: Release;
  /** Set if the mode or release is a side of a comparison, where no flag can change it. */
  readonly side?: 'mode' | 'release' | 'configuration' | undefined;
}

export interface UnknownFlagNode extends Lists<'names' | 'known'> {
  readonly flag: '--node' | 'hostnameOverride';
  /** Set if `known` are the nodes of a fleet's bundles, not Nodes. */
  readonly isOfFleet?: true;
}

export interface UnknownAddresses {
  /** Set if node ports have no address to listen on. */
  readonly lacksAddresses: boolean;
  readonly listensOnAll: boolean;
}

/**
 * `picked` is --nodeport-addresses. `addresses` are the node's known addresses. `areAll`: --host-addresses gave them, so they are complete.
 */
export type UnreachableNodePorts = Lists<'nodes' | 'picked' | 'addresses'> & { readonly areAll: boolean };

/** `ofNodes` means that kpc compiles for several nodes, some of which may lack endpoints. */
export type LocalhostNodePort = Strings<'servicePort'> &
  Numbers<'nodePort'> & { readonly families: readonly Family[]; readonly ofNodes: boolean };

export const settingFindings = {
  'bad-feature-gate': row<GateFault>('error'),
  /** `node` is '' if no node is named. `version` is the version in the Node object, or ''. */
  'bad-kubernetes-version': row<
    Strings<'flag' | 'node' | 'version'> & { readonly nodeObject: 'given' | 'assumed' | 'missing' }
  >('error'),
  'bad-mode': byProblem<{
    'not-in-release': ModeOfRelease;
    'gate-off': ModeOfRelease;
  }>('error'),
  'covered-addresses': row<Strings<'network' | 'socket'>>('warning'),
  'default-mode': ofCompiling<{ readonly named: UnnamedBy }>('note'),
  'ipvs-ends': row<None>('warning'),
  userspace: byProblem<{
    'bind-address': Strings<'flag' | 'address'>;
    'few-ports': Strings<'flag'> & Numbers<'served' | 'size'>;
    unserved: Lists<'labels'>;
    ignored: Lists<'services'>;
  }>(severityBy('problem', 'error', { unserved: 'warning', ignored: 'warning' })),
  'kubernetes-version': ofCompiling<Strings<'node' | 'version'> & { readonly release: Release }>('note'),
  'kubernetes-preview': ofCompiling<{ readonly release: Release }>('note'),
  'no-config': row<None>('error'),
  'not-applicable': row<Strings<'name' | 'value' | 'must'>>('warning'),
  'bad-host-addresses': byProblem<{
    'bad-line': { readonly reason: LineFault };
    content: { readonly reason: Unread };
    'no-folder': Strings<'path'>;
    'other-node': Strings<'node'> & Lists<'addresses'>;
  }>(severityBy('problem', 'error', { 'other-node': 'warning' })),
  'bad-prune': row<None>('error'),
  'localhost-node-port': row<LocalhostNodePort>('warning'),
  'no-host-addresses': row<Strings<'path'> & Numbers<'nodes'> & Lists<'without'>>('note'),
  'no-service-cidrs': ofCompiling<None>('note'),
  'no-node': byProblem<{
    'none-chosen': None;
    'compiled-for-any': UnknownAddresses & Numbers<'nodes'> & { readonly mode: ProxyMode };
    'named-windows': Lists<'names'>;
    windows: Lists<'names'>;
  }>(severityBy('problem', 'error', { 'compiled-for-any': 'note', windows: 'note' })),
  'no-node-object': row<UnknownAddresses & Lists<'names'>>('note'),
  'no-node-port-address': row<UnreachableNodePorts>('warning'),
  // `names` is empty if no node is named.
  'no-pod-cidr': row<Lists<'names'>>('error'),
  'unknown-node': row<UnknownFlagNode>('error'),
  // `nodes` are the nodes that the Pods name; empty if they name none.
  'unknown-node-of-pod': row<Lists<'pods' | 'nodes'>>('warning'),
  // `of` is "clusterCIDR", or "podCIDRs" of the Node.
  'wrong-family': row<Strings<'of' | 'node'> & Lists<'cidrs'> & { readonly family: Family }>(
    severityBy('of', 'warning', { podCIDRs: 'error' }),
  ),
};
