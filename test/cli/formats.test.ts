// The formats that every finding command has, of an answer and of a call that is refused.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { triesAll } from '../support/rounds.ts';
import { runKpc, type Run } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-formats-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const web = (policy: string): string => `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: NodePort, internalTrafficPolicy: ${policy}, selector: { app: web }, ports: [{ port: 80, targetPort: 8080 }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec: { replicas: 1, selector: { matchLabels: { app: web } }, template: { metadata: { labels: { app: web } }, spec: { containers: [{ name: c, image: c, ports: [{ containerPort: 8080 }] }] } } }
`;

const slice = `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: gone-1, labels: { kubernetes.io/service-name: gone } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints: [{ addresses: [10.244.1.7] }]
`;

beforeAll(async () => {
  writeFileSync(join(cwd, 'old.yaml'), web('Cluster'));
  writeFileSync(join(cwd, 'new.yaml'), web('Local'));
  const local = web('Local').replace('type: NodePort', 'type: NodePort, externalTrafficPolicy: Local');
  writeFileSync(join(cwd, 'local.yaml'), local);
  writeFileSync(join(cwd, 'noted.yaml'), web('Local') + slice);
  writeFileSync(join(cwd, 'noted-bad.yaml'), web('Cluster').replace('port: 80', 'port: 80808') + slice);
  writeFileSync(join(cwd, 'bad.yaml'), web('Cluster').replace('port: 80', 'port: 80808'));
  writeFileSync(join(cwd, 'test.yaml'), 'tests: [{ from: pod, to: svc/web, expect: refused }]\n');
  await runKpc(['compile', '-q', 'old.yaml', '--assume', '--golden', 'golden'], { cwd });
});

const commands: Readonly<Record<string, readonly string[]>> = {
  lint: ['lint', 'new.yaml'],
  test: ['test', 'test.yaml', '-f', 'old.yaml'],
  diff: ['diff', 'old.yaml', 'new.yaml'],
  equivalence: ['equivalence', 'old.yaml', 'new.yaml'],
  migrate: ['migrate', 'new.yaml', '--from', 'iptables'],
  'compile --check': ['compile', 'new.yaml', '--assume', '--check', 'golden'],
  'compile --check of the same': ['compile', 'old.yaml', '--assume', '--check', 'golden'],
  'lint of bad input': ['lint', 'bad.yaml'],
  'diff of bad input': ['diff', 'old.yaml', 'bad.yaml'],
  'migrate without input': ['migrate'],
  'equivalence of a missing file': ['equivalence', 'old.yaml', 'none.yaml'],
};

/** What was printed, by the call: none of these changes a file. */
const printed = new Map<string, Promise<Run>>();

function printOnce(words: readonly string[]): Promise<Run> {
  const key = JSON.stringify(words);
  const run = printed.get(key) ?? runKpc(words, { cwd });
  printed.set(key, run);
  return run;
}

describe.each(Object.entries(commands))('%s', (_, words) => {
  const print = (output: string) => printOnce([...words, '--output', output, '-q']);

  test('sarif: each result has a place, as code scanning wants it', async () => {
    const [run] = JSON.parse((await print('sarif')).stdout).runs;
    for (const { locations, ruleIndex, ruleId, partialFingerprints } of run.results) {
      expect(locations[0].physicalLocation.artifactLocation.uri).not.toBe('');
      expect(run.tool.driver.rules[ruleIndex].id).toBe(ruleId);
      expect(Object.values(partialFingerprints)).toEqual([expect.stringMatching(/./)]);
    }
  });

  test('gitlab: each entry has what a report needs', async () => {
    const entry = {
      description: expect.stringMatching(/./),
      fingerprint: expect.stringMatching(/./),
      severity: expect.stringMatching(/^(?:major|minor|info)$/),
      location: { path: expect.stringMatching(/./), lines: { begin: expect.any(Number) } },
    };
    for (const each of JSON.parse((await print('gitlab')).stdout)) expect(each).toMatchObject(entry);
  });

  test('junit: a failure where the status is not 0, and only there', async () => {
    const { status, stdout } = await print('junit');
    const [, failures = ''] = /<testsuites [^>]*failures="(\d+)"/.exec(stdout) ?? [];
    expect(Number(failures) > 0, stdout).toBe(status !== 0);
  });

  test('github and markdown: an error where the status says that the input is wrong', async () => {
    const [github, markdown] = [await print('github'), await print('markdown')];
    expect(github.status).toBe(markdown.status);
    const isRefused = github.status === 2;
    expect(github.stdout.includes('::error ') || !isRefused).toBe(true);
    expect(markdown.stdout.includes('**error**') || !isRefused).toBe(true);
  });
});

