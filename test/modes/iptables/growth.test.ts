import { describe, expect, test } from 'vitest';
import { families } from '../../../src/kernel/address.ts';
import type { KernelState } from '../../../src/kernel/state.ts';
import { compileIptables } from '../../../src/modes/iptables/compile-iptables.ts';
import { compileIpvs } from '../../../src/modes/ipvs/compile-ipvs.ts';
import { address, clusterOf, defaults, endpoint, servicePort, worker } from './compile.ts';

/** That many node port Services with two endpoints each. */
function manyServices(count: number) {
  return clusterOf(
    ...Array.from({ length: count }, (_, i) =>
      servicePort({
        service: `service-${i}`,
        clusterIP: address(`10.96.0.${i + 1}`),
        nodePort: 30000 + i,
        endpoints: [endpoint(`10.244.1.${i + 1}`), endpoint(`10.244.2.${i + 1}`)],
      }),
    ),
  );
}

function countRules(state: KernelState): number {
  const tables = Object.values(state.iptables).flatMap((ofFamily) => Object.values(ofFamily));
  return tables.flatMap((chains) => [...chains.values()]).reduce((count, { rules }) => count + rules.length, 0);
}

describe('iptables rules against Services', () => {
  test('in IPVS mode their number stays the same', () => {
    const count = (services: number) => countRules(compileIpvs(manyServices(services), worker, defaults, families));
    expect(count(100)).toBe(count(1));
  });

  test('in iptables mode each Service adds its own', () => {
    const count = (services: number) => countRules(compileIptables(manyServices(services), worker, defaults, families));
    // One each for cluster IP and node port, three to masquerade and go on, three for each of two endpoints.
    expect(count(100) - count(1)).toBe(99 * (2 + 3 + 2 * 3));
  });
});
