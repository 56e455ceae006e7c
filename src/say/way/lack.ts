// Says why Services have no endpoints, why packets do not reach a Service's rules, why nothing was found, and what dumps do not show.
import type { UnseenPods } from '../../base/findings/services.ts';
import { isIdle, type UnfitPod, type Unready } from '../../base/findings/lint.ts';
import { count, joinWords } from '../../base/printable.ts';
import { nameSome } from '../words/rows.ts';
import { unknownPortWords } from '../words/services.ts';
import type { ShownPort } from '../../cluster/model.ts';
import { familyNames } from '../../kernel/address.ts';
import { baseChains } from '../../kube-proxy/chain-names.ts';
import type { MissingJump } from '../../kube-proxy/missing-jumps.ts';
import { nftSets } from '../../kube-proxy/nft-table.ts';
import { lackOfEndpoints, unseenPodsOf } from '../../snapshot/faults.ts';
import type { PortFault, Snapshot } from '../../snapshot/snapshot.ts';
import type { AddressOwner, NoService, NoSubject, SubjectHint } from '../../base/findings/command-line.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import type { ClaimedAddress } from '../../ask/describe/find-ports.ts';
import type { Doubt } from '../../dumps/dump.ts';
import type { Unlisted } from '../../kernel/ipvs/ipvs.ts';
import type { LocalhostHandling, NodePortListeners } from '../../kube-proxy/node-port-listeners.ts';

export function faultWords(fault: PortFault): string {
  switch (fault.code) {
    case 'selects-nothing':
      return 'its selector matches no Pod in the input';
    case 'no-node-fits':
      return `no Node has ${fault.arguments.wanted}, which ${fault.arguments.owner} requires`;
    case 'no-ready-endpoint':
      return unreadyWords(fault.arguments);
    case 'family-without-endpoints': {
      const { family, other } = fault.arguments;
      return `its endpoints have only ${familyNames[other]} addresses, no ${familyNames[family]} ones`;
    }
    case 'unknown-port': {
      const { found } = fault.arguments;
      return `${unknownPortWords(fault.arguments)}${found.length === 0 ? '' : ` (they have ${joinWords(found)})`}`;
    }
    case 'undeclared-port': {
      const { port, owner, ports } = fault.arguments;
      return `no container of its Pods lists ${port} (${owner} lists ${joinWords(ports)})`;
    }
  }
}

