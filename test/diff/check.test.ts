import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { projectFolder, runKpc } from '../support/run-kpc.ts';
import { wordsOf } from '../../src/say/words/words.ts';
import { resultOf } from '../support/printed-json.ts';

const caseFolder = 'test/diff/cases/scale-deployment';
const cwd = join(projectFolder, caseFolder);
const scratch = mkdtempSync(join(tmpdir(), 'kpc-check-'));
const golden = join(scratch, 'golden');
const fleet = join(scratch, 'fleet');

beforeAll(async () => {
  await runKpc(['compile', '-f', 'before', '-o', golden], { cwd });
  await runKpc(['compile', '-f', 'before', '--all-nodes', '-o', fleet], { cwd });
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function check(input: string, folder: string, output: string, ...more: readonly string[]) {
  return runKpc(['compile', '-f', input, '--check', folder, '--output', output, ...more], { cwd });
}

const lacking = 'selector of store/shop, which one side does not record';

/** What a run of github says once: no flag of these calls names a mode, and a bundle records no selector. */
const assumed = `::notice title=answer-assumes::assumed: mode ipvs (nothing names a mode)\n::notice title=answer-lacks::not compared: ${lacking}\n`;

const because =
  'endpoints 3 → 5; endpoint 10.244.1.8:8080 added (on node-1); endpoint 10.244.2.9:8080 added (on node-2)';

describe('kpc compile --check', () => {
  test.for(['text', 'json', 'github', 'junit'])('%s: exit status 0 where nothing differs', async (output) => {
    const run = await check('before', golden, output);
    expect(run.status).toBe(0);
    expect(run.stdout + run.stderr).toContain(lacking);
    expect(run.stdout).not.toMatch(/error|<failure|"same": false/);
  });

  test('text: the lines on stdout, the Services on stderr', async () => {
    const run = await check('after', golden, 'text');
    expect(run.status).toBe(1);
    expect(run.stdout).toContain('\n+-a -t 10.96.0.40:80 -r 10.244.1.8:8080 -m -w 1\n');
    expect(run.stderr).toContain('store/shop:http changed\n    endpoints 3 → 5\n');
    expect(run.stderr).toMatch(/To accept the change:\n {2}kpc compile -f after -o \S+\n$/);
  });

  test('markdown: the change, what happens to packets, and how to accept it', async () => {
    const run = await check('after', golden, 'markdown');
    expect(run.status).toBe(1);
    expect(run.stdout).toContain('- **store/shop**: endpoints 3 → 5, endpoint ');
    expect(run.stdout).toMatch(/### Packets on .*\n\n- cluster IP of store\/shop .*: 3 → 5 endpoints, 20% each\n/);
    expect(run.stdout).toContain('<details><summary>In the kernel</summary>');
    expect(run.stdout).toMatch(
      /To accept it, run this and commit the result:\n\n```sh\nkpc compile -f after -o \S+\n```\n$/,
    );
    // A comment on a pull request has nothing beside it: node, mode and what is assumed stand in it.
    expect((await check('before', golden, 'markdown')).stdout).toMatch(/^\*\*No difference in .*\*\*\n\n- .*mode .*\n/);
  });

  test('github: an error at the line of the Service port', async () => {
    const run = await check('after', golden, 'github');
    expect(run.status).toBe(1);
    const advice = `help: if this is intended: kpc compile -f after -o ${golden}`;
    expect(run.stdout).toBe(
      `${assumed}::error file=${caseFolder}/after/store.yaml,line=12,col=7,title=service-differs::store/shop:http changed: ${because}%0A${advice}\n`,
    );
  });

  test('github: input that cannot be compiled is marked where it is wrong', async () => {
    const bad = join(scratch, 'bad, 100%.yaml');
    writeFileSync(bad, readFileSync(join(cwd, 'after/store.yaml'), 'utf8').replace('port: 80\n', 'port: 80808\n'));
    const run = await check(bad, golden, 'github');
    expect(run.status).toBe(2);
    const file = bad.replace('%', '%25').replace(',', '%2C');
    expect(run.stdout).toMatch(/^::error file=.*,line=13,col=13,title=[\w-]+::.*80808/);
    expect(run.stdout).toContain(`file=${file},`);
  });

  test('github: no more marks than GitHub shows', async () => {
    const many = join(scratch, 'many.yaml');
    const service = (i: number) =>
      `apiVersion: v1\nkind: Service\nmetadata: { name: new-${i} }\nspec: { clusterIP: 10.96.1.${i}, ports: [{ port: 80 }] }\n`;
    writeFileSync(many, Array.from({ length: 40 }, (_, i) => service(i + 1)).join('---\n'));
    const run = await check('before', golden, 'github', '-f', many);
    const lines = run.stdout.replace(assumed, '').trimEnd().split('\n');
    expect(lines).toHaveLength(10);
    expect(lines[0]).toMatch(
      /^::error file=.*many\.yaml,line=4,.*title=service-differs::default\/new-1 added: Service added; /,
    );
    expect(lines[9]).toBe('::error title=kpc::and 31 more');
  });

  test('junit: a test case for each Service port, with what failed', async () => {
    const run = await check('after', golden, 'junit');
    expect(run.status).toBe(1);
    const title = `kpc compile --check ${golden}`;
    expect(run.stdout).toBe(
      [
        '<?xml version="1.0" encoding="UTF-8"?>',
        `<testsuites name="${title}" tests="1" failures="1">`,
        `  <testsuite name="${title}" tests="1" failures="1">`,
        '    <properties>',
        '      <property name="assumed" value="mode ipvs (nothing names a mode)"/>',
        `      <property name="notCompared" value="${lacking}"/>`,
        '    </properties>',
        '    <testcase classname="kpc" name="store/shop:http" file="after/store.yaml" line="12">',
        `      <failure message="store/shop:http changed: ${because}">${because.replaceAll('; ', '\n')}`,
        `if this is intended: kpc compile -f after -o ${golden}</failure>`,
        '    </testcase>',
        '  </testsuite>',
        '</testsuites>',
        '',
      ].join('\n'),
    );
  });

  test('json: the same for programs', async () => {
    const run = await check('after', golden, 'json');
    expect(run.status).toBe(1);
    expect(resultOf(run.stdout)).toMatchObject({
      folder: golden,
      same: false,
      accept: `kpc compile -f after -o ${golden}`,
      files: ['manifest.json', 'ipset.restore', 'ipvsadm.restore', 'services.json'],
      problems: [],
      diff: {
        servicePorts: [{ servicePort: 'store/shop:http', place: { file: 'after/store.yaml', line: 12 } }],
        packets: [
          {
            services: ['store/shop'],
            target: 'cluster-ip',
            choice: { from: { endpoints: 3 }, to: { endpoints: 5 } },
            trace: expect.stringContaining('kpc trace after'),
          },
          { services: ['store/shop'], senders: ['an endpoint of the Service that is added'] },
        ],
      },
    });
  });

  test('a golden bundle that was edited by hand differs, and it is said why', async () => {
    const edited = join(scratch, 'edited');
    cpSync(golden, edited, { recursive: true });
    writeFileSync(join(edited, 'ipvsadm.restore'), '');
    const github = await check('before', edited, 'github');
    expect(github.status).toBe(1);
    expect(github.stdout).toMatch(
      /\n::error title=state-differs::.* differs: .*ipvsadm\.restore has changed since it was compiled/,
    );
    const junit = await check('before', edited, 'junit');
    expect(junit.stdout).toContain('failures="1"');
  });

  test('of many nodes: the Services that change once, and the nodes', async () => {
    const github = await check('after', fleet, 'github', '--all-nodes');
    expect(github.status).toBe(1);
    const [, , service, nodes, ...rest] = github.stdout.split('\n');
    expect(service).toContain(`title=service-differs::store/shop:http changed: ${because}%0A`);
    expect(nodes).toBe(
      `::error title=state-differs::${fleet} differs: 1 of 1 node changes; node-1: manifest.json, ipset.restore, ipvsadm.restore, services.json%0Ahelp: if this is intended: kpc compile -f after -o ${fleet} --all-nodes`,
    );
    expect(rest).toEqual(['']);
    const junit = await check('after', fleet, 'junit', '--all-nodes');
    expect(junit.stdout).toContain('<testcase classname="kpc" name="node-1">');
    const json = await check('after', fleet, 'json', '--all-nodes');
    expect(resultOf(json.stdout)).toMatchObject({
      same: false,
      accept: `kpc compile -f after -o ${fleet} --all-nodes`,
      nodes: 1,
      changed: [{ node: 'node-1' }],
      example: { diff: { packets: [{ target: 'cluster-ip' }, { target: 'cluster-ip' }] } },
    });
    const same = await check('before', fleet, 'github', '--all-nodes');
    const [grounds, lacks, ...others] = same.stdout.split('\n');
    expect({ status: same.status, grounds, others }).toEqual({
      status: 0,
      grounds: assumed.split('\n')[0],
      others: [''],
    });
    expect(lacks).toContain('title=answer-lacks::not compared: ');
  });

  test('of several nodes, a finding names the one that shows it', async () => {
    const nodes = ['a', 'b'].map((name) => `apiVersion: v1\nkind: Node\nmetadata: { name: ${name} }\n`).join('---\n');
    const more = join(scratch, 'nodes.yaml');
    writeFileSync(more, nodes);
    const several = join(scratch, 'several');
    const flags = ['-f', more, '--all-nodes'];
    await runKpc(['compile', '-f', 'before/store.yaml', ...flags, '-o', several], { cwd });
    const { stdout } = await check('after/store.yaml', several, 'github', ...flags);
    expect(stdout).toContain('title=service-differs::store/shop:http changed on a: ');
    expect(stdout).toContain('2 of 2 nodes change');
  });
});

test('a difference of many lines counts all that its one line leaves out', () => {
  const what = Array.from({ length: 20 }, (_, i) => `line ${i}`);
  const details = { servicePort: 'a/b', change: 'changed', what, more: 10, golden: undefined };
  expect(wordsOf({ code: 'service-differs', arguments: details }).text).toMatch(/line 4; and 25 more$/);
});
