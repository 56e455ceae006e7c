import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeBundle } from '../../src/bundle/make-bundle.ts';
import { readBundle } from '../../src/bundle/read-bundle.ts';
import { hashHex } from '../../src/base/hash-node.ts';
import { compileState } from '../../src/snapshot/open/compile-node.ts';
import { fixturesFolder } from '../support/fixtures.ts';

export type Files = Map<string, string>;

/** The files of a fixture's bundle. */
export function fixtureBundle(name: string): Files {
  const folder = join(fixturesFolder, name);
  return new Map(readdirSync(folder).map((file) => [file, readFileSync(join(folder, file), 'utf8')]));
}

/** The bundle after a change of its files, with checksums that match. */
export function forge(files: Files, change: (files: Files) => void): Files {
  const forged = new Map(files);
  change(forged);
  const manifest = JSON.parse(forged.get('manifest.json') ?? '{}');
  for (const [name, text] of forged) if (name !== 'manifest.json') manifest.files[name] = hashHex(text);
  for (const name of Object.keys(manifest.files)) if (!forged.has(name)) delete manifest.files[name];
  return forged.set('manifest.json', `${JSON.stringify(manifest, undefined, 2)}\n`);
}

/** As forge, and then all that follows from services.json and the settings is compiled of them as kpc would. */
export function forgeWhole(files: Files, change: (files: Files) => void): Files {
  const reading = readBundle(forge(files, change), compileState);
  if (reading.kind !== 'bundle') throw new Error(JSON.stringify(reading.problems));
  const { snapshot } = reading.bundle;
  const state = snapshot.compile(snapshot.cluster);
  return new Map(makeBundle(snapshot.with({ state: () => state })).files);
}

/** Parsed JSON, which a test changes as it likes. */
export type Editable = Record<string, any>; // oxlint-disable-line

/** The bundle of the same Services except for what is edited, as kpc compiles it. */
export function recompile(files: Files, edit: (services: Editable, manifest: Editable) => void): Files {
  return forgeWhole(files, (changed) => {
    const services = JSON.parse(changed.get('services.json') ?? '') as Editable;
    edit(services, JSON.parse(changed.get('manifest.json') ?? '') as Editable);
    changed.set('services.json', JSON.stringify(services));
  });
}
