import { cpSync, symlinkSync } from 'node:fs';
import { join, relative } from 'node:path';
import { projectFolder, runProgram, type Run } from './run-kpc.ts';

export interface Packed {
  readonly filename: string;
  readonly integrity: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

const notInCheckout = new Set(['.git', 'node_modules', 'dist', 'coverage', 'test']);

/** Copies a clean checkout into a folder, with the packages that `npm ci` would install. */
export function copyCheckout(folder: string): string {
  cpSync(projectFolder, folder, {
    recursive: true,
    filter: (path) => !notInCheckout.has(relative(projectFolder, path)),
  });
  symlinkSync(join(projectFolder, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

/** Runs npm without network, configuration or installed packages. `home` is a folder for npm's own files. */
export function npm(home: string, cwd: string, ...args: readonly string[]): Promise<Run> {
  return runProgram('npm', args, {
    cwd,
    env: {
      HOME: home,
      npm_config_cache: join(home, 'cache'),
      npm_config_userconfig: join(home, 'none'),
      npm_config_offline: 'true',
      npm_config_update_notifier: 'false',
    },
  });
}

export async function pack(home: string, folder: string): Promise<Packed> {
  const { status, stdout, stderr } = await npm(home, folder, 'pack', '--json');
  if (status !== 0) throw new Error(stderr);
  // `prepare` must print nothing, because pre-commit takes everything that npm pack prints for the file's name.
  const answer: unknown = JSON.parse(stdout);
  const [packed] = Object.values(answer as Readonly<Record<string, Packed>>);
  if (packed === undefined) throw new Error(stdout);
  return packed;
}
