// Reads facts about a cluster and its kube-proxy from other programs' configuration, and the documents inside a ConfigMap.
import { isObject, type JsonObject } from '../../base/json/check.ts';
import type { Finding } from '../../base/findings/finding.ts';
import type { InputSource, InputDocument } from '../documents/document.ts';
import { flagKey } from '../../settings/flag.ts';
import { ownArguments, proxyFlags, type ProxyFlags } from '../../settings/table.ts';
import type { RangeFlags } from './range-flags.ts';
import type { FieldPath } from '../../cluster/objects.ts';
import type { Location, Place } from '../../kernel/place.ts';
import { readDocuments } from '../documents/read-documents.ts';
import { TextFile } from '../documents/text-file.ts';

export interface ClusterFacts {
  /** Undefined if the configuration says nothing about the cluster's addresses. */
  readonly ranges: RangeFlags | undefined;
  /** kube-proxy's settings. A KubeProxyConfiguration replaces them. */
  readonly proxy: ProxyFlags;
  /** kube-proxy's arguments that no rule shows, by the configuration's fields. Undefined without arguments. */
  readonly own?: Readonly<Record<string, unknown>> | undefined;
  /** Whether a KubeProxyConfiguration replaces only the settings that it contains, because the program adds the others to it. */
  readonly fills: boolean;
  /** Whether the configuration says how kube-proxy is set up. */
  readonly configures: boolean;
  readonly isObject: boolean;
  readonly place: Finding['place'];
}

const defaultNodePorts = '30000-32767';

/** The modes in which kind sets tcpBeLiberal. */
const liberalOfKind: ReadonlyMap<string, string> = new Map([['nftables', 'true']]);

/** Keys that only the configuration of k3s and RKE2 has. */
const k3sNames = [
  'cluster-cidr',
  'service-cidr',
  'kube-proxy-arg',
  'kube-apiserver-arg',
  'service-node-port-range',
  'write-kubeconfig-mode',
  'flannel-backend',
  'cluster-init',
  'disable-kube-proxy',
];

/** Reads kubeadm's ClusterConfiguration, kind's Cluster, a k3s or RKE2 file, or a Pod or DaemonSet of kube-apiserver or kube-proxy. */
export function readClusterFacts(value: JsonObject, source: InputSource): ClusterFacts | undefined {
  const { apiVersion, kind } = value;
  const isPods = kind === 'Pod' || kind === 'DaemonSet';
  if (kind !== undefined && !isPods && kind !== 'ClusterConfiguration' && kind !== 'Cluster') return undefined;
  const place = source.place([]);
  if (isPods) return readPrograms(value, place);
  const fills = kind !== undefined;
  const read = (clusterIPs: string, nodePorts: string | undefined, proxy: ProxyFlags): ClusterFacts => {
    return { ranges: rangesOf(clusterIPs, nodePorts), proxy, fills, configures: true, isObject: false, place };
  };
  const networking = asMapping(value['networking']);
  const [services, pods] = [textOfScalar(networking['serviceSubnet']), textOfScalar(networking['podSubnet'])];
  // kubeadm's componentconfigs/kubeproxy.go
  if (kind === 'ClusterConfiguration' && String(apiVersion).startsWith('kubeadm.k8s.io/')) {
    const nodePorts = argumentsOf(asMapping(value['apiServer'])['extraArgs']).get('service-node-port-range');
    return read(services ?? '10.96.0.0/12', nodePorts, { proxyMode: '', clusterCidr: pods });
  }
  if (kind === 'Cluster' && String(apiVersion).startsWith('kind.x-k8s.io/')) {
    const pick = (v4: string, v6: string): string => {
      const family = textOfScalar(networking['ipFamily']);
      return family === 'dual' ? `${v4},${v6}` : family === 'ipv6' ? v6 : v4;
    };
    const proxyMode = textOfScalar(networking['kubeProxyMode']) ?? 'iptables';
    // kind's pkg/cluster/internal/kubeadm/config.go
    return read(services ?? pick('10.96.0.0/16', 'fd00:10:96::/112'), undefined, {
      ...(proxyMode === 'none' ? {} : { proxyMode }),
      clusterCidr: pods ?? pick('10.244.0.0/16', 'fd00:10:244::/56'),
      featureGates: [...argumentsOf(value['featureGates'])].map(([name, isOn]) => `${name}=${isOn}`).join(','),
      conntrackMaxPerCore: '0',
      conntrackTcpBeLiberal: liberalOfKind.get(proxyMode),
    });
  }
  const isBare = kind === undefined && apiVersion === undefined;
  if (!isBare || !k3sNames.some((name) => Object.hasOwn(value, name))) return undefined;
  const nodePorts =
    textOfScalar(value['service-node-port-range']) ??
    argumentsOf(value['kube-apiserver-arg']).get('service-node-port-range');
  const given = argumentsOf(value['kube-proxy-arg']);
  const flags = [...given].map(([name, text]) => [flagKey(name), text] as const);
  const facts = read(joinScalars(value['service-cidr']) ?? '10.43.0.0/16', nodePorts, {
    proxyMode: 'iptables',
    clusterCidr: joinScalars(value['cluster-cidr']) ?? '10.42.0.0/16',
    // pkg/daemons/agent: kubeProxyArgs
    conntrackMaxPerCore: '0',
    conntrackTcpTimeoutEstablished: '0s',
    conntrackTcpTimeoutCloseWait: '0s',
    ...(Object.fromEntries(flags) as ProxyFlags),
  });
  return { ...facts, own: ownArguments(given) };
}

