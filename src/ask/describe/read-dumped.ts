import type { NoService } from '../../base/findings/command-line.ts';
import type { DumpNote } from '../../base/findings/files.ts';
import { groupBy } from '../../cluster/grouping.ts';
import { keyOfPort, type ShownPort } from '../../cluster/model.ts';
import { type Shown, showsAnything, showsRules, showsServices } from '../../dumps/coverage.ts';
import type { ProxyLog } from '../../dumps/kube-proxy-log.ts';
import { families, type Family } from '../../kernel/address.ts';
import { isBuiltInChain } from '../../kernel/iptables/iptables.ts';
import { nftFamily } from '../../kernel/nftables/format.ts';
import { baseChains } from '../../kube-proxy/chain-names.ts';
import type { Evidence } from '../../kube-proxy/evidence.ts';
import type { MissingJump } from '../../kube-proxy/missing-jumps.ts';
import { modeFacts, type ProxyMode, proxyModes } from '../../kube-proxy/modes.ts';
import { nftTableName } from '../../kube-proxy/nft-table.ts';
import {
  effectOfJump,
  findDormantTable,
  findRemovedJumps,
  findUnshownJumps,
  jumpCommand,
  leadsToServices,
} from '../../snapshot/faults.ts';
import { hasOwnJumps, possibleModes } from '../../snapshot/possible-modes.ts';
import { type DumpedSnapshot, showsIptablesAsNft, type Snapshot } from '../../snapshot/snapshot.ts';
import { findFlows, type FlowChange, type FlowFindings } from './find-flows.ts';

export function modeOfLog(log: ProxyLog): ProxyMode | undefined {
  return proxyModes.find((mode) => mode === log.facts.get('mode')?.[0]);
}

