import type { ProxyMode } from '../../kube-proxy/modes.ts';
import type { SkipReason } from '../../kube-proxy/skipped.ts';
import type { NodePortListeners } from '../../kube-proxy/node-port-listeners.ts';
import {
  row,
  byProblem,
  type By,
  type None,
  type Cited,
  type Strings,
  type Numbers,
  type Lists,
  type Severity,
} from './rows.ts';
import type { FoundValue } from './fields.ts';

export type NamedFlag = Strings<'flag'>;

/** `command` is the command that has these flags; undefined for flags of all commands. */
export interface UnknownFlag {
  readonly name: string;
  readonly command?: string | undefined;
  readonly meant?: string | undefined;
}

export interface NotShown {
  readonly severity: Severity;
  readonly count: number;
  /** The code of the messages, if all have the same code and are about one file. */
  readonly of?: string | undefined;
}

export interface UnknownName {
  readonly name: string;
  readonly near: readonly string[];
}

export type NoSubject = By<
  'kind',
  {
    /** No Service is at the address. `owner` is the label of the node port, if the state names it. */
    'deaf-address': Strings<'socket'> & {
      readonly port: number;
      readonly owner: string | undefined;
      readonly listeners: NodePortListeners;
    };
    /** The Services at the address have other ports. */
    'other-ports': Strings<'address' | 'port'> & { readonly owners: readonly AddressOwner[] };
    /** No rule on the node leads packets for this address to the Service port. `by` says whether manifests or rules name the address. */
    'unreached-address': Strings<'address' | 'label'> & { readonly by: 'manifests' | 'rules' };
    /** The load balancer itself handles these packets (ipMode Proxy). */
    'proxied-address': Strings<'address' | 'service'>;
    /** kube-proxy ignores the Service because of a label. */
    'ignored-address': Strings<'address' | 'service' | 'label'>;
    /** `here` is the node that was asked about, or ''. `answers` says what serves the port on the other node. */
    'other-node': Strings<'address' | 'node' | 'here'> & {
      readonly answers:
        | { readonly kind: 'node-port' | 'health-check-node-port'; readonly port: number; readonly label: string }
        | undefined;
    };
    /** No Service selects these Pods. */
    'idle-pods': { readonly pods: readonly { readonly name: string; readonly address: string | undefined }[] };
    'no-match': Strings<'text'> & { readonly of: 'input' | 'dump'; readonly hint: SubjectHint | undefined };
  }
>;

/** The Service or endpoint that has an address. Ports are like "80/TCP". `service` is undefined if the state does not name the Service. */
export interface AddressOwner {
  readonly role: 'owner' | 'endpoint';
  readonly service: string | undefined;
  readonly ports: readonly string[];
}

export type SubjectHint =
  /** Only the mode `maker` makes chains with a name like this one. */
  | { readonly kind: 'other-mode'; readonly mode: ProxyMode; readonly maker: ProxyMode }
  | { readonly kind: 'near'; readonly names: readonly string[] };

export type NoService =
  | { readonly kind: 'dormant-table'; readonly table: string }
  | { readonly kind: 'iptables-as-nft' | 'unread' | 'lacks-chains' | 'no-kube-proxy' };

