import type { Network } from '../kernel/address.ts';
import { parseNetwork } from '../kernel/address.ts';
import type { IpvsTimeouts } from '../kernel/ipvs.ts';
import { describeError } from '../bundle/errors.ts';
import type { Manifest } from '../bundle/manifest.ts';
import { settingsOf } from '../bundle/manifest.ts';
import type { StoredBundle } from '../bundle/read-bundle.ts';
import { changeNode, type ChangeOutcome, type ChangeRequest, type Session } from './change-node.ts';
import { cleanStaleFlows } from './conntrack.ts';
import { examineBeforeApply, type Needs } from './doctor.ts';
import { Failure } from './failure.ts';
import type { Host } from './host.ts';
import { decideOnNode, readNodeFacts, requireSysctl, type Setting } from './node-decisions.ts';

/** What somebody may choose besides the bundle. */
export interface ApplyChoices {
  readonly adopt: boolean;
  /** CIDRs besides those of the bundle's configuration. */
  readonly excludeCIDRs: readonly string[];
  /** Milliseconds; undefined waits for the end of all connections. */
  readonly drainTimeout: number | undefined;
  readonly confirmTimeout?: number | undefined;
  /** Go on although doctor finds something that must be so. */
  readonly force: boolean;
}

/** The wish to have a node as a bundle says, with what only the node can decide. */
export function requestBundle(host: Host, bundle: StoredBundle, choices: ApplyChoices): ChangeRequest {
  const { manifest, state } = bundle;
  return {
    target: async () => ({
      state: { ...state, sysctls: new Map(), modules: [], ipvsTimeouts: wholeSeconds(state.ipvsTimeouts) },
      modules: state.modules,
      settings: [
        ...[...state.sysctls].map(([name, value]) => requireSysctl(name, value)),
        ...(await decideWritable(host, manifest)),
      ],
    }),
    families: manifest.families,
    adopt: choices.adopt,
    excluded: readNetworks([...manifest.settings.ipvs.excludeCIDRs, ...choices.excludeCIDRs]),
    drainTimeout: choices.drainTimeout,
    confirmTimeout: choices.confirmTimeout,
  };
}

/** ipvsadm takes whole seconds only, whatever wrote the bundle. */
function wholeSeconds(timeouts: IpvsTimeouts | undefined): IpvsTimeouts | undefined {
  if (!timeouts) return undefined;
  const { tcp, tcpFin, udp } = timeouts;
  return { tcp: Math.floor(tcp), tcpFin: Math.floor(tcpFin), udp: Math.floor(udp) };
}

/** What the node decides, of what can be set in this network: only the node's own has the bounds of the whole table. */
async function decideWritable(host: Host, manifest: Manifest): Promise<readonly Setting[]> {
  const decided = decideOnNode(settingsOf(manifest), await readNodeFacts(host));
  const writable = await Promise.all(decided.map(({ path }) => host.isWritable(path)));
  return decided.filter((_, i) => writable[i]);
}

/** CIDRs of a command line or configuration. Throws a Failure for what is none. */
export function readNetworks(cidrs: readonly string[]): readonly Network[] {
  return cidrs.map((cidr) => {
    const network = parseNetwork(cidr);
    if (network) return network;
    throw new Failure('bad-usage', `"${cidr}" is no CIDR`, 'write one like 10.1.0.0/16');
  });
}

/** What a bundle needs of a node. */
export function needsOf({ manifest, state }: StoredBundle): Needs {
  return {
    mode: manifest.mode,
    modules: state.modules,
    sysctls: [...state.sysctls.keys()],
    schedulers: [...new Set(state.virtualServers.map((server) => server.scheduler))].sort(),
    leastVersions: manifest.tools,
    manifest,
  };
}

/** Applies a bundle. Call it with the lock held. Throws a Failure where nothing was changed. */
export async function applyBundle(
  session: Session,
  bundle: StoredBundle,
  choices: ApplyChoices,
): Promise<ChangeOutcome> {
  const { host } = session;
  const prepare = choices.force ? undefined : () => assertReady(host, bundle);
  const outcome = await changeNode(session, { ...requestBundle(host, bundle, choices), prepare });
  if (outcome.kind === 'changed') await forgetStaleFlows(session, bundle);
  return outcome;
}

/** The node has been changed by then, for good: nothing that goes wrong here makes that undone. */
async function forgetStaleFlows({ host, onEvent }: Session, bundle: StoredBundle): Promise<void> {
  try {
    await cleanStaleFlows(host, bundle.cluster.servicePorts);
  } catch (error) {
    const text = `UDP clients of endpoints that have gone may keep sending to them for now: ${describeError(error)}`;
    onEvent({ kind: 'warning', text });
  }
}

async function assertReady(host: Host, bundle: StoredBundle): Promise<void> {
  const [first, ...others] = await examineBeforeApply(host, needsOf(bundle));
  if (!first) return;
  const more = others.map((finding) => `; ${finding.text}`).join('');
  throw new Failure('not-ready', `${first.text}${more}`, first.advice ?? 'see "kpc-apply doctor"');
}
