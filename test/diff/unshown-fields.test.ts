import { describe, expect, test } from 'vitest';
import type { ServicePort, ShownPort } from '../../src/cluster/model.ts';
import { diffFields } from '../../src/ask/diff/service-reasons.ts';
import { serviceReasonWords } from '../../src/say/port-facts.ts';
import { address, network, servicePort } from '../modes/iptables/compile.ts';

const plain = servicePort({ nodePort: 30080, affinitySeconds: 600 });

/** Each field of a Service port with another value than `plain` has, and what is said of the two. */
const others: readonly (readonly [Partial<ServicePort>, string])[] = [
  [{ port: 81 }, 'port 80 → 81'],
  [{ nodePort: 0 }, 'nodePort 30080 → (none)'],
  [{ internalPolicyLocal: true }, 'internalTrafficPolicy Cluster → Local'],
  [{ externalPolicyLocal: true }, 'externalTrafficPolicy Cluster → Local'],
  [{ healthCheckNodePort: 32000 }, 'healthCheckNodePort (none) → 32000'],
  [{ scheduler: 'lc' }, 'scheduler (none) → lc'],
  [{ forwarding: 'direct' }, 'forwarding masquerade → direct'],
  [{ affinitySeconds: 0 }, 'sessionAffinity ClientIP for 600 s → None'],
  [{ sourceRanges: [network('203.0.113.0/24')] }, 'loadBalancerSourceRanges: + 203.0.113.0/24'],
  [{ clusterIP: address('10.96.0.11') }, 'clusterIP 10.96.0.10 → 10.96.0.11'],
];

describe('the fields of two Service ports', () => {
  test.each(others)('%j differs', (fields, words) => {
    const reasons = diffFields(plain, { ...plain, ...fields });
    expect(reasons.map((reason) => serviceReasonWords(reason))).toEqual([words]);
  });

  // A kernel has no rules for source ranges without endpoints, and nothing of a node port in an excerpt of its rules.
  test.each(others.filter(([fields]) => !('clusterIP' in fields)))(
    'is no difference where a side does not show it: %j',
    (fields) => {
      const unshown: ShownPort = {
        ...plain,
        ...Object.fromEntries(Object.keys(fields).map((name) => [name, undefined])),
      };
      const shown = { ...plain, ...fields };
      expect([...diffFields(unshown, shown), ...diffFields(shown, unshown)]).toEqual([]);
    },
  );
});
