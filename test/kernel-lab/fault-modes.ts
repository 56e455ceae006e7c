import type { ToolCommand } from '../../src/apply/node/host.ts';
import { run } from './network.ts';
import { normalizeTables, saveByHand, saveState, type SavedState } from './saved-state.ts';
import { makeOtherTables, saveOtherTables, saveTables, saveTablesByHand } from './saved-tables.ts';

/** A step of a change: the nth time that this tool changes the node. */
export interface FaultStep {
  readonly name: string;
  readonly tool: string;
  readonly nth: number;
}

/** An object on the node that the bundle needs but that kpc-apply did not make. */
export interface Conflict {
  readonly fault: string;
  /** The commands that make and remove the object. */
  readonly make: readonly [tool: string, ...args: string[]];
  readonly remove: readonly [tool: string, ...args: string[]];
  readonly flags: readonly string[];
  readonly says: RegExp;
}

/** The facts about a mode that the suite of faults needs. */
export interface FaultMode {
  /** The mode's name for a heading. */
  readonly title: string;
  /** The steps of the change from the first bundle to the second, in order. */
  readonly steps: readonly FaultStep[];
  /** Whether a step happens completely or not at all. If so, kpc-apply is killed only before and after the step, not during it. */
  readonly isAtomic: boolean;
  /** The tools that read the node. */
  readonly readers: readonly string[];
  /**
   * Whether they read the node again after the change. In nftables mode they need not, because the kernel's generation count proves the
   * result.
   */
  readonly readsBack: boolean;
  /** The version that each tool prints if it is too old. */
  readonly oldVersions: readonly (readonly [tool: string, says: string])[];
  /** The file of the bundle that the suite damages. */
  readonly file: string;
  /** A change that another program makes during the apply. */
  readonly meddling: ToolCommand;
  /** A kind of command that works once and then never again, and the work that is left as a result. */
  readonly broken: { readonly fault: string; readonly tool: string | undefined; readonly left: RegExp };
  readonly conflicts: readonly Conflict[];
  /** Feeds a bundle to the tools by hand, which leaves the same objects as a kube-proxy. */
  readonly feed: (folder: string) => void;
  /** Makes objects of other programs. */
  readonly makeOthers: () => void;
  /** Saves everything on the node, including other programs' objects. */
  readonly save: () => Readonly<Record<string, string>>;
  /** Saves the bundle's own objects: those on the node, and those that an empty node would get from the bundle. */
  readonly saveOwn: () => Readonly<Record<string, string>>;
  readonly saveOwnByHand: (folder: string) => Readonly<Record<string, string>>;
}

function makeOtherRules(): void {
  run('iptables', ['-A', 'INPUT', '-s', '100.64.9.9', '-j', 'DROP']);
}

function makeOtherServers(): void {
  const lines = [
    '-A -t 100.64.9.1:80 -s rr',
    '-a -t 100.64.9.1:80 -r 100.64.9.7:80 -g -w 7',
    '-A -u 100.64.9.2:53 -s sh',
  ];
  run('ipvsadm', ['-R'], `${lines.join('\n')}\n`);
}

function feedRestoreFiles(folder: string): void {
  run('bash', [
    '-c',
    `cd ${folder} && if [ -e ipset.restore ]; then ipset restore <ipset.restore; fi &&
    iptables-restore --noflush <iptables.restore && ip6tables-restore --noflush <ip6tables.restore &&
    if [ -e ip.batch ]; then ipvsadm -R <ipvsadm.restore && ip -batch ip.batch; fi`,
  ]);
}

const iptablesOld: readonly [string, string] = ['iptables-restore', 'iptables-restore v1.4.21'];

/** Returns the facts about the mode of this name. */
export function findFaultMode(name: string): FaultMode {
  const mode = faultModes[name];
  if (!mode) throw new Error(`which mode? ${Object.keys(faultModes).join(', ')}`);
  return mode;
}

