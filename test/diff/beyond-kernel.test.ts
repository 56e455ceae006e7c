// What differs between two sides and no packet shows: diff and equivalence name it alike.
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { commitAll } from '../support/git.ts';
import { findingsOf, resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-beyond-'));
afterAll(() => rmSync(cwd, { recursive: true }));

const service = (spec: string, port = 'http'): string =>
  `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: 10.96.0.10, ${spec}, ports: [{name: ${port}, port: 80}]}}\n`;
const selecting = service('selector: {app: web}');
const slice =
  '---\n{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web, labels: {kubernetes.io/service-name: web}}, addressType: IPv4, ports: [{name: http, port: 80}, {name: web, port: 80}], endpoints: [{addresses: [10.244.0.5]}]}\n';
const ingress = (to: string): string =>
  `---\n{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: ${to}}, spec: {defaultBackend: {service: {name: ${to}, port: {number: 80}}}}}\n`;
const policy =
  '---\n{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: web}, spec: {podSelector: {}}}\n';

async function run(command: 'diff' | 'equivalence', before: string, after: string) {
  writeFileSync(join(cwd, 'from.yaml'), before);
  writeFileSync(join(cwd, 'to.yaml'), after);
  const { status, stdout } = await runKpc([command, 'from.yaml', 'to.yaml', '--output', 'json'], { cwd });
  return {
    status,
    result: resultOf(stdout) as Record<string, never>,
    codes: findingsOf(stdout).map(({ code }) => code),
  };
}

const reasonsOf = ({ servicePorts }: Record<string, readonly { readonly reasons: readonly object[] }[]>) =>
  (servicePorts ?? []).flatMap(({ reasons }) => reasons);

describe('what the endpoints of a Service are made from', () => {
  test.each([
    ['selector', 'selector: {app: api}', { from: 'app=web', to: 'app=api' }],
    ['publishNotReadyAddresses', 'selector: {app: web}, publishNotReadyAddresses: true', { from: 'false', to: 'true' }],
  ])('%s', async (field, spec, turn) => {
    const { status, result } = await run('diff', selecting, service(spec));
    expect(status).toBe(1);
    expect(reasonsOf(result)).toEqual([expect.objectContaining({ kind: 'field', field, ...turn })]);
    expect(result['notCompared']).toContainEqual(expect.stringMatching(/endpoints.*default\/web/));
    const packets = await run('equivalence', selecting, service(spec));
    expect(packets.result['notCompared']).toContainEqual(expect.stringMatching(/endpoints.*default\/web/));
    const open = { cause: 'ungiven-endpoints', severity: 'unknown', services: ['default/web'] };
    expect(packets).toMatchObject({ status: 1, result: { causes: [open] } });
    for (const command of ['diff', 'equivalence'] as const)
      expect(await run(command, service(spec), service(spec))).toMatchObject({ status: 0 });
  });

  test('of a headless Service', async () => {
    const headless = (app: string) => service(`selector: {app: ${app}}`).replace('10.96.0.10', 'None');
    const { status, result } = await run('diff', headless('a') + policy, headless('b') + policy);
    expect(status).toBe(1);
    expect(reasonsOf(result)).toEqual([expect.objectContaining({ kind: 'field', field: 'selector' })]);
  });

  test('the order of labels does not count', async () => {
    const labels = (text: string) => service(`selector: {${text}}`) + slice;
    expect(await run('diff', labels('a: b, c: d'), labels('c: d, a: b'))).toMatchObject({ status: 0 });
  });
});

const deployment = (spec: string) =>
  `---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {${spec}}}}}\n`;
const probed = (port: number) =>
  deployment(`containers: [{name: web, readinessProbe: {httpGet: {path: /, port: ${port}}}}]`);
const node = '---\n{apiVersion: v1, kind: Node, metadata: {name: n1}}\n';

describe.each(['diff', 'equivalence'] as const)('%s names', (command) => {
  test.each([
    ['probes', selecting + probed(80), selecting + probed(81), /Deployment default\/web.*ready/],
    [
      'gates of Pods',
      selecting + deployment('containers: []'),
      selecting + deployment('containers: [], readinessGates: [{conditionType: x.io/ready}]'),
      /Deployment default\/web.*ready/,
    ],
    [
      'a preference for a zone without any Node that shows one',
      selecting + deployment('containers: []'),
      service('selector: {app: web}, trafficDistribution: PreferClose') + deployment('containers: []'),
      /default\/web.*zone/,
    ],
    [
      'what configures a load balancer',
      service('type: LoadBalancer') + slice,
      service('type: LoadBalancer, loadBalancerClass: x') + slice,
      /load balancer of default\/web/,
    ],
    ['a policy that differs', selecting + slice, selecting + slice + policy, /^1 NetworkPolicy/],
    [
      'an Ingress that leads to a Service that changed, and no other',
      selecting + slice + ingress('web') + ingress('other'),
      service('selector: {app: web}', 'web') + slice + ingress('web') + ingress('other'),
      /^1 Ingress/,
    ],
    [
      'session affinity',
      selecting + slice,
      service('selector: {app: web}, sessionAffinity: ClientIP') + slice,
      /session affinity of default\/web/,
    ],
  ])('%s', async (_, before, after, wanted) => {
    const { result } = await run(command, before, after);
    expect(result['notCompared']).toContainEqual(expect.stringMatching(wanted));
    const same = await run(command, after, after);
    expect(same.result['notCompared']).not.toContainEqual(expect.stringMatching(wanted));
  });

  test('that neither side holds a Service', async () => {
    expect(await run(command, policy, policy)).toMatchObject({
      status: 2,
      codes: expect.arrayContaining(['bad-call']),
    });
  });
});

test('a preference for near endpoints is a difference, and its effect is known if a Node is given', async () => {
  const near = service('selector: {app: web}, trafficDistribution: PreferClose');
  for (const nodes of ['', node]) {
    const { status, result } = await run('diff', selecting + deployment('') + nodes, near + deployment('') + nodes);
    expect(status).toBe(1);
    expect(reasonsOf(result)).toEqual([expect.objectContaining({ field: 'trafficDistribution', to: 'PreferClose' })]);
    expect(JSON.stringify(result['notCompared']).includes('zone')).toBe(nodes === '');
  }
});

describe('what a kustomization changes', () => {
  const write = (folder: string, files: Readonly<Record<string, string>>) =>
    writeFolder(join(cwd, folder), { 'web.yaml': selecting + deployment('containers: []'), ...files });
  const kustomization = (rest: string) => `resources: [web.yaml]\n${rest}`;
  const patched = kustomization('patches: [{path: patch.yaml}]\n');
  const patch = (replicas: number) =>
    `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: ${replicas}}}\n`;

  test.each([
    [{ 'kustomization.yaml': kustomization('') }, { 'kustomization.yaml': kustomization('namePrefix: a-\n') }],
    [
      { 'kustomization.yaml': patched, 'patch.yaml': patch(1) },
      { 'kustomization.yaml': patched, 'patch.yaml': patch(0) },
    ],
  ])('is named in each format, also with -q, if it differs: %j', async (before, after) => {
    const ofKustomization = /1 Kustomization/;
    write('old', before);
    write('new', after);
    for (const output of ['text', 'json', 'markdown', 'github']) {
      const { status, stdout } = await runKpc(['diff', '-q', 'old', 'new', '--output', output], { cwd });
      expect({ output, status }).toEqual({ output, status: 0 });
      expect(stdout).toMatch(ofKustomization);
      const same = await runKpc(['diff', '-q', 'new', 'new', '--output', output], { cwd });
      expect(same.stdout).not.toMatch(ofKustomization);
    }
  });
});

describe('another scheduler of IPVS', () => {
  const annotated = selecting.replace('name: web}', 'name: web, annotations: {kpc.dev/ipvs-scheduler: lc}}');
  const config = (scheduler: string) =>
    `---\n{apiVersion: kubeproxy.config.k8s.io/v1alpha1, kind: KubeProxyConfiguration, mode: ipvs, ipvs: {scheduler: ${scheduler}}}\n`;
  const plain = selecting + slice + config('rr');

  test.each([
    ['of the Service', annotated + slice + config('rr'), true],
    ['of the node', selecting + slice + config('sh'), true],
    ['the same, written twice', annotated.replace(': lc', ': rr') + slice + config('rr'), false],
    ['of a node where the Service has its own', annotated + slice + config('lc'), true],
    ['none', plain, false],
  ])('%s', async (_, after, isSaid) => {
    for (const command of ['diff', 'equivalence'] as const) {
      const { result } = await run(command, plain, after);
      expect(JSON.stringify(result['notCompared']).includes('scheduler of default/web')).toBe(isSaid);
    }
    writeFileSync(join(cwd, 'to.yaml'), after);
    const { stdout } = await runKpc(['diff', 'from.yaml', 'to.yaml'], { cwd });
    expect(stdout).not.toContain('no packet is treated differently');
  });
});

describe('the files that a kustomization makes changes from', () => {
  const resources = 'resources: [web.yaml]\n';
  const copying =
    'replacements: [{source: {kind: ConfigMap, name: a}, targets: [{select: {kind: Service}, fieldPaths: [spec.type]}]}]\n';

  test.each([
    ['a patch of another ending', `${resources}patches: [{path: svc.patch}]\n`, 'svc.patch', true],
    ['a patch of a list', `${resources}patchesJson6902: [{path: ops, target: {kind: Service}}]\n`, 'ops', true],
    [
      'what a replacement copies',
      `${resources}${copying}configMapGenerator: [{name: a, envs: [a.env]}]\n`,
      'a.env',
      true,
    ],
    ['by a key', `${resources}${copying}configMapGenerator: [{name: a, files: [k=a.txt]}]\n`, 'a.txt', true],
    ['values of a chart', `${resources}helmCharts: [{name: a, valuesFile: values.prod}]\n`, 'values.prod', true],
    ['a generator', `${resources}generators: [made]\n`, 'made', true],
    ['a ConfigMap that nothing copies', `${resources}configMapGenerator: [{name: a, envs: [a.env]}]\n`, 'a.env', false],
    ['outside its folder', `${resources}patches: [{path: ../svc.patch}]\n`, '../svc.patch', false],
  ])('%s', async (_, kustomization, file, isCompared) => {
    for (const [folder, text] of [
      ['one/in', 'a'],
      ['two/in', 'b'],
    ] as const)
      writeFolder(join(cwd, folder), {
        'web.yaml': selecting,
        'kustomization.yaml': kustomization,
        [file]: `x=${text}\n`,
      });
    for (const to of ['one/in', 'two/in']) {
      const { stdout } = await runKpc(['diff', 'one/in', to, '--output', 'json'], { cwd });
      const { differs, notCompared } = resultOf(stdout) as {
        readonly differs: boolean;
        readonly notCompared: string[];
      };
      expect(differs).toBe(false);
      expect(notCompared.map((each) => each.slice(0, 15))).toEqual(
        isCompared && to === 'two/in' ? ['1 Kustomization'] : [],
      );
    }
  });
});

test('a large file that a kustomization names often is compared once, and one beyond the limit is named', async () => {
  const paths = Array.from({ length: 300 }, () => '- path: big.bin\n').join('');
  const compare = async (size: number) => {
    for (const [folder, end] of [
      ['one/big', 'a'],
      ['two/big', 'b'],
    ] as const)
      writeFolder(join(cwd, folder), {
        'web.yaml': selecting,
        'kustomization.yaml': `resources: [web.yaml]\npatches:\n- path: ./big.bin\n${paths}`,
        'big.bin': end,
      });
    for (const folder of ['one/big', 'two/big']) truncateSync(join(cwd, folder, 'big.bin'), size + 1);
    const { stdout } = await runKpc(['diff', 'one/big', 'two/big', '--output', 'json'], { cwd });
    return resultOf(stdout);
  };
  expect(await compare(2 ** 16)).toMatchObject({ notCompared: [expect.stringMatching(/^1 Kustomization/)] });
  expect(await compare(2 ** 26)).toMatchObject({ notCompared: [expect.stringMatching(/takes from .*big\.bin/)] });
});

test('what a kustomization takes from outside the input is named on either side, also of a golden', async () => {
  const lacking = [expect.stringMatching(/ over takes from \.\.\/base$/)];
  const more = selecting.replace('name: web', 'name: more').replace('10.96.0.10', '10.96.0.11');
  writeFolder(join(cwd, 'tree'), { 'base/web.yaml': more, 'over/web.yaml': selecting });
  writeFolder(join(cwd, 'tree/over'), { 'kustomization.yaml': 'resources: [../base, web.yaml]\n' });
  commitAll(join(cwd, 'tree'));
  const runIn = async (...words: readonly string[]) => {
    const { status, stdout } = await runKpc([...words, '--output', 'json'], { cwd: join(cwd, 'tree') });
    return { status, ...resultOf(stdout) };
  };
  for (const sides of [
    ['HEAD:over', 'over'],
    ['over', 'over'],
    ['over/web.yaml', 'over'],
  ])
    expect(await runIn('diff', ...sides)).toMatchObject({ status: 0, notCompared: lacking });
  expect(await runIn('equivalence', 'HEAD:over', 'over')).toMatchObject({
    notCompared: expect.arrayContaining(lacking) as unknown,
  });
  expect(await runIn('diff', 'HEAD:.', '.')).toMatchObject({ status: 0, notCompared: [] });
  await runIn('compile', '-f', 'over/web.yaml', '--golden', 'golden');
  const check = await runIn('compile', '-f', 'over', '--check', 'golden', '--skip-invalid');
  expect(check).toMatchObject({ status: 0, notCompared: lacking });
});

test('objects that --skip-invalid leaves out are named in every comparison', async () => {
  const [good, bad] = ['good.yaml', 'bad.yaml'];
  writeFileSync(join(cwd, good), selecting);
  writeFileSync(join(cwd, bad), `${selecting}---\n${service('ipFamilies: [none]').replaceAll('web', 'more')}`);
  await runKpc(['compile', '-f', good, '--golden', 'whole'], { cwd });
  const notComparedBy = async (...words: readonly string[]) => {
    const { status, stdout } = await runKpc([...words, '--skip-invalid', '--output', 'json'], { cwd });
    const { notCompared = [] } = resultOf(stdout) as { readonly notCompared?: readonly string[] };
    return { status, parts: notCompared.filter((part) => part.startsWith('objects with errors')).length };
  };
  for (const words of [
    ['compile', '-f', bad, '--check', 'whole'],
    ['diff', good, bad],
    ['diff', 'whole', bad],
    ['equivalence', bad, good],
  ])
    expect(await notComparedBy(...words)).toEqual({ status: 0, parts: 1 });
  expect(await notComparedBy('diff', good, good)).toEqual({ status: 0, parts: 0 });
});

test('Services that kpc skips on both sides are named in every comparison', async () => {
  const pending = selecting.replace('clusterIP: 10.96.0.10, ', '').replace('name: web', 'name: pending');
  writeFileSync(join(cwd, 'some.yaml'), `${selecting}---\n${pending}`);
  await runKpc(['compile', '-f', 'some.yaml', '--golden', 'skipping'], { cwd });
  for (const words of [
    ['compile', '-f', 'some.yaml', '--check', 'skipping'],
    ['diff', 'skipping', 'some.yaml', '--no-assume'],
    ['equivalence', 'some.yaml', 'skipping', '--no-assume'],
  ]) {
    const { stdout } = await runKpc([...words, '--output', 'json'], { cwd });
    expect(resultOf(stdout)['notCompared']).toContainEqual(expect.stringMatching(/cluster IP.*default\/pending/));
  }
});

describe('what a golden does not record', () => {
  const [plain, more] = ['plain.yaml', 'more.yaml'];
  const open = (text: string) => text.replace('clusterIP: 10.96.0.10, ', '');
  const check = async (file: string, folder: string) => {
    const words = ['compile', '--assume', '-f', file, '--check', folder, '--output', 'json'];
    const { status, stdout } = await runKpc(words, { cwd });
    return { status, ...(resultOf(stdout) as { readonly notCompared?: readonly string[] }) };
  };

  test('is named if manifests have it, and only then', async () => {
    writeFileSync(join(cwd, plain), open(selecting) + deployment('containers: []'));
    writeFileSync(join(cwd, more), open(selecting) + deployment('containers: []') + policy);
    const written = await runKpc(['compile', '--assume', '-f', plain, '--golden', 'golden'], { cwd });
    expect(written).toMatchObject({ status: 0 });
    const same = await runKpc(['diff', 'golden', plain, '--output', 'json'], { cwd });
    expect(resultOf(same.stdout)).toMatchObject({ differs: false, notCompared: [] });
    for (const sides of [
      ['golden', more],
      [more, 'golden'],
    ]) {
      const { status, stdout } = await runKpc(['diff', ...sides, '--output', 'json'], { cwd });
      expect({ status, ...resultOf(stdout) }).toMatchObject({
        status: 0,
        notCompared: [expect.stringMatching(/^1 NetworkPolicy/)],
      });
    }
    expect(await check(plain, 'golden')).toMatchObject({ status: 0, notCompared: [] });
    expect(await check(more, 'golden')).toMatchObject({ status: 0, notCompared: [expect.stringMatching(/^1 Net/)] });
  });

  test.each([
    ['workloads of default/web', ['--assume']],
    ['1 Deployment', []],
  ])('%s, from which given EndpointSlices follow', async (lacks, flags) => {
    const scaled = (replicas: number) =>
      selecting + slice + deployment('containers: []').replace('spec: {', `spec: {replicas: ${replicas}, `);
    writeFileSync(join(cwd, plain), scaled(2));
    writeFileSync(join(cwd, more), scaled(3));
    const golden = join(cwd, `slices${flags.length}`);
    await runKpc(['compile', ...flags, '-f', plain, '--golden', golden], { cwd });
    const commands = [
      ['compile', ...flags, '-f', more, '--check', golden],
      ['diff', golden, more],
      ['equivalence', more, golden],
    ];
    const printed = commands.map(() => '');
    for (const [i, words] of commands.entries()) {
      const { status, stdout } = await runKpc([...words, '--output', 'json'], { cwd });
      expect({ status, ...resultOf(stdout) }).toMatchObject({
        status: 0,
        notCompared: expect.arrayContaining([
          expect.stringMatching(/workloads of default\/web|1 Deployment/),
        ]) as unknown,
      });
      printed[i] = stdout;
    }
    expect(printed[0]).toContain(lacks);
    const both = await runKpc(['diff', plain, plain, '--output', 'json'], { cwd });
    expect(resultOf(both.stdout)).toMatchObject({ notCompared: [] });
  });

  test('what endpoints are made from, of a golden that older kpcs wrote', async () => {
    const publishing = open(service('selector: {app: web}, publishNotReadyAddresses: true'));
    writeFileSync(join(cwd, plain), open(selecting) + deployment('containers: []'));
    writeFileSync(join(cwd, more), publishing + deployment('containers: []'));
    await runKpc(['compile', '--assume', '-f', plain, '--golden', 'golden'], { cwd });
    const file = join(cwd, 'golden', 'default.web.txt');
    const diff = async () => {
      const { status, stdout } = await runKpc(['diff', 'golden', more, '--output', 'json'], { cwd });
      return { status, ...resultOf(stdout) };
    };
    expect(await diff()).toMatchObject({ status: 1 });
    const older = readFileSync(file, 'utf8').replace(/==> sources\.json <==\n[^\n]*\n\n/, '');
    writeFileSync(file, older);
    const lacking = [expect.stringMatching(/^publishNotReadyAddresses of default\/web/)];
    expect(await diff()).toMatchObject({ status: 0, notCompared: lacking });
    expect(await check(plain, 'golden')).toMatchObject({ status: 0, notCompared: [] });
    expect(await check(more, 'golden')).toMatchObject({ status: 0, notCompared: lacking });
    const head = join(cwd, 'golden', 'golden.json');
    const { mode, ...fields } = JSON.parse(readFileSync(head, 'utf8')) as Readonly<Record<string, unknown>>;
    writeFileSync(head, JSON.stringify({ ...fields, mode }));
    expect(await check(plain, 'golden')).toMatchObject({ status: 0 });
    writeFileSync(file, older.replace('"endpoints"', '"endpoint"'));
    expect(await check(plain, 'golden')).toMatchObject({ status: 1 });
  });
});

test('a Service that is no longer headless loses the DNS names of its Pods', async () => {
  const named = slice.replace('{addresses: [10.244.0.5]}', '{addresses: [10.244.0.5], hostname: web-0}');
  const headless = selecting.replace('10.96.0.10', 'None');
  for (const [sides, change] of [
    [[headless, selecting], 'removed'],
    [[selecting, headless], 'added'],
  ] as const) {
    const { result } = await run('diff', sides[0] + named, sides[1] + named);
    const lost = expect.objectContaining({
      kind: 'list',
      field: 'hostnames',
      [change]: ['web-0 10.244.0.5'],
    }) as unknown;
    expect(reasonsOf(result)).toContainEqual(lost);
  }
});

test('nothing is unknown about packets to a Service that kube-proxy programs on neither side', async () => {
  const other = (name: string) =>
    `{apiVersion: v1, kind: Service, metadata: {name: db}, spec: {type: ExternalName, externalName: ${name}}}\n---\n${selecting}${slice}`;
  const { status, result } = await run('diff', other('a.example.com'), other('b.example.com'));
  expect({ status, unknown: result['unknown'], packets: result['packets'] }).toEqual({
    status: 1,
    unknown: 0,
    packets: [],
  });
});
