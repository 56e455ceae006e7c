// Adds a mode, and a kind of kernel objects, to a copy of the sources, and lets the compiler say which files lack
// something then: these are the files that a new one has to touch, and a number that is to stay small.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { objectKinds } from '../../src/kernel/kinds.ts';
import { stateFileNames, stateFiles } from '../../src/bundle/state-files.ts';
import { projectFolder } from '../support/run-kpc.ts';

/** How many files outside its own folders a mode may need. */
const most = 8;

/** The files that a kind of kernel objects needs: what it is, and one row in the table of each that asks for it. */
const tablesOfKinds = [
  // Its steps on a node, how it is read there, and whose it is.
  'src/apply/kind-steps.ts',
  'src/apply/node-reading.ts',
  'src/apply/ownership.ts',
  // Its changes.
  'src/changes/list-changes.ts',
  // What of it is there for a Service port.
  'src/describe/kernel-items.ts',
  // What of it is another program's, what a side tells of it, what is not compared, how a dump has it, how it compares
  // line by line, and its name.
  'src/diff/belonging.ts',
  'src/diff/coverage.ts',
  'src/diff/gaps.ts',
  'src/diff/kind-drafts.ts',
  'src/diff/unified.ts',
  'src/diff/words.ts',
  // The field of a state, its row of what can be done with it, and what of it is owned.
  'src/kernel/kinds.ts',
  'src/kernel/restrict.ts',
  'src/kernel/state.ts',
];

/** A text in a file of the sources, and what to write in its place. */
type Edit = readonly [file: string, text: string, replacement: string];

/** Below the project, where the compiler finds the packages. */
let folder = '';

beforeAll(() => {
  folder = mkdtempSync(join(projectFolder, '.new-mode-'));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The files that are edited, and those that the compiler complains of after that. */
function touchedFiles(edits: readonly Edit[]): readonly string[] {
  cpSync(join(projectFolder, 'src'), join(folder, 'src'), { recursive: true });
  const config = JSON.parse(readFileSync(join(projectFolder, 'tsconfig.json'), 'utf8')) as object;
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ ...config, include: ['src'] }));
  for (const [file, text, replacement] of edits) {
    const path = join(folder, file);
    const before = readFileSync(path, 'utf8');
    expect(before).toContain(text);
    writeFileSync(path, before.replace(text, replacement));
  }
  const complaints = [...runCompiler().matchAll(/^(src\/[^(]+)\(/gm)].map(([, file = '']) => file);
  return [...new Set([...edits.map(([file]) => file), ...complaints])].toSorted();
}

function runCompiler(): string {
  const tsc = join(projectFolder, 'node_modules', '.bin', 'tsc');
  try {
    return execFileSync(tsc, ['--noEmit', '-p', '.'], { cwd: folder, encoding: 'utf8' });
  } catch (error) {
    return (error as { readonly stdout: string }).stdout;
  }
}

function show(what: string, files: readonly string[]): void {
  process.stdout.write(`${what} touches ${files.length} files:\n${files.map((file) => `  ${file}\n`).join('')}`);
}

describe('the compiler names what lacks a row', () => {
  test('of a new mode', () => {
    const files = touchedFiles([
      [
        'src/kube-proxy/modes.ts',
        "['ipvs', 'iptables', 'nftables'] as const",
        "['ipvs', 'iptables', 'nftables', 'ebpf'] as const",
      ],
      // Its part of the configuration.
      [
        'src/input/schemas/kube-proxy-configuration.ts',
        '  readonly nftables?:\n',
        '  readonly ebpf?: (RawSyncPeriods & { masqueradeBit?: number; masqueradeAll?: boolean }) | null;\n  readonly nftables?:\n',
      ],
      // How a dump shows it, and what puts it into a kernel: nothing can tell that these are missing.
      ['src/kube-proxy/mode-of-state.ts', 'modeOfState', 'modeOfState'],
      ['src/apply/tools.ts', 'tools', 'tools'],
    ]);
    show('a mode', files);
    expect(files).toContain('src/compile/compile-node.ts');
    expect(files.length).toBeLessThanOrEqual(most);
  });

  test('of a new kind of kernel objects', () => {
    const files = touchedFiles([
      [
        'src/kernel/state.ts',
        'export interface KernelState {\n',
        'export interface KernelState {\n  readonly programs: readonly string[];\n',
      ],
      [
        'src/kernel/kinds.ts',
        '  virtualServers: listKind(',
        '  programs: listKind(diffModules, applyModulesDelta, splitModulesDelta),\n  virtualServers: listKind(',
      ],
    ]);
    show('a kind of kernel objects', files);
    expect(files).toEqual(tablesOfKinds);
  });
});

test('each kind of kernel objects has a file of the bundle, but for the timeouts of IPVS, which the manifest holds', () => {
  const filed = new Set<string>(stateFileNames.map((name) => stateFiles[name].kind));
  expect(objectKinds.filter((kind) => !filed.has(kind))).toEqual(['ipvsTimeouts']);
});
