import { expect, test } from 'vitest';
import { readServices, writeServices } from '../../src/bundle/services-file.ts';

/** Texts that look like the separator of two records. */
const hostile = ['"},{"namespace":"', '},{"namespace":', '\\"},{\\"namespace\\":', '}\n]', '"', '\\', '\u2028'];

test('what stands in a name never ends a record', () => {
  const file = {
    services: hostile.map((namespace, i) => ({
      namespace,
      name: hostile[hostile.length - 1 - i],
      type: 'ClusterIP',
      clusterIPs: ['10.96.0.1'],
      ports: [{ name: '},{"namespace":', protocol: 'TCP', port: 80, targetPort: 80, nodePort: 0 }],
      headlessEndpoints: [],
    })),
    servicePorts: hostile.map((namespace, i) => ({
      namespace,
      service: hostile[i],
      port: hostile[hostile.length - 1 - i],
      protocol: 'TCP',
      family: 'ipv4',
      clusterIP: '10.96.0.1',
      number: 80,
      endpoints: i % 2 === 0 ? [] : [{ address: '10.0.0.1', port: 80, node: '},{"namespace":' }],
    })),
    healthChecks: hostile.map((namespace) => ({
      readyEndpoints: [{ nodeName: '"},{"namespace":"', address: '10.0.0.1' }],
      port: 30000,
      family: 'ipv4',
      service: namespace,
      namespace,
    })),
  };
  const read = readServices(JSON.stringify(file));
  if (typeof read === 'string') throw new Error(read);
  const text = writeServices({ ...read, serviceCidrs: [] });
  const written = JSON.parse(text);
  expect(written.services).toEqual(file.services);
  expect(written.healthChecks).toEqual(file.healthChecks);
  expect(new Set(written.servicePorts)).toEqual(new Set(file.servicePorts));
  // A line for each record, for each endpoint, and for what closes a port's endpoints; and seven around the lists.
  expect(text.split('\n')).toHaveLength(3 * hostile.length + 2 * Math.floor(hostile.length / 2) + 9);
});

test('lists without records', () => {
  expect(writeServices({ services: [], servicePorts: [], healthChecks: [], serviceCidrs: [] })).toBe(
    '{\n"services": [\n],\n"servicePorts": [\n],\n"healthChecks": [\n]\n}\n',
  );
});
