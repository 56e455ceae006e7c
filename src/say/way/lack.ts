// Why Services have no endpoints, and why packets do not come to the rules of Services.
import { isIdle, type UnfitPod, type Unready } from '../../base/findings/lint.ts';
import { mayBeUnseen } from '../../base/findings/services.ts';
import { count, joinWords } from '../../base/printable.ts';
import type { ShownPort } from '../../cluster/model.ts';
import { familyNames } from '../../kernel/family.ts';
import { baseChains } from '../../kube-proxy/chain-names.ts';
import { nftSets } from '../../kube-proxy/nft-table.ts';
import { lackOfEndpoints } from '../../snapshot/faults.ts';
import type { PortFault, Snapshot } from '../../snapshot/snapshot.ts';

export function faultWords(fault: PortFault): string {
  switch (fault.code) {
    case 'selects-nothing':
      return 'its selector matches no Pod in the input';
    case 'no-node-fits':
      return `no Node has ${fault.arguments.wanted}, as ${fault.arguments.owner} asks`;
    case 'no-ready-endpoint':
      return unreadyWords(fault.arguments);
    case 'family-without-endpoints': {
      const { family, other } = fault.arguments;
      return `its endpoints have only ${familyNames[other]} addresses, none ${familyNames[family]}`;
    }
    case 'unknown-port': {
      const { owner, protocol, name, found } = fault.arguments;
      const what = name === '' ? `${protocol} port without a name` : `${protocol} port named ${name}`;
      return `${owner} has a ${what}${found.length === 0 ? '' : ` (they have ${joinWords(found)})`}`;
    }
    case 'undeclared-port': {
      const { port, owner, ports } = fault.arguments;
      return `no container that it selects lists ${port} (${owner} lists ${joinWords(ports)})`;
    }
  }
}

/** Why a Service has no endpoints, in few words; undefined if it may have some. */
export function faultInShort(fault: PortFault): string | undefined {
  switch (fault.code) {
    case 'selects-nothing':
      return `selects no Pod${unlessUnseen([fault])}`;
    case 'no-node-fits':
      return `no Node has ${fault.arguments.wanted}`;
    case 'no-ready-endpoint':
      return unreadyInShort(fault.arguments);
    case 'family-without-endpoints':
      return `no ${familyNames[fault.arguments.family]} endpoints`;
    case 'unknown-port':
      return fault.arguments.name === '' ? undefined : `no port named ${fault.arguments.name}`;
    case 'undeclared-port':
      return undefined;
  }
}

function unreadyInShort(details: Unready): string {
  if (isIdle(details)) return 'scaled to 0';
  const { unused, pods } = details;
  if (unused) return unused.by === 'port' ? 'ports without a number' : `EndpointSlices of ${unused.types.join(', ')}`;
  return pods === undefined ? 'empty EndpointSlices' : `its Pods ${unfitPodWords(pods, shortUnfit)}`;
}

/** A clause: why no endpoint of a Service takes connections. */
export function unreadyWords(details: Unready): string {
  const { endpoints, owner, unused, pods } = details;
  if (isIdle(details)) return `the ${owner} that it selects is scaled to 0`;
  switch (unused?.by) {
    case 'address-type':
      return `kube-proxy skips its EndpointSlices (addressType ${joinWords(unused.types)})`;
    case 'port':
      return 'kube-proxy skips its EndpointSlices, because their ports have no number';
    case undefined:
  }
  if (endpoints === 1) return 'its one endpoint is not ready';
  if (endpoints > 1) return `none of its ${count(endpoints, 'endpoint')} is ready`;
  return pods ? `the Pods that it selects ${unfitPodWords(pods, longUnfit)}` : 'its EndpointSlices are empty';
}

const shortUnfit: Readonly<Record<UnfitPod, string>> = {
  ended: 'have ended',
  pending: 'are pending',
  'other-family': 'are of another family',
};

const longUnfit: Readonly<Record<UnfitPod, string>> = {
  ...shortUnfit,
  pending: 'have no address yet',
  'other-family': 'have no address of its family',
};

/** "have ended", or "have ended or are pending" if the Pods differ. */
function unfitPodWords(pods: readonly UnfitPod[], words: Readonly<Record<UnfitPod, string>>): string {
  return joinWords(
    pods.map((each) => words[each]),
    'or',
  );
}

/** A clause; undefined if unknown. */
export function whyNoEndpoint(port: ShownPort, side: Snapshot): string | undefined {
  const fault = lackOfEndpoints(port, side);
  if (fault) return faultWords(fault);
  const areIdle = side.kind === 'dump' && (port.endpoints ?? []).length > 0;
  return areIdle ? 'each of its real servers has weight 0 and takes no new connections' : undefined;
}

export const lostJumpCause = "something removed kube-proxy's jump; restart kube-proxy";

/** Why a node's rules are not those of the manifests. */
export const unprogrammedCause = 'kube-proxy has not programmed it yet, or another program changed its rules';

/** Why nothing leads to `to`. kube-proxy itself leaves node ports unserved if it has no address to serve them at. */
export function lostRuleCause(to?: string): string {
  return to === baseChains.nodePorts || to === nftSets.serviceNodePorts
    ? "nodePortAddresses matches no address of the node, or something removed kube-proxy's rules"
    : "something removed kube-proxy's rules; restart kube-proxy";
}

/** A sentence with what to do about kube-proxy's dormant table. */
export function dormantWords(table: string): string {
  return `table ${table} is dormant, so no packet comes to its rules: delete the table and restart kube-proxy`;
}

/** A clause saying that it is unknown whether a jump exists. */
export function unshownJumpWords(from: readonly string[], to: string): string {
  return `nothing in the dump jumps from ${joinWords(from, 'or')} to ${to}, so it is not known whether packets reach the rules there`;
}

/** ", unless …": what kpc cannot see but what may give a Service port endpoints; '' if there is nothing. */
export function unlessUnseen(faults: readonly PortFault[]): string {
  for (const { code, arguments: details } of faults) {
    if (code !== 'selects-nothing' || !mayBeUnseen(details)) continue;
    const { lacking, maker } = details;
    if (lacking) return `, unless a program sets ${lacking.label} on the Pods of ${lacking.owner}`;
    if (maker !== undefined) return `, unless ${maker} makes its Pods`;
  }
  return '';
}