/** Reads the node's addresses from kube-proxy's log. The log puts addresses in quotes, in some releases after the name of each family. */
export function loggedAddresses({ facts }: ProxyLog): readonly string[] {
  const listed = facts.get('node-ips')?.[0] ?? '';
  return listed === '' ? [] : listed.replace(/"IPv[46]":|"/g, '').split(',');
}

export const modeSources = ['fallback', 'default', 'config', 'flag'] as const;

export function modeSource({ problems, facts, flags }: ProxyLog): (typeof modeSources)[number] | undefined {
  if (problems.has('fallback')) return 'fallback';
  if (problems.has('default-mode') || facts.has('assumed-mode')) return 'default';
  if (flags.get('--config')) return 'config';
  return flags.get('--proxy-mode') ? 'flag' : undefined;
}

/** The Services that a dump shows. Their names come from the manifests given with the dump. */
export interface DumpReading {
  readonly dump: DumpedSnapshot;
  readonly flows: FlowFindings | undefined;
  readonly notes: readonly DumpNote[];
  /** Service ports in the manifests for which the node has no rule. Leaves out families for which the dump does not show all rules. */
  readonly ruleless: readonly ShownPort[];
  /** Set if nothing is known about Services. `why` is undefined if the dump does not show the reason. */
  readonly nothing: { readonly why: NoService | undefined } | undefined;
}

export function readDumped(dump: DumpedSnapshot): DumpReading {
  const { mode, ports, unreached } = dump.shown;
  const flows = findFlows(dump);
  const evidence = dump.state.virtualServers.map(dump.weighServer);
  const notes = [
    ...(mode ? jumpNotes(dump, mode, unreached) : []),
    ...ports.flatMap(({ endless, label: service }) =>
      endless.map(({ chain: from, lacks: to }) => ({ note: 'endless', from, service, to }) as const),
    ),
    ...byTarget(unreached, ({ facts, to }) => JSON.stringify([facts, to])).map(
      ([{ to, facts }, from]) => ({ note: 'unreached', from, to, facts }) as const,
    ),
    ...notesOnDump(dump, evidence),
  ];
  return { dump, flows, notes, ruleless: findRuleless(dump), nothing: whyNothingFound(dump) };
}

function findRuleless(dump: DumpedSnapshot): readonly ShownPort[] {
  const shown = new Set(dump.ports.map(keyOfPort));
  const modes = possibleModes(dump);
  const isShown = (family: Family): boolean => modes.every((mode) => showsServices(dump.coverage, mode, family));
  return (dump.named?.servicePorts ?? []).filter((port) => !shown.has(keyOfPort(port)) && isShown(port.family));
}

export function knowsServices({ named }: DumpedSnapshot): boolean {
  return (named?.servicePorts ?? []).length > 0;
}

/** Returns what happens to a dump's flows when the other side's Services replace the dump's. Undefined if the dump lists no flows. */
export function flowsOfChange(from: Snapshot, to: Snapshot): FlowChange | undefined {
  if (from.kind !== 'dump' || !from.flows || to.kind === 'dump') return undefined;
  return readDumped(from.namedBy(to.cluster, to.settings.release)).flows?.change;
}

function jumpNotes(
  side: Snapshot,
  mode: ProxyMode,
  unreached: DumpedSnapshot['shown']['unreached'],
): readonly DumpNote[] {
  const told = new Set(unreached.map(({ to }) => ('name' in to ? to.name : undefined)));
  const removed = families.flatMap((family) => findRemovedJumps(side, mode, family));
  // Leaves out the kubelet's own jumps, and the jump to node ports, which is lost only if all of KUBE-SERVICES is emptied.
  const lost = removed.filter((jump) => {
    const isHooked = jump.tool === 'nftables' || isBuiltInChain(jump.table, jump.from);
    return isHooked && !told.has(jump.to) && jump.to !== baseChains.kubeletFirewall;
  });
  const unshown = findUnshownJumps(side, mode).filter(leadsToServices);
  return [
    ...byTarget(lost, targetOf).map(
      ([jump, from]) =>
        ({ note: 'lost-jump', from, to: jump.to, table: jump.table, effect: effectOfJump(jump, mode) }) as const,
    ),
    ...byTarget(unshown, targetOf).map(
      ([jump, from]) => ({ note: 'unshown-jump', from, to: jump.to, command: jumpCommand(jump) }) as const,
    ),
  ];
}

function targetOf(jump: MissingJump): string {
  return `${jump.table} ${jump.to} ${jumpCommand(jump)}`;
}

function byTarget<T extends { readonly from: string }>(
  missing: readonly T[],
  keyOf: (each: T) => string,
): readonly (readonly [T, readonly string[]])[] {
  return [...groupBy(missing, keyOf).values()].map((group) => [group[0], [...new Set(group.map(({ from }) => from))]]);
}

export function namelessMode({ mode, ports }: DumpedSnapshot['shown']): ProxyMode | undefined {
  const isNameless = mode && modeFacts[mode].namesServices === 'none' && ports.some(({ service }) => !service);
  return isNameless ? mode : undefined;
}

function notesOnDump(dump: DumpedSnapshot, evidence: readonly Evidence[]): readonly DumpNote[] {
  const { shown, coverage, doubts, log, named } = dump;
  const { mode } = shown;
  const notes: DumpNote[] = [];
  const isNamed = named !== undefined || log !== undefined;
  const said = log && modeOfLog(log);
  if (said && mode && said !== mode) notes.push({ note: 'two-modes', logged: said, shown: mode });
  const facts = mode && modeFacts[mode];
  const nameless = namelessMode(shown);
  if (nameless) notes.push({ note: 'nameless', mode: nameless, isNamed });
  const doubtful = evidence.filter((each) => each === 'possible').length;
  if (doubtful > 0) notes.push({ note: 'doubtful-servers', servers: doubtful });
  const others = evidence.filter((each) => each === 'none').length;
  if (others > 0) notes.push({ note: 'foreign-servers', servers: others });
  if (mode && facts?.kinds.has('proxyPorts') && !coverage.proxyPorts) notes.push({ note: 'proxy-ports', mode });
  // If a dump is only a list of flows, the manifests beside it show which Services exist.
  const lacks = missingFiles(dump);
  if (lacks.length > 0 && (mode !== undefined || !isNamed || showsAnything(coverage)))
    notes.push({ note: 'incomplete', lacks });
  for (const { kind, by, entry, lacks: what } of doubts.filter((doubt) => doubt.kind === 'unlisted'))
    notes.push({ note: kind, by, entry, lacks: what });
  return notes;
}

function missingFiles(dump: DumpedSnapshot): readonly string[] {
  const { coverage } = dump;
  const modes = possibleModes(dump);
  const served = new Set(modes.flatMap((mode) => modeFacts[mode].families));
  const missing: { readonly [K in keyof Shown]?: readonly string[] } = {
    iptables: saveTools.flatMap(([family, tool]) =>
      !served.has(family) || showsRules(coverage, family) ? [] : [tool],
    ),
    nftables: families.flatMap((family) => {
      if (coverage.nftables.includes(family)) return [];
      return modes.length > 1
        ? jumpCommand({ tool: 'nftables', family })
        : [`nft list table ${nftFamily[family]} ${nftTableName}`];
    }),
    sets: coverage.sets ? [] : ['ipset save'],
    virtualServers: coverage.virtualServers ? [] : ['ipvsadm -Sn'],
  };
  const kinds = new Set(modes.flatMap((mode) => modeFacts[mode].serviceKinds));
  return [...new Set([...kinds].flatMap((kind) => missing[kind] ?? []))];
}

const saveTools = [
  ['ipv4', 'iptables-save'],
  ['ipv6', 'ip6tables-save'],
] as const;

function whyNothingFound(side: DumpedSnapshot): DumpReading['nothing'] {
  const { mode, ports } = side.shown;
  // If a dump is only a list of flows, the manifests beside it show which Services exist.
  if (ports.length > 0 || side.log || (knowsServices(side) && !showsAnything(side.coverage))) return undefined;
  const [table] = families.flatMap((family) => findDormantTable(side, family) ?? []);
  if (table !== undefined) return { why: { kind: 'dormant-table', table } };
  if (showsIptablesAsNft(side)) return { why: { kind: 'iptables-as-nft' } };
  return { why: mode === undefined ? whyNoMode(side) : undefined };
}

function whyNoMode({ state, doubts }: Snapshot): NoService {
  if (doubts.some(({ kind }) => kind === 'unread' || kind === 'cut-line')) return { kind: 'unread' };
  return { kind: hasOwnJumps(state) ? 'lacks-chains' : 'no-kube-proxy' };
}
