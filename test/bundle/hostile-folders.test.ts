import {
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fixturesFolder } from '../support/fixtures.ts';
import { runKpc, runKpcApply } from '../support/run-kpc.ts';

const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'kpc-hostile-')));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const at = (...names: readonly string[]) => join(scratch, ...names);
const svc = at('svc.yaml');
const compile = (...args: readonly string[]) =>
  runKpc([
    'compile',
    '-f',
    svc,
    '--proxy-mode',
    'ipvs',
    ...(args.includes('--node') ? [] : ['--node', 'worker-1']),
    ...args,
  ]);

/** A copy of what kpc wrote once. */
let copies = 0;
function copy(form: 'golden' | 'bundle' | 'fleet'): string {
  const folder = at(`${form}-${++copies}`);
  cpSync(at(form), folder, { recursive: true });
  return folder;
}

/** Every path below a folder, with the text of the files. */
function listAll(folder: string): Readonly<Record<string, string>> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted();
  return Object.fromEntries(
    names.map((name) => [name, statSync(join(folder, name)).isFile() ? readFileSync(join(folder, name), 'utf8') : '']),
  );
}

const flagOf = { golden: '--golden', bundle: '-o' } as const;
const nodes = ['golden.json', 'manifest.json', 'a.b.txt'];

beforeAll(async () => {
  const manifests = readFileSync(join(fixturesFolder, 'quickstart', 'svc.yaml'), 'utf8');
  const objects = nodes.map((node) => `---\napiVersion: v1\nkind: Node\nmetadata: { name: ${node} }\n`);
  writeFileSync(svc, [manifests, ...objects].join('\n'));
  writeFileSync(at('shadow'), 'root:$6$secret:19000\n');
  await compile('--golden', at('golden'));
  await compile('-o', at('bundle'));
  await compile(...nodes.flatMap((node) => ['--node', node]), '--golden', at('fleet'));
});

describe('a link in a folder that --check compares', () => {
  test.each([
    ['golden', 'node.txt'],
    ['golden', 'golden.json'],
    ['golden', 'other.one.txt'],
    ['bundle', 'manifest.json'],
    ['bundle', 'ip.batch'],
    ['bundle', 'services.json'],
  ] as const)('%s, %s: is not followed out of the folder', async (form, name) => {
    const folder = copy(form);
    rmSync(join(folder, name), { force: true });
    symlinkSync(at('shadow'), join(folder, name));
    for (const output of ['text', 'json', 'github']) {
      const { status, stdout, stderr } = await compile('--check', folder, '--output', output);
      expect(stdout + stderr).not.toMatch(/root|secret|19000/);
      expect(status).toBe(2);
      expect(stderr).toContain(`${name}: it is a link to something outside `);
    }
  });

  test('is not followed in a folder of a fleet', async () => {
    const folder = copy('fleet');
    rmSync(join(folder, 'a.b.txt', 'node.txt'));
    symlinkSync(at('shadow'), join(folder, 'a.b.txt', 'node.txt'));
    const run = await compile('--node', 'a.b.txt', '--node', 'manifest.json', '--check', folder);
    expect(run).toMatchObject({ status: 2, stderr: expect.stringContaining('link to something outside ') });
    expect(run.stdout + run.stderr).not.toMatch(/root|secret/);
  });

  test('is followed inside the folder, as a mounted ConfigMap has them', async () => {
    const folder = copy('bundle');
    mkdirSync(join(folder, '..data'));
    for (const name of readdirSync(folder).filter((each) => each !== '..data')) {
      renameSync(join(folder, name), join(folder, '..data', name));
      symlinkSync(join('..data', name), join(folder, name));
    }
    expect(await runKpc(['diff', folder, at('bundle')])).toMatchObject({ status: 0 });
  });

  test('may be the folder itself; hard links are files', async () => {
    symlinkSync(at('golden'), at('link'));
    expect(await compile('--check', at('link'))).toMatchObject({ status: 0, stdout: '' });
    const folder = copy('bundle');
    rmSync(join(folder, 'services.json'));
    linkSync(at('bundle', 'services.json'), join(folder, 'services.json'));
    expect(await compile('--check', folder)).toMatchObject({ status: 0, stdout: '' });
    expect(await compile('-o', folder)).toMatchObject({ status: 0 });
  });

  test('kpc-apply does not follow one either', async () => {
    const folder = copy('bundle');
    rmSync(join(folder, 'ip.batch'));
    symlinkSync(at('shadow'), join(folder, 'ip.batch'));
    const run = await runKpcApply(['plan', folder]);
    expect(run).toMatchObject({ status: 2, stderr: expect.stringContaining('link to something outside ') });
  });
});