export const commandLineFindings = {
  'bad-expectation': byProblem<{
    nothing: None;
    missing: { readonly field: 'from' | 'to' | 'expect' | 'inputs' };
    empty: { readonly field: 'mode' | 'release' | 'node' | 'nodes' };
    rivals: None;
    /** `known` has the words that `source` accepts besides addresses. */
    'unknown-source': Strings<'value'> & Lists<'known'>;
    'unknown-verdict': Strings<'value'> & Lists<'known'> & { readonly near?: string | undefined };
    'idle-source': None;
    'no-endpoints': None;
    /** `what` differs from the input's. `known`: the input's value, if the input shows it. `field`: the field or flag that sets `what`. */
    'other-input': Strings<'field' | 'kind'> & { readonly what: 'mode' | 'release' | 'node' } & {
      readonly known?: string | undefined;
    };
    /** The library reads no files. */
    'no-file': Strings<'field' | 'option'>;
    refused: Strings<'field'> & { readonly error: Cited };
    /** The input shows no address for the sender. The test still sends its other packets. */
    unsent: Strings<'field'> & { readonly error: Cited };
    'not-tests': Lists<'fields'>;
  }>('error'),
  'bad-kpc-yaml': byProblem<{
    'link-outside': None;
    'several-documents': None;
    'no-mapping': Strings<'of'> & { readonly found: FoundValue };
    'unknown-flag': UnknownFlag;
    // The flag is for the command line only.
    'of-call': NamedFlag;
    value: NamedFlag & {
      readonly found: FoundValue;
      readonly expected: 'boolean' | 'list' | 'one' | 'ignores';
      readonly choices?: readonly string[] | undefined;
      readonly meaning?: string | undefined;
    };
    // The place is an entry in a list, such as "ignore[0]".
    lacks: Strings<'entry' | 'field'>;
    'unknown-field': Strings<'entry' | 'name'> & { readonly meant?: string | undefined };
    'unknown-code': Strings<'code'> & { readonly meant?: string | undefined };
    rivals: NamedFlag & Strings<'other'>;
    'replaces-outside': NamedFlag;
    'replaces-git': NamedFlag;
    'reads-outside': NamedFlag;
    refused: NamedFlag & Strings<'reason'>;
  }>('error'),
  'not-shown': row<NotShown>({ among: ['error', 'warning', 'note'], weigh: ({ severity }: NotShown) => severity }),
  // The question is valid, but nothing has this name or address.
  'not-found': byProblem<{
    /** `isNoPath`: the word was looked for as a path, too. */
    'no-subject': { readonly nothing: NoSubject; readonly isNoPath?: boolean | undefined };
    /** `lists` is 'flows' if the dump lists flows, because kpc cannot explain flows without Services. */
    'no-service': { readonly why: NoService | undefined; readonly lists: 'flows' | 'nothing' };
    /** `wanted`: the requirement that no Node meets, so that the workload's Pods stay Pending. */
    'pending-sender': Strings<'owner' | 'wanted'>;
    /** `lacksPods`: the input holds no Pod. */
    'no-sender': UnknownName & Strings<'from'> & Lists<'kinds'> & { readonly lacksPods: boolean };
    /** `others`: the destination's ports of other protocols or families, if the packet names a protocol. */
    'no-such-port': Strings<'to'> & Lists<'others'>;
    /** `nameless` is the mode of a dump that names no Service. */
    'no-such': UnknownName & { readonly kind: string; readonly files?: string; readonly nameless?: ProxyMode };
    /** `use`: what to write to mean the Node itself. */
    'is-node': Strings<'name' | 'kind' | 'use'>;
    'no-port': Strings<'service' | 'port'> & Lists<'ports' | 'near'>;
    'no-host': UnknownName & Strings<'service'> & Lists<'hosts'>;
    'no-ingress-of-host': Strings<'request'>;
  }>('error'),
  'bad-packet': byProblem<{
    'other-family': Strings<'from'>;
    'no-address': Strings<'text'>;
    'port-range': Strings<'to'>;
    unread: Strings<'what'> & Lists<'kinds'>;
    'no-endpoint': UnknownName;
    'no-address-of-pod': Strings<'pod'> & { readonly family: 'ipv4' | 'ipv6' };
    'no-node-named': Numbers<'nodes'>;
    /** `home`: the sender's own node, '' if unknown. `kind`: the kind of input that the answer is about. */
    'other-node': Strings<'sender' | 'to' | 'node' | 'home'> & { readonly kind: 'manifests' | 'bundle' | 'dump' };
    'no-address-for': { readonly sender: 'pod' | 'remote-pod' | 'external' };
    'which-port': Strings<'to'> & Lists<'ports'> & { readonly example?: string };
    several: Strings<'kind' | 'name'> & Lists<'names'>;
    skipped: Strings<'service'> & { readonly why: SkipReason };
  }>('error'),
};