describe.each(['lint', 'test', 'diff', 'equivalence', 'migrate', 'compile --check', 'compile --check of the same'])(
  'what %s assumes',
  (name) => {
    const print = async (output: string, ...more: readonly string[]): Promise<string> =>
      (await printOnce([...(commands[name] ?? []), '--output', output, ...more])).stdout;
    const isLint = name === 'lint';
    const node = expect.stringMatching(/node-1\b.*1 ready Pod\b/);

    test.for([[], ['-q']])('stands in every format, once %j', async (more) => {
      const github = (await print('github', ...more))
        .split('\n')
        .filter((line) => line.includes('title=answer-assumes'));
      expect(github).toEqual(isLint ? [] : [node]);
      const gitlab: readonly { check_name: string; description: string }[] = JSON.parse(await print('gitlab', ...more));
      const entries = gitlab
        .filter(({ check_name: code }) => code === 'answer-assumes')
        .map((each) => each.description);
      // An entry is something to look at.
      expect(entries).toEqual(isLint || gitlab.length === 0 ? [] : [node]);
      const [run] = JSON.parse(await print('sarif', ...more)).runs;
      // The folder is of one node, which kpc chose.
      const other = name === 'compile --check' ? 'the other node (node-2)' : undefined;
      expect(run.properties).toEqual(isLint ? undefined : { assumed: node, notCompared: other });
      expect(run.results.map(({ ruleId }: { ruleId: string }) => ruleId)).not.toContain('assumed');
      const properties = /<properties>[^]*<\/properties>/.exec(await print('junit', ...more))?.[0];
      expect(properties).toEqual(isLint ? undefined : node);
    });

    test('names the mode that nothing names, and not one that a flag names', async () => {
      const modeless = (commands[name] ?? []).filter((word) => word !== '--from' && word !== 'iptables');
      for (const output of isLint ? [] : ['github', 'sarif', 'junit']) {
        const unnamed = await printOnce([...modeless, '--output', output]);
        expect(unnamed.stdout.match(/mode ipvs \(nothing names a mode\)/g)).toHaveLength(1);
        if (!triesAll && output !== 'github') continue;
        const named = await runKpc([...modeless, '--output', output, '--proxy-mode', 'ipvs'], { cwd });
        expect(named.stdout).not.toContain('nothing names');
      }
    });
  },
);

test.for(['json', 'github', 'gitlab', 'sarif', 'junit'])(
  '-q leaves notes on the input out of %s, as of text, and keeps what was asked',
  async (output) => {
    const check = ['compile', 'noted.yaml', '--assume', '--check', 'golden', '--output', output];
    const refused = ['diff', 'old.yaml', 'noted-bad.yaml', '--output', output];
    expect((await runKpc(check, { cwd })).stdout).toContain('no-such-service');
    for (const words of [check, refused]) {
      const { stdout } = await runKpc([...words, '-q'], { cwd });
      expect(stdout).not.toContain('no-such-service');
      expect(stdout).toMatch(words === check ? /default\/web/ : /bad-value/);
    }
  },
);

