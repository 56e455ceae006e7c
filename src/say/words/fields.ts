import { joinWords, quote } from '../../base/printable.ts';
import type { FoundValue, RequiredField, ValueForm, WrongValue, fieldFindings } from '../../base/findings/fields.ts';
import type { SpecialUse } from '../../kernel/address.ts';
import { nodePortWords, proxyModeNames } from '../../kube-proxy/modes.ts';
import { releaseRange } from '../../kube-proxy/releases.ts';
import { didYouMean, type Words, type WordsOf } from './rows.ts';

/** Matches characters that look like a space or are invisible, but are no space in YAML. Text copied from a page or chat may have them. */
const oddSpace = /[\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000]/;

/** Returns advice on the first odd space in a text. Undefined if the text has none. */
export function adviseOnOddSpace(text: string): string | undefined {
  const [found] = oddSpace.exec(text) ?? [];
  return found && `replace ${nameCharacter(found.charCodeAt(0))}, which only looks like a space, with a normal space`;
}

export function nameCharacter(codePoint: number): string {
  return `U+${codePoint.toString(16).toUpperCase().padStart(4, '0')}`;
}

export function foundWords(found: FoundValue): string {
  switch (found.type) {
    case 'empty':
      return 'empty';
    case 'list':
      return 'a list';
    case 'mapping':
      return 'a mapping';
    case 'string':
      return quote(found.value);
    case 'number':
      return found.written ?? String(found.value);
    case 'boolean':
      return String(found.value);
  }
}

/** What to write instead. A reason may follow. */
type FormWords = string | readonly [write: string, because: string];

const oneOfEachFamily = 'one network, or one of each family';
const network = 'a network such as 10.0.0.0/8 or fd00::/64';
const port = 'a number from 1 to 65535';
const release = `a release of Kubernetes ${releaseRange}`;
const labelValue =
  'letters, digits, dashes, underscores and dots, 63 characters at most, with a letter or digit at both ends';
const leftOut = 'the rules are made without it';

const forms: { readonly [Form in ValueForm]: FormWords | ((expected: string) => FormWords) } = {
  label: 'lower-case letters, digits and dashes, 63 characters at most, with a letter or digit at both ends',
  subdomain: 'lower-case letters, digits, dashes and dots, 253 characters at most, with a letter or digit at both ends',
  'label-value': labelValue,
  zone: [labelValue, leftOut],
  'port-name': 'lower-case letters, digits and single dashes, with a letter among them, 15 at most',
  port,
  'slice-port': [port, leftOut],
  'node-port': 'type: NodePort, or leave nodePort out',
  address: 'an IP address such as 10.0.0.1 or fd00::1, without a prefix length',
  'address-of-family': (family) => `an ${family} address, the family that this object names`,
  'cluster-ips': 'one address, or one of each family',
  'same-cluster-ip': (clusterIP) => `${clusterIP}, as in clusterIP`,
  'none-or-address': 'None alone, or an address',
  'of-cluster-ip-type': [
    'type: ClusterIP, or no clusterIP',
    'a Service of type NodePort or LoadBalancer cannot be headless',
  ],
  'of-other-type': ['no address, or another type', 'a Service of type ExternalName has no cluster IP'],
  'one-of': (known) => `one of ${known}`,
  'external-name': [
    'a DNS name; for an address, use an EndpointSlice and a Service without a selector',
    'DNS looks it up as a name, and finds none',
  ],
  'traffic-distribution': ['PreferSameZone, PreferSameNode or PreferClose', `API servers refuse it, and ${leftOut}`],
  families: 'each family once',
  'family-policy': ['PreferDualStack or RequireDualStack for two ipFamilies', leftOut],
  network,
  'single-network': (single) => `${single} for this one address`,
  'exact-network': (exact) => [exact, 'Kubernetes refuses it'],
  networks: oneOfEachFamily,
  'network-or-word': `${network}, or one of the words ${joinWords(nodePortWords)}`,
  quantity: 'a quantity such as 4 or 3920m',
  mode: proxyModeNames,
  'linux-mode': [proxyModeNames, 'a bundle is for a Linux host'],
  gate: 'NAME=true or NAME=false',
  release,
  'release-or-auto': `${release}, or auto`,
  '--assume-endpoints': `${oneOfEachFamily}, such as 10.244.0.0/16,fd00:10:244::/56`,
  '--load-balancer-ip-range': 'networks such as 203.0.113.0/24 or 2001:db8::/120',
  '--service-cluster-ip-range': `${oneOfEachFamily}, such as 10.96.0.0/16,fd00:10:96::/112`,
  '--service-node-port-range': 'the first and the last port, such as 30000-32767',
  '--shard': 'I/N for part I of N; I counts from 0, so the last of eight is 7/8',
};

