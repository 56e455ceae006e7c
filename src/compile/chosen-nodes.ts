import { checkLocalDetection } from '../cluster/check-nodes.ts';
import { type Diagnostic, diagnose } from '../diagnostics/diagnostic.ts';
import { isName } from '../base/object-names.ts';
import { findNearest } from '../base/find-nearest.ts';
import type { Prepared } from './compile-node.ts';
import { describeSpecial, parseAddress } from '../kernel/address.ts';
import type { Node, Source } from '../cluster/objects.ts';

/** So many names are looked up for a near one each; a fleet's would take long. */
const mostHints = 3;

/** The nodes to compile for. */
export interface CheckedNodes {
  readonly names: readonly string[];
  /** The names given by --node. */
  readonly flag: readonly string[] | undefined;
}

/** One node; `flag` is what --node gives. */
export function oneNode(name: string, flag: string | undefined): CheckedNodes {
  return { names: [name], flag: flag === undefined ? undefined : [flag] };
}

/**
 * What is wrong with compiling for these nodes: where the input holds Nodes, a name that is none of theirs is a mistake,
 * kube-proxy has to be able to start there, and their addresses should be such that it can use them.
 */
export function checkNodes(
  { names, flag }: CheckedNodes,
  prepared: Pick<Prepared, 'nodes' | 'nodeSources' | 'settings'>,
): readonly Diagnostic[] {
  const unknown = findUnknown(flag, prepared);
  if (unknown.length > 0) return unknown;
  return [
    ...checkLocalDetection(names, prepared, prepared.settings),
    ...names.flatMap((name) => {
      const node = prepared.nodes.get(name);
      return node ? checkNodeAddresses(node, prepared.nodeSources.get(name)) : [];
    }),
  ];
}

function findUnknown(
  flag: readonly string[] | undefined,
  { nodes, settings }: Pick<Prepared, 'nodes' | 'settings'>,
): readonly Diagnostic[] {
  if (nodes.size === 0) return [];
  const own = settings.hostnameOverride === '' ? [] : [settings.hostnameOverride];
  // A name that no node can have is refused as such.
  const unknown = [...new Set(flag ?? own)].filter((name) => !nodes.has(name) && isName(name, 'subdomain'));
  const known = [...nodes.keys()].sort();
  if (unknown.length === 0) return [];
  const near = new Set(unknown.slice(0, mostHints).flatMap((name) => findNearest(name, known) ?? []));
  const named = flag ? '--node' : 'hostnameOverride';
  return [diagnose('unknown-node', { what: 'flag', flag: named, names: unknown, near: [...near], known })];
}

/** The types of a Node's addresses that kube-proxy looks at. */
const addressTypes: ReadonlySet<string> = new Set(['InternalIP', 'ExternalIP']);

/**
 * Warns of addresses of a Node that kube-proxy leaves out (GetNodeHostIPs in pkg/util/node takes what ParseIPSloppy reads), and
 * of those that it takes and no node should have. The API server checks none of them.
 */
function checkNodeAddresses(node: Node, source: Source | undefined): readonly Diagnostic[] {
  return node.addresses.flatMap(({ type: field, address: value }, index) => {
    if (!addressTypes.has(field)) return [];
    const common = { node: node.metadata.name, field, value };
    const place = source?.place(['status', 'addresses', index, 'address']);
    const address = parseAddress(value);
    if (!address) return [diagnose('bad-address', { ...common, expected: 'an IP address' }, place)];
    const kind = describeSpecial(address);
    return [
      ...(kind === undefined ? [] : [diagnose('special-address', { ...common, use: 'node', kind }, place)]),
      ...(address.text === value ? [] : [diagnose('odd-address', { field, value, address: address.text }, place)]),
    ];
  });
}
