// Every command prints one envelope as JSON, which says what is assumed wherever the text does.
import { Ajv } from 'ajv';
import { afterAll, describe, expect, test } from 'vitest';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readPrograms } from '../../packaging/programs.ts';
import { callApply } from '../apply/call-apply.ts';
import { createFakeNode } from '../apply/fake-node.ts';
import { envelopeSchema } from '../support/printed-json.ts';
import { runKpc, type Run } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-envelope-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const service = (port: number) => `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: LoadBalancer, selector: { app: web }, ports: [{ port: ${port}, targetPort: 8080 }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  selector: { matchLabels: { app: web } }
  template: { metadata: { labels: { app: web } }, spec: { containers: [{ name: web, image: web }] } }
`;
writeFileSync(join(cwd, 'web.yaml'), service(80));
writeFileSync(join(cwd, 'changed.yaml'), service(81));
writeFileSync(join(cwd, 'broken.yaml'), service(70_000));
writeFileSync(join(cwd, 'tests.yaml'), 'inputs: bundle\ntests: [{ from: external, to: svc/web, expect: delivered }]\n');

const validate = new Ajv({ allowUnionTypes: true }).compile(envelopeSchema);

interface Printed {
  readonly command: string;
  readonly snapshots: readonly {
    readonly node?: string;
    readonly mode?: string;
    readonly release?: string;
    readonly families: readonly string[];
    readonly assumed?: { readonly mode?: true; readonly node?: true };
  }[];
  readonly findings: readonly { readonly code: string; readonly severity: string; readonly text: string }[];
  readonly result?: unknown;
}

/** What was printed, by the call: none of these changes a file. */
const runs = new Map<string, Promise<Run>>();

function runOnce(words: readonly string[]): Promise<Run> {
  const key = JSON.stringify(words);
  const run = runs.get(key) ?? runKpc(words, { cwd });
  runs.set(key, run);
  return run;
}

async function printed(words: readonly string[]): Promise<Printed> {
  const { stdout } = await runOnce([...words, '--output', 'json']);
  const json = JSON.parse(stdout) as Printed;
  expect(validate(json), JSON.stringify(validate.errors)).toBe(true);
  return json;
}

/** Marks of what kpc chose: also of an address or number in a table. */
const assumedInWords = /assum|nothing names a mode|[\d)]\*/;

/** The same input, with all that a cluster has. */
const whole = (port: number) => `apiVersion: v1
kind: Service
metadata: { name: web }
spec:
  type: LoadBalancer
  selector: { app: web }
  clusterIP: 10.96.7.7
  clusterIPs: [10.96.7.7]
  ipFamilies: [IPv4]
  ports: [{ port: ${port}, targetPort: 8080, nodePort: 30080 }]
status: { loadBalancer: { ingress: [{ ip: 203.0.113.7 }] } }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 8080, protocol: TCP }]
endpoints: [{ addresses: [10.244.1.7], nodeName: worker-1, conditions: { ready: true } }]
---
apiVersion: v1
kind: Node
metadata: { name: worker-1 }
spec: { podCIDR: 10.244.1.0/24, podCIDRs: [10.244.1.0/24] }
status: { addresses: [{ type: InternalIP, address: 192.0.2.11 }] }
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clusterCIDR: 10.244.0.0/16
`;
writeFileSync(join(cwd, 'whole.yaml'), whole(80));
writeFileSync(join(cwd, 'whole-changed.yaml'), whole(81));
writeFileSync(
  join(cwd, 'whole-tests.yaml'),
  'inputs: whole-bundle\ntests: [{ from: external, to: svc/web, expect: delivered }]\n',
);
const wholeBundle = runKpc(['compile', '-f', 'whole.yaml', '-o', 'whole-bundle', '-q'], { cwd });
const dump = runKpc(['compile', '-f', 'whole.yaml', '--print', 'iptables'], { cwd }).then(({ stdout }) =>
  writeFileSync(join(cwd, 'node.txt'), `# iptables-save\n${stdout}`),
);
const bundle = runKpc(['compile', '-f', 'web.yaml', '--assume', '-o', 'bundle', '-q'], { cwd });

/** A call of each command of kpc, over manifests that lack most of what a cluster has. */
const calls: readonly (readonly [command: string, ...words: string[]])[] = [
  ['compile', '-f', 'web.yaml', '--assume'],
  ['compile', '-f', 'changed.yaml', '--assume', '--check', 'bundle'],
  ['describe', 'web.yaml'],
  ['describe', 'web', '-f', 'web.yaml'],
  ['describe', 'bundle'],
  ['diff', 'web.yaml', 'changed.yaml'],
  ['trace', 'web.yaml', '--from', 'pod', '--to', 'svc/web'],
  ['trace', 'web.yaml', '--all', 'web'],
  ['test', 'tests.yaml'],
  ['lint', 'web.yaml'],
  ['equivalence', 'iptables', 'nftables', '-f', 'web.yaml'],
  ['migrate', 'web.yaml'],
];

