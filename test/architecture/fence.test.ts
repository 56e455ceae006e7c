import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findBreaches, folderOf, readModule, readModules } from '../../scripts/fence.mjs';
import { folders } from '../../scripts/fence/folders.mjs';
import { projectFolder } from '../support/run-kpc.ts';

const modules = readModules();
const imports = modules.flatMap((each) => each.imports);

test('all imports of src are found', () => {
  expect(imports.length).toBeGreaterThan(1000);
  expect(new Set(imports.map(({ from }) => folderOf(from)))).toEqual(new Set(Object.keys(folders)));
});

test('no import is against the table', () => {
  expect(findBreaches(modules)).toEqual([]);
});

test('the table leads one way: no folder may import one that may import it', () => {
  const order = Object.keys(folders);
  for (const [folder, rule] of Object.entries(folders)) {
    for (const other of rule.folders)
      expect(order.indexOf(other), `${folder} → ${other}`).toBeLessThan(order.indexOf(folder));
  }
});

test('nothing imports the command line but itself', () => {
  const isInside = (path: string): boolean => path.startsWith('cli/');
  expect(imports.filter(({ from, to }) => isInside(to) && !isInside(from))).toEqual([]);
});

describe('a breach is found', () => {
  test.each([
    ['cluster/objects.ts', "import { x } from '../bundle/fleet/shard.ts';"],
    ['bundle/fleet/shard.ts', "import type { Inputs } from '../../input/read-inputs.ts';"],
    ['input/shapes/node.ts', "import { x } from '../../modes/ipvs/compile-ipvs.ts';"],
    ['kernel/state.ts', "import {\n  a,\n  b,\n} from '../cluster/model.ts';"],
    ['ask/diff/side.ts', "export { readNode } from '../../apply/plan/plan.ts';"],
    ['ask/diff/side.ts', "export * from '../../apply/plan/plan.ts';"],
    ['ask/diff/side.ts', "export {} from '../../apply/plan/plan.ts';"],
    ['ask/diff/side.ts', "import {} from '../../apply/plan/plan.ts';"],
    ['ask/diff/side.ts', "type Plan = import('../../apply/plan/plan.ts').Plan;"],
    ['ask/describe/view.ts', "const { x } = await import('../../input/read-inputs.ts');"],
    ['ask/describe/view.ts', "const { x } = await import(/* lazily */ '../../input/read-inputs.ts');"],
    ['ask/describe/view.ts', 'const { x } = await import(`../../input/read-inputs.ts`);'],
    ['ask/describe/view.ts', "const { x } = await import('../../' + name);"],
    ['ask/describe/view.ts', 'const x = import.source(name);'],
    ['cluster/objects.ts', "import { readFileSync } from 'node:fs';"],
    ['cluster/objects.ts', "import { readFileSync } from 'fs';"],
    ['cluster/objects.ts', "import fs = require('node:fs');"],
    ['cluster/objects.ts', "const fs = require('node:fs');"],
    ['cluster/objects.ts', "const fs = process.getBuiltinModule('node:fs');"],
    ['cluster/objects.ts', "const fs = process['getBuiltinModule']('node:fs');"],
    ['cluster/objects.ts', "const fs = process[`getBuiltinModule`]('node:fs');"],
    ['cluster/objects.ts', 'const { getBuiltinModule: load } = process;'],
    ['cluster/objects.ts', "const x = eval('1');"],
    ['cluster/objects.ts', "const x = new Function('return 1');"],
    ['cluster/objects.ts', "const x = (() => 1).constructor('return 1');"],
    ['cli/kpc/main.ts', "import * as modules from 'node:module';"],
    ['apply/plan/plan.ts', "import { parse } from 'yaml';"],
    ['input/yaml.ts', "import { parse } from '../../node_modules/yaml/dist/index.js';"],
    ['cli/kpc/main.ts', "import { compile } from 'kube-proxy-compiler';"],
    ['cli/kpc/main.ts', "import manifest from '../../../package.json';"],
    ['cli/kpc/main.ts', "import { x } from './nothing.ts';"],
    ['cli/kpc/program.ts', "import { x } from '../kpc-apply/options.ts';"],
    ['cli/shared/terminal.ts', "import { x } from '../../input/settings.ts';"],
    ['say/text.ts', "import { x } from '../cli/shared/terminal.ts';"],
    ['modes/ipvs/sets.ts', "import { hash } from '#hash';"],
    ['nowhere/new.ts', "import { x } from '../kernel/state.ts';"],
    ['kernel/state.ts', 'import {'],
  ])('%s: %s', (from, text) => {
    expect(findBreaches([readModule(from, `${text}\n`)])).toHaveLength(1);
  });
});

test.each([
  ['cli/kpc/main.ts', "class Reader {\n  constructor() {}\n}\nconst { start } = await import('./program.ts');"],
  ['ask/diff/side.ts', "import type { KernelState } from '../../kernel/state.ts';"],
  ['base/new.ts', "import { sha256 } from '@noble/hashes/sha2.js';\nimport { hash } from '#hash';"],
])('%s: %s is no breach', (from, text) => {
  expect(findBreaches([readModule(from, text)])).toEqual([]);
});

test('a circle of types is found', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kpc-circle-'));
  try {
    writeFileSync(join(folder, 'a.ts'), "import type { B } from './b.ts';\nexport type A = readonly B[];\n");
    writeFileSync(join(folder, 'b.ts'), "import type { A } from './a.ts';\nexport type B = A | 1;\n");
    const { status, stdout } = spawnSync(
      'node_modules/.bin/oxlint',
      ['--deny-warnings', '--config', '.oxlintrc.json', folder],
      {
        cwd: projectFolder,
        encoding: 'utf8',
      },
    );
    expect(stdout).toContain('import(no-cycle)');
    expect(status).toBe(1);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

/** All files that a file needs when it runs. */
function closureOf(start: string): ReadonlySet<string> {
  const seen = new Set([start]);
  for (const file of seen) {
    for (const { from, to, isType } of imports) if (from === file && !isType && to.endsWith('.ts')) seen.add(to);
  }
  return seen;
}

test('kpc-apply holds no reader of manifests: what it does as root depends on a bundle alone', () => {
  const needed = [...closureOf('cli/kpc-apply/main.ts')];
  expect(needed.length).toBeGreaterThan(100);
  expect(needed.filter((file) => folderOf(file) === 'input')).toEqual([]);
  const packages = imports.filter(
    ({ from, to }) => needed.includes(from) && !to.endsWith('.ts') && !to.startsWith('node:'),
  );
  expect(new Set(packages.map(({ to }) => to))).toEqual(new Set(['#checks', 'chalk', 'commander']));
});

test('the table allows nothing that is not used', () => {
  for (const [folder, rule] of Object.entries(folders)) {
    const used = imports.filter(({ from }) => folderOf(from) === folder).map(({ to }) => to);
    const names = new Set(used.map((to) => (to.endsWith('.ts') ? folderOf(to) : to.replace(/^node:/, ''))));
    for (const allowed of [...rule.folders, ...rule.packages, ...rule.node]) expect(names, folder).toContain(allowed);
  }
});

test('no folder of src has more than 25 files', () => {
  const entries = readdirSync(join(projectFolder, 'src'), { recursive: true, encoding: 'utf8' });
  const sizes = new Map<string, number>();
  for (const file of entries.filter((entry) => entry.endsWith('.ts')))
    sizes.set(dirname(file), (sizes.get(dirname(file)) ?? 0) + 1);
  expect(sizes.size).toBeGreaterThan(30);
  expect([...sizes].filter(([, files]) => files > 25)).toEqual([]);
});
