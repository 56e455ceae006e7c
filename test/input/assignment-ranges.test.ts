import { expect, test } from 'vitest';
import { parseAssignmentRanges } from '../../src/input/configuration/range-flags.ts';

test('no flags, no ranges', () => {
  expect(parseAssignmentRanges({})).toEqual({ ranges: { clusterIPs: [], nodePorts: undefined }, diagnostics: [] });
});

test('both ranges', () => {
  const { ranges, diagnostics } = parseAssignmentRanges({
    serviceClusterIpRange: '10.96.0.0/16,fd00::/112',
    serviceNodePortRange: '30000-32767',
  });
  expect(ranges.clusterIPs.map(({ text }) => text)).toEqual(['10.96.0.0/16', 'fd00::/112']);
  expect(ranges.nodePorts).toEqual({ first: 30000, last: 32767 });
  expect(diagnostics).toEqual([]);
  expect(parseAssignmentRanges({ serviceNodePortRange: '100+9' }).ranges.nodePorts).toEqual({ first: 100, last: 109 });
});

test.each(['10.96.0.0', '10.0.0.0/8,10.1.0.0/16', ''])('no cluster range: %j', (text) => {
  expect(parseAssignmentRanges({ serviceClusterIpRange: text }).diagnostics).toMatchObject([
    {
      severity: 'error',
      code: 'bad-value',
      arguments: { field: '--service-cluster-ip-range', found: { type: 'string', value: text } },
    },
  ]);
});

test.each(['30000', '30000-70000', '5-4', '0-9'])('no port range: %j', (text) => {
  expect(parseAssignmentRanges({ serviceNodePortRange: text }).diagnostics).toMatchObject([
    {
      severity: 'error',
      code: 'bad-value',
      arguments: { field: '--service-node-port-range', found: { type: 'string', value: text } },
    },
  ]);
});
