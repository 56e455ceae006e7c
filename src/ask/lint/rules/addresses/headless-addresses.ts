import { claimedSocket, outsideAddresses, ofServices, type LintRule } from '../../rule.ts';

export const headlessAddresses: LintRule<'headless-addresses'> = ofServices((service, { nodes }) => {
  const { name, skipped, object } = service;
  const outside = outsideAddresses(service);
  const [first] = outside;
  if (skipped !== 'headless' || !first) return undefined;
  const [port] = object.spec.ports;
  const claim = { from: 'external', to: first.address, node: nodes[0]?.nodeName ?? '', ends: ['forwarded'] } as const;
  return {
    details: { service: name, addresses: outside.map(({ address }) => address.text) },
    place: first.place,
    packet: port && { ...claim, ...claimedSocket(port) },
  };
});