/** Those that say what they look at, and the same of a dump. */
const looks: typeof calls = [
  ...calls.filter(([command]) => command !== 'compile'),
  ['describe', 'node.txt'],
  ['trace', 'node.txt', '--from', '192.0.2.7', '--to', '10.96.7.7:80'],
  ['diff', 'node.txt', 'whole.yaml'],
];

/** The preparations of migrate are a part of its report, and what lint finds is its result. */
const isSaid = ({ code, text }: Printed['findings'][number]): boolean =>
  code !== 'preparation' && !text.includes('lists');

describe('kpc', () => {
  test.for(calls)('%s %s', async (words) => {
    await bundle;
    const { stdout, stderr } = await runOnce(words);
    const json = await printed(words);
    expect(json.command).toBe(`kpc ${words[0]}`);
    expect(json.result).toBeDefined();
    expect(json.snapshots.length).toBeGreaterThan(0);
    expect(`${stdout}${stderr}`).toMatch(assumedInWords);
    expect(json.snapshots[0]?.assumed).toMatchObject({ services: [{ service: 'default/web' }] });
  });

  test.for(calls)('%s %s: where nothing is assumed, neither text nor JSON says so', async (assuming) => {
    await wholeBundle;
    const words = assuming
      .filter((word) => word !== '--assume')
      .map((word) =>
        word.replace(/^(?:web(?=\.yaml)|(?=changed|tests|bundle))/, (start) => `whole${start ? '' : '-'}`),
      );
    const { status, stdout, stderr } = await runKpc(words, { cwd });
    expect(status, stderr).not.toBe(2);
    expect(`${stdout}${stderr}`).not.toMatch(assumedInWords);
    expect(JSON.stringify(await printed(words))).not.toContain('"assumed"');
  });

  test.for(calls.filter((words) => words.includes('web.yaml') && words[0] !== 'diff'))(
    '%s %s: an input with errors has findings, and no result',
    async (words) => {
      const json = await printed(words.map((word) => (word.endsWith('.yaml') ? 'broken.yaml' : word)));
      expect(json.findings.map(({ code }) => code)).toContain('bad-value');
    },
  );

  test.for(looks)(
    '%s %s: text and JSON name the same node and mode, and say alike that nothing names one',
    async (words) => {
      await Promise.all([bundle, dump]);
      const { stdout, stderr } = await runOnce(words);
      const text = `${stdout}${stderr}`;
      const { snapshots } = await printed(words);
      for (const { node, mode, families } of snapshots) {
        expect(families.length).toBeGreaterThan(0);
        expect(text).toContain(words[0] === 'lint' ? '' : (node ?? ''));
        expect(text.toLowerCase()).toContain(mode ?? '');
      }
      expect(snapshots.some(({ assumed }) => assumed?.mode)).toBe(text.includes('(nothing names a mode)'));
      expect(snapshots.some(({ assumed }) => assumed?.node)).toBe(
        /2 nodes|node-1 \(assumed\)|assumed: .*\bnode-1/.test(text),
      );
    },
  );

  test.for(looks)('%s %s: what is said beside the result is among the findings, once', async (words) => {
    await Promise.all([bundle, dump]);
    const { stderr } = await runOnce([...words, '--output', 'json']);
    const { findings } = await printed(words);
    // Where the flags come from and what cannot be compared stands in the result.
    const said = [...stderr.matchAll(/(?:^|: )(error|warning|note): (.*) \[([a-z-]+)\]$/gm)].map((found) =>
      found.slice(1),
    );
    expect(said).toEqual(findings.filter(isSaid).map(({ severity, text, code }) => [severity, text, code]));
    expect(new Set(findings.map(({ text }) => text)).size).toBe(findings.length);
  });

  test.for([...new Set(calls.map(([command]) => command))])(
    '%s: whatever refuses a call is a finding',
    async (command) => {
      for (const words of [['--nosuch'], ['nosuch.yaml'], ['--output', 'nosuch', 'web.yaml'], []]) {
        const { status, stdout, stderr } = await runKpc([command, ...words, '--output', 'json'], { cwd });
        expect(status, stderr).toBe(2);
        const json = JSON.parse(stdout) as Printed;
        expect(validate(json), JSON.stringify(validate.errors)).toBe(true);
        expect(json.command).toBe(`kpc ${command}`);
        expect(json.findings.some(({ severity }) => severity === 'error')).toBe(true);
      }
    },
  );

  test.each([
    ['lint', 'absent.yaml'],
    ['trace', 'absent.yaml', '--from', 'pod', '--to', 'svc/web'],
    ['describe', 'absent.yaml'],
  ])('%s of nothing that could be read has status 2 and no result', async (...words) => {
    const { status, stdout } = await runKpc([...words, '--output', 'json'], { cwd });
    expect(status).toBe(2);
    expect(JSON.parse(stdout)).not.toHaveProperty('result');
  });

  test('a word that nothing in the input matches is a finding, with status 1', async () => {
    await dump;
    for (const input of ['web.yaml', 'node.txt']) {
      const { status, stdout } = await runKpc(['describe', 'nosuch', input, '--output', 'json'], { cwd });
      expect(status).toBe(1);
      expect((JSON.parse(stdout) as Printed).findings).toContainEqual(
        expect.objectContaining({ code: 'not-found', severity: 'error' }),
      );
      const traced = await runKpc(['trace', input, '--from', '10.0.0.9', '--to', 'svc/nosuch', '--output', 'json'], {
        cwd,
      });
      expect(traced.status).toBe(1);
      expect((JSON.parse(traced.stdout) as Printed).findings).toContainEqual(
        expect.objectContaining({ code: 'not-found', severity: 'error' }),
      );
    }
  });

  test('a call that makes no sense has a finding, too', async () => {
    const json = await printed(['trace', 'web.yaml', '--all', 'web', '--namespace', 'shop', '-f', 'nowhere.yaml']);
    expect(json.result).toBeUndefined();
    expect(json.findings.length).toBeGreaterThan(0);
    const refused = await printed(['compile', '-f', 'web.yaml', '--assume', '--all-nodes']);
    expect(refused).not.toHaveProperty('result');
    expect(refused.findings).toMatchObject([{ code: 'bad-call', arguments: { problem: 'no-folder' } }]);
  });

  test('says for each packet who sends it where, on which node, and what is assumed of it', async () => {
    const { result } = await printed(['trace', 'web.yaml', '--from', 'pod', '--to', 'svc/web']);
    expect(result).toMatchObject({
      traces: [
        {
          verdict: 'delivered',
          from: { sender: 'a pod on this node' },
          to: { port: 80, protocol: 'tcp', servicePort: 'default/web' },
          node: 'node-1',
          mode: 'ipvs',
          assumed: expect.arrayContaining(['node-1']),
        },
      ],
    });
  });

  test('says why a packet is refused', async () => {
    const none = service(80).replace('spec:\n', 'spec:\n  replicas: 0\n');
    writeFileSync(join(cwd, 'none.yaml'), none);
    const words = ['trace', 'none.yaml', '--proxy-mode', 'iptables', '--from', 'pod', '--to', 'svc/web'];
    expect((await printed(words)).result).toMatchObject({
      traces: [
        { verdict: 'refused', cause: { kind: 'no-endpoints', text: expect.stringContaining('no ready endpoint') } },
      ],
    });
  });
});

