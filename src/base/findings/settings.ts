import type { Family } from '../../kernel/family.ts';
import type { GateFault } from '../../kube-proxy/feature-gates.ts';
import type { ProxyMode } from '../../kube-proxy/modes.ts';
import type { Release } from '../../kube-proxy/releases.ts';
import { row, ofCompiling, byProblem, severityBy, type None, type Texts, type Numbers, type Lists } from './rows.ts';

/** A flag, or a field of the configuration, and what was written there. */
export type WrittenSetting = Texts<'name' | 'value'>;

/** `name` is undefined if no flag or field is meant, but the mode that is compiled for. */
export interface ModeOfRelease {
  readonly name?: string | undefined;
  readonly mode: ProxyMode;
  readonly release: Release;
}

/** `known` lists all Nodes of the input. */
export interface UnknownFlagNode extends Lists<'names' | 'known'> {
  readonly flag: '--node' | 'hostnameOverride';
}

export interface UnknownAddresses {
  /** Node ports have no address to listen on. */
  readonly lacksAddresses: boolean;
  /** Node ports listen on all addresses, because the node's own are unknown. */
  readonly listensOnAll: boolean;
}

/**
 * `picked` is the value of --nodeport-addresses; `addresses` are the node's known addresses. `areAll`: whether
 * --host-addresses gives all of them.
 */
export type UnreachableNodePorts = Texts<'node'> & Lists<'picked' | 'addresses'> & { readonly areAll: boolean };

/** `ofNodes`: whether kpc compiles for many nodes, some of which may have no endpoints for it. */
export type LocalhostNodePort = Texts<'servicePort'> &
  Numbers<'nodePort'> & { readonly families: readonly Family[]; readonly ofNodes: boolean };

/** Problems with kube-proxy's flags and configuration and the nodes to compile for, and what kpc chose by default. */
export const settingFindings = {
  'bad-feature-gate': row<GateFault>('error'),
  /** `node` is '' if none is named; `version` is what its object reports, '' if nothing. */
  'bad-kubernetes-version': row<Texts<'flag' | 'node' | 'version'>>('error'),
  'bad-mode': byProblem<{
    'not-in-release': ModeOfRelease;
    'gate-off': ModeOfRelease;
  }>('error'),
  'covered-addresses': row<Texts<'network' | 'socket'>>('warning'),
  // `named` is what leaves the mode to kube-proxy.
  'default-mode': ofCompiling<{ readonly named: 'empty-flag' | 'configuration' | 'nothing' }>('note'),
  'ipvs-ends': row<None>('warning'),
  userspace: byProblem<{
    'bind-address': Texts<'flag' | 'address'>;
    'few-ports': Texts<'flag'> & Numbers<'served' | 'size'>;
    unserved: Lists<'labels'>;
    ignored: Lists<'services'>;
  }>(severityBy('problem', 'error', { unserved: 'warning', ignored: 'warning' })),
  'kubernetes-version': ofCompiling<Texts<'node' | 'version'> & { readonly release: Release }>('note'),
  'kubernetes-preview': ofCompiling<{ readonly release: Release }>('note'),
  'no-config': row<None>('error'),
  'not-applicable': row<WrittenSetting & Texts<'must'>>('warning'),
  'bad-host-addresses': byProblem<{
    content: Texts<'reason'>;
    'no-folder': Texts<'path'>;
  }>('error'),
  'bad-prune': row<None>('error'),
  'localhost-node-port': row<LocalhostNodePort>('warning'),
  // `nodes` counts the nodes to compile for.
  'no-host-addresses': row<Texts<'path'> & Numbers<'nodes'> & Lists<'without'>>('note'),
  'no-service-cidrs': ofCompiling<None>('note'),
  'no-node': byProblem<{
    'none-chosen': None;
    'compiled-for-any': UnknownAddresses & Numbers<'nodes'> & { readonly mode: ProxyMode };
  }>(severityBy('problem', 'error', { 'compiled-for-any': 'note' })),
  'no-node-object': row<UnknownAddresses & Lists<'names'>>('note'),
  'no-node-port-address': row<UnreachableNodePorts>('warning'),
  // `names` is empty if no node is named.
  'no-pod-cidr': row<Lists<'names'>>('error'),
  'unknown-node': row<UnknownFlagNode>('error'),
  // `nodes` are the Nodes that the Pods name; empty if no Pod names one.
  'unknown-node-of-pod': row<Lists<'pods' | 'nodes'>>('warning'),
  // `of` is "clusterCIDR", or "podCIDRs" of the Node.
  'wrong-family': row<Texts<'of' | 'node'> & Lists<'cidrs'> & { readonly family: Family }>(
    severityBy('of', 'warning', { podCIDRs: 'error' }),
  ),
};