const faultModes: Readonly<Record<string, FaultMode>> = {
  ipvs: {
    title: 'IPVS mode',
    steps: [
      { name: 'ipset restore (adding)', tool: 'ipset', nth: 1 },
      { name: 'iptables-restore', tool: 'iptables-restore', nth: 1 },
      { name: 'ip6tables-restore', tool: 'ip6tables-restore', nth: 1 },
      { name: 'ipvsadm -R (adding)', tool: 'ipvsadm', nth: 1 },
      { name: 'ip -batch (adding)', tool: 'ip', nth: 1 },
      { name: 'ip -batch (removing)', tool: 'ip', nth: 2 },
      { name: 'ipvsadm -R (removing)', tool: 'ipvsadm', nth: 2 },
      { name: 'ipset restore (removing)', tool: 'ipset', nth: 2 },
      { name: 'ipvsadm -R (removing servers without connections)', tool: 'ipvsadm', nth: 3 },
    ],
    isAtomic: false,
    readers: ['iptables-save', 'ip6tables-save', 'ipset', 'ipvsadm', 'ip'],
    readsBack: true,
    oldVersions: [
      iptablesOld,
      ['ipset', 'ipset v4.5, protocol version: 4'],
      ['ipvsadm', 'ipvsadm v1.26 2008/5/15 (compiled with popt and IPVS v1.2.1)'],
    ],
    file: 'ipvsadm.restore',
    meddling: { tool: 'ipset', args: ['add', 'KUBE-CLUSTER-IP', '10.96.99.99,tcp:80'] },
    broken: {
      fault: 'ipvsadm -R (removing) ends with status 1, as does every later one',
      tool: 'ipvsadm',
      left: /Left to do:\n(?:.*\n)* {2}- virtual server TCP 10\.96\.0\.30:80 with \d+ real servers?\n/,
    },
    conflicts: [
      {
        fault: 'a set of another type is in the way',
        make: ['ipset', 'create', 'KUBE-CLUSTER-IP', 'hash:net'],
        remove: ['ipset', 'destroy', 'KUBE-CLUSTER-IP'],
        flags: [],
        says: /KUBE-CLUSTER-IP.*remove them/s,
      },
      {
        fault: "another program's virtual server is in the way",
        make: ['ipvsadm', '-A', '-t', '10.96.0.10:80', '-s', 'wlc'],
        remove: ['ipvsadm', '-D', '-t', '10.96.0.10:80'],
        flags: ['--adopt'],
        says: /10\.96\.0\.10/,
      },
    ],
    feed: feedRestoreFiles,
    makeOthers: () => {
      makeOtherServers();
      makeOtherRules();
    },
    save: () => ({ ...saveState() }),
    saveOwn: () => pickOwn(saveState()),
    saveOwnByHand: (folder) => pickOwn(saveByHand(folder)),
  },
  iptables: {
    title: 'iptables mode',
    steps: [
      { name: 'iptables-restore', tool: 'iptables-restore', nth: 1 },
      { name: 'ip6tables-restore', tool: 'ip6tables-restore', nth: 1 },
    ],
    isAtomic: false,
    readers: ['iptables-save', 'ip6tables-save'],
    readsBack: true,
    oldVersions: [iptablesOld],
    file: 'iptables.restore',
    meddling: { tool: 'iptables', args: ['-t', 'nat', '-A', 'KUBE-SERVICES', '-s', '100.64.9.9', '-j', 'RETURN'] },
    broken: {
      fault: 'ip6tables-restore ends with status 1, as does every later restore',
      tool: undefined,
      left: /Left to do:\n/,
    },
    conflicts: [
      {
        fault: 'a chain of the same name is in the way',
        make: ['iptables', '-t', 'nat', '-N', 'KUBE-SERVICES'],
        remove: ['iptables', '-t', 'nat', '-X', 'KUBE-SERVICES'],
        flags: [],
        says: /KUBE-SERVICES.*--adopt/s,
      },
    ],
    feed: feedRestoreFiles,
    makeOthers: makeOtherRules,
    save: () => ({ ...saveState() }),
    saveOwn: () => pickOwn(saveState()),
    saveOwnByHand: (folder) => pickOwn(saveByHand(folder)),
  },
  nftables: {
    title: 'nftables mode',
    steps: [
      { name: 'nft -f (IPv4, adding)', tool: 'nft', nth: 1 },
      { name: 'nft -f (IPv6, adding)', tool: 'nft', nth: 2 },
      { name: 'nft -f (IPv4, removing)', tool: 'nft', nth: 3 },
      { name: 'nft -f (IPv6, removing)', tool: 'nft', nth: 4 },
    ],
    isAtomic: true,
    readers: ['nft'],
    readsBack: false,
    oldVersions: [['nft', 'nftables v0.9.0 (Fearless Fosdick)']],
    file: 'nftables.nft',
    meddling: { tool: 'nft', args: ['add', 'rule', 'ip', 'kube-proxy', 'services', 'drop'] },
    broken: {
      fault: 'nft -f (IPv6, adding) ends with status 1, as does every later one',
      tool: 'nft',
      left: /Left to do:\n/,
    },
    conflicts: [
      {
        fault: 'a table of the same name is in the way',
        make: ['nft', 'add table ip kube-proxy { comment "rules for kube-proxy"; }'],
        remove: ['nft', 'delete', 'table', 'ip', 'kube-proxy'],
        flags: [],
        says: /table ip kube-proxy.*--adopt/s,
      },
    ],
    feed: (folder) => void run('nft', ['-f', `${folder}/nftables.nft`]),
    makeOthers: makeOtherTables,
    save: () => ({ 'the tables': saveTables(), 'the other tables': saveOtherTables() }),
    saveOwn: () => ({ 'the tables': saveTables() }),
    saveOwnByHand: (folder) => ({ 'the tables': saveTablesByHand(folder) }),
  },
};

/** Returns the state without the objects of other programs. */
function pickOwn({ iptables, ipvsadm, ...rest }: SavedState): Readonly<Record<string, string>> {
  return {
    ...rest,
    iptables: normalizeTables(iptables.replace(/^-A INPUT -s 100\.64\.9\.9\/32 .*\n/m, '')),
    ipvsadm: ipvsadm
      .split('\n')
      .filter((line) => !line.includes(' 100.64.9.'))
      .join('\n'),
  };
}
