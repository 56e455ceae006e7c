import type { ToolCommand, CommandResult, Host } from '../../src/apply/node/host.ts';
import type { PathLevel } from '../../src/base/held-path.ts';
import { dumpNft, runNft, type FakeNft } from './fake-nft.ts';
import { connectionsIn, tableOf } from './ipvs-table-file.ts';

/** A node that exists in memory only: files, and what the four tools keep in a kernel. */
export interface FakeNode {
  readonly host: Host;
  readonly files: Map<string, string>;
  /** Everything the tools would print, in a stable order: two nodes hold the same where these are equal. */
  dump(): string;
  /** Sets the clock on the wall, forward or back. */
  setClock(by: number): void;
  /** All tools that were run, in order. */
  readonly commands: ToolCommand[];
  /** What `iptables` is from now on. It is legacy at first. */
  useVariant(variant: 'legacy' | 'nft'): void;
  /** From now on tools are in a network that is not the node's first. `names`: the further names of its lo; undefined: old tools. */
  enterNetwork(inode: string, names: string[] | undefined): void;
  /** Back to the node's first network. */
  leaveNetwork(): void;
}

interface Server {
  readonly options: string;
  readonly reals: Map<string, string>;
}

interface Kernel {
  /** What `iptables` is. */
  variant: 'legacy' | 'nft';
  /** "iptables-legacy", "ip6tables-nft" → table → chain → rules. */
  readonly tables: Map<string, Map<string, Map<string, string[]>>>;
  /** Name → what follows it in its create line, and its entries. */
  readonly sets: Map<string, { readonly create: string; readonly entries: Set<string> }>;
  /** "-t 10.96.0.1:80". */
  readonly servers: Map<string, Server>;
  readonly links: Map<string, { readonly kind: string; readonly addresses: Set<string> }>;
  timeouts: readonly [number, number, number];
  readonly nft: FakeNft;
  loNames: string[] | undefined;
}

/** A level that root alone may change. */
export function rootsLevel(path: string): PathLevel {
  return { path, owner: 0, group: 0, mode: 0o755, isParent: false, isReadOnly: false };
}

/** Says these levels of each path, and has it read by its name. */
export function examineAs(levelsOf: (path: string) => readonly PathLevel[]): Host['examine'] {
  const examine: Host['examine'] = async (path) => ({
    levels: levelsOf(path),
    path,
    examine: (name) => examine(`${path}/${name}`),
    close: () => {},
  });
  return examine;
}

const builtIn: Readonly<Record<string, readonly string[]>> = {
  nat: ['PREROUTING', 'INPUT', 'OUTPUT', 'POSTROUTING'],
  filter: ['INPUT', 'FORWARD', 'OUTPUT'],
  mangle: ['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING'],
};

const bootId = '7f0c4b1e-0000-4000-8000-000000000001';

const firstNetwork = 'net:[4026531840]';
const firstNetworkOnly = '/proc/sys/net/core/netdev_max_backlog';

