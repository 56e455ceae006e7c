import { hashHex } from '#hash';
import { parseNetwork, type Network } from '../../kernel/address.ts';
import { isEmptyDelta } from '../../kernel/delta.ts';
import type { SetChange } from '../../kernel/ipset/ipset.ts';
import type { NftChange } from '../../kernel/nftables/nft-delta.ts';
import { isLearned } from '../../kernel/nftables/table.ts';
import type { IpvsTimeouts } from '../../kernel/ipvs/ipvs.ts';
import { emptyState, type KernelState } from '../../kernel/state.ts';
import { describeError } from '../../base/system-errors.ts';
import type { BundleFiles } from '../../bundle/make-bundle.ts';
import { settingsOf, type Manifest } from '../../bundle/manifest.ts';
import { openBundle, type StoredBundle } from '../../bundle/read-bundle.ts';
import { changeNode } from './change-node.ts';
import type { ChangeOutcome, ChangeRequest, Session } from './observe-node.ts';
import { modeOfState } from '../../kube-proxy/mode-of-state.ts';
import { modeFacts, type ProxyMode } from '../../kube-proxy/modes.ts';
import { assertNoKubeProxy } from '../node/processes.ts';
import { forgetStaleFlows } from '../node/forget-flows.ts';
import { examineBeforeApply, examineEndpoints, examineForwarding, forwardingSysctls } from '../doctor/doctor.ts';
import type { Finding, Needs } from '../doctor/finding.ts';
import { Failure } from '../state/failure.ts';
import type { Host } from '../node/host.ts';
import { isEmptyPlan, type Plan, type SettingChange } from '../plan/plan.ts';
import type { BundleMark } from '../state/record.ts';
import type { Observation, Settling } from '../quick/small-change.ts';
import { listSteps } from '../plan/steps.ts';
import { behavioursOf } from '../../kube-proxy/releases.ts';
import {
  conntrackMax,
  decideOnNode,
  readNodeFacts,
  requireSysctl,
  sysctlPath,
  type Setting,
} from '../plan/node-decisions.ts';

/** What the operator may choose besides the bundle. */
export interface ApplyChoices {
  /** The command, and the folder that it was given: for people. */
  readonly origin: { readonly kind: 'apply' | 'watch'; readonly folder: string };
  readonly adopt: boolean;
  /** CIDRs besides those of the bundle's configuration. */
  readonly ipvsExcludeCidrs: readonly string[];
  /** Milliseconds; undefined waits for the end of all connections. */
  readonly drainTimeout?: number | undefined;
  readonly confirmTimeout?: number | undefined;
  /** Go on although doctor finds something that must be so. */
  readonly force: boolean;
  /** What was settled last, if that may save looking at all again. */
  readonly settling?: Pick<Settling, 'known'> | undefined;
}

/** The wish to have a node as a bundle says, with what only the node can decide. */
export function requestBundle(host: Host, bundle: StoredBundle, choices: ApplyChoices): ChangeRequest {
  const { manifest } = bundle;
  const { settling } = choices;
  // Each look at the node asks for it, usually with the same files.
  let last: { readonly files: BundleFiles; readonly state: KernelState } | undefined;
  const stateOf = (files: BundleFiles): KernelState => {
    if (last?.files !== files) last = { files, state: openBundle(manifest, files).state };
    return last.state;
  };
  return {
    origin: { kind: choices.origin.kind, bundle: markBundle(bundle, choices.origin.folder) },
    target: async (files) => {
      const state = files ? stateOf(files) : bundle.state;
      return {
        state: { ...state, sysctls: new Map(), modules: [], ipvsTimeouts: wholeSeconds(state.ipvsTimeouts) },
        modules: state.modules,
        settings: [
          ...[...state.sysctls].map(([name, value]) => requireSysctl(name, value)),
          ...(await decideWritable(host, manifest)),
        ],
      };
    },
    settling: settling &&
      bundle.files && { ...settling, files: bundle.files, fitTools: new Set(settling.known?.fitTools) },
    families: manifest.families,
    adopt: choices.adopt,
    excluded: readNetworks([...manifest.settings.ipvs.excludeCIDRs, ...choices.ipvsExcludeCidrs]),
    clusterIPs: listClusterIPs(bundle),
    drainTimeout: choices.drainTimeout,
    confirmTimeout: choices.confirmTimeout,
    refusesLeftovers: true,
  };
}

/** Identifies a bundle. */
export function markBundle({ files, manifest }: StoredBundle, folder: string): BundleMark {
  return { folder, digest: hashHex(files?.get('manifest.json') ?? JSON.stringify(manifest)) };
}

