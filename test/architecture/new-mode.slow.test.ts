// Adds a mode, and a kind of kernel objects, to a copy of the sources, and lets the compiler say which files lack
// something then: these are the files that a new one has to touch, and a number that is to stay small.
import { describe, expect, test } from 'vitest';
import { objectKinds } from '../../src/kernel/kinds.ts';
import { stateFileNames, stateFiles } from '../../src/bundle/state-files.ts';
import { showFiles, sourcesFolder, touchedFiles } from '../support/changed-sources.ts';

/** How many files outside its own folders a mode may need. */
const most = 8;

/** The files that a kind of kernel objects needs: what it is, and one row in the table of each that asks for it. */
const tablesOfKinds = [
  // How it is read on a node.
  'src/apply/node/node-reading.ts',
  // Its changes.
  'src/diff/changes/list-changes.ts',
  // Its name, and what of it is not compared.
  'src/diff/not-compared.ts',
  // How much of it a side shows, and how a dump has it.
  'src/dumps/coverage.ts',
  'src/dumps/dump.ts',
  // The field of a state, its row of what can be done with it, and what of it is owned.
  'src/kernel/kinds.ts',
  'src/kernel/restrict.ts',
  'src/kernel/state.ts',
];

const folder = sourcesFolder();

describe('the compiler names what lacks a row', () => {
  test('of a new mode', () => {
    const files = touchedFiles(folder, [
      [
        'src/kube-proxy/modes.ts',
        "['ipvs', 'iptables', 'nftables'] as const",
        "['ipvs', 'iptables', 'nftables', 'ebpf'] as const",
      ],
      // Its part of the configuration.
      [
        'src/kube-proxy/settings/masquerade.ts',
        "  nftables: proxyField('nftables.masqueradeAll', flag),\n",
        "  nftables: proxyField('nftables.masqueradeAll', flag),\n  ebpf: proxyField('ebpf.masqueradeAll', flag),\n",
      ],
      // How a dump shows it, and what puts it into a kernel: nothing can show that these are missing.
      ['src/kube-proxy/mode-of-state.ts', 'modeOfState', 'modeOfState'],
      ['src/apply/node/tools.ts', 'tools', 'tools'],
    ]);
    showFiles('a mode', files);
    expect(files).toContain('src/compile/compile-node.ts');
    expect(files.length).toBeLessThanOrEqual(most);
  });

  test('of a new kind of kernel objects', () => {
    const files = touchedFiles(folder, [
      [
        'src/kernel/state.ts',
        'export interface KernelState {\n',
        'export interface KernelState {\n  readonly programs: readonly string[];\n',
      ],
      [
        'src/kernel/kinds.ts',
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