const required: Readonly<Record<RequiredField, string>> = {
  spec: 'one with ports',
  name: 'one',
  port,
  addressType: 'IPv4, IPv6 or FQDN',
  addresses: 'one, or leave the endpoint out',
  externalName: 'the DNS name that this Service of type ExternalName stands for',
  parentRef: 'the Gateway that this ListenerSet attaches to',
};

export const specialUses: Readonly<Record<SpecialUse, string>> = {
  unspecified: 'the unspecified address',
  loopback: 'a loopback address',
  'link-local': 'a link-local address',
  'link-local multicast': 'a link-local multicast address',
};

function describeWrong(details: WrongValue): Words {
  const { field, found, types = ['string'], expected, form, use, ignoredIn } = details;
  const words = form && forms[form];
  const [write, reason] = [typeof words === 'function' ? words(expected ?? '') : words].flat();
  const because = use ? `it is ${specialUses[use]}` : (reason ?? details.because);
  const why = because === undefined ? '' : `: ${because}`;
  const ending = ignoredIn === undefined ? '' : `; mode ${ignoredIn} ignores it`;
  const wrong = `${field} cannot be ${foundWords(found)}${why}${ending}`;
  if (write !== undefined) return [wrong, `write ${write}`];
  if (types.includes('string') && (found.type === 'number' || found.type === 'boolean')) {
    // A duration needs a unit, so quotes alone would not be enough.
    const isAnyString = expected === undefined || expected === 'a string' || found.type === 'boolean';
    return [
      `${field} is ${found.type === 'number' ? 'the number ' : ''}${foundWords(found)}, not a string`,
      isAnyString ? `put it in quotes${found.type === 'boolean' ? yesIsTrue : ''}` : `write ${expected}`,
    ];
  }
  // Only selectors of other kinds have these fields.
  if (types.includes('string') && /\bmatch(?:Labels|Expressions)$/.test(field)) {
    return [wrong, 'write the labels themselves here: this selector takes no matchLabels and no matchExpressions'];
  }
  if (types.includes('integer')) {
    const isInQuotes = found.type === 'string' && /^\d+$/.test(found.value);
    return [wrong, isInQuotes ? `write ${found.value} without quotes` : (expected ?? 'write a whole number')];
  }
  // Without a space after the colon, YAML reads a key and its value as one string.
  const isPair = types.includes('object') && found.type === 'string' && /^[\w./-]+:[^\s/]/.test(found.value);
  return [wrong, isPair ? 'put a space after the ":"' : `write ${expected ?? types.join(' or ')}`];
}

const yesIsTrue = ' (YAML 1.1 reads yes, y and on as true; no, n and off as false)';

/** Words for problems with single fields, in any object. */
export const fieldWords: WordsOf<typeof fieldFindings> = {
  'bad-value': describeWrong,
  'missing-field': ({ owner, field, isGenerated }) => [
    `${owner} has no ${field}`,
    `write ${required[field]}`,
    isGenerated ? 'give the object as the cluster has it' : undefined,
  ],
  'unknown-field': ({ name, owner, reader, meant }) => [
    `${owner} has no field ${quote(name)}${reader === undefined ? '' : `: ${reader} ignores it`}`,
    adviseOnOddSpace(name) ?? didYouMean(meant),
  ],
  'odd-address': ({ field, value, address, single, isRefused }) => [
    `${field} ${quote(value)} is read as ${address}${isRefused ? '; API servers refuse it in new objects, by default from Kubernetes 1.36 on and always from 1.38 on' : ''}`,
    single === undefined
      ? 'write this form, because other programs may read the address differently'
      : `write ${address}, or ${single} for the one address`,
  ],
};