/**
 * Reads kube-proxy's flags from ExecStart in a systemd unit. Undefined for other texts; 'unknown' if the unit starts another program, or
 * passes the arguments indirectly.
 */
export function readUnit(text: string, place: ClusterFacts['place']): ClusterFacts | 'unknown' | undefined {
  if (!/^(?:[ \t]*(?:[#;].*)?\r?\n)*\[(?:Unit|Service)\]/.test(text)) return undefined;
  const lines = text.split('\n').map((line) => line.trim());
  const first = lines.findIndex((line) => /^ExecStart[ \t]*=/.test(line));
  const last = lines.findIndex((line, at) => at >= first && !line.endsWith('\\'));
  const command = first < 0 ? [] : lines.slice(first, last + 1).map((line) => line.replace(/\\$/, ''));
  const words = command
    .join(' ')
    .replace(/^ExecStart[ \t]*=/, '')
    .replaceAll(/["']/g, '')
    .split(/[ \t]+/)
    .filter((word) => word !== '');
  if (!/(?:^|\/)kube-proxy$/.test(words[0] ?? '') || words.some((word) => word.startsWith('$'))) return 'unknown';
  const read = readProxyArguments(words);
  return read ? { ...read, ranges: undefined, fills: false, configures: true, isObject: false, place } : 'unknown';
}

function rangesOf(serviceClusterIpRange: string, nodePorts: string | undefined): RangeFlags {
  return { serviceClusterIpRange, serviceNodePortRange: nodePorts ?? defaultNodePorts };
}

function readPrograms(object: JsonObject, place: ClusterFacts['place']): ClusterFacts | undefined {
  const spec = asMapping(object['spec']);
  const { containers } = object['kind'] === 'Pod' ? spec : asMapping(asMapping(spec['template'])['spec']);
  const programs = (Array.isArray(containers) ? containers : []).map((container) => {
    const { command, args } = asMapping(container);
    const words = [command, args].flatMap((list): readonly unknown[] => (Array.isArray(list) ? list : []));
    return words.flatMap((word) => (typeof word === 'string' ? word.split(/\s+/) : []));
  });
  const find = (name: string): readonly string[] | undefined =>
    programs.find((words) => words.some((word) => word === name || word.endsWith(`/${name}`)));
  const apiServer = argumentsOf(find('kube-apiserver') ?? []);
  const clusterIPs = apiServer.get('service-cluster-ip-range');
  const proxyWords = find('kube-proxy');
  const read = proxyWords && readProxyArguments(proxyWords);
  if (clusterIPs === undefined && !read) return undefined;
  const ranges = clusterIPs === undefined ? undefined : rangesOf(clusterIPs, apiServer.get('service-node-port-range'));
  return { proxy: {}, ...read, ranges, fills: false, configures: read !== undefined, isObject: true, place };
}

/** Returns undefined with --config, because kube-proxy then ignores its other flags. Omits the node's name, which differs by node. */
function readProxyArguments(words: readonly string[]): Pick<ClusterFacts, 'proxy' | 'own'> | undefined {
  const given = argumentsOf(words);
  if (given.has('config')) return undefined;
  const found = proxyFlags.flatMap(({ name, key }) => {
    const value = given.get(name.slice(2));
    // The kubelet replaces $(NODE_NAME) by a value from the Pod's environment.
    const isKnown = value !== undefined && !value.includes('$(');
    return isKnown && key !== 'hostnameOverride' ? [[key, value] as const] : [];
  });
  return { proxy: { proxyMode: '', ...Object.fromEntries(found) }, own: ownArguments(given) };
}

const lists: ReadonlySet<string> = new Set(
  proxyFlags.flatMap(({ name, kind }) => (kind === 'list' ? [name.slice(2)] : [])),
);

/** Returns arguments by name. Accepts a list of "--name=value", "name=value" or { name, value }, or a mapping. */
function argumentsOf(value: unknown): ReadonlyMap<string, string> {
  if (typeof value === 'string') return argumentsOf([value]);
  const found = new Map<string, string>();
  const items: readonly unknown[] = Array.isArray(value)
    ? value
    : Object.entries(asMapping(value))
        .filter(([, each]) => textOfScalar(each) !== undefined)
        .map(([name, each]) => ({ name, value: each }));
  for (const [i, item] of items.entries()) {
    const { name, value: given } = asMapping(item);
    if (typeof name === 'string') found.set(name, textOfScalar(given) ?? '');
    if (typeof item !== 'string') continue;
    const [, flag, text] = /^(?:--)?([a-z][a-z0-9-]*)(?:=(.*))?$/s.exec(item) ?? [];
    const next = items[i + 1];
    const apart = typeof next === 'string' && !next.startsWith('-') ? next : 'true';
    const own = text ?? (item.startsWith('--') ? apart : undefined);
    if (flag === undefined || own === undefined) continue;
    const before = lists.has(flag) ? found.get(flag) : undefined;
    found.set(flag, before ? `${before},${own}` : own);
  }
  return found;
}

function asMapping(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

function textOfScalar(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function joinScalars(value: unknown): string | undefined {
  return Array.isArray(value) ? value.map((item) => textOfScalar(item) ?? '').join(',') : textOfScalar(value);
}

const usualKey = 'config.conf';

/**
 * kubeadm uses the key `config.conf`, EKS uses `config`, and others use another key. The kubeconfig in the same ConfigMap never contains
 * the kind's name.
 */
function findConfigKeys(data: unknown): readonly string[] {
  return Object.entries(asMapping(data)).flatMap(([key, text]) => {
    if (typeof text !== 'string') return [];
    return key === usualKey || /KubeProxyConfiguration|kind: ClusterConfiguration/.test(text) ? [key] : [];
  });
}

interface Unpacked {
  readonly documents: readonly InputDocument[];
  readonly diagnostics: readonly Finding[];
}

/** Returns the documents with settings for kpc in a ConfigMap, or in the patches of kind's Cluster, with their places. */
export function unpackTexts(document: InputDocument): Unpacked {
  const { data, kubeadmConfigPatches: patches } = asMapping(document.value);
  const unpacked = [
    ...findConfigKeys(data).map((key) => unpackText(document, ['data', key], String(asMapping(data)[key]))),
    ...(Array.isArray(patches) ? patches : []).flatMap((text, i) =>
      typeof text === 'string' ? withVersion(unpackText(document, ['kubeadmConfigPatches', i], text)) : [],
    ),
  ];
  const documents = unpacked.flatMap((each) => each.documents);
  return {
    documents: documents.filter(({ value }) =>
      /^(?:KubeProxy|Cluster)Configuration$/.test(String(asMapping(value)['kind'])),
    ),
    diagnostics: unpacked.flatMap((each) => each.diagnostics),
  };
}

/** A patch may omit its version. */
function withVersion({ documents, diagnostics }: Unpacked): Unpacked {
  const apiVersion = 'kubeproxy.config.k8s.io/v1alpha1';
  const values = documents.map((each) => ({ ...each, value: { apiVersion, ...asMapping(each.value) } }));
  return { documents: values.filter(({ value }) => asMapping(value)['kind'] !== 'ClusterConfiguration'), diagnostics };
}

function unpackText({ file, source }: InputDocument, path: FieldPath, text: string): Unpacked {
  const inner = readDocuments(new TextFile(file.name, text));
  const outerPlace = (place: Place): Place => {
    const field = source.place(path);
    return { file: field.file, locate: () => moveLocation(file, text, field.locate(), place.locate()) };
  };
  return {
    documents: inner.documents.map(({ value, source: own }) => {
      const place = (inside: FieldPath): Place => outerPlace(own.place(inside));
      const keyPlace = (inside: FieldPath): Place => outerPlace(own.keyPlace(inside));
      return { file, value, source: { place, keyPlace, written: (inside) => own.written(inside) } };
    }),
    diagnostics: inner.diagnostics.map((each) => ({ ...each, place: each.place && outerPlace(each.place) })),
  };
}

/**
 * Converts a location in a field's text to one in the file. A YAML literal block ("|") has the same lines, indented. For a field in another
 * style, returns the field's own location.
 */
function moveLocation(file: TextFile, text: string, field: Location, inner: Location): Location {
  if (file.lineAt(field.line).charAt(field.column - 1) !== '|') return field;
  const lines = text.split('\n');
  const sample = lines.findIndex((line) => line.trim() !== '');
  const indent = sample < 0 ? 0 : file.lineAt(field.line + 1 + sample).length - (lines[sample] ?? '').length;
  return { file: field.file, line: field.line + inner.line, column: inner.column + Math.max(0, indent) };
}