/** Says in a few words why a Service has no endpoints. Undefined if the Service may have some. */
export function faultInShort(fault: PortFault): string | undefined {
  switch (fault.code) {
    case 'selects-nothing':
      return `selects no Pod${unlessUnseen(unseenPodsOf([fault]))}`;
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

/** Returns a clause that says why no endpoint of a Service accepts connections. */
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

/** Returns "have ended", or "have ended or are pending" if the Pods differ. */
function unfitPodWords(pods: readonly UnfitPod[], words: Readonly<Record<UnfitPod, string>>): string {
  return joinWords(
    pods.map((each) => words[each]),
    'or',
  );
}

/** Returns a clause that says why a Service port has no endpoint. Undefined if the reason is unknown. */
export function whyNoEndpoint(port: ShownPort, side: Snapshot): string | undefined {
  const fault = lackOfEndpoints(port, side);
  if (fault) return faultWords(fault);
  const areIdle = side.kind === 'dump' && (port.endpoints ?? []).length > 0;
  return areIdle ? 'each of its real servers has weight 0 and gets no new connections' : undefined;
}

export const lostJumpCause = "something removed kube-proxy's jump; restart kube-proxy";

/** Why a node's rules may differ from the manifests. */
export const unprogrammedCause = 'kube-proxy has not programmed it yet, or another program changed its rules';

/** Says why nothing leads to `to`. kube-proxy itself leaves node ports unserved if no address of the node is suitable. */
export function lostRuleCause(to?: string): string {
  return to === baseChains.nodePorts || to === nftSets.serviceNodePorts
    ? "nodePortAddresses matches no address of the node, or something removed kube-proxy's rules"
    : "something removed kube-proxy's rules; restart kube-proxy";
}

export function unmasqueradedWords({ from, to }: Pick<MissingJump, 'from' | 'to'>): string {
  return `nothing in ${from} leads to ${to}, so kube-proxy masquerades no packet: ${lostRuleCause(to)}`;
}

/** Returns a sentence that says what to do about a dormant table of kube-proxy. */
export function dormantWords(table: string): string {
  return `table ${table} is dormant, so no packet reaches its rules: delete the table and restart kube-proxy`;
}

/** Returns a clause saying that it is unknown whether a jump exists. */
export function unshownJumpWords(from: readonly string[], to: string): string {
  return `nothing in the dump jumps from ${joinWords(from, 'or')} to ${to}, so it is not known whether packets reach the rules there`;
}

/** Returns ", unless …" followed by what may give a Service port endpoints that kpc cannot see. '' if there is no such thing. */
export function unlessUnseen(pods: UnseenPods | undefined): string {
  if (!pods) return '';
  return pods.maker === undefined
    ? `, unless a program sets ${pods.label} on the Pods of ${pods.owner}`
    : `, unless ${pods.maker} makes its Pods`;
}

export function noSubjectWords(nothing: NoSubject): string {
  switch (nothing.kind) {
    case 'deaf-address': {
      const { socket, port, owner, listeners } = nothing;
      const where = `${listenerWords(listeners)}${listeners.kind === 'listed' ? ' only' : ''}`;
      return `no Service answers at ${socket}: node port ${port}${owner === undefined ? '' : ` of ${owner}`} listens on ${where}`;
    }
    case 'other-ports':
      return ownersWords(nothing.address, nothing.port, nothing.owners);
    case 'unreached-address':
      return unreachedWords(nothing, nothing.address);
    case 'proxied-address':
      return `${nothing.address} is a load balancer address of ${nothing.service} with ipMode Proxy: kube-proxy programs nothing for it, so that packets go through the load balancer`;
    case 'ignored-address':
      return `${nothing.address} is a cluster IP of ${nothing.service}, which kube-proxy ignores because of the label ${nothing.label}`;
    case 'other-node': {
      const { address, node, here, answers } = nothing;
      const what = answers?.kind === 'node-port' ? 'node port' : 'health check node port';
      const there = answers ? `; ${what} ${answers.port} of ${answers.label} answers there` : '';
      return `${address} is an address of node ${node}${here === '' ? '' : `, not of ${here}`}${there}: use --node ${node}`;
    }
    case 'idle-pods':
      return nameSome(
        nothing.pods.map(({ name, address }) =>
          address === undefined
            ? `Pod ${name} has no address yet`
            : `Pod ${name} (${address}) is an endpoint of no Service`,
        ),
      );
    case 'no-match':
      return nothing.of === 'dump'
        ? `the dump shows no Service, chain or set that matches ${JSON.stringify(nothing.text)}`
        : `no Service, address, port, chain or set matches ${JSON.stringify(nothing.text)}${subjectHintWords(nothing.hint)}`;
  }
}

/** Says that no rule leads from an address, and which Service port has it in manifests or in other rules of the dump. */
export function unreachedWords({ by, label }: ClaimedAddress, address: string): string {
  return by === 'manifests'
    ? `the manifests have ${label} there, but this node has no rule for it: ${unprogrammedCause}`
    : `the rules of ${label} name ${address}, but no rule leads packets from there: ${lostRuleCause()}`;
}

export function ownersWords(address: string, port: string, owners: readonly AddressOwner[]): string {
  return nameSome(owners.map((owner) => `${address} ${ownerWords(owner, port)}`));
}

function ownerWords({ role, service, ports }: AddressOwner, port: string): string {
  const lacks = `has no port ${port}`;
  const clause =
    service === undefined
      ? lacks
      : role === 'owner'
        ? `belongs to ${service}, which ${lacks}`
        : `is an endpoint of ${service}, which ${lacks} there`;
  return ports.length === 0 ? clause : `${clause} (has ${ports.join(', ')})`;
}

function subjectHintWords(hint: SubjectHint | undefined): string {
  switch (hint?.kind) {
    case 'other-mode':
      return `; ${modeFacts[hint.mode].title} has no chain of that kind, so this may be one that --proxy-mode ${hint.maker} makes`;
    case 'near':
      return `; did you mean ${hint.names.join(' or ')}?`;
    case undefined:
      return '';
  }
}

/** Returns the sentence "the dump shows no Service", with the reason if it is known. */
export function noServiceWords(why: NoService | undefined): string {
  return `the dump shows no Service${why ? `: ${whyNoService(why)}` : ''}`;
}

function whyNoService(why: NoService): string {
  switch (why.kind) {
    case 'dormant-table':
      return dormantWords(why.table);
    case 'iptables-as-nft':
      return 'it holds rules of iptables mode as nft lists them, but only iptables-save names their Services';
    case 'unread':
      return 'not all of it could be read';
    case 'lacks-chains':
      return "its rules jump to kube-proxy's chains, but it lacks these chains";
    case 'no-kube-proxy':
      return 'it holds no chains, sets or virtual servers of a kube-proxy';
  }
}

/** For each kind of object that a listing may lack: the command that lists these objects. */
export const fullListings: Readonly<Record<Unlisted['lacks'], string>> = {
  address: 'ip addr',
  set: 'ipset save',
  'virtual server': 'ipvsadm -Sn',
  'node port': 'ipvsadm -Sn and ip addr of one node and time',
  'real server': 'ipvsadm -Sn',
};

/** Returns "KUBE-CLUSTER-IP names 10.96.0.1,tcp:80, but the dump lists no virtual server for it …". */
export function unlistedWords({ by, entry, lacks }: Unlisted): string {
  if (lacks === 'set') return `${by} names the set ${entry}, but the dump lists no such set: the list is cut off`;
  if (lacks === 'node port')
    return `${by} names ${entry}, but the dump lists virtual servers for it only at addresses that ip addr lacks: the output of ip addr is cut off, or from another node or time`;
  const or = lacks === 'address' ? 'something removed it' : `kube-proxy could not make all ${lacks}s`;
  return `${by} names ${entry}, but the dump lists no ${lacks} for it: the list is cut off, or ${or}`;
}

/** Returns a sentence for each output that was skipped. Such an output is from another node or time than the first output of its kind. */
export function describeSkippedListings(doubts: readonly Doubt[]): readonly string[] {
  return doubts.flatMap((doubt) =>
    doubt.kind === 'second-listing'
      ? [
          `${doubt.file} holds ${doubt.output} from another node or time, which kpc skipped: this answer uses the first listing`,
        ]
      : [],
  );
}

/** Returns words to follow "listens on". */
export function listenerWords(listeners: NodePortListeners): string {
  switch (listeners.kind) {
    case 'listed':
      return listeners.addresses.join(', ') || 'no address';
    case 'all':
      return listeners.loopback ? 'all addresses of the node' : 'all addresses of the node except loopback';
    case 'unknown':
      return 'other addresses';
  }
}

export const localhostWords: { readonly [H in LocalhostHandling]: string } = {
  listens: 'kube-proxy itself listens',
  rejected: 'rejected',
  'no-endpoint': 'no endpoint, so kube-proxy does not listen',
  'no-rule': 'no rule',
};
