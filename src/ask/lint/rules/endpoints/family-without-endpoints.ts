import { findLackingFamily } from '../../../../cluster/slices/unready.ts';
import { isServed, claimRefused, ofServices, type LintRule } from '../../rule.ts';

export const familyWithoutEndpoints: LintRule<'family-without-endpoints'> = ofServices((service, input) => {
  const { name, ports, knowsEndpoints, source } = service;
  const lack = knowsEndpoints && ports.some(isServed) ? findLackingFamily(ports) : undefined;
  if (!lack) return undefined;
  const { port, other } = lack;
  return {
    details: { service: name, address: port.clusterIP.text, family: port.family, other },
    place: source.place(['spec', 'ipFamilies']),
    packet: claimRefused(port, input),
  };
});
