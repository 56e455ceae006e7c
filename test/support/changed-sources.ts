// Compiles changed sources, to find the files that must change with a new row in a table.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { projectFolder } from './run-kpc.ts';

export type Edit = readonly [file: string, text: string, replacement: string];

/** Makes a folder for a copy, inside the project, where the compiler finds the packages. It is removed after the tests. */
export function sourcesFolder(): string {
  const folder = mkdtempSync(join(projectFolder, '.changed-sources-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function copySources(
  folder: string,
  edits: readonly Edit[],
  files: Readonly<Record<string, string>> = {},
): void {
  rmSync(join(folder, 'src'), { recursive: true, force: true });
  cpSync(join(projectFolder, 'src'), join(folder, 'src'), { recursive: true });
  const config = JSON.parse(readFileSync(join(projectFolder, 'tsconfig.json'), 'utf8')) as {
    readonly compilerOptions: object;
  };
  const paths = { '#checks': ['./src/checks/checks-module.d.ts'] };
  const compilerOptions = { ...config.compilerOptions, paths };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ ...config, compilerOptions, include: ['src'] }));
  for (const [file, text, replacement] of edits) {
    const path = join(folder, file);
    const before = readFileSync(path, 'utf8');
    expect(before, file).toContain(text);
    writeFileSync(
      path,
      before.replace(text, () => replacement),
    );
  }
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
}

export function touchedFiles(folder: string, edits: readonly Edit[]): readonly string[] {
  copySources(folder, edits);
  const complaints = [...complaintsOf(folder).matchAll(/^(src\/[^(]+)\(/gm)].map(([, file = '']) => file);
  return [...new Set([...edits.map(([file]) => file), ...complaints])].toSorted();
}

export function complaintsOf(folder: string): string {
  const tsc = join(projectFolder, 'node_modules', '.bin', 'tsc');
  try {
    return execFileSync(tsc, ['--noEmit', '-p', '.'], { cwd: folder, encoding: 'utf8' });
  } catch (error) {
    return (error as { readonly stdout: string }).stdout;
  }
}

export function showFiles(what: string, files: readonly string[]): void {
  process.stdout.write(`${what} touches ${files.length} files:\n${files.map((file) => `  ${file}\n`).join('')}`);
}
