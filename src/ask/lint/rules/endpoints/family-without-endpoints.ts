import { groupBy } from '../../../../cluster/grouping.ts';

import { isServed, refused, ofServices, type Rule } from '../../rule.ts';

/** Services with cluster IPs of both families, whose endpoints are of one. */
export const familyWithoutEndpoints: Rule<'family-without-endpoints'> = ofServices((service, input) => {
  const { name, ports, knowsEndpoints, source } = service;
  if (!knowsEndpoints) return undefined;
  const families = [...groupBy(ports, ({ family }) => family).values()];
  const [lacking, ...others] = families.filter((own) => own.every((port) => port.endpoints.length === 0));
  const other = families.find((own) => own.some(isServed))?.[0].family;
  if (!lacking || others.length > 0 || other === undefined) return undefined;
  const [port] = lacking;
  return {
    details: { service: name, address: port.clusterIP.text, family: port.family, other },
    place: source.place(['spec', 'ipFamilies']),
    packet: refused(port, input),
  };
});
