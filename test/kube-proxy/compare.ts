import { compile } from '../../src/library/index.ts';
import type { ProxyMode } from '../../src/kube-proxy/modes.ts';
import type { Release } from '../../src/kube-proxy/releases.ts';
import type { Input } from './cases.mjs';
import { readState, type State } from './read-state.ts';

/** What a release of kube-proxy programs for a case in a mode. */
export interface Recording {
  readonly input: Input;
  readonly mode: ProxyMode;
  readonly release: Release;
  readonly state: string;
}

/**
 * Compiles the case, and returns each difference from the recording: "- " is what only kube-proxy programs, "+ " what only
 * kpc does.
 */
export function compareWithKubeProxy({ input, mode, release, state }: Recording): readonly string[] {
  const named = (file: string) => ({ name: file, text: input[file] ?? '' });
  const { bundle, diagnostics } = compile({
    manifests: [named('cluster.yaml'), named('node.yaml')],
    config: named('config.yaml'),
    hostAddresses: named('ip-addr.json'),
    node: 'node-1',
    ipFamily: 'dual',
    proxyMode: mode,
    kubernetesVersion: release,
    allowEmpty: true,
  });
  if (bundle === undefined) {
    return diagnostics.filter(({ severity }) => severity === 'error').map(({ text }) => `error: ${text}`);
  }
  const files = new Map(bundle.files);
  const timeouts = bundle.manifest.ipvsTimeouts;
  if (timeouts) {
    const line = `--set ${timeouts.tcp} ${timeouts.tcpFin} ${timeouts.udp}\n`;
    files.set('ipvsadm.restore', `${files.get('ipvsadm.restore') ?? ''}${line}`);
  }
  return [...compareStates(readState(filesOf(state), mode), readState(nameProxyPorts(files), mode))];
}

/**
 * The files of a bundle with the name of the Service port in the place of each proxy port, as a recording has it: kube-proxy's are
 * random. What nginx is told becomes a line for each port.
 */
function nameProxyPorts(files: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const balancer = files.get('balancer.conf');
  if (balancer === undefined) return files;
  const blocks = balancer.split(/^ {2}# /m).slice(1);
  const ports = blocks.map((block) => {
    const [, address = '', port = '', isUdp] = /listen ([\d.]+):(\d+) (udp)?/.exec(block) ?? [];
    const [name = ''] = block.split('\n');
    const endpoints = [...block.matchAll(/^ {4}server (\S+) max_fails=0;$/gm)].map(([, endpoint = '']) => endpoint);
    const affinity = /^ {4}hash \$remote_addr;$/m.test(block) ? ['ClientIP'] : [];
    const idle = isUdp === undefined ? undefined : /proxy_timeout (\d+ms);/.exec(block)?.[1];
    const words = [
      name,
      isUdp === undefined ? 'TCP' : 'UDP',
      address,
      ...affinity,
      idle ?? '',
      ...endpoints.toSorted(),
    ];
    return { name, port, line: words.filter(Boolean).join(' ') };
  });
  const names = new Map(ports.map(({ name, port }) => [port, name]));
  const rules = (files.get('iptables.restore') ?? '').replaceAll(
    /(--to-ports |--to-destination [\d.]+:|^-A KUBE-NODEPORT-NON-LOCAL .* --dport )(\d+)/gm,
    (_, before: string, port: string) => `${before}<${names.get(port)}>`,
  );
  const lines = ports.map(({ line }) => line).toSorted();
  return new Map([...files, ['iptables.restore', rules], ['balancer', lines.join('\n')]]);
}

/** The files of a recording, which are below each other under their names. */
function filesOf(recording: string): ReadonlyMap<string, string> {
  const parts = recording.split(/^==> (.*) <==\n/m).slice(1);
  return new Map(parts.flatMap((name, at) => (at % 2 === 0 ? [[name, parts[at + 1] ?? ''] as const] : [])));
}

/** Each difference: "- " is what only the first has, "+ " what only the second has. */
export function* compareStates(wanted: State, got: State): Iterable<string> {
  for (const name of new Set([...wanted.keys(), ...got.keys()])) {
    const [theirs, ours] = [wanted.get(name), got.get(name)];
    if (ours === undefined) yield `- ${name}`;
    if (theirs === undefined && name !== 'sysctls') yield `+ ${name}`;
    yield* compareLines(name, theirs?.head.toSorted() ?? [], ours?.head.toSorted() ?? []);
    yield* compareLines(name, theirs?.lines ?? [], ours?.lines ?? []);
  }
}

function* compareLines(name: string, theirs: readonly string[], ours: readonly string[]): Iterable<string> {
  if (theirs.join('\n') === ours.join('\n')) return;
  const missing = without(theirs, ours);
  // kpc also sets what kube-proxy's command sets before it makes a proxier: limits and timeouts of conntrack.
  const added = name === 'sysctls' ? [] : without(ours, theirs);
  for (const line of missing) yield `- ${name}: ${line}`;
  for (const line of added) yield `+ ${name}: ${line}`;
  if (missing.length === 0 && added.length === 0 && name !== 'sysctls') yield `~ ${name}: in another order`;
}

/** The lines of one list that the other has fewer of. */
function without(lines: readonly string[], others: readonly string[]): readonly string[] {
  const left = [...others];
  return lines.filter((line) => {
    const at = left.indexOf(line);
    if (at !== -1) left.splice(at, 1);
    return at === -1;
  });
}
