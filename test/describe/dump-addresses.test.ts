import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { projectFolder, runKpc } from '../support/run-kpc.ts';
import { resultOf } from '../support/printed-json.ts';

const fixture = (name: string) => join(projectFolder, 'fixtures/dumps', name);

describe('what is asked about in a dump, in the forms that people write', () => {
  test.for([
    ['release-1.33-nftables', 'FD00:10:96::11', 'shop/cart'],
    ['release-1.33-nftables', 'fd00:10:96:0:0::0011', 'shop/cart'],
    ['release-1.33-nftables', '[fd00:10:96::11]', 'shop/cart'],
    ['release-1.33-nftables', '[FD00:10:96::0011]:53/UDP', 'shop/cart'],
    ['release-1.33-nftables', 'fd00:10:96::11/128', 'shop/cart'],
    ['release-1.33-nftables', 'fd00:10:244::1:2', 'shop/cart'],
    ['release-1.33-nftables', 'FD00:10:244:0::1:2', 'shop/cart'],
    ['release-1.33-nftables', '[fd00:10:244::1:2]:5353/udp', 'shop/cart'],
    ['release-1.33-nftables', '::ffff:10.96.0.12', 'shop/near'],
    ['release-1.33-nftables', ':30053', 'shop/cart'],
    ['kube-proxy-iptables-loadbalancer-local', '12.12.12.12/32', 'default/nginx'],
    ['kube-proxy-iptables-loadbalancer-local', '010.244.002.004', 'default/nginx'],
    ['kube-proxy-ipvs-dual-stack-nodeport', 'FD00:10:96::77', '[fd00:10:96::77]:80/TCP'],
    ['kube-proxy-ipvs-dual-stack-nodeport', '192.168.10.11:31080', 'node:31080/TCP'],
    ['kube-proxy-nftables-affinity-external-policy-local', '192.168.10.11:31080', 'default/web:http'],
    ['kube-proxy-iptables-loadbalancer-local/iptables-save', '192.168.10.11:30938/tcp', 'default/nginx'],
    ['kube-proxy-iptables-loadbalancer-local', '32100', 'default/nginx'],
    ['kube-proxy-iptables-loadbalancer-local', 'svc/nginx', 'default/nginx'],
    ['kube-proxy-iptables-loadbalancer-local', 'nginx.default', 'default/nginx'],
    ['kube-proxy-iptables-loadbalancer-local', 'nginx.default.svc.cluster.local', 'default/nginx'],
    ['kube-proxy-iptables-loadbalancer-local', 'default/nginx:80', 'default/nginx'],
    ['kube-proxy-iptables-session-affinity', 'nginx-service:http', 'default/nginx-service:http'],
    ['kube-proxy-iptables-session-affinity', 'default/nginx-service:3080', 'default/nginx-service:http'],
  ] as const)('%s: %s', async ([name, what, title]) => {
    const run = await runKpc(['describe', what, fixture(name)]);
    expect(run.status, run.stderr).toBe(0);
    expect(run.stdout.split('\n')[0]).toBe(title);
  });

  test.for(['[fd00:10:96::11]:54', '[fd00:10:96::11]:53/tcp', 'fd00:10:96::/112', '10.96.0.11:5353', ':53'])(
    'nothing at %s',
    async (what) => {
      const run = await runKpc(['describe', what, fixture('release-1.33-nftables')]);
      expect(run.status).toBe(1);
      expect(run.stdout).toBe('');
    },
  );

  test.for([
    ['kube-proxy-ipvs-dual-stack-nodeport', '192.168.10.12:31080'],
    ['kube-proxy-nftables-affinity-external-policy-local', '192.168.10.12:31080'],
    ['kube-proxy-iptables-loadbalancer-local/iptables-save', '[fd00::1]:30938'],
    ['kube-proxy-iptables-loadbalancer-local', '32100/udp'],
    ['kube-proxy-iptables-session-affinity', 'nginx-service:https'],
    ['kube-proxy-iptables-session-affinity', 'nginx-service.shop'],
  ] as const)('%s: nothing at %s', async ([name, what]) => {
    const run = await runKpc(['describe', what, fixture(name)]);
    expect(run.status).toBe(1);
    expect(run.stdout).toBe('');
  });

  test('a network of one address, of manifests', async () => {
    const files = ['cluster.yaml', 'node.yaml'].map((name) => join(fixture('release-1.33-nftables'), name));
    const run = await runKpc(['describe', '10.96.0.12/32', ...files, '-q']);
    expect(run.stdout).toContain('Service shop/near');
  });
});

const comment = '-m comment --comment "default/web:http cluster IP"';

interface Parts {
  readonly capture?: string;
  readonly more?: string;
  readonly destination?: string;
}

