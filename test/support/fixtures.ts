import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { proxyModes, type ProxyMode } from '../../src/kube-proxy/modes.ts';
import { projectFolder } from './run-kpc.ts';

export const fixturesFolder = join(projectFolder, 'fixtures');

/**
 * A folder in fixtures/: input files, the `command` that compiles them (run in this folder), and the output, which is a bundle for each
 * proxy mode, or the diagnostics of input that must not compile.
 */
export interface Fixture {
  readonly name: string;
  readonly folder: string;
  readonly args: readonly string[];
  readonly modes: readonly ProxyMode[];
  /** Whether expected/diagnostics.txt says why there is nothing to compile. */
  readonly fails: boolean;
}

/** Returns all fixtures, by name. A folder without a `command` holds files that several fixtures share. */
export function listFixtures(): readonly Fixture[] {
  return readdirSync(fixturesFolder)
    .toSorted()
    .filter((name) => existsSync(join(fixturesFolder, name, 'command')))
    .map((name) => {
      const folder = join(fixturesFolder, name);
      const [program, ...args] = readFileSync(join(folder, 'command'), 'utf8').trim().split(/\s+/);
      if (program !== 'kpc') throw new Error(`${folder}/command: runs ${program}, not kpc`);
      return {
        name,
        folder,
        args,
        modes: proxyModes.filter((mode) => existsSync(join(folder, `expected-${mode}`))),
        fails: existsSync(join(folder, 'expected')),
      };
    });
}