export function createFakeNode(): FakeNode {
  const kernel = emptyKernel();
  const files = new Map<string, string>([
    ['/proc/self/status', 'CapEff:\t000001ffffffffff\n'],
    ['/proc/self/ns/pid', 'pid:[4026531836]'],
    ['/proc/self/ns/user', 'user:[4026531837]'],
    ['/proc/self/mountinfo', '25 30 0:23 / /proc rw,nosuid,nodev,noexec,relatime shared:13 - proc proc rw\n'],
    ['/proc/sys/kernel/random/boot_id', `${bootId}\n`],
    ['/proc/sys/kernel/osrelease', '6.1.0\n'],
    ['/proc/self/ns/net', firstNetwork],
    ['/proc/1/ns/net', firstNetwork],
    [firstNetworkOnly, '1000\n'],
    ['/proc/modules', 'ip_vs 1 0 - Live\nip_vs_rr 1 0 - Live\nnf_conntrack 1 0 - Live\n'],
    ['/lib/modules/6.1.0/modules.dep', ''],
    ['/lib/modules/6.1.0/modules.builtin', ''],
    ['/proc/net/ip_vs', ''],
    ['/proc/net/ip_tables_names', 'nat\nfilter\nmangle\n'],
    ['/proc/net/ip6_tables_names', 'nat\nfilter\nmangle\n'],
    ['/sys/module/ip_set/parameters', ''],
    ['/sys/devices/system/cpu/online', '0-3\n'],
    ['/proc/100/stat', '100 (kpc-apply) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0'],
    ['/proc/sys/net/ipv4/ip_forward', '0\n'],
    ['/proc/sys/net/ipv4/conf/all/route_localnet', '0\n'],
    ...['conntrack', 'expire_nodest_conn', 'expire_quiescent_template'].map(
      (name) => [`/proc/sys/net/ipv4/vs/${name}`, '0\n'] as const,
    ),
  ]);
  // Every module that a bundle may name can be found.
  files.set(
    '/proc/modules',
    `${files.get('/proc/modules')}${knownModules.map((name) => `${name} 1 0 - Live\n`).join('')}`,
  );
  const commands: ToolCommand[] = [];
  let clock = 1_700_000_000_000;
  let uptime = 60_000;
  const host: Host = {
    pid: 100,
    user: { uid: 0, invoker: undefined },
    examine: examineAs((path) => [rootsLevel(path)]),
    run: async (command) => {
      commands.push(command);
      return keepLines(runFake(kernel, command), command);
    },
    readFile: async (path) => {
      const text = files.get(path);
      // Of this file, what a test writes is the connections.
      if (text === undefined || path !== '/proc/net/ip_vs') return text;
      return tableOf(saveServers(kernel), connectionsIn(text));
    },
    writeFile: async (path, text) => {
      if (!files.has(path)) throw new Error(`ENOENT: no such file, open '${path}'`);
      files.set(path, `${text}\n`);
    },
    isWritable: async (path) => files.has(path),
    replaceFile: async (path, text) => void files.set(path, text),
    renameFile: async (from, to) => {
      const text = files.get(from);
      if (text === undefined) throw new Error(`ENOENT: no such file, rename '${from}'`);
      files.set(to, text);
      files.delete(from);
    },
    remove: async (path) => {
      for (const name of files.keys()) if (name === path || name.startsWith(`${path}/`)) files.delete(name);
    },
    toolMark: 'KPC_APPLY_RUN=00000000-0000-4000-8000-000000000100',
    list: async (path) => [
      ...new Set(
        [...files.keys()]
          .filter((name) => name.startsWith(`${path}/`))
          .map((name) => name.slice(path.length + 1).split('/')[0] ?? ''),
      ),
    ],
    readLink: async (path) => files.get(path),
    program: ['/usr/bin/node', '/usr/lib/kpc-apply.js'],
    startApart: async (command) => void commands.push(command),
    kill: async (pid) => void files.delete(`/proc/${pid}/stat`),
    sleep: async (milliseconds) => {
      clock += milliseconds;
      uptime += milliseconds;
      await new Promise((resolve) => setImmediate(resolve));
    },
    now: () => clock,
    uptime: () => uptime,
  };
  const setClock = (by: number) => void (clock += by);
  const useVariant = (variant: 'legacy' | 'nft') => void (kernel.variant = variant);
  const enterNetwork: FakeNode['enterNetwork'] = (inode, names) => {
    kernel.loNames = names;
    files.set('/proc/self/ns/net', `net:[${inode}]`);
    files.delete(firstNetworkOnly);
  };
  const leaveNetwork = () => {
    files.set('/proc/self/ns/net', firstNetwork).set(firstNetworkOnly, '1000\n');
  };
  const dump = () => dumpKernel(kernel, files);
  return { host, files, commands, setClock, useVariant, enterNetwork, leaveNetwork, dump };
}

const knownModules = (
  'ip_set ip_set_hash_ip ip_set_hash_ipport ip_set_hash_ipportip ip_set_hash_ipportnet ip_set_bitmap_port dummy ' +
  'br_netfilter xt_physdev xt_set xt_comment xt_mark xt_addrtype xt_conntrack xt_statistic xt_recent xt_ipvs'
).split(' ');

