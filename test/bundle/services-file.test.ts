import { indexCluster } from '../../src/cluster/address-index.ts';
import { expect, test } from 'vitest';
import { readServices, writeServices } from '../../src/bundle/services-file.ts';

/** Texts that look like the separator of two records. */
const hostile = ['"},{"namespace":"', '},{"namespace":', '\\"},{\\"namespace\\":', '}\n]', '"', '\\', '\u2028'];

test('what stands in a text never ends a record', () => {
  const file = {
    services: hostile.map((targetPort, i) => ({
      namespace: 'shop',
      name: `web-${i}`,
      type: 'ClusterIP',
      clusterIPs: ['10.96.0.1'],
      ports: [{ name: 'http', protocol: 'TCP', port: 80, targetPort, nodePort: 0 }],
      headlessEndpoints: [],
    })),
    servicePorts: hostile.map((text, i) => ({
      namespace: 'shop',
      service: `web-${i}`,
      port: 'http',
      protocol: 'TCP',
      family: 'ipv4',
      clusterIP: '10.96.0.1',
      number: 80,
      endpoints: i % 2 === 0 ? [] : [{ address: '10.0.0.1', port: 80, zoneHints: [text.replace(/[\n\u2028]/, '')] }],
    })),
    healthChecks: hostile.map((_, i) => ({
      readyEndpoints: [{ nodeName: 'worker-1', address: '10.0.0.1' }],
      port: 30000,
      family: 'ipv4',
      service: `web-${i}`,
      namespace: 'shop',
    })),
  };
  const read = readServices(JSON.stringify(file));
  if ('problems' in read) throw new Error(JSON.stringify(read.problems));
  const text = writeServices(indexCluster({ ...read.value, serviceCidrs: [] }));
  const written = JSON.parse(text);
  expect(written.services).toEqual(file.services);
  expect(written.healthChecks).toEqual(file.healthChecks);
  expect(new Set(written.servicePorts)).toEqual(new Set(file.servicePorts));
  // A line for each record, for each endpoint, and for what closes a port's endpoints; and seven around the lists.
  expect(text.split('\n')).toHaveLength(3 * hostile.length + 2 * Math.floor(hostile.length / 2) + 9);
});

test('lists without records', () => {
  expect(writeServices(indexCluster({ services: [], servicePorts: [], healthChecks: [], serviceCidrs: [] }))).toBe(
    '{\n"services": [\n],\n"servicePorts": [\n],\n"healthChecks": [\n]\n}\n',
  );
});
