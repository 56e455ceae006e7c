// IPsec policies from `ip xfrm policy`. They say which packets must be encrypted and which are blocked.
import { type Address, contains, type Family, type Network, parseNetwork } from '../address.ts';
import { linesOf, UnreadLines } from '../lines.ts';
import { parseNumber32 } from '../ports-and-marks.ts';

export interface IpsecPolicy {
  readonly family: Family;
  readonly direction: 'in' | 'out' | 'fwd';
  /** The policy with the lowest priority applies. */
  readonly priority: number;
  readonly source: Network;
  readonly destination: Network;
  readonly protocol?: string | undefined;
  readonly port?: number | undefined;
  readonly sourcePort?: number | undefined;
  readonly link?: string | undefined;
  readonly mark?: { readonly value: number; readonly mask: number } | undefined;
  /** `protect` if at least one template is not optional. */
  readonly action: 'allow' | 'block' | 'protect';
}

export interface IpsecQuestion {
  readonly direction: IpsecPolicy['direction'];
  /** Undefined for an unknown host. */
  readonly from: Address | undefined;
  readonly to: Address | undefined;
  readonly protocol: string;
  /** Undefined if the packet has no port, or if the client's kernel chose the port. */
  readonly port: number | undefined;
  readonly sourcePort: number | undefined;
  readonly mark: number;
  /** The link by which the packet leaves, or by which it came in. */
  readonly link: string | undefined;
}

/** Returns the policies' action for a packet (xfrm_policy_lookup). Also returns `protect` if kpc does not know which policy applies. */
export function actionOfPolicies(policies: readonly IpsecPolicy[], question: IpsecQuestion): IpsecPolicy['action'] {
  const own = policies.filter((policy) => takes(policy, question) !== false);
  const first = Math.min(...own.map(({ priority }) => priority));
  const isOpen = own.some((policy) => policy.action !== 'allow' && takes(policy, question) === undefined);
  const actions = new Set(own.flatMap(({ priority, action }) => (priority === first ? [action] : [])));
  const [action = 'allow'] = actions;
  return isOpen || actions.size > 1 ? 'protect' : action;
}

function takes(policy: IpsecPolicy, asked: IpsecQuestion): boolean | undefined {
  const { direction, source, destination, protocol, link, mark, action } = policy;
  const isOfPeer = !asked.from || !asked.to;
  // kpc assumes that neither policies nor rules block the peers of the node's tunnels.
  if (isOfPeer && action === 'block') return false;
  const isHeld =
    direction === asked.direction &&
    (!asked.from || contains(source, asked.from)) &&
    (!asked.to || contains(destination, asked.to)) &&
    (protocol === undefined || protocol === asked.protocol) &&
    (link === undefined || link === asked.link) &&
    (!mark || ((asked.mark ^ mark.value) & mark.mask) === 0);
  if (!isHeld) return false;
  const ports = [
    [policy.port, asked.port],
    [policy.sourcePort, asked.sourcePort],
  ].filter(([own]) => own !== undefined);
  if (ports.some(([own, port]) => port !== undefined && own !== port)) return false;
  return isOfPeer || ports.some(([, port]) => port === undefined) ? undefined : true;
}

/**
 * Reads `ip xfrm policy`. Leaves out policies of single sockets and of IPsec interfaces (if_id), because packets of other programs do not
 * meet them.
 */
export function parseIpsecPolicies(text: string) {
  const unread = new UnreadLines();
  const blocks: { readonly line: number; readonly head: string; readonly words: string[] }[] = [];
  let number = 0;
  for (const raw of linesOf(text)) {
    number++;
    const line = raw.trim();
    const block = blocks.at(-1);
    if (line.startsWith('src ')) blocks.push({ line: number, head: line, words: [] });
    else if (block) block.words.push(...line.split(/\s+/));
    else if (line !== '') unread.add(number, () => raw, 'other-line');
  }
  const policies = blocks.flatMap(({ line, head, words }): readonly IpsecPolicy[] => {
    if (words[0] === 'socket' || words.includes('if_id')) return [];
    const policy = readPolicy(head, words);
    if (!policy) unread.add(line, () => head, 'other-line');
    return policy ? [policy] : [];
  });
  return { policies, unread: unread.all };
}

function readPolicy(head: string, words: readonly string[]): IpsecPolicy | undefined {
  const selector = head.split(/\s+/);
  const after = (list: readonly string[], word: string): string | undefined =>
    list.includes(word) ? list[list.indexOf(word) + 1] : undefined;
  const [source, destination] = ['src', 'dst'].map((word) => parseNetwork(after(selector, word) ?? ''));
  const direction = (['in', 'out', 'fwd'] as const).find((each) => each === after(words, 'dir'));
  if (!source || !destination || direction === undefined) return undefined;
  const numberAt = (word: string): number | undefined => parseNumber32(after(selector, word) ?? '');
  const [value, mask] = (after(words, 'mark') ?? '').split('/').map((each) => parseNumber32(each));
  const templates = words.filter((word) => word === 'tmpl').length;
  const optional = words.filter((word, at) => word === 'use' && words[at - 1] === 'level').length;
  return {
    family: source.family,
    direction,
    priority: Number(after(words, 'priority') ?? 0),
    source,
    destination,
    protocol: after(selector, 'proto'),
    port: numberAt('dport'),
    sourcePort: numberAt('sport'),
    link: after(selector, 'dev'),
    mark: value !== undefined && mask !== undefined ? { value, mask } : undefined,
    action: after(words, 'action') === 'block' ? 'block' : templates > optional ? 'protect' : 'allow',
  };
}
