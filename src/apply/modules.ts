import type { Host } from './host.ts';

/**
 * Where a kernel module is. "unknown": the node has no list of its modules (a kernel with everything built in, say), so
 * that only trying tells.
 */
export type ModulePlace = 'loaded' | 'built-in' | 'loadable' | 'missing' | 'unknown';

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
  /** Whether the kernel's modules.dep and modules.builtin were there to read. */
  readonly complete: boolean;
}

/** A file or folder that is there if, and only if, the module is in the kernel: for kernels without a list. */
const signs: { readonly [module: string]: string } = {
  ip_vs: '/proc/sys/net/ipv4/vs',
  nf_conntrack: '/proc/sys/net/netfilter',
};

export async function readModuleIndex(host: Host, modules: readonly string[]): Promise<ModuleIndex> {
  const loaded = new Set<string>();
  for (const line of ((await host.readFile('/proc/modules')) ?? '').split('\n')) {
    const [name] = line.split(' ');
    if (name) loaded.add(normalize(name));
  }
  if (modules.every((module) => loaded.has(normalize(module)))) {
    return { loaded, builtIn: new Set(), loadable: new Set(), complete: true };
  }
  const release = ((await host.readFile('/proc/sys/kernel/osrelease')) ?? '').trim();
  const folder = `/lib/modules/${release}`;
  const [builtIn, dependencies] = await Promise.all([
    host.readFile(`${folder}/modules.builtin`),
    host.readFile(`${folder}/modules.dep`),
  ]);
  for (const [module, path] of Object.entries(signs)) {
    if ((await host.list(path)).length > 0) loaded.add(module);
  }
  return {
    loaded,
    builtIn: new Set((builtIn ?? '').split('\n').map(moduleOfPath)),
    loadable: new Set((dependencies ?? '').split('\n').map((line) => moduleOfPath(line.slice(0, line.indexOf(':'))))),
    complete: dependencies !== undefined,
  };
}

export function findModule(index: ModuleIndex, module: string): ModulePlace {
  const name = normalize(module);
  if (index.loaded.has(name)) return 'loaded';
  if (index.builtIn.has(name)) return 'built-in';
  if (index.loadable.has(name)) return 'loadable';
  return index.complete ? 'missing' : 'unknown';
}

/** modprobe and /proc/modules take - and _ for the same. */
function normalize(module: string): string {
  return module.replaceAll('-', '_');
}

/** "kernel/net/netfilter/ipvs/ip_vs.ko.zst" → "ip_vs". */
function moduleOfPath(path: string): string {
  return normalize(path.slice(path.lastIndexOf('/') + 1).replace(/\.ko(\.\w+)?$/, ''));
}
