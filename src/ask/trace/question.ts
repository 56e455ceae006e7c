import type { UnseenPods } from '../../base/findings/services.ts';
import type { ArgumentsOf } from '../../base/findings/codes.ts';
import { diagnose, type Finding } from '../../base/findings/finding.ts';
import { parseAskedAddress } from '../describe/parse-asked.ts';
import { mostSuggestions, nearest } from '../../base/names.ts';
import { parseAddress, type Address } from '../../kernel/address.ts';
import type { Fate, Packet, PacketProtocol } from '../../packet/packet.ts';

export interface Question {
  readonly from: string;
  readonly to: string;
  readonly protocol: PacketProtocol | undefined;
  readonly inInterface: string | undefined;
  readonly namespace: string | undefined;
}

export interface Sender {
  readonly who: SenderName;
  /** Undefined for the node itself, because routes decide which source it uses. */
  readonly address: Address | undefined;
  readonly enters: Packet['enters'];
  readonly isPod?: boolean;
  /** Whether kpc chose the address from many that such a sender may have. */
  readonly isExample?: boolean;
}

export type SenderName =
  | { readonly kind: 'node' | 'pod' | 'remote-pod' | 'external' | 'client' }
  | { readonly kind: 'endpoint'; readonly isLocal: boolean | undefined; readonly home: string }
  /** `home`: the name of the pod's node; '' if unknown. `on`: whether the pod is on this node, and whether it is on the host network. */
  | {
      readonly kind: 'named-pod';
      readonly name: string;
      readonly home: string;
      readonly on: 'this-node' | 'other-node' | 'this-host' | 'other-host';
    };

export interface Destination {
  readonly address: Address;
  readonly port: number;
  readonly protocol: PacketProtocol;
  readonly label: string | undefined;
}

export interface Trace {
  readonly sender: Sender;
  readonly target: Destination;
  readonly fate: Fate;
}

/** What a stop depends on, besides rules. */
export interface StopCondition {
  /** Set if kpc chose the nodes of a Service's Pods, and packets are stopped on nodes without such a Pod. The value is the Service. */
  readonly placed: string | undefined;
  readonly unseen: UnseenPods | undefined;
}

export type Read<T> = { readonly kind: 'read'; readonly value: T } | Wrong;

export interface Wrong {
  readonly kind: 'wrong';
  readonly diagnostic: Finding;
}

export const read = <T>(value: T): Read<T> => ({ kind: 'read', value });

export function absent(details: ArgumentsOf<'not-found'>): Wrong {
  return { kind: 'wrong', diagnostic: diagnose('not-found', details) };
}

export function wrong(details: ArgumentsOf<'bad-packet'>): Wrong {
  return { kind: 'wrong', diagnostic: diagnose('bad-packet', details) };
}

export const senderKinds = ['pod', 'remote-pod', 'node', 'external'] as const;

const dottedQuad = /^\d+(\.\d+){3}$/;

/** Finds faults in a question that do not depend on the input, such as a text that is neither an address nor a name. */
export function faultsOfWords({ from, to }: Partial<Pick<Question, 'from' | 'to'>>): readonly Wrong[] {
  return [wrongSender(from ?? ''), wrongDestination(to ?? '')].filter((each) => each !== undefined);
}

export function wrongSender(from: string): Wrong | undefined {
  return dottedQuad.test(from) && !parseAddress(from) ? wrong({ problem: 'no-address', text: from }) : undefined;
}

export function wrongDestination(to: string): Wrong | undefined {
  if (parseAskedAddress(to)) return undefined;
  const [, host = to, port] = /^(.*):(\d+)$/.exec(to) ?? [];
  if (dottedQuad.test(host) && !parseAddress(host)) return wrong({ problem: 'no-address', text: to });
  return port === undefined || numberOf(port) !== undefined ? undefined : wrong({ problem: 'port-range', to });
}

export function numberOf(text: string): number | undefined {
  return /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65535 ? Number(text) : undefined;
}

export function hasNoNames({ from, to }: Pick<Question, 'from' | 'to'>): boolean {
  const isOfKind = senderKinds.some((kind) => kind === from);
  return parseAskedAddress(to) !== undefined && (isOfKind || parseAddress(from) !== undefined);
}

/** Returns the "namespace/name" entries whose spelling is close to the wanted name, which may lack a namespace. */
export function nearNames(wanted: string, names: readonly string[]): readonly string[] {
  const bare = (name: string): string => (wanted.includes('/') ? name : name.slice(name.indexOf('/') + 1));
  const near = [...new Set(names)].filter((name) => nearest(wanted, [bare(name)]).length > 0);
  return near.slice(0, mostSuggestions);
}

export function isNamed(name: string, wanted: string): boolean {
  return name === wanted || (!wanted.includes('/') && name.endsWith(`/${wanted}`));
}

/** Reports whether the input shows no address for a kind of sender. */
export function isUnaddressed({ code, arguments: details }: Finding): boolean {
  return code === 'bad-packet' && details.problem === 'no-address-for';
}

/** Reports whether the sender's own node, not this one, handles the packet. `names`: the nodes that may be the sender's. */
export function isPassedBy({ code, arguments: details }: Finding, names?: readonly string[]): boolean {
  return code === 'bad-packet' && details.problem === 'other-node' && names?.includes(details.home) !== false;
}