test('what text says is not compared stands in JSON', async () => {
  const asked: readonly (readonly string[])[] = [
    ['diff', 'old.yaml', 'local.yaml', '--proxy-mode', 'nftables'],
    ['equivalence', 'old.yaml', 'new.yaml'],
    ['migrate', 'new.yaml'],
  ];
  for (const words of asked) {
    const { stdout } = await runKpc(words, { cwd });
    const { notCompared } = resultOf((await runKpc([...words, '--output', 'json'], { cwd })).stdout) as {
      readonly notCompared: readonly string[];
    };
    expect(/[Nn]ot (?:compared|looked at): /.test(stdout)).toBe(true);
    expect(notCompared.length).toBeGreaterThan(0);
    for (const what of notCompared) expect(stdout).toContain(what);
  }
});

const nodeNamed = (name: string, last: number): string =>
  `---\napiVersion: v1\nkind: Node\nmetadata: { name: ${name} }\nstatus: { addresses: [{ type: InternalIP, address: 192.168.10.${last} }] }\n`;

const twoNodes = web('Local') + slice + nodeNamed('w1', 11) + nodeNamed('w2', 12);

describe('what an answer leaves open', () => {
  const rules = `*nat
:PREROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
-A PREROUTING -j KUBE-SERVICES
-A KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m comment --comment "a/b cluster IP" -m tcp --dport 53 -j KUBE-SVC-TCOU7JCQXEZGVUNU
:KUBE-SVC-TCOU7JCQXEZGVUNU - [0:0]
:KUBE-SEP-AAAAAAAAAAAAAAAA - [0:0]
-A KUBE-SVC-TCOU7JCQXEZGVUNU -m comment --comment "a/b -> 10.244.1.10:53" -j KUBE-SEP-AAAAAAAAAAAAAAAA
-A KUBE-SEP-AAAAAAAAAAAAAAAA -p tcp -m comment --comment "a/b" -m tcp -j DNAT --to-destination 10.244.1.10:53
COMMIT
`;
  beforeAll(() => {
    writeFileSync(join(cwd, 'one.txt'), rules);
    writeFileSync(join(cwd, 'other.txt'), rules);
    writeFileSync(join(cwd, 'nodes.yaml'), twoNodes);
    writeFileSync(join(cwd, 'moved.yaml'), twoNodes.replace('port: 80,', 'port: 81,'));
  });
  const asked: readonly (readonly [string, readonly string[], keyof typeof words])[] = [
    ['a part of dumps', ['diff', 'one.txt', 'other.txt'], 'notCompared'],
    ['pods that reach themselves', ['diff', 'old.yaml', 'local.yaml', '--proxy-mode', 'nftables'], 'notCompared'],
    ['packets on no node', ['diff', 'nodes.yaml', 'moved.yaml', '--proxy-mode', 'ipvs'], 'unknown'],
  ];
  const words = { notCompared: /not compared: /, unknown: /is unknown on both sides/ };

  test.for(asked)('%s: every format says it once', async ([, call, kind]) => {
    const print = async (output: string) => (await runKpc([...call, '--output', output], { cwd })).stdout;
    expect((await print('text')).match(words[kind])).toHaveLength(1);
    expect((await print('github')).match(/title=answer-lacks::/g)).toHaveLength(1);
    const entries: readonly { check_name: string }[] = JSON.parse(await print('gitlab'));
    expect(entries.filter(({ check_name: code }) => code === 'answer-lacks')).toHaveLength(1);
    expect(JSON.parse(await print('sarif')).runs[0].properties).toHaveProperty(kind);
    expect((await print('junit')).match(new RegExp(`property name="${kind}"`, 'g'))).toHaveLength(1);
  });
});

