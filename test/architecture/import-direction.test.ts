import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { describe, expect, test } from 'vitest';
import { projectFolder } from '../support/run-kpc.ts';
import { folders, topFolder } from './folders.ts';

const source = join(projectFolder, 'src');

interface Import {
  /** Both relative to src, with slashes; `to` is a package or node:module where it does not begin with a dot. */
  readonly from: string;
  readonly to: string;
  /** Whether only a type is imported, of which nothing is left when the program runs. */
  readonly isType: boolean;
}

/** `import … from 'x'`, `export … from 'x'`, `import 'x'` and `import('x')`, those over several lines too. */
const importPattern =
  /(?:^|\n)\s*(import|export)\s+(type\s+)?(?:[\w$*\s{},]+?\s+from\s+)?'([^'\n]+)'|\bimport\(\s*'([^'\n]+)'\s*\)/g;

function listImports(from: string, text: string): readonly Import[] {
  return [...text.matchAll(importPattern)].map(([, , type, named, called]) => {
    const to = named ?? called ?? '';
    return { from, to: resolve(from, to), isType: type !== undefined };
  });
}

/** The `imports` of package.json: name → file for Node. */
const { imports: ownNames } = JSON.parse(readFileSync(join(projectFolder, 'package.json'), 'utf8')) as {
  readonly imports: Readonly<Record<string, { readonly default: string }>>;
};

function resolve(from: string, to: string): string {
  if (to.startsWith('.')) return join(dirname(from), to).split(sep).join('/');
  return ownNames[to]?.default.replace(/^\.\/src\//, '') ?? to;
}

/** "@noble/hashes" of "@noble/hashes/sha2.js". */
function packageOf(to: string): string {
  return to
    .split('/')
    .slice(0, to.startsWith('@') ? 2 : 1)
    .join('/');
}

function readSource(): readonly Import[] {
  return readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .flatMap((path) => listImports(path.split(sep).join('/'), readFileSync(join(source, path), 'utf8')));
}

/** Rows for rooms come before the row of the folder that holds them. */
const rows = Object.keys(folders).toSorted((a, b) => b.length - a.length);

/** The row of the table that a path belongs to: the longest that the path begins with. */
function folderOf(path: string): string {
  const row = rows.find((each) => path === each || path.startsWith(`${each}/`));
  return row ?? path.split('/', 1).join('');
}

/** Why an import is against the table; undefined for one that is not. */
function describeBreach({ from, to }: Import): string | undefined {
  const folder = folderOf(from);
  const rule = folders[folder];
  if (!rule) return `${from}: the folder ${folder} is not in the table`;
  if (to.startsWith('node:')) {
    return rule.node.includes(to.slice(5)) ? undefined : `${from} imports ${to}: ${folder} may use no such module`;
  }
  if (to.endsWith('.ts')) {
    const other = folderOf(to);
    return other === folder || rule.folders.includes(other) ? undefined : `${from} imports ${to}: ${folder} may not`;
  }
  return rule.packages.includes(packageOf(to)) ? undefined : `${from} imports the package ${to}`;
}

const imports = readSource();

test('all imports of src are found', () => {
  expect(imports.length).toBeGreaterThan(1000);
  expect(new Set(imports.map(({ from }) => folderOf(from)))).toEqual(new Set(Object.keys(folders)));
});

test('no import is against the table', () => {
  expect(imports.flatMap((each) => describeBreach(each) ?? [])).toEqual([]);
});

test('the table leads one way: no folder may import one that may import it', () => {
  const order = Object.keys(folders);
  for (const [folder, rule] of Object.entries(folders)) {
    for (const other of rule.folders)
      expect(order.indexOf(other), `${folder} → ${other}`).toBeLessThan(order.indexOf(folder));
  }
});

test('nothing imports the command line but itself', () => {
  const isInside = (path: string): boolean => path.startsWith(`${topFolder}/`) && path.endsWith('.ts');
  expect(imports.filter(({ from, to }) => isInside(to) && !isInside(from))).toEqual([]);
});

describe('a breach is found', () => {
  test.each([
    ['cluster/objects.ts', "import { x } from '../bundle/fleet/shard.ts';"],
    ['bundle/fleet/shard.ts', "import type { Inputs } from '../../input/read-inputs.ts';"],
    ['input/schemas/node.ts', "import { x } from '../../modes/ipvs/sets.ts';"],
    ['kernel/state.ts', "import {\n  a,\n  b,\n} from '../cluster/model.ts';"],
    ['diff/side.ts', "export { readNode } from '../apply/plan.ts';"],
    ['describe/view.ts', "const { x } = await import('../input/settings.ts');"],
    ['cluster/objects.ts', "import { readFileSync } from 'node:fs';"],
    ['apply/plan.ts', "import { parse } from 'yaml';"],
    ['cli/kpc/program.ts', "import { x } from '../kpc-apply/options.ts';"],
    ['cli/shared/terminal.ts', "import { x } from '../../input/settings.ts';"],
    ['report/text.ts', "import { x } from '../cli/shared/terminal.ts';"],
    ['nowhere/new.ts', "import { x } from '../kernel/state.ts';"],
  ])('%s: %s', (from, text) => {
    const found = listImports(from, `${text}\n`);
    expect(found).toHaveLength(1);
    expect(found.flatMap((each) => describeBreach(each) ?? [])).toHaveLength(1);
  });
});

/** All files that a file needs when it runs. */
function closureOf(start: string): ReadonlySet<string> {
  const seen = new Set([start]);
  for (const file of seen) {
    for (const { from, to, isType } of imports) if (from === file && !isType && to.endsWith('.ts')) seen.add(to);
  }
  return seen;
}

test('kpc-apply holds no reader of manifests: what it does as root goes by a bundle alone', () => {
  const needed = [...closureOf('cli/kpc-apply/main.ts')];
  expect(needed.length).toBeGreaterThan(100);
  expect(needed.filter((file) => folderOf(file) === 'input')).toEqual([]);
  const packages = imports.filter(
    ({ from, to }) => needed.includes(from) && !to.endsWith('.ts') && !to.startsWith('node:'),
  );
  expect(new Set(packages.map(({ to }) => to))).toEqual(new Set(['chalk', 'commander', 'ipaddr.js']));
});

test('the table allows nothing that is not used', () => {
  for (const [folder, rule] of Object.entries(folders)) {
    const used = imports.filter(({ from }) => folderOf(from) === folder).map(({ to }) => to);
    const names = new Set([
      ...used.filter((to) => to.endsWith('.ts')).map(folderOf),
      ...used.filter((to) => to.startsWith('node:')).map((to) => to.slice(5)),
      ...used.filter((to) => !to.endsWith('.ts')).map(packageOf),
    ]);
    for (const allowed of [...rule.folders, ...rule.packages, ...rule.node]) expect(names, folder).toContain(allowed);
  }
});
