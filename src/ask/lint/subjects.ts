import { fullName } from '../../cluster/objects.ts';
import type { Finding } from '../../base/findings/finding.ts';
import type { LoadedInputs } from '../../snapshot/open/load-texts.ts';
import { serviceOf } from './lint-input.ts';
import { objectFinder, titleOf } from './listed-objects.ts';

export interface Subjects {
  /** Says what a finding is about: the Service that its arguments name, or the object at its place. */
  readonly name: (finding: Finding) => Finding;
  /** The Services that it is about, or names. */
  readonly servicesOf: (finding: Finding) => readonly string[];
  /** Whether its place is in an object. */
  readonly isInObject: (finding: Finding) => boolean;
}

export function subjectsOf({ inputs, cluster }: LoadedInputs): Subjects {
  const objectAt = objectFinder(inputs);
  const serviceOfLabel = new Map(cluster.servicePorts.map((port) => [port.label, serviceOf(port)]));
  const find = (finding: Finding): Finding['about'] => {
    const object = objectAt(finding.place);
    const { service, services, servicePort, rival } = finding.arguments as Readonly<Record<string, unknown>>;
    const [only, ...others] = Array.isArray(services) ? services.map(String) : [];
    const named = typeof service === 'string' ? service : others.length === 0 ? only : undefined;
    const label = servicePort ?? rival;
    const ofLabel = typeof label === 'string' ? serviceOfLabel.get(label) : undefined;
    const name = named ?? ofLabel ?? (object?.kind === 'Service' ? fullName(object.metadata) : undefined);
    if (name !== undefined) return { kind: 'service', name };
    return object && { kind: 'object', name: titleOf(object) };
  };
  return {
    name: (finding) => ({ ...finding, about: find(finding) }),
    servicesOf: ({ about, arguments: details }) => {
      // A Service, or the label of one of its ports.
      const { holder } = details as Readonly<Record<string, unknown>>;
      const named = typeof holder === 'string' ? [serviceOfLabel.get(holder) ?? holder] : [];
      return about?.kind === 'service' ? [about.name, ...named] : named;
    },
    isInObject: ({ place }) => objectAt(place) !== undefined,
  };
}
