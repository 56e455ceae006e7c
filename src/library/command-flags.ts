import { nameToQualify } from '../ask/describe/parse-asked.ts';
import type { IdleFlags } from '../base/findings/calls.ts';
import { lastAnnounced } from '../kube-proxy/announced.ts';
import { proxyModes } from '../kube-proxy/modes.ts';
import { lastRelease } from '../kube-proxy/releases.ts';
import { packetProtocols } from '../packet/packet.ts';
import type { Flag } from '../settings/flag.ts';
import type { Opened, Recognised } from '../snapshot/open/stored-side.ts';
import { flagRow, isOfManifests, openFlags, optionsAfter } from './options.ts';
import { refuse, refuseFlag, type BadCall } from './refusal.ts';

export const traceFlags: readonly Flag[] = [
  flagRow(
    'text',
    '--from <source>',
    'an address, a Pod by its name, deployment/name, pod, remote-pod, node or external',
  ),
  flagRow(
    'text',
    '--to <destination>',
    'address:port, node[/ipv6]:port, svc/name[:port], a DNS name, ingress/name, gateway/name, httproute/name, or the host/path of one',
    { idle: [{ beside: '--all', why: 'table' }] },
  ),
  flagRow('text', '--proto <protocol>', 'the protocol; icmp is a ping', {
    choices: packetProtocols,
    idle: [{ beside: '--all', why: 'each-protocol' }],
  }),
  flagRow('text', '--in-interface <name>', "the node's interface where the packet arrives", {
    idle: [{ without: '--from' }, { beside: '--from node', why: 'own-packets' }],
  }),
  flagRow(
    'text',
    '--all <service>',
    'print a table: from every kind of source, and from --from, to every address of a Service',
  ),
];

export const upgradeFlag: Flag = flagRow(
  'text',
  '--to-kubernetes-version <version>',
  `upgrade to this release, at most 1.${lastAnnounced}; for releases after ${lastRelease}, with the changes announced so far`,
);

export const changeFlags = {
  from: flagRow(
    'text',
    '--from <mode>',
    "the present mode (default: the configuration's; without one, ipvs, or in an upgrade kube-proxy's default, iptables)",
    { choices: proxyModes },
  ),
  to: flagRow(
    'text',
    '--to <mode>',
    'the mode afterwards (default: nftables; in an upgrade, the mode that results from it)',
    { choices: ['nftables', 'iptables'] },
  ),
  toConfig: flagRow(
    'text',
    '--to-config <file>',
    "kube-proxy's configuration afterwards (default: the present one, in the new mode)",
    { path: 'read' },
  ),
} as const;

export const migrateFlags: readonly Flag[] = [
  changeFlags.from,
  changeFlags.to,
  upgradeFlag,
  changeFlags.toConfig,
  ...openFlags('compares', { proxyMode: { idle: [{ beside: '--from', why: 'mode-twice' }] } }).map((row) =>
    optionsAfter.some((key) => key === row.key) ? { ...row, help: `${row.help}; only after the change` } : row,
  ),
];

export const allowEmptyFlag: Flag = flagRow(
  'on',
  '--allow-empty',
  'compile even if that programs nothing, which removes all Services from a node',
  { group: 'input' },
);

export const strictFlag: Flag = flagRow('on', '--strict', 'turn warnings into errors', { group: 'output' });

export function nodeFlag(help: string): Flag {
  return flagRow('text', '--node <name>', help, {
    needs: 'nodes',
    idle: [{ beside: '--all-nodes', why: 'all-nodes' }],
  });
}