test('what belongs to no Service counts beside Services, in every format of diff as of compile --check', async () => {
  await runKpc(['compile', '-q', 'old.yaml', '--assume', '--golden', 'ipvs', '--proxy-mode', 'ipvs'], { cwd });
  const asked = ['compile', 'local.yaml', '--assume', '--check', 'ipvs', '--proxy-mode', 'ipvs'];
  for (const call of [['diff', 'old.yaml', 'local.yaml', '--proxy-mode', 'ipvs'], asked]) {
    const print = async (output: string) => (await runKpc([...call, '--output', output], { cwd })).stdout;
    const json = resultOf(await print('json')) as { base?: readonly unknown[]; diff?: { base: readonly unknown[] } };
    expect((json.base ?? json.diff?.base)?.length).toBeGreaterThan(0);
    expect(await print('github')).toContain('title=state-differs');
    expect(JSON.parse(await print('gitlab'))).toContainEqual(expect.objectContaining({ check_name: 'state-differs' }));
    expect(await print('junit')).toContain('failures="2"');
    expect(await print('markdown')).toMatch(/^\*\*1 Service port changed; /);
  }
});

test('what is of other programs is a finding, too, as the status says', async () => {
  const rules = (target: string) => `*nat\n:KUBE-MARK-MASQ - [0:0]\n:MINE - [0:0]\n-A MINE -j ${target}\nCOMMIT\n`;
  writeFileSync(join(cwd, 'accepts.txt'), rules('ACCEPT'));
  writeFileSync(join(cwd, 'returns.txt'), rules('RETURN'));
  const print = (output: string) =>
    runKpc(['diff', 'accepts.txt', 'returns.txt', '--foreign', '--output', output], { cwd });
  const { status, stdout } = await print('github');
  expect(status).toBe(1);
  expect(stdout).toContain('title=state-differs');
  expect(JSON.parse((await print('gitlab')).stdout)).toContainEqual(
    expect.objectContaining({ check_name: 'state-differs' }),
  );
  expect((await print('junit')).stdout).toContain('failures="1"');
});

test('a difference on no node says so, and that its pods are not asked', async () => {
  const call = ['diff', 'nodes.yaml', 'moved.yaml', '--output', 'json'];
  const print = async (...more: readonly string[]) => JSON.parse((await runKpc([...call, ...more], { cwd })).stdout);
  const [unnamed, named] = [await print(), await print('--node', 'w1')];
  expect(unnamed.findings.filter(({ code }: { code: string }) => code === 'no-node')).toHaveLength(1);
  expect(JSON.stringify(named.findings)).not.toContain('"no-node"');
  expect(unnamed.result.notCompared).toEqual([expect.stringContaining('no node is named')]);
  expect(named.result.notCompared).toEqual([expect.stringContaining('w2')]);
});

test('what is found on another node than the one that was asked names it', async () => {
  const words = ['--proxy-mode', 'nftables', '--node', 'node-2'];
  const { stdout } = await runKpc(['diff', 'old.yaml', 'new.yaml', ...words], { cwd });
  const json = resultOf((await runKpc(['diff', 'old.yaml', 'new.yaml', ...words, '--output', 'json'], { cwd })).stdout);
  const nodes = (json as { readonly packets: readonly { example: { node: string } }[] }).packets.map(
    ({ example }) => example.node,
  );
  expect(new Set(nodes)).toEqual(new Set(['node-1']));
  expect(stdout.match(/, on node-1, from /g)).toHaveLength(nodes.length);
  const modes = ['--proxy-mode', 'nftables'];
  const github = (await runKpc(['equivalence', 'old.yaml', 'new.yaml', ...modes, '--output', 'github'], { cwd }))
    .stdout;
  expect(github).toMatch(/title=packets-differ::.*, on node-1/);
});