describe("what is not kpc's is not replaced", () => {
  const cases: readonly (readonly [what: string, form: 'golden' | 'bundle', name: string, text: string | undefined])[] =
    [
      ['a folder named like the file of a Service', 'golden', 'notes.old.txt', undefined],
      ['a folder named like the file of the node', 'golden', 'node.txt', undefined],
      ['a file named like that of a Service', 'golden', 'team.notes.txt', 'our notes\n'],
      ['a folder named like a file of a bundle', 'bundle', 'ip.batch', undefined],
      ['a golden.json of another program', 'golden', 'golden.json', '{"my":"golden"}'],
      ['a manifest.json of another program', 'bundle', 'manifest.json', '{"name":"my webapp"}'],
      ['a manifest.json that is no object', 'bundle', 'manifest.json', '[]'],
      ['a manifest.json that is no JSON', 'bundle', 'manifest.json', 'formatVersion'],
      ['a manifest.json whose parts have a version', 'bundle', 'manifest.json', '{"build":{"formatVersion": 1}}'],
      ['a network.txt of another program', 'bundle', 'network.txt', '10.0.0.0/8: ours\n'],
      ['a golden.json whose parts have a version', 'golden', 'golden.json', '{\n"a": {\n  "goldenVersion": 1\n}}'],
    ];
  test.each(cases)('%s', async (_, form, name, text) => {
    const folder = copy(form);
    rmSync(join(folder, name), { force: true });
    if (text === undefined) mkdirSync(join(folder, name));
    writeFileSync(text === undefined ? join(folder, name, 'keep') : join(folder, name), text ?? 'keep\n');
    const before = listAll(folder);
    const run = await compile(flagOf[form], folder);
    expect(run.status).toBe(2);
    expect(run.stderr).toMatch(new RegExp(`error: .*${name}.*\\[bad-call\\]`));
    expect(listAll(folder)).toEqual(before);
  });

  test('a link named like a file of a bundle', async () => {
    const folder = copy('bundle');
    rmSync(join(folder, 'ip.batch'));
    symlinkSync(at('shadow'), join(folder, 'ip.batch'));
    expect(await compile('-o', folder)).toMatchObject({ status: 2, stderr: expect.stringContaining('(ip.batch)') });
  });

  test.each(['--golden', '-o'])('the folders of nodes that are named like files, with %s', async (flag) => {
    const folder = copy('fleet');
    const before = listAll(folder);
    const run = await compile(flag, folder, '--node', 'manifest.json');
    expect(run.status).toBe(2);
    expect(run.stderr).toContain('(a.b.txt, golden.json, manifest.json)');
    expect(run.stderr).not.toContain('is a golden');
    expect(listAll(folder)).toEqual(before);
  });

  test("--prune leaves a folder whose manifest.json is not kpc's", async () => {
    const folder = at('pruned');
    mkdirSync(join(folder, 'webapp'), { recursive: true });
    writeFileSync(join(folder, 'webapp', 'manifest.json'), '{"name":"my webapp","format":{"formatVersion": 1}}');
    cpSync(at('bundle'), join(folder, 'gone'), { recursive: true });
    const run = await runKpc(['compile', '-f', svc, '--all-nodes', '--prune', '-o', folder]);
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(existsSync(join(folder, 'webapp', 'manifest.json'))).toBe(true);
    expect(existsSync(join(folder, 'gone'))).toBe(false);
  });
});

describe("what kpc wrote is replaced, though it isn't whole", () => {
  const markers = (text: string) => `<<<<<<< HEAD\n${text}=======\n${text}>>>>>>> other\n`;
  test.each([
    ['golden', 'golden.json'],
    ['golden', 'node.txt'],
    ['golden', 'default.web.txt'],
    ['bundle', 'manifest.json'],
    ['bundle', 'ip.batch'],
  ] as const)('%s: a merge that git could not do, in %s', async (form, wanted) => {
    const folder = copy(form);
    const service = readdirSync(folder).find((each) => each.split('.').length === 3) ?? '';
    const name = wanted === 'default.web.txt' ? service : wanted;
    writeFileSync(join(folder, name), markers(readFileSync(join(folder, name), 'utf8')));
    expect(await compile(flagOf[form], folder)).toMatchObject({ status: 0 });
    expect(listAll(folder)).toEqual(listAll(at(form)));
  });
});
