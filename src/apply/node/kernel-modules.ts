import type { Host } from './host.ts';

export interface ModuleIndex {
  readonly present: ReadonlySet<string>;
  readonly loadable: ReadonlySet<string>;
  /** Whether an unlisted module is certainly missing. True if modules.dep was read, or if all requested modules are loaded. */
  readonly complete: boolean;
  readonly loadsModules: boolean;
}

/** Paths that exist if, and only if, the module is in the kernel. Used for kernels that list no modules. */
const signs: { readonly [module: string]: readonly string[] } = {
  ip_vs: ['/proc/sys/net/ipv4/vs', '/proc/net/ip_vs', '/sys/module/ip_vs'],
  nf_conntrack: ['/proc/sys/net/netfilter', '/sys/module/nf_conntrack'],
  ip_set: ['/sys/module/ip_set'],
};

/** Finds which modules are present or loadable. Without the kernel's lists, an unlisted module may still exist (see `complete`). */
export async function readModuleIndex(host: Host, modules: readonly string[]): Promise<ModuleIndex> {
  const namesIn = (text: string | undefined) => (text ?? '').split('\n').map(moduleOfLine);
  const listed = await host.readFile('/proc/modules');
  const loaded = new Set(namesIn(listed));
  const loadsModules = listed !== undefined;
  if (modules.every((module) => loaded.has(normalizeModule(module)))) {
    return { present: loaded, loadable: new Set(), complete: true, loadsModules };
  }
  const release = ((await host.readFile('/proc/sys/kernel/osrelease')) ?? '').trim();
  const [builtIn, dependencies] = await Promise.all(
    ['modules.builtin', 'modules.dep'].map((file) => host.readFile(`/lib/modules/${release}/${file}`)),
  );
  const asked = [...new Set([...modules.map(normalizeModule), ...Object.keys(signs)])];
  const isShown = await Promise.all(asked.map((module) => hasSign(host, module)));
  const present = new Set([...loaded, ...namesIn(builtIn), ...asked.filter((_, i) => isShown[i])]);
  return { present, loadable: new Set(namesIn(dependencies)), complete: dependencies !== undefined, loadsModules };
}

async function hasSign(host: Host, module: string): Promise<boolean> {
  for (const path of signs[module] ?? [`/sys/module/${module}`]) {
    const names = await host.list(path).catch((): readonly string[] => []);
    if (names.length > 0 || (await host.readFile(path).catch(() => undefined)) !== undefined) return true;
  }
  return false;
}

/** "unknown" means that the node lists no modules (a container, or all built in), so only a try can tell. */
export function findModule(index: ModuleIndex, module: string) {
  const name = normalizeModule(module);
  if (index.present.has(name)) return 'present';
  if (index.loadable.has(name) && index.loadsModules) return 'loadable';
  if (index.complete) return 'missing';
  // No IPVS module works without the core module.
  const sign = name.startsWith('ip_vs_') ? 'ip_vs' : name;
  return !index.loadsModules && sign in signs && !index.present.has(sign) ? 'missing' : 'unknown';
}

export function isInKernel(index: ModuleIndex, module: string): boolean {
  return findModule(index, module) === 'present';
}

/** modprobe and /proc/modules treat - and _ alike. */
function normalizeModule(module: string): string {
  return module.replaceAll('-', '_');
}

/** Reads the name from "kernel/net/netfilter/ipvs/ip_vs.ko.zst: …" or "ip_vs 180224 6 - Live". Returns "" without a name. */
function moduleOfLine(line: string): string {
  const [path = ''] = line.split(/[: ]/, 1);
  return normalizeModule(path.slice(path.lastIndexOf('/') + 1).replace(/\.ko(\.\w+)?$/, ''));
}
