import type { Host } from './host.ts';

/**
 * Where a kernel module is. "present": the kernel has it, built in or loaded. "unknown": the node has no list of its
 * modules (a container, or a kernel with everything built in), so that only trying tells.
 */
export type ModulePlace = 'loaded' | 'present' | 'built-in' | 'loadable' | 'missing' | 'unknown';

/** What a kernel module is called that has a part in rules of Services. */
const moduleOfRules = /^(ip_vs(_\w+)?|nf_conntrack|ip_set(_\w+)?|xt_\w+|dummy|br_netfilter)$/;

export function isModuleOfRules(module: string): boolean {
  return moduleOfRules.test(module);
}

/** What the node says of its modules. */
export interface ModuleIndex {
  readonly loaded: ReadonlySet<string>;
  readonly builtIn: ReadonlySet<string>;
  readonly loadable: ReadonlySet<string>;
  /** What the kernel shows to have, whether it was loaded or built in. */
  readonly present: ReadonlySet<string>;
  /** Whether the kernel's modules.dep and modules.builtin were there to read. */
  readonly complete: boolean;
  /** Whether the kernel loads modules at all; one that does not has what it has. */
  readonly loadsModules: boolean;
}

/** Files and folders of which one is there if, and only if, the module is in the kernel: for kernels without a list. */
const signs: { readonly [module: string]: readonly string[] } = {
  ip_vs: ['/proc/sys/net/ipv4/vs', '/proc/net/ip_vs', '/sys/module/ip_vs'],
  nf_conntrack: ['/proc/sys/net/netfilter', '/sys/module/nf_conntrack'],
  ip_set: ['/sys/module/ip_set'],
};

export async function readModuleIndex(host: Host, modules: readonly string[]): Promise<ModuleIndex> {
  const loaded = new Set<string>();
  const listed = await host.readFile('/proc/modules');
  for (const line of (listed ?? '').split('\n')) {
    const [name] = line.split(' ');
    if (name) loaded.add(normalize(name));
  }
  const loadsModules = listed !== undefined;
  if (modules.every((module) => loaded.has(normalize(module)))) {
    return { loaded, builtIn: new Set(), loadable: new Set(), present: new Set(), complete: true, loadsModules };
  }
  const release = ((await host.readFile('/proc/sys/kernel/osrelease')) ?? '').trim();
  const folder = `/lib/modules/${release}`;
  const [builtIn, dependencies] = await Promise.all([
    host.readFile(`${folder}/modules.builtin`),
    host.readFile(`${folder}/modules.dep`),
  ]);
  return {
    loaded,
    builtIn: new Set((builtIn ?? '').split('\n').map(moduleOfPath)),
    loadable: new Set((dependencies ?? '').split('\n').map((line) => moduleOfPath(line.slice(0, line.indexOf(':'))))),
    present: await findPresent(host, modules.map(normalize)),
    complete: dependencies !== undefined,
    loadsModules,
  };
}

async function findPresent(host: Host, modules: readonly string[]): Promise<ReadonlySet<string>> {
  const present = new Set<string>();
  for (const module of new Set([...modules, ...Object.keys(signs)])) {
    for (const path of signs[module] ?? [`/sys/module/${module}`]) {
      if (await isThere(host, path)) present.add(module);
    }
  }
  return present;
}

/** Whether there is a file, or a folder with anything in it. What may not be read shows nothing. */
async function isThere(host: Host, path: string): Promise<boolean> {
  const names = await host.list(path).catch((): readonly string[] => []);
  if (names.length > 0) return true;
  const text = await host.readFile(path).catch(() => undefined);
  return text !== undefined;
}

export function findModule(index: ModuleIndex, module: string): ModulePlace {
  const name = normalize(module);
  if (index.loaded.has(name)) return 'loaded';
  if (index.builtIn.has(name)) return 'built-in';
  if (index.present.has(name)) return 'present';
  if (index.loadable.has(name) && index.loadsModules) return 'loadable';
  if (index.complete) return 'missing';
  // Nothing of IPVS is there without its core.
  const sign = name.startsWith('ip_vs_') ? 'ip_vs' : name;
  return !index.loadsModules && sign in signs && !index.present.has(sign) ? 'missing' : 'unknown';
}

/** Whether the kernel has the module by now. */
export function isInKernel(index: ModuleIndex, module: string): boolean {
  const place = findModule(index, module);
  return place === 'loaded' || place === 'present' || place === 'built-in';
}

/** modprobe and /proc/modules take - and _ for the same. */
function normalize(module: string): string {
  return module.replaceAll('-', '_');
}

/** "kernel/net/netfilter/ipvs/ip_vs.ko.zst" → "ip_vs". */
function moduleOfPath(path: string): string {
  return normalize(path.slice(path.lastIndexOf('/') + 1).replace(/\.ko(\.\w+)?$/, ''));
}