/** services.json has each in a place of its own, and nothing else looks like one there. */
function listClusterIPs(bundle: StoredBundle): ReadonlySet<string> {
  const text = bundle.files?.get('services.json');
  if (text === undefined) return new Set(bundle.cluster.servicePorts.map(({ clusterIP }) => clusterIP.text));
  return new Set([...text.matchAll(/,"clusterIP":"([\da-f.:]+)",/g)].map(([, address = '']) => address));
}

/** ipvsadm takes whole seconds only, whatever wrote the bundle. */
function wholeSeconds(timeouts: IpvsTimeouts | undefined): IpvsTimeouts | undefined {
  if (!timeouts) return undefined;
  const { tcp, tcpFin, udp } = timeouts;
  return { tcp: Math.floor(tcp), tcpFin: Math.floor(tcpFin), udp: Math.floor(udp) };
}

/**
 * What the node decides, of what can be set in this network: only the node's own has the bounds of the whole table. A dump
 * asks for nothing beyond its state.
 */
async function decideWritable(host: Host, manifest: Manifest): Promise<readonly Setting[]> {
  if (manifest.dumped) return [];
  const decided = decideOnNode(settingsOf(manifest), await readNodeFacts(host));
  const writable = await Promise.all(decided.map(({ path }) => host.isWritable(path)));
  return decided.filter((_, i) => writable[i]);
}

/** CIDRs of a command line or configuration. Throws a Failure for anything else. */
function readNetworks(cidrs: readonly string[]): readonly Network[] {
  return cidrs.map((cidr) => {
    const network = parseNetwork(cidr);
    if (network) return network;
    throw new Failure('bad-usage', `"${cidr}" is not a CIDR`, 'write one like 10.1.0.0/16');
  });
}

/**
 * The wish to have nothing of kpc-apply's left on a node, or with `adopt` nothing of a kube-proxy's either. Modules and
 * sysctls stay as they are, as they do when kube-proxy cleans up: others may need them by now.
 */
export function requestNothing(
  host: Host,
  choices: Pick<ApplyChoices, 'adopt' | 'ipvsExcludeCidrs' | 'force'>,
): ChangeRequest {
  return {
    origin: { kind: 'cleanup' },
    target: async () => ({ state: emptyState, settings: [], modules: [] }),
    families: [],
    adopt: choices.adopt,
    excluded: readNetworks(choices.ipvsExcludeCidrs),
    drainTimeout: 0,
    prepare: async ({ share }, isIdle) => {
      // If nothing would go because it is all the kube-proxy's, that must be said too.
      if (!choices.force && !(isIdle && share.leftovers.length === 0)) await assertNoKubeProxy(host);
    },
  };
}

/** What a bundle needs of a node. */
export function needsOf(bundle: StoredBundle): Needs {
  const { manifest } = bundle;
  // It needs none of the other files, which may be large.
  const files = [...(bundle.files ?? [])].filter(([name]) => name === 'modules.conf' || name === 'sysctl.conf');
  const { modules, sysctls } = bundle.files ? openBundle(manifest, new Map(files)).state : bundle.state;
  return {
    mode: manifest.mode,
    modules,
    sysctls: [...sysctls].map(([name, value]) => ({ name, value })),
    leastVersions: manifest.tools,
    manifest,
  };
}

/** Applies a bundle. Call it with the lock held. Throws a Failure if nothing was changed. */
export async function applyBundle(
  session: Session,
  bundle: StoredBundle,
  choices: ApplyChoices,
): Promise<ChangeOutcome> {
  const { host } = session;
  const request = requestBundle(host, bundle, choices);
  const fitTools = request.settling?.fitTools ?? new Set();
  const prepare: ChangeRequest['prepare'] = async (plan, isIdle, { modules }) => {
    if (isIdle) return;
    if (!choices.force) {
      const asked = [...toolsOf(plan)].filter((tool) => !fitTools.has(tool));
      assertNoRefusals(await examineBeforeApply(host, needsOf(bundle), new Set(asked), modules));
      for (const tool of asked) fitTools.add(tool);
    }
    for (const text of await listRemarks(host, bundle, plan)) session.onEvent({ kind: 'warning', text });
  };
  const outcome = await changeNode(session, { ...request, prepare });
  if (outcome.kind === 'changed' && concernsUdp(outcome.plan)) await forgetUdpFlows(session, bundle);
  return outcome;
}

/** The node has been changed by then, for good: nothing that goes wrong here makes that undone. */
async function forgetUdpFlows({ host, onEvent }: Session, bundle: StoredBundle): Promise<void> {
  try {
    const behaviours = behavioursOf(settingsOf(bundle.manifest).release);
    await forgetStaleFlows(host, bundle.cluster.servicePorts, behaviours);
  } catch (error) {
    const text = `UDP clients may keep sending to removed endpoints for now: ${describeError(error)}`;
    onEvent({ kind: 'warning', text });
  }
}

/**
 * Whether a change could have left flows behind: one of UDP, or one whose greater part an apply made that did not come
 * to its end. The table of connections may be large, and a change of something else should not wait for it.
 */
