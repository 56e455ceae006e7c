// Every command that the pages show is run, and prints what they show. UPDATE_DOCS=1 writes what it prints into the pages.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { fixturesFolder } from '../support/fixtures.ts';
import {
  homePaths,
  pagePaths,
  readBlocks,
  readExamples,
  readPage,
  writeOutputs,
  type Block,
} from '../support/markdown.ts';
import { projectFolder, runProgram } from '../support/run-kpc.ts';
import { serveKpc } from '../support/served-kpc.ts';

const updates = process.env['UPDATE_DOCS'] === '1';
const root = mkdtempSync(join(tmpdir(), 'kpc-pages-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const dump = join(fixturesFolder, 'dumps', 'kube-proxy-iptables-session-affinity');

/** Programs by their names on the PATH, beside kpc: stand-ins for those that ask a cluster, a chart or a kernel. */
const programs = {
  kubectl: `cat "${join(fixturesFolder, 'kubectl-list', 'all.json')}"`,
  helm: `cat "${join(fixturesFolder, 'assigned-addresses', 'svc.yaml')}"`,
  kustomize: `cat "${join(fixturesFolder, 'assigned-addresses', 'svc.yaml')}"`,
  'iptables-save': `cat "${join(dump, 'iptables-save')}"`,
  'ip6tables-save': `cat "${join(dump, 'ip6tables-save')}"`,
};
const path = join(root, 'path');
mkdirSync(path);
for (const [name, script] of Object.entries(programs)) {
  writeFileSync(join(path, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(path, name), 0o755);
}
const server = await serveKpc(path);
afterAll(() => server.close());

/** A folder such as a reader works in: a clone, in which nothing was compiled yet. */
function makeFolder(): string {
  const folder = mkdtempSync(join(root, 'clone-'));
  symlinkSync(fixturesFolder, join(folder, 'fixtures'));
  return folder;
}

/** Runs commands as a terminal shows them: standard output and error in one. */
function runAll(commands: string, cwd: string) {
  const env = { PATH: [path, process.env['PATH']].join(delimiter) };
  return runProgram('bash', ['-euo', 'pipefail', '-c', `exec 2>&1\n${commands}`], { cwd, env });
}

/** The exit status that "status=1" behind the language means. */
function expectedStatus({ words }: Block): number {
  return Number(words.find((word) => word.startsWith('status='))?.slice('status='.length) ?? 0);
}

/** What the commands of such a page print is compared with its English page: see below. */
const isTranslated = (name: string) => name.includes('zh-CN');

/** Others install, or run on a node: test/kernel-lab/readme.ts runs those that kpc-apply is in. */
const isRun = ({ words }: Block) => words.every((word) => word.startsWith('status='));

describe.each([...pagePaths(), ...homePaths])('%s', (name) => {
  const page = readPage(name);
  const examples = readExamples(page).filter(({ commands }) => isRun(commands));

  test.runIf(examples.length > 0 && (updates || !isTranslated(name)))(
    'shows commands that work, and what they print',
    async () => {
      const folder = makeFolder();
      const printed: string[] = [];
      for (const { commands } of examples) {
        const { status, stdout } = await runAll(commands.text, folder);
        expect(status, `${commands.text}\n${stdout}`).toBe(expectedStatus(commands));
        printed.push(stdout);
      }
      const written = writeOutputs(page, examples, printed);
      if (updates) writeFileSync(join(projectFolder, name), written);
      expect(updates ? written : page).toBe(written);
    },
  );
});

describe.each(pagePaths())('%s', (name) => {
  const page = readPage(name);

  test('has blocks in languages that GitHub colours only', () => {
    const known = new Set(['sh', 'text', 'yaml', 'json', 'js', 'ts']);
    expect(readBlocks(page).filter(({ language }) => !known.has(language))).toEqual([]);
  });

  test('links to what is there', () => {
    const links = [...page.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)].map(([, link = '']) => link);
    const missing = links.filter((link) => {
      const [file = '', heading] = link.split('#');
      const target = file === '' ? join(projectFolder, name) : join(projectFolder, dirname(name), file);
      return !existsSync(target) || (heading !== undefined && !headingsOf(target).has(heading));
    });
    expect(missing).toEqual([]);
  });

  test('is a page of the site', () => {
    expect(readFileSync(join(projectFolder, 'site/.vitepress/pages.mjs'), 'utf8')).toContain(`['${name}', `);
  });

  test('runs scripts that there are', () => {
    const { scripts } = JSON.parse(readFileSync(join(projectFolder, 'package.json'), 'utf8')) as {
      readonly scripts: Readonly<Record<string, string>>;
    };
    const named = [...page.matchAll(/\bnpm run ([a-z:-]+)/g)].map(([, script = '']) => script);
    expect(named.filter((script) => scripts[script] === undefined)).toEqual([]);
  });
});

const inChinese = [...pagePaths(), ...homePaths].filter(isTranslated);

test.each(inChinese)('%s has the commands, what they print and the headings of its English page', (name) => {
  const english = readPage(
    name.replace('docs/zh-CN/', 'docs/').replace('README.zh-CN.md', 'README.md').replace('home/zh-CN', 'home/en'),
  );
  const commandsOf = (page: string) =>
    readExamples(page).map(({ commands, shown }) => [...commands.words, commands.text, shown?.text].join(' '));
  const levelsOf = (page: string) => [...page.matchAll(/^#+(?= )/gm)].map(([level]) => level);
  expect(commandsOf(readPage(name))).toEqual(commandsOf(english));
  expect(levelsOf(readPage(name))).toEqual(levelsOf(english));
});

/** What links to headings of a page look like on GitHub. */
function headingsOf(file: string): ReadonlySet<string> {
  const headings = [...readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, text = '']) => text);
  return new Set(
    headings.map((text) =>
      text
        .toLowerCase()
        .replace(/[^\p{L}\p{N}_\- ]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}