function emptyKernel(): Kernel {
  const tables = new Map(
    ['iptables-legacy', 'ip6tables-legacy'].map((tool) => [
      tool,
      new Map(
        Object.entries(builtIn).map(([table, chains]) => [
          table,
          new Map(chains.map((chain) => [chain, [] as string[]])),
        ]),
      ),
    ]),
  );
  return {
    variant: 'legacy',
    tables,
    sets: new Map(),
    servers: new Map(),
    links: new Map([['eth0', { kind: 'veth', addresses: new Set(['192.168.50.11/24']) }]]),
    timeouts: [900, 120, 300],
    nft: new Map(),
    loNames: [],
  };
}

function dumpKernel(kernel: Kernel, files: ReadonlyMap<string, string>): string {
  const sysctls = [...files]
    .filter(([path]) => path.startsWith('/proc/sys/net/') && path !== firstNetworkOnly)
    .map(([path, text]) => `${path} ${text}`);
  return [
    ...['iptables-legacy', 'ip6tables-legacy', 'iptables-nft', 'ip6tables-nft'].map((tool) => saveTables(kernel, tool)),
    saveSets(kernel).split('\n').toSorted().join('\n'),
    saveServers(kernel).split('\n').toSorted().join('\n'),
    [...kernel.links]
      .map(([name, { addresses }]) => `${name} ${[...addresses].toSorted().join(' ')}`)
      .toSorted()
      .join('\n'),
    kernel.timeouts.join(' '),
    dumpNft(kernel.nft),
    sysctls.toSorted().join(''),
  ].join('\n');
}

/** What is kept of what a tool printed: see Listing. */
export function keepLines(result: CommandResult, { keeps }: ToolCommand): CommandResult {
  if (result.kind === 'missing' || !keeps) return result;
  const isKept = (line: string) => !line.endsWith('\n') || keeps(line.slice(0, -1));
  return {
    ...result,
    stdout: result.stdout
      .split(/(?<=\n)/)
      .filter(isKept)
      .join(''),
  };
}

const ok = (stdout = ''): CommandResult => ({ kind: 'ended', status: 0, stdout, stderr: '' });
const wrong = (stderr: string, status = 1): CommandResult => ({ kind: 'ended', status, stdout: '', stderr });

function runFake(kernel: Kernel, { tool, args, stdin = '' }: ToolCommand): CommandResult {
  const first = args[0];
  const [, program = '', variant = kernel.variant, verb] =
    /^(ip6?tables)(?:-(legacy|nft))?-(save|restore)$/.exec(tool) ?? [];
  if (first === '--version' || first === '-V') {
    return ok(`${tool} v9.9.9${verb && variant === 'nft' ? ' (nf_tables)' : ''}`);
  }
  if (verb === 'save') return ok(saveTables(kernel, `${program}-${variant}`));
  if (verb === 'restore') return restoreTables(kernel, `${program}-${variant}`, stdin);
  switch (tool) {
    case 'ipset':
      if (first === 'list') return ok(listSets(kernel));
      return first === 'save' ? ok(saveSets(kernel)) : restoreSets(kernel, stdin);
    case 'ipvsadm':
      if (first === '-Sn') return ok(saveServers(kernel));
      if (first === '-L') return ok(`Timeout (tcp tcpfin udp): ${kernel.timeouts.join(' ')}\n`);
      if (first === '--set') {
        const [tcp, fin, udp] = args.slice(1).map(Number) as [number, number, number];
        kernel.timeouts = [tcp || kernel.timeouts[0], fin || kernel.timeouts[1], udp || kernel.timeouts[2]];
        return ok();
      }
      return restoreServers(kernel, stdin);
    case 'ip':
      if (args[1] === 'property') {
        if (!kernel.loNames) return wrong('Command "property" is unknown, try "ip link help".', 255);
        kernel.loNames.push(args.at(-1) ?? '');
        return ok();
      }
      if (args.at(-1) === 'lo') return ok(JSON.stringify([{ ifname: 'lo', altnames: kernel.loNames }]));
      // It has no routes, which a tool prints as nothing.
      if (['route', 'rule', 'neigh', 'xfrm'].some((word) => args.includes(word))) return ok();
      return first === '-batch' ? restoreLinks(kernel, stdin) : ok(saveLinks(kernel));
    case 'nft':
      return runNft(kernel.nft, args, stdin);
    case 'conntrack':
      return { kind: 'ended', status: 0, stdout: '', stderr: 'conntrack v1.4.7: 0 flow entries have been shown.\n' };
    case 'modprobe':
      return ok();
    default:
      return { kind: 'missing' };
  }
}

