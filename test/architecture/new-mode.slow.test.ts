// Adds a mode, and a kind of kernel objects, to a copy of the sources, and lets the compiler say which files lack
// something then: these are the files that a new one has to touch, and a number that is to stay small.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { objectKinds } from '../../src/kernel/state.ts';
import { stateFileNames, stateFiles } from '../../src/bundle/state-files.ts';
import { projectFolder } from '../support/run-kpc.ts';
import { showFiles, sourcesFolder, touchedFiles } from '../support/changed-sources.ts';

/** The files outside its own folders that a mode needs, and that the compiler asks for. */
const askedOfMode = [
  // The call of its compiler.
  'src/snapshot/open/compile-node.ts',
  // Its Services, read back from a state.
  'src/snapshot/decompile.ts',
  // What a change to it or from it comes to.
  'src/say/words/causes.ts',
  // What its rules lack where no node is known.
  'src/say/words/settings.ts',
  // Its jumps from the kernel's own chains.
  'src/kube-proxy/chains.ts',
  // Its facts, its first release, and where its node ports listen.
  'src/kube-proxy/modes.ts',
  'src/kube-proxy/node-port-listeners.ts',
  'src/kube-proxy/releases.ts',
  // The section of a configuration that has its periods.
  'src/settings/other-fields.ts',
];

/** Those that it may need besides: nothing can show that they lack something. */
const unaskedOfMode = [
  // Which tools put it into a kernel.
  'src/apply/node/tools.ts',
  // The Service of each of its chains, sets and so on, by their names.
  'src/kube-proxy/owners.ts',
  // What nodes need before they change to it, and what it leaves behind.
  'src/ask/equivalence/change.ts',
  // How surely a kube-proxy made its objects, and how a dump shows it.
  'src/kube-proxy/evidence.ts',
  // Its part of the configuration, if it has a section with masquerade settings.
  'src/settings/masquerade.ts',
];

/** The files that a kind of kernel objects needs: what it is, and one row in the table of each that asks for it. */
const tablesOfKinds = [
  // How it is read on a node.
  'src/apply/node/node-reading.ts',
  // Its changes.
  'src/ask/changes/list-changes.ts',
  // What of it is not compared, and its name.
  'src/ask/diff/not-compared.ts',
  'src/say/diff-report.ts',
  // How much of it a side shows, and how a dump has it.
  'src/dumps/coverage.ts',
  'src/dumps/dump.ts',
  // The field of a state, its row of what can be done with it, and what of it is owned.
  'src/kernel/state.ts',
];

const folder = sourcesFolder();

describe('the compiler names what lacks a row', () => {
  test('of a new mode', () => {
    const files = touchedFiles(folder, [
      [
        'src/kube-proxy/modes.ts',
        "['ipvs', 'iptables', 'nftables', 'userspace'] as const",
        "['ipvs', 'iptables', 'nftables', 'userspace', 'ebpf'] as const",
      ],
    ]);
    showFiles('a mode', [...files, ...unaskedOfMode]);
    expect(files.toSorted()).toEqual(askedOfMode.toSorted());
    for (const file of unaskedOfMode) expect(existsSync(join(projectFolder, file)), file).toBe(true);
  });

  test('of a new kind of kernel objects', () => {
    const files = touchedFiles(folder, [
      [
        'src/kernel/state.ts',
        'export interface KernelState {\n',
        'export interface KernelState {\n  readonly programs: readonly string[];\n',
      ],
      [
        'src/kernel/state.ts',
        '  virtualServers: diffVirtualServers,',
        '  programs: diffModules,\n  virtualServers: diffVirtualServers,',
      ],
    ]);
    showFiles('a kind of kernel objects', files);
    expect(files.toSorted()).toEqual(tablesOfKinds.toSorted());
  });
});

test('each kind of kernel objects has a file of the bundle, but for the timeouts of IPVS, which the manifest holds', () => {
  const filed = new Set<string>(stateFileNames.map((name) => stateFiles[name].kind));
  expect(objectKinds.filter((kind) => !filed.has(kind))).toEqual(['ipvsTimeouts']);
});
