import type { FieldPath, ServiceCidr, ObjectMeta } from '../../cluster/objects.ts';
import {
  describeSpecial,
  describeUnusable,
  parseAddress,
  parseNetwork,
  type Address,
  type Network,
} from '../../kernel/address.ts';
import { isLabelValue, isName, type NameRule } from '../../base/object-names.ts';
import { fieldName } from '../../base/printable.ts';
import { StatusSharing } from '../../cluster/endpoint-status.ts';
import type { Report } from './report.ts';
import type { RawServiceCidr } from './schemas/node.ts';
import type { RawMetadata } from './schemas/shared.ts';

/** How many texts are remembered; others are checked each time. */
const maxRemembered = 100_000;

/**
 * Texts that were checked and found right. The names of a few nodes and zones come with every endpoint, and those of a few
 * namespaces with every object: they are checked once, and kept once.
 */
class CheckedTexts {
  readonly #known = new Map<string, string>();
  readonly #isRight: (text: string) => boolean;

  constructor(isRight: (text: string) => boolean) {
    this.#isRight = isRight;
  }

  /** The text, the same object for the same characters; undefined if it is not right. */
  find(text: string): string | undefined {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    if (!this.#isRight(text)) return undefined;
    if (this.#known.size < maxRemembered) this.#known.set(text, text);
    return text;
  }
}

/** What comes with many objects and endpoints of one run. */
export class CommonNames {
  readonly namespaces = new CheckedTexts((text) => isName(text, 'label'));
  readonly nodes = new CheckedTexts((text) => isName(text, 'subdomain'));
  readonly zones = new CheckedTexts(isLabelValue);
  readonly statuses = new StatusSharing();
}

/** Reports a name that the API server would refuse; it could break out of a rule's comment. */
export function checkName(text: string, rule: NameRule, path: FieldPath, report: Report): void {
  if (isName(text, rule)) return;
  report.add(path, 'bad-name', { field: fieldName(path), value: text, rule });
}

/** Checks an object's metadata and fills in the namespace. A Node has none. */
export function readMetadata(
  raw: RawMetadata | null | undefined,
  rule: NameRule,
  report: Report,
  names: CommonNames,
): ObjectMeta {
  const name = raw?.name ?? '';
  const given = raw?.namespace || 'default';
  const namespace = names.namespaces.find(given);
  if (name === '') {
    report.add(['metadata', 'name'], 'missing-name', { isGenerated: Boolean(raw?.generateName) });
  } else {
    checkName(name, rule, ['metadata', 'name'], report);
  }
  if (namespace === undefined) checkName(given, 'label', ['metadata', 'namespace'], report);
  return {
    name,
    namespace: namespace ?? given,
    labels: readTexts(raw?.labels, 'label', paths.labels, report),
    annotations: readTexts(raw?.annotations, 'annotation', paths.annotations, report),
  };
}

const paths = { labels: ['metadata', 'labels'], annotations: ['metadata', 'annotations'] };

type Texts = Readonly<Record<string, string>>;

const noTexts: Texts = {};

/** Null is the empty text here, as it is to Kubernetes: few mean that. */
export function readTexts(
  map: Readonly<Record<string, string | null>> | null | undefined,
  of: 'label' | 'annotation' | 'selector',
  path: FieldPath,
  report: Report,
): Texts {
  let texts: Record<string, string> | undefined;
  for (const name in map) {
    if (map[name] !== null) continue;
    report.add([...path, name], 'null-value', { of, name });
    texts ??= { ...map } as Record<string, string>;
    texts[name] = '';
  }
  return texts ?? (map as Texts | null | undefined) ?? noTexts;
}

/** The address as kube-proxy reads it; undefined, with an error in the report, for anything else. */
export function checkAddress(text: string, path: FieldPath, report: Report): Address | undefined {
  const address = parseAddress(text);
  if (!address) {
    report.add(path, 'bad-address', { field: fieldName(path), value: text, expected: 'an IP address' });
  } else if (text !== address.text) {
    report.add(path, 'odd-address', { field: fieldName(path), value: text, address: address.text });
  }
  return address;
}

/** Like checkAddress, but also refuses addresses that the API server takes for no Service or endpoint. */
export function checkUsableAddress(text: string, path: FieldPath, report: Report): Address | undefined {
  const address = checkAddress(text, path, report);
  const kind = address && describeUnusable(address);
  if (kind === undefined) return address;
  const expected = `an address that Kubernetes takes here: it is ${kind}`;
  report.add(path, 'bad-address', { field: fieldName(path), value: text, expected });
  return undefined;
}

/** Warns of an address that no host on a network has, though Kubernetes accepts it. */
export function warnOfSpecial(address: Address, text: string, path: FieldPath, report: Report): void {
  const kind = describeSpecial(address);
  if (kind === undefined) return;
  const isRefused = describeUnusable(address) !== undefined;
  report.add(path, 'special-address', { field: fieldName(path), value: text, kind, isRefused });
}

/** Like checkUsableAddress, and warns of an address that no host on a network has. */
export function checkHostAddress(text: string, path: FieldPath, report: Report): Address | undefined {
  const address = checkUsableAddress(text, path, report);
  if (address) warnOfSpecial(address, text, path, report);
  return address;
}

/** The network as kube-proxy reads it; undefined, with an error in the report, for anything else. */
export function checkNetwork(text: string, path: FieldPath, report: Report): Network | undefined {
  const network = parseNetwork(text);
  const written = { field: fieldName(path), value: text };
  if (!network) report.add(path, 'bad-cidr', { problem: 'no-network', ...written, address: networkOfOne(text) });
  else if (text !== network.text) {
    // With host bits set, the single address may be meant.
    const address = networkOfOne(text.slice(0, text.indexOf('/')), network.address);
    report.add(path, 'odd-cidr', { ...written, network: network.text, address });
  }
  return network;
}

/** The network of a single address; undefined if the text is no address, or is `other`. */
function networkOfOne(text: string, other?: Address): string | undefined {
  const address = parseAddress(text);
  if (!address || address.text === other?.text) return undefined;
  return `${other ? address.text : text}/${address.family === 'ipv6' ? 128 : 32}`;
}

/** Checks a ServiceCIDR as the API server does (ValidateServiceCIDR in pkg/apis/networking/validation). */
export function readServiceCidr(raw: RawServiceCidr, report: Report, names: CommonNames): ServiceCidr {
  const metadata = readMetadata(raw.metadata, 'subdomain', report, names);
  const path = ['spec', 'cidrs'];
  const texts = raw.spec?.cidrs ?? [];
  const cidrs = texts.map((text, i) => {
    const network = parseNetwork(text);
    if (!network || text === network.text) return checkNetwork(text, [...path, i], report);
    const details = { problem: 'not-canonical', field: fieldName([...path, i]), value: text } as const;
    return report.add([...path, i], 'bad-cidr', { ...details, network: network.text });
  });
  const known = cidrs.filter((network) => typeof network === 'object');
  const families = new Set(known.map(({ family }) => family));
  if (texts.length === 0 || texts.length > 2 || (known.length === texts.length && families.size < texts.length)) {
    report.add(path, 'bad-cidr', { problem: 'families', field: 'cidrs' });
  }
  return { metadata, cidrs: known };
}
