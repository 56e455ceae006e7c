import type { ServiceCidr } from '../../cluster/objects.ts';
import { checkCanonicalNetwork } from './check-addresses.ts';
import { readMetadata, type CommonNames } from './check-names.ts';
import type { Report } from './report.ts';
import type { RawServiceCidr } from './schemas/node.ts';

/** Checks a ServiceCIDR as the API server does (ValidateServiceCIDR in pkg/apis/networking/validation). */
export function readServiceCidr(raw: RawServiceCidr, report: Report, names: CommonNames): ServiceCidr {
  const metadata = readMetadata(raw.metadata, 'subdomain', report, names);
  const path = ['spec', 'cidrs'];
  const texts = raw.spec?.cidrs ?? [];
  const cidrs = texts.map((text, i) => checkCanonicalNetwork(text, [...path, i], report));
  const known = cidrs.filter((network) => network !== undefined);
  const families = new Set(known.map(({ family }) => family));
  if (texts.length === 0 || texts.length > 2 || (known.length === texts.length && families.size < texts.length)) {
    report.add(path, 'bad-cidr', { problem: 'families', field: 'cidrs' });
  }
  return { metadata, cidrs: known };
}