function concernsUdp({ delta }: Plan): boolean {
  if (isEmptyDelta(delta) || delta.nftables.some(({ kind }) => kind === 'table')) return true;
  const changes: readonly object[] = [
    ...Object.values(delta.iptables).flatMap((tables) => tables.flatMap((table) => table.changes)),
    ...delta.nftables.flatMap((table) => (table.kind === 'table' ? [] : table.changes)).map(withoutRest),
    ...delta.sets.map(withoutRest),
    ...delta.virtualServers,
  ];
  // In nftables, the names of chains and sets have the protocol, too. iptables takes its number as well.
  return changes.some((change) => /udp|"17"/i.test(JSON.stringify(change)));
}

/** A change of a set without what stays in it: most sets hold something of UDP. */
function withoutRest(change: SetChange | NftChange): object {
  return change.kind === 'entries' || change.kind === 'elements' ? { ...change, set: change.set.name } : change;
}

/** What an apply of a plan would refuse, and what it would warn of. */
export interface Foresight {
  readonly refusals: readonly Finding[];
  readonly warnings: readonly string[];
}

/** Looks at a node as applyBundle does before the first change. Nothing if there is nothing to change. */
export async function foreseeApply(
  host: Host,
  bundle: StoredBundle,
  { plan, node }: Pick<Observation, 'plan' | 'node'>,
): Promise<Foresight> {
  if (isEmptyPlan(plan)) return { refusals: [], warnings: [] };
  const [refusals, warnings] = await Promise.all([
    examineBeforeApply(host, needsOf(bundle), toolsOf(plan), node.modules),
    listRemarks(host, bundle, plan),
  ]);
  return { refusals, warnings };
}

/** What the operator should know of a plan besides its changes. */
async function listRemarks(host: Host, { manifest }: StoredBundle, plan: Plan): Promise<readonly string[]> {
  if (isEmptyPlan(plan)) return [];
  const { mode } = manifest;
  const before = modeOfState(plan.present) ?? mode;
  const forwarding = await examineForwarding(host, { mode, manifest });
  return [
    ...plan.settings.flatMap(describeLowering),
    ...[...examineEndpoints({ manifest }), ...forwarding].map(({ text, advice }) => `${text}; ${advice}`),
    ...(before === mode ? [] : describeModeChange(plan, before, mode)),
  ];
}

/** What a change of mode leaves behind, and what is lost. */
function describeModeChange({ present }: Plan, before: ProxyMode, next: ProxyMode): readonly string[] {
  const [from, to] = [modeFacts[before], modeFacts[next]];
  // Every mode needs IP forwarding, but only IPVS mode sets its sysctl.
  const left = from.sysctls.filter((name) => !to.sysctls.includes(name) && name !== forwardingSysctls.ipv4);
  return [
    ...(left.length === 0 ? [] : [`sysctls that only ${from.title} needs stay as they are: ${left.join(', ')}`]),
    ...(hasAffinity(present)
      ? [
          `session affinity: clients lose their endpoints, because ${to.title} cannot read what ${from.title} has learned`,
        ]
      : []),
  ];
}

/** Whether a client that was sent to an endpoint is sent there again. Each mode remembers its clients in a place of its own. */
function hasAffinity({ iptables, virtualServers, nftables }: KernelState): boolean {
  const rules = Object.values(iptables).flatMap(({ nat }) =>
    [...(nat?.values() ?? [])].flatMap((chain) => chain.rules),
  );
  return (
    rules.some(({ args }) => args.some((arg) => arg.kind === 'recent')) ||
    virtualServers.some((server) => server.persistentSeconds !== undefined) ||
    nftables.some((table) => [...table.sets.values()].some(isLearned))
  );
}

/** Why a limit of the node becomes lower. */
function describeLowering({ setting, from }: SettingChange): readonly string[] {
  if (setting.path !== sysctlPath(conntrackMax) || !(Number(from) > Number(setting.value))) return [];
  const why = setting.reason === undefined ? '' : ` (${setting.reason})`;
  return [
    `${setting.name} goes down from ${from} to ${setting.value}, as kube-proxy sets it${why}; to leave it as it is, compile with --conntrack-max-per-core 0`,
  ];
}

/** The tools that a plan is carried out with. */
function toolsOf(plan: Plan): ReadonlySet<string> {
  return new Set(listSteps(plan).flatMap((step) => (step.kind === 'run' ? step.command.tool : [])));
}

/** Throws a Failure for what an apply refuses. */
export function assertNoRefusals([first, ...others]: readonly Finding[]): void {
  if (!first) return;
  const more = others.map((finding) => `; ${finding.text}`).join('');
  throw new Failure('not-ready', `${first.text}${more}`, first.advice ?? 'see "kpc-apply doctor"', first.tool);
}
