import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describeError, hasCode } from '../bundle/errors.ts';
import { isBundleFile } from '../bundle/folder.ts';
import { goldenHead } from '../bundle/golden-names.ts';
import type { Diagnostic } from '../cluster/diagnostic.ts';
import { readAnyFile } from './dump-files.ts';

/** What --check is to compare with: the bundle of one node, or a folder with those of many. */
export type Expected = { readonly kind: 'bundle' } | { readonly kind: 'fleet'; readonly nodes: number };

/** Why nothing can be compared with a folder; undefined where something can, be it equal or not. */
export function checkFolder(folder: string, expected: Expected): Diagnostic | undefined {
  const text = describeFolder(folder, expected);
  return text === undefined ? undefined : { severity: 'error', code: 'nothing-to-check', text };
}

function describeFolder(folder: string, expected: Expected): string | undefined {
  let names: readonly string[];
  try {
    if (!statSync(folder).isDirectory())
      return `--check ${folder}: it is not a folder: name one that kpc compile -o or --golden wrote`;
    names = readdirSync(folder).toSorted();
  } catch (error) {
    if (hasCode(error, 'ENOENT'))
      return `--check ${folder}: there is no such folder: write it first with -o ${folder}, or with --golden for git`;
    return `--check ${folder}: it cannot be read: ${describeError(error)}`;
  }
  switch (expected.kind) {
    case 'bundle':
      return describeBundle(folder, names);
    case 'fleet':
      return expected.nodes === 0 ? undefined : describeFleet(folder, names);
  }
}

/** Whether a folder holds a file of that name. A node of a fleet may be called manifest.json or golden.json: that is a folder. */
export function holdsFile(folder: string, name: string): boolean {
  const path = join(folder, name);
  return existsSync(path) && !statSync(path).isDirectory();
}

function describeBundle(folder: string, names: readonly string[]): string | undefined {
  if (names.length === 0)
    return `--check ${folder}: the folder is empty: write it first with -o ${folder}, or with --golden for git`;
  if (holdsFile(folder, goldenHead)) return undefined;
  if (holdsFile(folder, 'manifest.json')) return describeManifest(folder, names);
  const node = findNode(folder, names);
  if (node === undefined)
    return `--check ${folder}: it is no bundle (it has no manifest.json) and no golden: name another folder, or write one with -o or --golden`;
  return `--check ${folder}: it holds the bundles of many nodes: use --all-nodes, or name one of them, such as ${join(folder, node)}`;
}

/** A bundle that was edited is still one, as long as something of one is left. */
function describeManifest(folder: string, names: readonly string[]): string | undefined {
  const manifest = readManifest(join(folder, 'manifest.json'));
  if (manifest?.dumped === true) {
    return `--check ${folder}: it is a dump that kpc-apply dump wrote: compare it with kpc diff`;
  }
  if (manifest?.formatVersion !== undefined || names.filter(isBundleFile).length > 1) return undefined;
  return `--check ${folder}: it is not a bundle, because kpc did not write its manifest.json: name another folder`;
}

function describeFleet(folder: string, names: readonly string[]): string | undefined {
  if (names.length === 0)
    return `--check ${folder}: the folder is empty: write it first with -o ${folder}, or with --golden for git`;
  if (holdsFile(folder, 'manifest.json') || holdsFile(folder, goldenHead)) {
    return `--check ${folder}: it is the bundle of one node: name the folder of all nodes, or one node with --node`;
  }
  if (findNode(folder, names) !== undefined) return undefined;
  return `--check ${folder}: it holds no bundle and no golden of a node: name another folder, or write one with -o or --golden`;
}

/** The first folder inside a folder that holds a bundle or a golden, as compile --all-nodes writes one for each node. */
export function findNode(folder: string, names: readonly string[]): string | undefined {
  return names.find(
    (name) =>
      readManifest(join(folder, name, 'manifest.json'))?.formatVersion !== undefined ||
      existsSync(join(folder, name, goldenHead)),
  );
}

interface AnyManifest {
  readonly formatVersion?: unknown;
  readonly dumped?: unknown;
}

/** Manifests of Kubernetes may be called so too, and have no version of a format. */
function readManifest(path: string): AnyManifest | undefined {
  const file = readAnyFile(path);
  if (file.kind !== 'text') return undefined;
  try {
    const value: unknown = JSON.parse(file.text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
