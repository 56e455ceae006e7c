// Asks the built server by the SDK's own client, as an agent does: npm run mcp:test.
// @ts-check
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const project = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const program = join(project, 'mcp', 'dist', 'kpc-mcp.mjs');
const kpc = join(project, 'bin', 'kpc.js');

const work = mkdtempSync(join(tmpdir(), 'kpc-mcp-'));
const folder = join(work, 'cluster');
mkdirSync(folder);
cpSync(join(project, 'fixtures', 'cluster', 'shop.yaml'), join(folder, 'shop.yaml'));
cpSync(join(project, 'fixtures', 'cluster', 'nodes.yaml'), join(folder, 'nodes.yaml'));
// A Service without a ready endpoint, which nothing reaches.
writeFileSync(
  join(folder, 'web.yaml'),
  `apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec: { clusterIP: 10.96.20.9, ports: [{ port: 80 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, namespace: shop, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints: [{ addresses: [10.244.1.9], conditions: { ready: false }, nodeName: worker-1 }]
`,
);
writeFileSync(join(work, 'secret.yaml'), 'secret: yes\n');
symlinkSync(join(work, 'secret.yaml'), join(folder, 'link.yaml'));
symlinkSync(work, join(folder, 'way-out'));
execFileSync('mkfifo', [join(folder, 'pipe.yaml')]);
mkdirSync(join(folder, 'dumps'));
cpSync(
  join(project, 'fixtures', 'quickstart', 'expected-ipvs', 'ipvsadm.restore'),
  join(folder, 'dumps', 'ipvsadm.txt'),
);
const before = treeOf(folder);

const client = new Client({ name: 'test', version: '0' });
await client.connect(new StdioClientTransport({ command: process.execPath, args: [program, folder] }));

const schemaOf = (/** @type {string} */ name) =>
  JSON.parse(readFileSync(join(project, 'schemas', `${name}.schema.json`), 'utf8'));
const ajv = new Ajv({ allowUnionTypes: true, schemas: [schemaOf('envelope')] });

/** Whether something is what a command prints. */
const checks = new Map(
  ['trace', 'describe', 'compile', 'equivalence', 'lint'].map((name) => [name, ajv.compile(schemaOf(name))]),
);

/**
 * An answer, whether or not it is an error, is what the command prints, as text and as data.
 *
 * @param {string} name
 * @param {Record<string, unknown>} input
 */
async function ask(name, input) {
  const { content, structuredContent, isError = false } = await client.callTool({ name, arguments: input });
  const [{ text = '' } = {}] = /** @type {{ text?: string }[]} */ (content);
  const data = /** @type {any} */ (structuredContent);
  assert.deepEqual(data, JSON.parse(text));
  const check = checks.get(name === 'migrate' ? 'equivalence' : name);
  assert.ok(check?.(data) ?? true, `${name}: ${JSON.stringify(check?.errors)}`);
  const errors = data.findings.filter((/** @type {any} */ { severity }) => severity === 'error');
  assert.equal(isError, data.result === undefined, text);
  assert.ok(!isError || errors.length > 0, text);
  return { isError, text, data };
}

/** @param {string} path */
function treeOf(path) {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .map(
      (each) => `${each.parentPath ?? ''}/${each.name} ${statSync(join(path, '..'), { throwIfNoEntry: false })?.size}`,
    )
    .toSorted();
}

