import { parseAddress, type Address } from '../../kernel/address.ts';
import type { Place } from '../../kernel/place.ts';
import type { LintedService } from './lint-input.ts';

interface OutsideAddress {
  readonly address: Address;
  readonly place: Place;
}

/** The external addresses that kube-proxy would program, of either family. */
export function outsideAddresses({ written: { spec, ingress }, source }: LintedService): readonly OutsideAddress[] {
  const read = (text: string | undefined, place: Place): readonly OutsideAddress[] => {
    const address = parseAddress(text ?? '');
    return address ? [{ address, place }] : [];
  };
  return [
    ...spec.externalIPs.flatMap((text, i) => read(text, source.place(['spec', 'externalIPs', i]))),
    ...ingress.flatMap(({ ip, ipMode }, i) =>
      ipMode === 'VIP' ? read(ip, source.place(['status', 'loadBalancer', 'ingress', i, 'ip'])) : [],
    ),
  ];
}
