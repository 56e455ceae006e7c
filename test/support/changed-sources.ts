// A copy of the sources with changes, and the files that the compiler then complains of: what a new row of a table asks for.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { projectFolder } from './run-kpc.ts';

/** A text in a file of the sources, and what to write in its place. */
export type Edit = readonly [file: string, text: string, replacement: string];

/** A folder for a copy, below the project, where the compiler finds the packages. It goes when the tests are over. */
export function sourcesFolder(): string {
  const folder = mkdtempSync(join(projectFolder, '.changed-sources-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Makes the folder's copy anew, with the edits and with further files. */
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

/** The files that are edited, and those that the compiler complains of after that. */
export function touchedFiles(folder: string, edits: readonly Edit[]): readonly string[] {
  copySources(folder, edits);
  const complaints = [...complaintsOf(folder).matchAll(/^(src\/[^(]+)\(/gm)].map(([, file = '']) => file);
  return [...new Set([...edits.map(([file]) => file), ...complaints])].toSorted();
}

/** What the compiler says of a copy; '' where it takes it. */
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
