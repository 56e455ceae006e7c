import type { FieldPath, ServiceCidr, ObjectMeta } from '../../cluster/objects.ts';
import {
  type Address,
  type Family,
  hostNetwork,
  type Network,
  parseAddress,
  parseNetwork,
  unusableAs,
} from '../../kernel/address.ts';
import { isLabelValue, isName, findNearest, type NameRule } from '../../base/names.ts';
import { fieldName } from '../../base/printable.ts';
import { StatusSharing } from '../../cluster/endpoints.ts';
import { isStrayAnnotation, ownAnnotations } from '../../cluster/check-services.ts';
import type { Report } from './report.ts';
import type { RawServiceCidr } from './shapes/node.ts';
import type { RawMetadata } from './shapes/shared.ts';

const maxRemembered = 100_000;

/** Checks each distinct text once and keeps one copy, because many objects name the same few nodes, zones and namespaces. */
class CheckedTexts {
  readonly #known = new Map<string, string>();
  readonly #isRight: (text: string) => boolean;

  constructor(isRight: (text: string) => boolean) {
    this.#isRight = isRight;
  }

  find(text: string): string | undefined {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    if (!this.#isRight(text)) return undefined;
    if (this.#known.size < maxRemembered) this.#known.set(text, text);
    return text;
  }
}

export class CommonNames {
  readonly namespaces = new CheckedTexts((text) => isName(text, 'label'));
  readonly nodes = new CheckedTexts((text) => isName(text, 'subdomain'));
  readonly zones = new CheckedTexts(isLabelValue);
  readonly statuses = new StatusSharing();
}

/** Reports a name that the API server would refuse, because it could break out of a rule's comment. */
export function checkName(text: string, rule: NameRule, path: FieldPath, report: Report): void {
  if (isName(text, rule)) return;
  report.addWrong(path, text, rule);
}

/** Checks an object's metadata and fills in the namespace, except for a Node, which has none. */
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
    report.addMissing(['metadata'], 'name', Boolean(raw?.generateName));
  } else {
    checkName(name, rule, ['metadata', 'name'], report);
  }
  if (namespace === undefined) checkName(given, 'label', ['metadata', 'namespace'], report);
  for (const annotation in raw?.annotations)
    if (isStrayAnnotation(annotation)) {
      const meant = findNearest(annotation, Object.values(ownAnnotations));
      const details = { owner: 'metadata.annotations', name: annotation, reader: 'kpc', meant } as const;
      report.addAtKey(['metadata', 'annotations', annotation], 'unknown-field', details);
    }
  return {
    name,
    namespace: namespace ?? given,
    labels: textsWithoutNull(raw?.labels),
    annotations: textsWithoutNull(raw?.annotations),
  };
}

type StringMap = Readonly<Record<string, string>>;

const noTexts: StringMap = {};

/** Replaces null by the empty text, as Kubernetes does. */
export function textsWithoutNull(map: Readonly<Record<string, string | null>> | null | undefined): StringMap {
  let texts: Record<string, string> | undefined;
  for (const name in map) if (map[name] === null) (texts ??= { ...map } as Record<string, string>)[name] = '';
  return texts ?? (map as StringMap | null | undefined) ?? noTexts;
}

/** Parses an address as kube-proxy does. Reports an error and returns undefined for a text that kube-proxy would not accept. */
export function checkAddress(text: string, path: FieldPath, report: Report): Address | undefined {
  const address = parseAddress(text);
  if (!address) {
    report.addWrong(path, text, 'address');
  } else if (text !== address.text) {
    const isRefused = isAmbiguous(text, address);
    report.add(path, 'odd-address', { field: fieldName(path), value: text, address: address.text, isRefused });
  }
  return address;
}

/** Recognises what StrictIPCIDRValidation refuses: leading zeros, and IPv4 mapped into IPv6. */
function isAmbiguous(text: string, { family }: { readonly family: Family }): boolean {
  return (family === 'ipv4' && (text.includes(':') || /(?:^|\.)0\d/.test(text))) || /\/0\d/.test(text);
}

/** Like checkAddress, but also refuses addresses that the API server never allows in Services and endpoints. */
export function checkHostAddress(text: string, path: FieldPath, report: Report): Address | undefined {
  const address = checkAddress(text, path, report);
  const use = address && unusableAs(address);
  if (use === undefined) return address;
  report.addWrong(path, text, { form: 'address', use });
  return undefined;
}

export function checkNetwork(text: string, path: FieldPath, report: Report): Network | undefined {
  const network = parseNetwork(text);
  if (!network) {
    const address = parseAddress(text);
    const single = address && ({ form: 'single-network', expected: hostNetwork(address).text } as const);
    report.addWrong(path, text, single ?? 'network');
  } else if (text !== network.text) {
    const written = parseAddress(text.slice(0, text.indexOf('/')));
    const isMeant = written !== undefined && written.text !== network.address.text;
    const single = isMeant ? hostNetwork(written).text : undefined;
    const isRefused = isMeant || isAmbiguous(text, network);
    report.add(path, 'odd-address', { field: fieldName(path), value: text, address: network.text, single, isRefused });
  }
  return network;
}

export function areOfEachFamily(networks: readonly Network[]): boolean {
  return networks.length > 0 && new Set(networks.map(({ family }) => family)).size === networks.length;
}

export function readServiceCidr(raw: RawServiceCidr, report: Report, names: CommonNames): ServiceCidr {
  const metadata = readMetadata(raw.metadata, 'subdomain', report, names);
  const path = ['spec', 'cidrs'];
  const texts = raw.spec?.cidrs ?? [];
  const cidrs = texts.flatMap((text, i) => {
    const network = parseNetwork(text);
    if (!network || text === network.text) return checkNetwork(text, [...path, i], report) ?? [];
    report.addWrong([...path, i], text, { form: 'exact-network', expected: network.text });
    return network;
  });
  if (cidrs.length === texts.length && !areOfEachFamily(cidrs)) {
    report.addWrong(path, texts.join(), 'networks');
  }
  return { metadata, cidrs };
}