/** @type {[string, () => Promise<void> | void][]} */
const tests = [
  [
    'offers tools that only read',
    async () => {
      const { tools: offered } = await client.listTools();
      assert.deepEqual(
        offered.map(({ name }) => name),
        ['trace', 'describe', 'compile', 'equivalence', 'migrate', 'lint', 'explain'],
      );
      for (const { name, annotations, description, inputSchema, outputSchema } of offered) {
        for (const [parameter, schema] of Object.entries(inputSchema.properties ?? {}))
          assert.ok('description' in schema, `${name}: ${parameter}`);
        assert.equal(annotations?.readOnlyHint, true, name);
        assert.deepEqual(outputSchema?.required, ['kpc', 'command', 'snapshots', 'findings'], name);
        assert.ok((description ?? '').length > 40, name);
      }
    },
  ],
  [
    'two calls say why worker-1 cannot reach shop/web',
    async () => {
      const manifests = ['.'];
      const traced = await ask('trace', {
        manifests,
        proxyMode: 'iptables',
        node: 'worker-1',
        from: 'node',
        to: 'svc/shop/web',
      });
      const [verdict] = traced.data.result.traces;
      assert.equal(verdict.verdict, 'refused', traced.text);
      assert.equal(verdict.cause.kind, 'no-endpoints', traced.text);
      assert.equal(verdict.steps, undefined, traced.text);
      const described = await ask('describe', { manifests, proxyMode: 'iptables', node: 'worker-1', what: 'shop/web' });
      const [port] = described.data.result.services[0].ports;
      assert.deepEqual(
        port.families[0].endpoints.map((/** @type {{ endpoint: string }} */ { endpoint }) => endpoint),
        ['10.244.1.9:8080'],
        described.text,
      );
    },
  ],
  [
    'reads a dump, and texts that the agent sends',
    async () => {
      const dumped = await ask('describe', { dump: ['dumps'] });
      assert.equal(dumped.data.snapshots[0].mode, 'ipvs');
      const packet = { from: 'external', to: '10.96.0.80:80' };
      const wrong = await ask('trace', { dump: ['dumps'], hostAddresses: 'dumps/ipvsadm.txt', ...packet });
      assert.equal(wrong.data.findings[0].code, 'bad-host-addresses');
      assert.ok(dumped.data.result.servicePorts.length > 0);
      const text = readFileSync(join(folder, 'dumps', 'ipvsadm.txt'), 'utf8');
      for (const name of ['lint', 'migrate', 'compile']) {
        for (const given of ['dumps', 'dumps/ipvsadm.txt', { name: 'dumps', text }]) {
          const { isError, data } = await ask(name, {
            manifests: [given],
            ...(name === 'migrate' ? { to: 'nftables' } : {}),
          });
          assert.ok(isError, `${name}: ${JSON.stringify(given)}`);
          const { code, arguments: details, help } = data.findings.at(-1);
          assert.deepEqual([code, details.what, help], ['no-manifests', 'dump', 'look at it with describe']);
        }
      }
      // Whatever it is named as: it is recognised by its content.
      for (const given of ['dumps', 'dumps/ipvsadm.txt', { name: 'dumps', text }])
        assert.deepEqual((await ask('describe', { manifests: [given] })).data.result, dumped.data.result);
      const traced = await ask('trace', { dump: [{ name: 'node', text }], ...packet });
      assert.ok(['delivered', 'unknown'].includes(traced.data.result.traces[0].verdict), traced.text);
      const unlisted = `${text}create KUBE-CLUSTER-IP hash:ip,port family inet\nadd KUBE-CLUSTER-IP 10.96.0.99,tcp:80\n`;
      const { data } = await ask('describe', { dump: [{ name: 'node', text: unlisted }] });
      const said = data.findings.map((/** @type {object} */ each) => JSON.stringify(each));
      assert.match(said.join(), /10\.96\.0\.99/);
      assert.equal(new Set(said).size, said.length, said.join('\n'));
    },
  ],
  [
    'compiles, compares, plans a move, and explains',
    async () => {
      const manifests = ['shop.yaml', 'nodes.yaml'];
      const listed = await ask('compile', { manifests, proxyMode: 'nftables', node: 'worker-1' });
      assert.ok(listed.data.result.manifest.files['nftables.nft'], listed.text);
      const one = await ask('compile', { manifests, proxyMode: 'nftables', node: 'worker-1', file: 'nftables.nft' });
      assert.match(one.data.result.files['nftables.nft'], /table ip kube-proxy/);
      const compared = await ask('equivalence', { manifests, node: 'worker-1', from: 'iptables', to: 'nftables' });
      assert.match(compared.data.result.summary, /iptables → nftables/);
      const planned = await ask('migrate', { manifests, from: 'ipvs' });
      assert.match(planned.data.result.summary, /ipvs → nftables on 3 nodes/);
      const checked = await ask('lint', { manifests: ['web.yaml', 'nodes.yaml'] });
      assert.equal(checked.data.result.errors, 0, checked.text);
      const explained = await ask('explain', { code: '[default-mode]' });
      assert.match(explained.data.result.kpc.advice, /(?<!-)proxyMode/);
      const failure = await ask('explain', { code: 'busy' });
      assert.match(failure.data.result['kpc-apply'].advice, /wait/);
    },
  ],
  [
    'takes the options that its advice names, shows steps on request, and tells each error whole',
    async () => {
      const web = (/** @type {string} */ port) =>
        `apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { selector: { a: b }, ports: [{ port: ${port} }] }\n`;
      const manifests = [{ name: 'web.yaml', text: web('80') }];
      const compiled = await ask('compile', { manifests });
      assert.match(compiled.text, /serviceClusterIpRange/);
      const range = { serviceClusterIpRange: '10.96.0.0/16', proxyMode: 'iptables' };
      assert.equal((await ask('compile', { manifests, ...range })).isError, false);
      const traced = await ask('trace', { manifests, from: 'pod', to: 'svc/web', steps: true });
      assert.ok(traced.data.result.traces[0].steps.length > 0, traced.text);
      assert.equal(traced.data.snapshots[0].mode, 'ipvs', traced.text);
      assert.equal(traced.data.snapshots[0].assumed.mode, true, traced.text);
      const described = await ask('describe', { manifests, what: 'web' });
      assert.deepEqual(described.data.snapshots[0].assumed, traced.data.snapshots[0].assumed, described.text);
      const asGiven = await ask('describe', { manifests, assume: false });
      assert.equal(asGiven.data.snapshots[0].assumed.services, undefined, asGiven.text);
      const wrong = await ask('compile', {
        manifests: [
          { name: 'web.yaml', text: web('70000') },
          { name: 'b.yaml', text: 'a: [' },
        ],
      });
      assert.ok(wrong.isError);
      assert.match(wrong.text, /"bad-value"[^]*"not-closed"|"not-closed"[^]*"bad-value"/);
      assert.match((await ask('compile', { manifests, proxyMod: 'ipvs' })).text, /did you mean proxyMode/);
    },
  ],
  [
    'says in parameters and tools what kpc says in flags and commands',
    async () => {
      const manifests = ['shop.yaml', 'nodes.yaml'];
      const question = { manifests, from: 'pod', to: 'svc/shop/storefront' };
      const unnamed = await ask('trace', question);
      assert.deepEqual([unnamed.isError, unnamed.data.findings[0].arguments.problem], [true, 'no-node-named']);
      assert.match(unnamed.data.findings[0].help, /\ballNodes\b/);
      const onAll = await ask('trace', { ...question, allNodes: true });
      assert.equal(onAll.data.result.traces.length, 3, onAll.text);
      const strange = await ask('trace', { ...question, node: 'nowhere' });
      assert.equal(strange.data.findings[0].arguments.flag, 'node', strange.text);
      const lost = await ask('trace', { ...question, node: 'worker-1', to: 'svc/shop/nothing' });
      assert.match(lost.data.findings[0].help, /(?<!kpc )describe/);
      const bare = [{ name: 'a.yaml', text: readFileSync(join(folder, 'shop.yaml'), 'utf8') }];
      const compared = await ask('equivalence', { manifests: bare, from: 'ipvs', to: 'nftables', assume: false });
      assert.match(compared.data.result.reasons.join(), /hostAddresses/);
      for (const { text } of [unnamed, strange, lost, compared])
        assert.doesNotMatch(text.replaceAll(/"kpc trace [^"]*"/g, ''), /--[a-z]/);
      const { data } = await ask('explain', {});
      assert.doesNotMatch(data.result.kpc['bad-host-addresses'], /--/);
      // What is to be pasted stays, and has the options of the question.
      const checked = await ask('lint', { manifests: ['web.yaml', 'nodes.yaml'], proxyMode: 'iptables' });
      const commands = checked.data.findings.flatMap((/** @type {any} */ { trace }) => trace?.command ?? []);
      assert.match(commands.join('\n'), /^kpc trace web\.yaml nodes\.yaml --proxy-mode iptables --node /);
    },
  ],
  [
    'reads nothing outside the folder',
    async () => {
      for (const path of [
        '..',
        '../secret.yaml',
        join(work, 'secret.yaml'),
        '/etc/passwd',
        'link.yaml',
        'way-out',
        'way-out/secret.yaml',
        'nowhere.yaml',
        'pipe.yaml',
        'a\0b',
      ]) {
        const { isError, text } = await ask('describe', { manifests: [path] });
        assert.ok(isError, path);
        assert.doesNotMatch(text, /secret: yes|root:/, path);
      }
      // A folder with links and a pipe in it is read without them.
      const { data } = await ask('describe', { manifests: ['.'], node: 'worker-1', what: 'shop/storefront' });
      assert.equal(data.result.services.length, 1);
    },
  ],
  [
    'reads nothing outside a folder that changes places with a link',
    async () => {
      const [many, outside] = [join(folder, 'many'), join(work, 'outside')];
      for (const each of [join(many, 'z'), outside]) mkdirSync(each, { recursive: true });
      for (let i = 0; i < 300; i++) writeFileSync(join(many, `a${i}.yaml`), `# ${'x'.repeat(10_000)}\n`);
      writeFileSync(join(many, 'z', 'b.yaml'), '# nothing\n');
      cpSync(join(folder, 'web.yaml'), join(outside, 'b.yaml'));
      symlinkSync(outside, join(many, 'link'));
      // renameat2 with RENAME_EXCHANGE, again and again, on x86-64 and arm64.
      const exchange = `my $call = (POSIX::uname())[4] eq "aarch64" ? 276 : 316;
        while (1) { syscall($call, -100, "$ARGV[0]/z", -100, "$ARGV[0]/link", 2); select(undef, undef, undef, 0.001) }`;
      const swapping = spawn('perl', ['-MPOSIX', '-e', exchange, many], { stdio: 'ignore' });
      try {
        for (let i = 0; i < 30; i++) {
          const { text } = await ask('describe', { manifests: ['many'] });
          assert.doesNotMatch(text, /10\.96\.20\.9/);
        }
      } finally {
        swapping.kill();
        rmSync(many, { recursive: true, force: true });
      }
    },
  ],
  [
    'refuses what means nothing',
    async () => {
      const codeOf = async (/** @type {string} */ name, /** @type {Record<string, unknown>} */ input) => {
        const { code, arguments: details } = (await ask(name, input)).data.findings[0];
        return `${code} ${details.problem}`;
      };
      const manifests = ['shop.yaml'];
      assert.equal(await codeOf('trace', { manifests, to: 'svc/shop/web' }), 'bad-call usage');
      assert.equal(await codeOf('trace', { manifests, from: 1, to: 'svc/shop/web' }), 'bad-call usage');
      assert.equal(await codeOf('describe', {}), 'bad-call usage');
      assert.equal(await codeOf('describe', { manifests: ['nofile.yaml'] }), 'bad-call unreadable');
      assert.equal(await codeOf('describe', { dump: manifests }), 'bad-call no-dump');
      const stored = join(folder, 'stored');
      for (const form of ['--out', '--golden']) {
        execFileSync(process.execPath, [kpc, 'compile', join(folder, 'shop.yaml'), form, stored, '-q']);
        assert.match((await ask('lint', { manifests: ['stored'] })).text, /stored is a bundle, not manifests/);
        rmSync(stored, { recursive: true });
      }
      assert.equal(await codeOf('compile', { manifests, file: 'nothing' }), 'bad-call usage');
      assert.equal(await codeOf('migrate', { manifests, from: 'nftables', to: 'ipvs' }), 'bad-call usage');
      assert.equal(await codeOf('explain', { code: 'nothing' }), 'bad-call unknown-code');
      await assert.rejects(ask('nothing', {}), /-32602/);
      assert.ok((await ask('trace', { dump: ['dumps'], proxyMode: 'ipvs', from: 'pod', to: '10.96.0.80:80' })).isError);
      assert.match((await ask('explain', { code: 'bad-valeu' })).text, /did you mean bad-value/);
      assert.ok((await ask('describe', { manifests: ['shop.yaml'], out: '/tmp/x' })).isError);
      assert.ok((await ask('equivalence', { manifests: ['shop.yaml'], from: 'ipvs', to: '9.9' })).isError);
    },
  ],
  [
    'answers or refuses what is made to take long or much, and answers the next question',
    async () => {
      // Each is a few megabytes that take more than a question may.
      const item = '{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{}]}},';
      const texts = {
        'docs.yaml': '- *a\n'.repeat(2_000_000),
        'list.json': `{"kind":"List","apiVersion":"v1","items":[${item.repeat(300_000)}{}]}`,
      };
      for (const [name, text] of Object.entries(texts)) {
        writeFileSync(join(folder, name), text);
        const { text: said, isError } = await ask('describe', { manifests: [name] });
        assert.ok(isError, name);
        assert.ok(said.length > 0 && said.length < 300_000, name);
        rmSync(join(folder, name));
      }
      await assert.rejects(
        ask('describe', { manifests: [{ name: 'a.yaml', text: '{}'.repeat(2 ** 22) }] }),
        /longer than/,
      );
      assert.equal(
        (await ask('describe', { manifests: ['shop.yaml', 'nodes.yaml'], node: 'worker-1' })).isError,
        false,
      );
    },
  ],
  [
    'takes the options that the kpc.yaml of the folder gives, as kpc does, and names the file',
    async () => {
      const path = join(folder, 'kpc.yaml');
      const question = { node: 'worker-1', from: 'pod', to: 'svc/shop/web' };
      writeFileSync(
        path,
        'file: [shop.yaml, nodes.yaml, web.yaml]\nproxy-mode: nftables\nnamespace: shop\nlint: { limit: 3 }\n',
      );
      const byAddress = await ask('trace', { node: 'worker-1', from: 'external', to: '192.0.2.1:80' });
      assert.ok(!byAddress.isError, byAddress.text);
      const { data, text } = await ask('trace', { ...question, kubernetesVersion: 'v1.33.1' });
      assert.equal(data.snapshots[0].release, '1.33', text);
      assert.equal(data.snapshots[0].mode, 'nftables', text);
      assert.equal(data.result.traces[0].verdict, 'refused', text);
      const notes = data.findings.map((/** @type {{ text: string }} */ { text: said }) => said);
      assert.ok(notes.includes('from kpc.yaml: manifests, proxyMode, namespace'), text);
      const own = { proxyMode: 'iptables', manifests: ['.'], namespace: 'shop' };
      const asked = await ask('trace', { ...question, ...own });
      assert.equal(asked.data.snapshots[0].mode, 'iptables', asked.text);
      assert.doesNotMatch(asked.text, /from kpc\.yaml/);
      writeFileSync(path, 'proxy-mode: sixtables\nnode: { a: b }\n');
      const wrong = await ask('trace', question);
      assert.ok(wrong.isError, wrong.text);
      assert.match(wrong.text, /kpc\.yaml/);
      writeFileSync(path, 'file: ../secret.yaml\n');
      const outside = await ask('lint', {});
      assert.ok(outside.isError && !outside.text.includes('secret: yes'), outside.text);
      rmSync(path);
    },
  ],
  [
    'leaves out what the kpc.yaml excludes, and accepts what it ignores of a Service, as kpc does',
    async () => {
      const inner = join(folder, 'configured');
      mkdirSync(inner);
      const service = (/** @type {string} */ name) =>
        `{apiVersion: v1, kind: Service, metadata: {name: ${name}, namespace: shop}, spec: {type: NodePort, sessionAffinityConfig: {}, ports: [{port: 80}]}}\n`;
      writeFileSync(join(inner, 'a.yaml'), `${service('a')}---\n${service('b')}`);
      writeFileSync(join(inner, 'skipped.yaml'), service('c').replace('80', '99999'));
      const rules = 'exclude: skipped.yaml\nlint:\n  ignore:\n  - {code: ignored-field, service: shop/a, reason: x}\n';
      writeFileSync(
        join(folder, 'kpc.yaml'),
        `file: configured\n${rules}  - {code: host-port, service: shop/b, reason: x}\n`,
      );
      const { data, text, isError } = await ask('lint', {});
      assert.ok(!isError, text);
      /** @type {readonly (readonly [code: string, name: string, file: string])[]} */
      const found = data.findings.map((/** @type {any} */ { code, about, place }) => [code, about?.name, place?.file]);
      assert.ok(!found.some(([code]) => code === 'bad-value'), text);
      const lines = data.findings.filter((/** @type {any} */ { code }) => code === 'ignored-field');
      assert.deepEqual(
        lines.map((/** @type {any} */ { place }) => place.line),
        [3],
        text,
      );
      assert.deepEqual(found.find(([code]) => code === 'idle-ignore')?.[2], 'kpc.yaml', text);
      rmSync(join(folder, 'kpc.yaml'));
      rmSync(inner, { recursive: true });
    },
  ],
  [
    'lists a folder as kpc does: without other programs files, its own output, and what a .kpcignore names',
    async () => {
      const inner = join(folder, 'mixed');
      mkdirSync(join(inner, 'old'), { recursive: true });
      mkdirSync(join(inner, 'golden'));
      mkdirSync(join(inner, '.deploy'));
      const service = (/** @type {string} */ name) =>
        `{apiVersion: v1, kind: Service, metadata: {name: ${name}, namespace: shop}, spec: {ports: [{port: 80}]}}\n`;
      for (const [name, text] of [
        ['svc.yaml', service('a')],
        ['values.yaml', 'replicas: 2\n'],
        ['package.json', '{"name": "x"}'],
        ['.kpcignore', 'old/\n'],
        ['old/svc.yaml', service('b')],
        ['.deploy/svc.yaml', service('c')],
        ['golden/golden.json', '{}'],
        ['golden/manifest.json', '{"formatVersion": 1}'],
      ])
        writeFileSync(join(inner, String(name)), String(text));
      const { data, text, isError } = await ask('describe', { manifests: ['mixed'], node: 'worker-1' });
      assert.ok(!isError, text);
      assert.deepEqual(
        data.result.services.map((/** @type {any} */ { service: each }) => each),
        ['shop/a', 'shop/c'],
        text,
      );
      assert.ok(!data.findings.some((/** @type {any} */ { severity }) => severity === 'error'), text);
      rmSync(inner, { recursive: true });
    },
  ],
  [
    'reads each option by its kind, and names one whose value it cannot be',
    async () => {
      const asked = { manifests: ['shop.yaml', 'nodes.yaml'], node: 'worker-1' };
      const listed = await ask('compile', { ...asked, clusterCidr: ['10.244.0.0/16', 'fd00::/64'] });
      assert.ok(!listed.isError, listed.text);
      const written = await ask('compile', { ...asked, clusterCidr: '10.244.0.0/16,fd00::/64' });
      assert.deepEqual(listed.data.result, written.data.result);
      for (const [name, value] of Object.entries({
        loadBalancerIpRange: true,
        nodeportAddresses: 5,
        featureGates: 5,
        hostnameOverride: ['a', 'b'],
        skipInvalid: 'perhaps',
        detectLocalMode: true,
      })) {
        const { data, text, isError } = await ask('compile', { ...asked, [name]: value });
        assert.ok(isError, `${name}: ${text}`);
        assert.match(data.findings[0].text, new RegExp(name), text);
        assert.doesNotMatch(text, /is not a function/);
      }
    },
  ],
  [
    'takes and refuses what the command does: keys of kpc.yaml, and parameters without effect',
    async () => {
      const path = join(folder, 'kpc.yaml');
      writeFileSync(path, 'file: [shop.yaml, nodes.yaml]\nnode: worker-1\nmigrate: { from: iptables, to: nftables }\n');
      // All nodes are looked at, and its own section holds the change.
      const planned = await ask('migrate', {});
      assert.equal(planned.data.result.nodes, 3, planned.text);
      assert.match(planned.data.result.summary, /^iptables → nftables/);
      assert.equal((await ask('lint', {})).data.result.nodes, 3);
      writeFileSync(path, 'file: [shop.yaml, nodes.yaml]\nmigrate: { node: worker-1 }\n');
      assert.equal((await ask('migrate', {})).data.result.nodes, 1);
      // What compile calls file is none of the files that kpc.yaml names.
      const ofFile = { node: 'worker-1', proxyMode: 'nftables', file: 'nftables.nft' };
      const printed = await ask('compile', ofFile);
      assert.ok(printed.data.result?.files['nftables.nft'], printed.text);
      rmSync(path);
      const manifests = ['shop.yaml', 'nodes.yaml'];
      const whole = { manifests, node: 'worker-1', all: 'shop/storefront' };
      /** @type {readonly (readonly [string, Record<string, unknown>, string])[]} */
      const idle = [
        ['trace', { ...whole, proto: 'udp' }, 'proto'],
        ['trace', { ...whole, to: 'svc/shop/web' }, 'to'],
        ['trace', { ...whole, allNodes: true }, 'node'],
        ['trace', { dump: ['dumps'], from: '10.9.9.9', to: '10.96.0.80:80', namespace: 'shop' }, 'namespace'],
        ['migrate', { manifests, proxyMode: 'ipvs', from: 'iptables' }, 'proxyMode'],
        ['equivalence', { manifests, proxyMode: 'ipvs', from: 'iptables', to: 'nftables' }, 'proxyMode'],
      ];
      for (const [tool, input, flag] of idle) {
        const { data, isError, text } = await ask(tool, input);
        const { problem, flags } = data.findings[0].arguments;
        assert.deepEqual([isError, problem, flags], [true, 'idle-flag', [flag]], text);
      }
      // A message about a dump names parameters, as one about manifests.
      const packet = { from: '10.9.9.9', to: '10.96.0.80:80' };
      for (const given of [
        { proxyMode: 'ipvs' },
        { clusterCidr: '10.244.0.0/16' },
        { allNodes: true },
        { node: 'n1' },
      ]) {
        const { isError, text } = await ask('trace', { dump: ['dumps'], ...packet, ...given });
        assert.ok(isError, text);
        assert.match(text, new RegExp(`"${Object.keys(given).join()}\\b`));
        assert.doesNotMatch(text, /--[a-z]/);
      }
      writeFileSync(join(folder, 'kpc.yaml'), 'proxy-mode: ipvs\ncluster-cidr: 10.244.0.0/16\nnode: worker-1\n');
      for (const named of [{ dump: ['dumps'] }, { manifests: ['shop.yaml', 'nodes.yaml'] }]) {
        const { text } = await ask('trace', { ...named, ...packet });
        assert.match(text, /from kpc\.yaml: proxyMode, clusterCidr, node|from kpc\.yaml: proxyMode, node, clusterCidr/);
      }
      rmSync(join(folder, 'kpc.yaml'));
      const alone = await ask('trace', { ...whole, inInterface: 'eth0' });
      assert.equal(alone.data.findings[0].arguments.problem, 'flag-alone', alone.text);
      // No packet shows it.
      assert.ok((await ask('trace', { ...whole, ipvsSyncPeriod: '3s' })).isError);
    },
  ],
  [
    'advises nothing that the question cannot have',
    async () => {
      const bare = [
        {
          name: 'a.yaml',
          text: 'apiVersion: v1\nkind: Service\nmetadata: { name: a }\nspec: { ports: [{ port: 80 }] }\n',
        },
      ];
      const empty = await ask('compile', { manifests: bare });
      assert.equal(empty.data.findings[0].code, 'nothing-programmed', empty.text);
      assert.match(empty.data.findings[0].help, /\bassume\b/);
      assert.doesNotMatch(empty.text, /allow-?empty/i);
      const path = join(folder, 'kpc.yaml');
      writeFileSync(path, 'host-addresses: ../secret.yaml\n');
      const outside = await ask('describe', { manifests: bare });
      assert.deepEqual([outside.data.findings[0].code, outside.data.findings[0].help], ['bad-kpc-yaml', undefined]);
      rmSync(path);
      const dumped = await ask('describe', { dump: ['dumps'] });
      assert.match(dumped.text, /add manifests in manifests to name them/);
      const sent = await ask('trace', { dump: ['dumps'], from: 'external', to: '192.168.7.7:30080' });
      assert.match(sent.text, /ip addr/);
      assert.match(sent.text, /with hostAddresses/);
      // As the command says it, with the way to forbid it.
      const described = await ask('describe', { manifests: bare });
      const { arguments: details, text } = described.data.findings.find(
        (/** @type {any} */ { code }) => code === 'assumed',
      );
      assert.equal(details.isDefault, true);
      assert.match(text, /assume: false/);
    },
  ],
  [
    'opens a bundle and a golden as the node that they hold, and manifests beside a dump as its names',
    async () => {
      const manifests = ['shop.yaml', 'nodes.yaml'];
      const packet = { from: 'pod', to: 'svc/shop/storefront' };
      const asked = { node: 'worker-1', proxyMode: 'iptables' };
      const compiledHere = await ask('trace', { manifests, ...asked, ...packet });
      const stored = join(folder, 'stored');
      for (const form of ['--out', '--golden']) {
        const words = [
          kpc,
          'compile',
          '--node',
          'worker-1',
          '--proxy-mode',
          'iptables',
          form,
          stored,
          '-q',
          '--assume',
        ];
        execFileSync(process.execPath, [...words, ...manifests.map((each) => join(folder, each))]);
        for (const named of ['dump', 'manifests']) {
          const traced = await ask('trace', { [named]: ['stored'], ...packet });
          assert.equal(traced.data.snapshots[0].kind, 'bundle', traced.text);
          assert.equal(traced.data.result.traces[0].verdict, compiledHere.data.result.traces[0].verdict, traced.text);
          const listed = await ask('describe', { [named]: ['stored'] });
          assert.ok(listed.data.result.services.length > 0, listed.text);
        }
        const idle = await ask('trace', { manifests: ['stored'], ...packet, proxyMode: 'ipvs' });
        assert.equal(idle.data.findings[0].arguments.because.kind, 'compiled-already', idle.text);
        const beside = await ask('describe', { dump: ['stored'], manifests });
        assert.equal(beside.data.findings[0].code, 'no-manifests', beside.text);
        rmSync(stored, { recursive: true });
      }
      const files = manifests.map((each) => join(folder, each));
      const many = [kpc, 'compile', '-q', '--proxy-mode', 'iptables', ...files];
      execFileSync(process.execPath, [...many, '--all-nodes', '--out', join(folder, 'fleet')]);
      const packed = join(folder, 'node.tgz');
      execFileSync(process.execPath, [kpc, 'bundle', 'pack', join(folder, 'fleet', 'worker-2'), '--out', packed], {
        stdio: 'ignore',
      });
      for (const named of ['dump', 'manifests']) {
        for (const given of [{ [named]: ['fleet'], node: 'worker-2' }, { [named]: ['node.tgz'] }]) {
          const { data, text: said } = await ask('trace', { ...given, ...packet });
          assert.deepEqual([data.snapshots[0]?.kind, data.snapshots[0]?.node], ['bundle', 'worker-2'], said);
        }
        const strange = await ask('describe', { [named]: ['fleet'], node: 'edge' });
        assert.deepEqual(strange.data.findings[0].arguments.known, ['worker-1', 'worker-2', 'worker-3'], strange.text);
        const unnamed = await ask('describe', { [named]: ['fleet'] });
        assert.equal(unnamed.data.findings[0].code, 'nodes-folder', unnamed.text);
      }
      writeFileSync(packed, readFileSync(packed).subarray(0, 200));
      assert.equal((await ask('describe', { dump: ['node.tgz'] })).data.findings[0].arguments.problem, 'unreadable');
      rmSync(join(folder, 'fleet'), { recursive: true });
      rmSync(packed);
      const text =
        'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { clusterIP: 10.96.0.80, ports: [{ port: 80 }] }\n';
      const named = { dump: ['dumps'], manifests: [{ name: 'web', text }] };
      const { result } = (await ask('describe', { ...named, what: 'web' })).data;
      assert.equal(result?.servicePorts[0].servicePort, 'default/web');
      const sent = await ask('trace', { ...named, from: 'external', to: 'svc/web' });
      assert.ok(sent.data.result, sent.text);
      const nameless = await ask('trace', { dump: ['dumps'], from: 'external', to: 'svc/web' });
      assert.equal(nameless.data.findings[0].arguments.nameless, 'ipvs', nameless.text);
      assert.deepEqual(
        nameless.data.snapshots.map((/** @type {any} */ { name }) => name),
        ['dumps'],
      );
      assert.doesNotMatch(nameless.text, /kpc describe/);
      writeFileSync(join(folder, 'kpc.yaml'), 'file: dumps\nproxy-mode: nftables\n');
      assert.equal((await ask('describe', {})).data.snapshots[0].mode, 'ipvs');
      const refused = await ask('lint', {});
      assert.deepEqual(
        refused.data.findings.map((/** @type {any} */ { code }) => code),
        ['reading', 'no-manifests'],
      );
      rmSync(join(folder, 'kpc.yaml'));
    },
  ],
  [
    'names what it compiled as the command does',
    async () => {
      const manifests = ['shop.yaml', 'nodes.yaml'];
      const namesIn = (/** @type {any} */ { data }) => data.snapshots.map((/** @type {any} */ { name }) => name);
      const compiled = await ask('compile', { manifests, node: 'worker-1' });
      assert.deepEqual(namesIn(compiled), ['shop.yaml, nodes.yaml']);
      const moved = await ask('migrate', { manifests, node: 'worker-1', from: 'ipvs' });
      assert.deepEqual(namesIn(moved), ['ipvs', 'nftables']);
    },
  ],
  [
    'gives a long list in parts, and names what asks for less where there is no list',
    async () => {
      const service = (/** @type {number} */ i) =>
        `apiVersion: v1\nkind: Service\nmetadata: { name: s${i} }\nspec: { clusterIP: 10.96.${i >> 8}.${i & 255}, ports: [{ port: 80 }] }\n`;
      const slice = (/** @type {number} */ i) =>
        `apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\naddressType: IPv4\nmetadata: { name: s${i}, labels: { kubernetes.io/service-name: s${i} } }\nports: [{ port: 80 }]\nendpoints: [{ addresses: [10.244.${i >> 8}.${i & 255}] }]\n`;
      const text = Array.from({ length: 1000 }, (_, i) => service(i + 1)).join('---\n');
      const manifests = [{ name: 'many.yaml', text }];
      const listed = new Set();
      for (let skip = 0; skip < 1000;) {
        const { data, text: said } = await ask('describe', { manifests, skip });
        for (const { service: name } of data.result.services) listed.add(name);
        const part = data.findings.find((/** @type {any} */ each) => each.arguments.list === 'services').arguments;
        assert.deepEqual([part.problem, part.skip, part.all, said.length <= 200_000], ['part', skip, 1000, true]);
        assert.ok(part.shown > 0);
        skip += part.shown;
      }
      assert.equal(listed.size, 1000);
      const few = await ask('describe', { manifests, limit: 2 });
      assert.equal(few.data.result.services.length, 2, few.text);
      const wrong = await ask('describe', { manifests: [{ name: 'a.yaml', text: 'a: [' }], skip: 9 });
      assert.ok(wrong.isError, wrong.text);
      const served = Array.from({ length: 1000 }, (_, i) => `${service(i + 1)}---\n${slice(i + 1)}`).join('---\n');
      const whole = {
        manifests: [{ name: 'many.yaml', text: served }],
        proxyMode: 'iptables',
        file: 'iptables.restore',
      };
      const { data } = await ask('compile', whole);
      assert.match(data.findings[0].help, /describe with what/);
    },
  ],
  [
    'refuses the keys of kpc.yaml that no command has, and takes those of commands that are no tool',
    async () => {
      const path = join(folder, 'kpc.yaml');
      const problemOf = async (/** @type {string} */ rules) => {
        writeFileSync(path, `file: [shop.yaml, nodes.yaml]\n${rules}`);
        const { isError, data } = await ask('describe', { node: 'worker-1' });
        return isError ? data.findings.at(-1).arguments.problem : undefined;
      };
      for (const rules of ['masquerade-al: true\n', 'trcae: { limit: 3 }\n', 'cluster: true\n', 'lint: { out: x }\n'])
        assert.equal(await problemOf(rules), 'unknown-flag', rules);
      assert.equal(await problemOf('diff: { foreign: true }\nlimit: 3\nstrict: true\n'), undefined);
      writeFileSync(path, 'file: [web.yaml, nodes.yaml]\nstrict: true\n');
      const strict = await ask('lint', {});
      assert.ok(strict.data.result.errors > 0, strict.text);
      rmSync(path);
    },
  ],
  [
    'takes texts wherever it takes paths, and says what a source lacks',
    async () => {
      const text = '[{"ifname":"eth0","addr_info":[{"family":"inet","local":"192.0.2.1","prefixlen":24}]}]';
      const asked = { manifests: ['shop.yaml', 'nodes.yaml'], node: 'worker-1' };
      const config = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\n';
      const { data, text: said } = await ask('compile', {
        ...asked,
        hostAddresses: { name: 'addr.json', text },
        config: { name: 'config.yaml', text: config },
      });
      assert.equal(data.result?.manifest.mode, 'nftables', said);
      for (const source of [{ text: 'a' }, '', 5]) {
        const { data: wrong } = await ask('describe', { manifests: [source] });
        assert.match(wrong.findings[0].text, /^manifests\.0: neither a path nor \{ name, text \}/);
      }
    },
  ],
  [
    'refuses an empty value, and names no command line',
    async () => {
      const empty = await ask('lint', { manifests: ['shop.yaml'], node: '' });
      assert.equal(empty.data.findings[0].text, 'node is not set: leave an empty option out');
      const text = 'apiVersion: v1\nkind: Config\nclusters: []\ncontexts: []\nusers: []\n';
      const none = await ask('lint', { manifests: [{ name: 'config', text }] });
      assert.doesNotMatch(none.data.findings[0].help, /--|KUBECONFIG/);
      const template = { name: 'web.yaml', text: 'kind: Service\nspec: {{ .Values.spec }}\n' };
      const chart = await ask('compile', { manifests: [template] });
      assert.match(chart.text, /give its output in their place/);
      const headless =
        'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { clusterIP: None, selector: { app: web } }\n';
      const refused = await ask('migrate', { manifests: [{ name: 'web.yaml', text: headless }] });
      const codes = refused.data.findings.map((/** @type {any} */ { code }) => code);
      assert.deepEqual([codes.includes('no-node') || codes.includes('assumed'), codes.at(-1)], [true, 'bad-call']);
    },
  ],
  [
    'wrote nothing',
    () => {
      assert.deepEqual(treeOf(folder), before);
    },
  ],
  [
    'without a folder, it says what to name',
    () => {
      for (const words of [[], ['a', 'b'], ['--nothing'], [join(work, 'nowhere')]]) {
        const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...words], { encoding: 'utf8' });
        assert.deepEqual({ status, stdout }, { status: 2, stdout: '' }, words.join(' '));
        assert.match(stderr, /^error: .*\n {2}help: .*\n$/);
      }
      assert.match(
        execFileSync(process.execPath, [program, '--help'], { encoding: 'utf8' }),
        /^Usage: kpc-mcp <folder>/,
      );
    },
  ],
];

let passed = 0;
let failed = 0;
for (const [name, run] of tests) {
  try {
    await run();
    passed++;
    console.log(`ok    ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAIL  ${name}\n${error instanceof Error ? error.stack : String(error)}`);
  }
}
await client.close();
rmSync(work, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