function saveTables(kernel: Kernel, tool: string): string {
  const lines: string[] = [];
  for (const [table, chains] of kernel.tables.get(tool) ?? []) {
    lines.push(`*${table}`);
    const names = [...chains.keys()].toSorted((a, b) => rank(table, a) - rank(table, b) || (a < b ? -1 : 1));
    for (const name of names) lines.push(`:${name} ${builtIn[table]?.includes(name) ? 'ACCEPT' : '-'} [0:0]`);
    for (const name of names) for (const rule of chains.get(name) ?? []) lines.push(`-A ${name} ${rule}`);
    lines.push('COMMIT');
  }
  return lines.map((line) => `${line}\n`).join('');
}

function rank(table: string, chain: string): number {
  const at = builtIn[table]?.indexOf(chain) ?? -1;
  return at < 0 ? 99 : at;
}

/** Each table is changed whole or not at all; what has no COMMIT is not. */
function restoreTables(kernel: Kernel, tool: string, input: string): CommandResult {
  const tables = kernel.tables.get(tool) ?? new Map<string, Map<string, string[]>>();
  kernel.tables.set(tool, tables);
  let table = '';
  let draft = new Map<string, string[]>();
  for (const [i, line] of input.split('\n').entries()) {
    const [word = '', chain = '', ...rest] = line.split(' ');
    const rules = draft.get(chain);
    if (line === '') continue;
    if (line.startsWith('*')) {
      table = line.slice(1);
      const chains = tables.get(table) ?? new Map((builtIn[table] ?? []).map((name) => [name, [] as string[]]));
      draft = new Map([...chains].map(([name, own]) => [name, [...own]]));
    } else if (line === 'COMMIT') tables.set(table, draft);
    else if (line.startsWith(':')) draft.set(word.slice(1), []);
    else if (!rules) return wrong(`iptables-restore: line ${i + 1} failed`);
    else if (word === '-A') rules.push(rest.join(' '));
    else if (word === '-I') rules.splice(Number(rest[0]) - 1, 0, rest.slice(1).join(' '));
    else if (word === '-X') {
      const isEmpty =
        rules.length === 0 && ![...draft.values()].some((own) => own.some((rule) => jumpsTo(rule, chain)));
      if (!isEmpty) return wrong(`iptables-restore: line ${i + 1} failed: chain ${chain} is in use`);
      draft.delete(chain);
    } else if (word === '-D') {
      const at = rules.indexOf(rest.join(' '));
      if (at < 0) return wrong(`iptables-restore: line ${i + 1} failed`);
      rules.splice(at, 1);
    } else return wrong(`iptables-restore: line ${i + 1} failed`);
  }
  return ok();
}

function jumpsTo(rule: string, chain: string): boolean {
  return rule.endsWith(`-j ${chain}`) || rule.endsWith(`-g ${chain}`);
}

function saveSets(kernel: Kernel): string {
  return [...kernel.sets]
    .flatMap(([name, { create, entries }]) => [
      `create ${name} ${create}`,
      ...[...entries].map((entry) => `add ${name} ${entry}`),
    ])
    .map((line) => `${line}\n`)
    .join('');
}

/** `ipset list -t`. */
function listSets(kernel: Kernel): string {
  const heads = [...kernel.sets].map(
    ([name, { create, entries }]) =>
      `Name: ${name}\nType: ${create.split(' ')[0]}\nRevision: 1\nHeader: ${create}\nNumber of entries: ${entries.size}\n`,
  );
  return heads.join('\n');
}