test('kpc-apply', async () => {
  await bundle;
  const { host } = createFakeNode();
  const folder = join(cwd, 'bundle');
  const ofBundle = [{ node: 'node-1', assumed: expect.any(Object) }];
  for (const [words, snapshots] of [
    [['plan', folder], ofBundle],
    [['verify', folder], ofBundle],
    [['doctor', folder], ofBundle],
    [['doctor'], []],
    [['version'], []],
  ] as const) {
    const { out } = await callApply(host, ...words, '--output', 'json');
    const json = JSON.parse(out) as Printed;
    expect(validate(json), `${words.join(' ')} ${JSON.stringify(validate.errors)}`).toBe(true);
    expect(json).toMatchObject({ command: `kpc-apply ${words[0]}`, snapshots });
  }
  for (const words of [
    ['plan', 'nosuch'],
    ['verify', 'nosuch'],
    ['doctor', 'nosuch'],
    ['plan', '--nosuch'],
    ['plan', folder, '--drain-timeout', 'soon'],
    ['plan'],
  ]) {
    const { status, out } = await callApply(host, ...words, '--output', 'json');
    const json = JSON.parse(out) as Printed;
    expect(validate(json), `${words.join(' ')} ${JSON.stringify(validate.errors)}`).toBe(true);
    expect({ status, ...json }).toMatchObject({
      status: 2,
      command: `kpc-apply ${words[0]}`,
      findings: [{ severity: 'error', code: expect.stringMatching(/^bad-/) }],
    });
  }
});

test('each command that prints JSON is called here', async () => {
  const ofApply = ['plan', 'verify', 'doctor', 'version'].map((command) => `kpc-apply ${command}`);
  const own = new Set([...calls.map(([command]) => `kpc ${command}`), 'kpc version', ...ofApply]);
  const printing = (await readPrograms()).flatMap((program) =>
    program.commands
      .filter(({ options }) =>
        options.some(({ long, argChoices }) => long === '--output' && argChoices?.includes('json')),
      )
      .map((command) => `${program.name} ${command.name()}`),
  );
  expect(printing.filter((command) => !own.has(command))).toEqual([]);
});