function dump({ capture, more = '', destination }: Parts): string {
  return `*nat
:KUBE-SERVICES - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-SVC-ABCDEFGHIJKLMNOP - [0:0]
:KUBE-SEP-AAAAAAAAAAAAAAAA - [0:0]
-A KUBE-SERVICES ${capture ?? `-d 10.96.0.80/32 -p tcp ${comment} -m tcp --dport 80`} -j KUBE-SVC-ABCDEFGHIJKLMNOP
${more}
-A KUBE-SVC-ABCDEFGHIJKLMNOP -j KUBE-SEP-AAAAAAAAAAAAAAAA
-A KUBE-SEP-AAAAAAAAAAAAAAAA -s 10.244.1.10/32 -m comment --comment "default/web:http" -j KUBE-MARK-MASQ
-A KUBE-SEP-AAAAAAAAAAAAAAAA -p tcp -m comment --comment "default/web:http" -j DNAT ${destination ?? '--to-destination 10.244.1.10:8080'}
COMMIT
`;
}

async function describeDump(parts: Parts): Promise<string> {
  const run = await runKpc(['describe', 'default/web', '-', '-q'], { stdin: dump(parts) });
  expect(run.status, run.stderr).toBe(0);
  return run.stdout;
}

const plain = `default/web:http
  cluster IP 10.96.0.80 port 80/TCP
  internalTrafficPolicy Cluster
  endpoints (1)
    10.244.1.10:8080  for policy Cluster
`;

describe('rules of a dump that name no single address or port', () => {
  test('as kube-proxy writes them', async () => {
    expect(await describeDump({})).toBe(plain);
  });

  test.for([
    ['several ports', `-d 10.96.0.80/32 -p tcp ${comment} -m tcp --dport 80:90`],
    ['a list of ports', `-d 10.96.0.80/32 -p tcp ${comment} -m multiport --dports 80,443`],
    ['a port with zeros before it', `-d 10.96.0.80/32 -p tcp ${comment} -m tcp --dport 0080`],
    ['all ports but one', `-d 10.96.0.80/32 -p tcp ${comment} -m tcp ! --dport 80`],
    ['no port', `-d 10.96.0.80/32 -p tcp ${comment}`],
  ])('%s', async ([, capture]) => {
    expect(await describeDump({ capture: capture ?? '' })).toBe(plain.replace('port 80/TCP', 'TCP, port unknown'));
  });

  test('all addresses but one', async () => {
    const capture = `! -d 10.96.0.80/32 -p tcp ${comment} -m tcp --dport 80`;
    expect(await describeDump({ capture })).not.toContain('10.96.0.80');
  });

  test('all node ports but one', async () => {
    const more =
      '-A KUBE-NODEPORTS -p tcp -m comment --comment "default/web:http" -m tcp ! --dport 30080 -j KUBE-SVC-ABCDEFGHIJKLMNOP';
    expect(await describeDump({ more })).toBe(plain);
  });

  test('a protocol by its number, and all but one', async () => {
    expect(await describeDump({ capture: `-d 10.96.0.80/32 -p 17 ${comment} -m udp --dport 80` })).toContain('80/UDP');
    expect(await describeDump({ capture: `-d 10.96.0.80/32 ! -p udp ${comment} --dport 80` })).toContain('80/TCP');
  });

  test.for(['--random', '--persistent'])('an endpoint reached with %s is shown by its address alone', async (flag) => {
    const destination = `--to-destination 10.244.1.10:8080 ${flag}`;
    expect(await describeDump({ destination })).toContain('\n    10.244.1.10  for');
  });

  test('a range of destinations leaves only the address that the chain names', async () => {
    const destination = '--to-destination 10.244.1.10-10.244.1.12:8080';
    expect(await describeDump({ destination })).toContain('\n    10.244.1.10  for');
  });

  test.for(['http', '80-90'])('nftables, port %s', async (port) => {
    const stdin = `table ip kube-proxy {
	map service-ips {
		type ipv4_addr . inet_proto . inet_service : verdict
		elements = { 10.96.7.7 . tcp . ${port} : goto service-SUSTUHLJ-default/web/tcp/http }
	}
	map service-nodeports {
		type inet_proto . inet_service : verdict
		elements = { tcp . ${port} : goto external-SUSTUHLJ-default/web/tcp/http }
	}
	chain service-SUSTUHLJ-default/web/tcp/http {
	}
	chain external-SUSTUHLJ-default/web/tcp/http {
	}
}
`;
    const text = await runKpc(['describe', 'default/web', '-', '-q'], { stdin });
    expect(text.stdout).toContain('cluster IP 10.96.7.7 TCP, port unknown');
    expect(text.stdout).not.toContain('NaN');
    const json = await runKpc(['describe', '-', '-q', '--output', 'json'], { stdin });
    const { servicePorts } = resultOf(json.stdout) as { readonly servicePorts: readonly object[] };
    expect(servicePorts[0]).not.toHaveProperty('port');
    expect(servicePorts[0]).not.toHaveProperty('nodePort');
  });
});