/** Stops at the first line that fails. */
function restoreSets(kernel: Kernel, input: string): CommandResult {
  for (const [i, line] of input.trimEnd().split('\n').entries()) {
    const [word = '', name = '', ...rest] = line.split(' ');
    const set = kernel.sets.get(name);
    const fail = wrong(`ipset v7.17: Error in line ${i + 1}: no`);
    if (word === 'create') {
      if (set) return fail;
      kernel.sets.set(name, { create: rest.join(' '), entries: new Set() });
    } else if (!set) return fail;
    else if (word === 'add') {
      if (set.entries.has(rest.join(' '))) return fail;
      set.entries.add(rest.join(' '));
    } else if (word === 'del') {
      if (!set.entries.delete(rest.join(' '))) return fail;
    } else if (word === 'destroy') {
      if (isUsed(kernel, name))
        return wrong(`ipset v7.17: Error in line ${i + 1}: Set cannot be destroyed: it is in use`);
      kernel.sets.delete(name);
    } else return fail;
  }
  return ok();
}

function isUsed(kernel: Kernel, set: string): boolean {
  return [...kernel.tables.values()].some((tables) =>
    [...tables.values()].some((chains) =>
      [...chains.values()].some((rules) => rules.some((rule) => rule.includes(`-set ${set} `))),
    ),
  );
}

function saveServers(kernel: Kernel): string {
  return [...kernel.servers]
    .flatMap(([name, { options, reals }]) => [
      `-A ${name} ${options}`,
      ...[...reals].map(([real, rest]) => `-a ${name} -r ${real} ${rest}`),
    ])
    .map((line) => `${line}\n`)
    .join('');
}

/** Says what fails, goes on, and ends with status 0. */
function restoreServers(kernel: Kernel, input: string): CommandResult {
  let stderr = '';
  for (const line of input.trimEnd().split('\n')) {
    const [word = '', flag = '', address = '', ...rest] = line.split(' ');
    const name = `${flag} ${address}`;
    const server = kernel.servers.get(name);
    const [, real = '', ...options] = rest;
    if (word === '-A') {
      if (server) stderr += 'Service already exists\n';
      else kernel.servers.set(name, { options: rest.join(' '), reals: new Map() });
    } else if (!server) stderr += 'No such service\n';
    else if (word === '-E') kernel.servers.set(name, { ...server, options: rest.join(' ') });
    else if (word === '-D') kernel.servers.delete(name);
    else if (word === '-d') {
      if (!server.reals.delete(real)) stderr += 'No such destination\n';
    } else if (server.reals.has(real) === (word === '-a')) stderr += 'Destination already exists, or does not\n';
    else server.reals.set(real, options.join(' '));
  }
  return { kind: 'ended', status: 0, stdout: '', stderr };
}

function saveLinks(kernel: Kernel): string {
  return JSON.stringify(
    [...kernel.links].map(([ifname, { kind, addresses }]) => ({
      ifname,
      linkinfo: { info_kind: kind },
      addr_info: [...addresses].map((text) => {
        const [local = '', length] = text.split('/');
        return { family: local.includes(':') ? 'inet6' : 'inet', local, prefixlen: Number(length), scope: 'global' };
      }),
    })),
  );
}

/** Stops at the first line that fails. */
function restoreLinks(kernel: Kernel, input: string): CommandResult {
  for (const [i, line] of input.trimEnd().split('\n').entries()) {
    const words = line.split(' ');
    const [object, verb, third = ''] = words;
    const fail = wrong(`RTNETLINK answers: no\nCommand failed -:${i + 1}`);
    if (object === 'link' && verb === 'add') {
      if (kernel.links.has(third)) return fail;
      kernel.links.set(third, { kind: words[4] ?? '', addresses: new Set() });
    } else if (object === 'link' && verb === 'del') {
      if (!kernel.links.delete(third)) return fail;
    } else {
      const addresses = kernel.links.get(words[4] ?? '')?.addresses;
      if (!addresses || addresses.has(third) === (verb === 'add')) return fail;
      if (verb === 'add') addresses.add(third);
      else addresses.delete(third);
    }
  }
  return ok();
}