/** Returns why a given flag has no effect together with the other flags. Undefined if all flags have an effect. */
export function findIdleFlag(
  given: readonly {
    readonly row: Flag;
    readonly value: unknown;
  }[],
): BadCall | undefined {
  const words = new Set(given.flatMap(({ row: { name }, value }) => [name, `${name} ${String(value)}`]));
  const [found] = given.flatMap(({ row: { name, idle: cases = [] } }) =>
    cases.flatMap((each): BadCall[] => {
      const flag = each.value === undefined ? name : `${name} ${each.value}`;
      if (!words.has(flag)) return [];
      if ('without' in each) {
        return words.has(each.without) ? [] : [{ problem: 'flag-alone', flag, without: each.without }];
      }
      const { beside, why } = each;
      const because = { kind: 'beside', beside, why } as const;
      return words.has(beside) ? [{ problem: 'idle-flag', flags: [flag], because }] : [];
    }),
  );
  return found;
}

/** Refuses flags that both sides override. `sides`: each side's own options; undefined for a side that is read from files. */
export function refuseNamedTwice(flags: readonly Flag[], sides: readonly (object | undefined)[]): void {
  const named = flags.filter(({ key }) => sides.every((adds) => adds && key in adds)).map(({ name }) => name);
  if (named.length > 0) refuse({ problem: 'idle-flag', flags: named, because: { kind: 'own-settings' } });
}

type InputOfFlags = Pick<Opened, 'nodes' | 'at'> & Pick<Recognised, 'kind'> & { readonly path?: string | undefined };

function refuseIdleFlags(
  flags: readonly Flag[],
  { kind, path = '', nodes, at }: InputOfFlags,
  node: string | undefined,
): void {
  if (kind !== 'bundle' && kind !== 'dump') return;
  const refuseFor = (idle: readonly string[], because: IdleFlags['because']): never =>
    refuse({ problem: 'idle-flag', flags: idle, because });
  const idle = flags.filter(({ needs }) => isOfManifests(needs));
  if (idle.length > 0)
    refuseFor(
      idle.map(({ name }) => name),
      { kind: 'compiled-already', path, of: kind },
    );
  if (!flags.some(({ needs }) => needs === 'nodes')) return;
  if (kind === 'dump') refuseFor(['--node'], { kind: 'own-node', path });
  const [own = ''] = nodes.map((name) => at(name).side?.nodeName);
  if (own !== node) refuseFor(['--node'], { kind: 'other-node', node: node ?? '', path, of: own });
}

/** Works like refuseIdleFlags, for a packet. Some flags without other effect affect the packet's names or a dump's addresses. */
export function refuseIdleOfPacket(
  flags: readonly Flag[],
  input: InputOfFlags,
  { node, allNodes, hostAddresses }: { readonly [Each in 'node' | 'allNodes' | 'hostAddresses']?: unknown },
): void {
  const { kind, path } = input;
  refuseIdleFlags(
    flags.filter(({ needs }) => needs !== 'manifests-or-packets'),
    input,
    node === undefined ? undefined : String(node),
  );
  if (allNodes === true && (kind === 'bundle' || kind === 'dump'))
    refuse({ problem: 'idle-flag', flags: ['--all-nodes'], because: { kind: 'one-node', path, of: kind } });
  if (kind === 'bundle' && hostAddresses !== undefined) refuseFlag('--host-addresses', 'own-addresses');
}

/**
 * Does what refuseIdleFlags does, for a description. Some flags that otherwise have no effect affect the name asked about, or the names and
 * flows of a dump with manifests beside it.
 */
export function refuseIdleOfDescription(
  flags: readonly Flag[],
  input: InputOfFlags,
  { what = '', node }: { readonly what?: string | undefined; readonly node?: string | undefined },
): void {
  const side = input.kind === 'dump' ? input.at('').side : undefined;
  const named = side?.kind === 'dump' && side.named ? side : undefined;
  const hasEffect = ({ key, needs }: Flag): boolean =>
    key === 'namespace'
      ? named !== undefined || nameToQualify(what) !== undefined
      : needs === 'manifests-or-flows' && named?.flows !== undefined;
  refuseIdleFlags(
    flags.filter((flag) => !hasEffect(flag)),
    input,
    node,
  );
}
