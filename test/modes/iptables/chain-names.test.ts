import { expect, test } from 'vitest';
import { endpointChainNames, serviceChainNames } from '../../../src/modes/iptables/plan-service-port.ts';

const port = { label: 'default/nginx-service:http', protocol: 'TCP' } as const;

test('a Service port has the chain names that kube-proxy gives it', () => {
  expect(serviceChainNames(port)).toEqual({
    Cluster: 'KUBE-SVC-6IM33IEVEEV7U3GP',
    Local: 'KUBE-SVL-6IM33IEVEEV7U3GP',
    external: 'KUBE-EXT-6IM33IEVEEV7U3GP',
    firewall: 'KUBE-FW-6IM33IEVEEV7U3GP',
  });
});

test('an endpoint has one for each Service port', () => {
  expect(endpointChainNames(port)('10.244.1.237:8080')).toBe('KUBE-SEP-E5YAJJHSVPIYXGKI');
  expect(endpointChainNames(port)('10.244.0.235:8080')).toBe('KUBE-SEP-MT2MSR5ETYEALASG');
  expect(endpointChainNames({ ...port, label: 'default/other:http' })('10.244.1.237:8080')).not.toBe(
    'KUBE-SEP-E5YAJJHSVPIYXGKI',
  );
});

test('the protocol takes part: DNS has two ports of one number', () => {
  const names = (['TCP', 'UDP', 'SCTP'] as const).map((protocol) => serviceChainNames({ ...port, protocol }).Cluster);
  expect(new Set(names).size).toBe(3);
});