test.for([
  ['equivalence', 'iptables', 'nftables', '-f', 'local.yaml'],
  ['migrate', 'local.yaml', '--from', 'iptables'],
])('%s: the node that is named is the node that is asked', async (call) => {
  for (const node of ['node-1', 'node-2']) {
    const { stdout } = await runKpc([...call, '--node', node, '--output', 'json'], { cwd });
    const { causes } = resultOf(stdout) as { readonly causes: readonly { nodes: unknown; effects: unknown }[] };
    expect(causes.length).toBeGreaterThan(0);
    for (const { nodes, effects } of causes) {
      expect(nodes).toEqual([node]);
      expect(JSON.stringify(effects)).not.toContain(node === 'node-1' ? 'node-2' : 'node-1');
    }
  }
});

/** All that is served is on w1. */
const served = (port: number): string => `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { clusterIP: 10.96.0.7, internalTrafficPolicy: Local, ports: [{ port: ${port}, targetPort: 8080 }] }
${slice.replace('name: gone', 'name: web').replace('gone', 'web').replace('[10.244.1.7]', '[10.244.1.7], nodeName: w1')}${nodeNamed('w1', 11)}`;

test('lint: the packet that shows a finding can be traced from every format', async () => {
  const call = ['lint', resolve('fixtures/codes/local-without-endpoint/example/in.yaml')];
  const json = JSON.parse((await runKpc([...call, '--output', 'json'], { cwd })).stdout);
  const [command] = json.findings.flatMap(({ trace }: { trace?: { command: string } }) => trace?.command ?? []);
  expect(command).toMatch(/^kpc trace /);
  for (const output of ['text', 'markdown', 'github', 'gitlab', 'sarif']) {
    expect((await runKpc([...call, '--output', output], { cwd })).stdout, output).toContain(command);
  }
});

describe('a check of a fleet in which a node is gone', () => {
  const call = ['compile', 'before.yaml', '--all-nodes', '--check', 'fleet'];
  const print = async (output: string, input: string) => {
    const { stdout } = await runKpc([...call.with(1, input), '--output', output], { cwd });
    return stdout;
  };
  beforeAll(async () => {
    writeFileSync(join(cwd, 'before.yaml'), served(80) + nodeNamed('w2', 12));
    writeFileSync(join(cwd, 'gone.yaml'), served(80));
    writeFileSync(join(cwd, 'both.yaml'), served(81));
    await runKpc(['compile', '-q', 'before.yaml', '--all-nodes', '--golden', 'fleet'], { cwd });
  });

  test.for(['gone.yaml', 'both.yaml'])('%s: every format has the one command that accepts all', async (input) => {
    const { accept, changed, stale } = resultOf(await print('json', input)) as {
      readonly accept: string;
      readonly changed: readonly unknown[];
      readonly stale: readonly unknown[];
    };
    expect([changed.length, stale.length]).toEqual([input === 'gone.yaml' ? 0 : 1, 1]);
    expect(accept).toMatch(/ --prune$/);
    for (const output of ['markdown', 'github', 'gitlab', 'junit']) {
      const text = await print(output, input);
      expect(text, output).toContain(accept);
      expect(text, output).not.toMatch(/--golden fleet(?! --prune)/);
      expect(text, output).not.toContain('0 of 1');
    }
    expect(await print('junit', input)).not.toMatch(/<failure [^>]*><\/failure>/);
  });
});

test('what is assumed is counted alike in the note and in the answer', async () => {
  const balanced = web('Cluster').replace('type: NodePort', 'type: LoadBalancer, externalTrafficPolicy: Local');
  writeFileSync(join(cwd, 'balanced.yaml'), balanced);
  const { stdout, stderr } = await runKpc(['equivalence', 'iptables', 'nftables', '-f', 'balanced.yaml'], { cwd });
  const ofNote = /assumed, .* (\d+) node ports?, (\d+) health check node port/.exec(stderr)?.slice(1);
  const ofAnswer = /assumed: .* (\d+) node ports?, (\d+) health check node port/.exec(stdout)?.slice(1);
  expect([ofNote, ofAnswer]).toEqual([
    ['1', '1'],
    ['1', '1'],
  ]);
});
