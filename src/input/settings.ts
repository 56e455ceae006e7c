import type { Diagnostic } from '../cluster/diagnostic.ts';
import { schedulers } from '../cluster/ipvs-annotations.ts';
import type { DetectLocal, FieldPath, ProxySettings, Sourced } from '../cluster/objects.ts';
import { type Network, parseAddress, parseNetwork } from '../kernel/address.ts';
import { isName } from './check-names.ts';
import { parseDuration } from './durations.ts';
import { newestRelease, type Release } from '../kube-proxy/releases.ts';
import type { KubeProxyConfig } from './schemas/kube-proxy-configuration.ts';
import { findNearest, quote } from './wording.ts';

/** The flags that shape rules, by kube-proxy's names in camel case, with what was written after them. */
export interface ProxyFlags {
  readonly proxyMode?: string | undefined;
  readonly masqueradeAll?: boolean | string | undefined;
  readonly clusterCidr?: string | undefined;
  readonly detectLocalMode?: string | undefined;
  readonly podBridgeInterface?: string | undefined;
  readonly podInterfaceNamePrefix?: string | undefined;
  /** Commas between them, or one item each. */
  readonly nodeportAddresses?: string | readonly string[] | undefined;
  readonly iptablesMasqueradeBit?: string | undefined;
  readonly iptablesLocalhostNodeports?: boolean | string | undefined;
  readonly ipvsScheduler?: string | undefined;
  readonly ipvsStrictArp?: boolean | string | undefined;
  readonly ipvsExcludeCidrs?: string | readonly string[] | undefined;
  readonly ipvsTcpTimeout?: string | undefined;
  readonly ipvsTcpfinTimeout?: string | undefined;
  readonly ipvsUdpTimeout?: string | undefined;
  readonly hostnameOverride?: string | undefined;
}

/** The feature gates that a configuration sets. */
export type FeatureGates = Readonly<Record<string, boolean>>;

/** Settings with what is wrong with the values they came from; not to be used when there is an error. */
export interface ResolvedSettings {
  readonly settings: ProxySettings;
  readonly gates: FeatureGates;
  readonly diagnostics: readonly Diagnostic[];
}

/** kube-proxy takes any scheduler that the kernel has; these two need no name in a Service's annotation. */
const nodeSchedulers: readonly string[] = [...schedulers, 'fo', 'ovf'];

const detectLocalModes = ['ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix'] as const;

const mostIpvsSeconds = 31 * 24 * 3600;

/** A value with where it was written: a flag, or a field of the config file. */
interface Given<T> {
  readonly value: T;
  /** What the user calls it: "--cluster-cidr" or "clusterCIDR". */
  readonly name: string;
  readonly path: FieldPath | undefined;
}

/**
 * Settings from flags over the config file over kube-proxy's defaults (pkg/proxy/apis/config/v1alpha1 defaults.go,
 * checked as in pkg/proxy/apis/config/validation), but that the mode's default is ipvs.
 */
export function resolveSettings(
  config: Sourced<KubeProxyConfig> | undefined,
  flags: ProxyFlags,
  release: Release = newestRelease,
): ResolvedSettings {
  const resolver = new SettingsResolver(config, flags, release);
  const settings = resolver.resolve();
  return { settings, gates: readGates(config?.object.featureGates ?? {}), diagnostics: resolver.diagnostics };
}

/** A gate that is null is as if it were not there. */
function readGates(raw: Readonly<Record<string, boolean | null>>): FeatureGates {
  return Object.fromEntries(Object.entries(raw).flatMap(([name, on]) => (on === null ? [] : [[name, on] as const])));
}

class SettingsResolver {
  readonly diagnostics: Diagnostic[] = [];
  readonly #config: Sourced<KubeProxyConfig> | undefined;
  readonly #flags: ProxyFlags;
  readonly #release: Release;

  constructor(config: Sourced<KubeProxyConfig> | undefined, flags: ProxyFlags, release: Release) {
    this.#release = release;
    this.#config = config;
    this.#flags = flags;
  }

  resolve(): ProxySettings {
    const { iptables, ipvs, conntrack, ...config } = this.#config?.object ?? {};
    const flags = this.#flags;
    const detectLocal = this.#detectLocal();
    return {
      release: this.#release,
      mode: this.#mode(this.#pick('--proxy-mode', flags.proxyMode, ['mode'], config.mode)),
      hostnameOverride: this.#hostname(flags.hostnameOverride, config.hostnameOverride),
      bindAddress: this.#bindAddress(config.bindAddress),
      clusterCIDRs: this.#clusterCIDRs(
        this.#pick('--cluster-cidr', flags.clusterCidr, ['clusterCIDR'], config.clusterCIDR),
        detectLocal.mode,
      ),
      detectLocal,
      nodePortAddresses: this.#nodePortAddresses(
        this.#pick(
          '--nodeport-addresses',
          splitList(flags.nodeportAddresses),
          ['nodePortAddresses'],
          config.nodePortAddresses,
        ),
      ),
      ...(config.featureGates?.['AllowServiceExternalIPs'] === false ? { ignoresExternalIPs: true as const } : {}),
      masqueradeAll: this.#flag('--masquerade-all', flags.masqueradeAll) ?? iptables?.masqueradeAll ?? false,
      masqueradeBit: this.#masqueradeBit(flags.iptablesMasqueradeBit) ?? iptables?.masqueradeBit ?? 14,
      localhostNodePorts:
        this.#flag('--iptables-localhost-nodeports', flags.iptablesLocalhostNodeports) ??
        iptables?.localhostNodePorts ??
        true,
      ipvs: {
        scheduler: this.#scheduler(
          this.#pick('--ipvs-scheduler', flags.ipvsScheduler, ['ipvs', 'scheduler'], ipvs?.scheduler),
        ),
        strictARP: this.#flag('--ipvs-strict-arp', flags.ipvsStrictArp) ?? ipvs?.strictARP ?? false,
        excludeCIDRs: this.#networks(
          this.#pick(
            '--ipvs-exclude-cidrs',
            splitList(flags.ipvsExcludeCidrs),
            ['ipvs', 'excludeCIDRs'],
            ipvs?.excludeCIDRs,
          ),
        ),
        tcpTimeout: this.#ipvsSeconds(
          this.#pick('--ipvs-tcp-timeout', flags.ipvsTcpTimeout, ['ipvs', 'tcpTimeout'], ipvs?.tcpTimeout),
        ),
        tcpFinTimeout: this.#ipvsSeconds(
          this.#pick('--ipvs-tcpfin-timeout', flags.ipvsTcpfinTimeout, ['ipvs', 'tcpFinTimeout'], ipvs?.tcpFinTimeout),
        ),
        udpTimeout: this.#ipvsSeconds(
          this.#pick('--ipvs-udp-timeout', flags.ipvsUdpTimeout, ['ipvs', 'udpTimeout'], ipvs?.udpTimeout),
        ),
      },
      conntrack: {
        maxPerCore: conntrack?.maxPerCore ?? 32 * 1024,
        min: conntrack?.min ?? 128 * 1024,
        tcpEstablishedTimeout: this.#conntrackSeconds('tcpEstablishedTimeout', 24 * 3600),
        tcpCloseWaitTimeout: this.#conntrackSeconds('tcpCloseWaitTimeout', 3600),
        tcpBeLiberal: conntrack?.tcpBeLiberal ?? false,
        udpTimeout: this.#conntrackSeconds('udpTimeout', 0),
        udpStreamTimeout: this.#conntrackSeconds('udpStreamTimeout', 0),
      },
    };
  }

  /** The flag's value where the flag was given, else the field's; undefined where neither is set. */
  #pick<T>(
    flag: string,
    fromFlag: T | undefined,
    path: FieldPath,
    fromConfig: T | null | undefined,
  ): Given<T> | undefined {
    if (fromFlag !== undefined) return { value: fromFlag, name: flag, path: undefined };
    if (fromConfig === undefined || fromConfig === null) return undefined;
    return { value: fromConfig, name: String(path.at(-1)), path };
  }

  #error({ path }: { readonly path: FieldPath | undefined }, code: string, text: string): void {
    const place = path && this.#config?.source.place(path);
    this.diagnostics.push({ severity: 'error', code, text, place });
  }

  #mode(given: Given<string> | undefined): ProxySettings['mode'] {
    if (!given || given.value === '') return 'ipvs';
    switch (given.value) {
      case 'ipvs':
        return 'ipvs';
      case 'iptables':
        return 'iptables';
      case 'nftables':
        this.#error(given, 'bad-mode', `${given.name} nftables: kpc compiles the modes ipvs and iptables only`);
        return 'ipvs';
      default:
        this.#error(given, 'bad-mode', `${given.name} is ${quote(given.value)}: write ipvs or iptables`);
        return 'ipvs';
    }
  }

  /** Trimmed and in lower case, as kube-proxy reads it (GetHostname of component-helpers). */
  #hostname(fromFlag: string | undefined, fromConfig: string | null | undefined): string {
    const given = this.#pick(
      '--hostname-override',
      fromFlag || undefined,
      ['hostnameOverride'],
      fromConfig || undefined,
    );
    if (!given) return '';
    const name = given.value.trim().toLowerCase();
    if (!isName(name, 'subdomain')) {
      const text = `${given.name} ${quote(given.value)}: the name of a node is letters, digits, dashes and dots`;
      this.#error(given, 'bad-name', text);
    }
    return name;
  }

  #bindAddress(text: string | null | undefined): string {
    if (!text) return '';
    const address = parseAddress(text);
    if (!address)
      this.#error({ path: ['bindAddress'] }, 'bad-address', `bindAddress ${quote(text)} is not an IP address`);
    return address && address.text !== '0.0.0.0' && address.text !== '::' ? address.text : '';
  }

  /** At most one of each family; kube-proxy looks at them only where local traffic is told by them. */
  #clusterCIDRs(given: Given<string> | undefined, mode: DetectLocal['mode']): readonly string[] {
    if (!given || given.value === '') return [];
    const cidrs = given.value.split(',');
    if (mode !== 'ClusterCIDR') return cidrs;
    const networks = cidrs.map((text) => this.#network(text, given));
    const count = new Set(networks.map((network) => network?.family)).size;
    if (count < cidrs.length && !networks.includes(undefined)) {
      this.#error(given, 'bad-cidr', `${given.name} ${quote(given.value)}: write one network, or one of each family`);
    }
    return cidrs;
  }

  #networks(given: Given<readonly string[]> | undefined): readonly string[] {
    if (!given) return [];
    for (const [i, text] of given.value.entries()) {
      this.#network(text, { name: given.name, path: given.path && [...given.path, i] });
    }
    return given.value;
  }

  #network(text: string, { name, path }: Omit<Given<unknown>, 'value'>): Network | undefined {
    const network = parseNetwork(text);
    if (!network) {
      const hint = 'write it like 10.0.0.0/8 or fd00::/64';
      this.#error({ path }, 'bad-cidr', `${name} ${quote(text)} is not a network: ${hint}`);
    }
    return network;
  }

  #nodePortAddresses(given: Given<readonly string[]> | undefined): readonly string[] {
    if (!given?.value.includes('primary')) return this.#networks(given);
    if (given.value.length > 1) {
      this.#error(given, 'bad-cidr', `${given.name}: write either the one word primary, or networks`);
    }
    return ['primary'];
  }

  #detectLocal(): DetectLocal {
    const { detectLocalMode, detectLocal } = this.#config?.object ?? {};
    const given = this.#pick('--detect-local-mode', this.#flags.detectLocalMode, ['detectLocalMode'], detectLocalMode);
    const mode = detectLocalModes.find((known) => known === given?.value);
    if (given && given.value !== '' && !mode) {
      const near = findNearest(given.value, detectLocalModes);
      const hint = near ?? `one of ${detectLocalModes.join(', ')}`;
      this.#error(given, 'bad-detect-local', `${given.name} is ${quote(given.value)}: write ${hint}`);
    }
    switch (mode) {
      case 'BridgeInterface': {
        const bridgeInterface = this.#flags.podBridgeInterface ?? detectLocal?.bridgeInterface ?? '';
        this.#interfaceName(bridgeInterface, mode, 'bridgeInterface', '--pod-bridge-interface');
        return { mode, bridgeInterface };
      }
      case 'InterfaceNamePrefix': {
        const interfaceNamePrefix = this.#flags.podInterfaceNamePrefix ?? detectLocal?.interfaceNamePrefix ?? '';
        this.#interfaceName(interfaceNamePrefix, mode, 'interfaceNamePrefix', '--pod-interface-name-prefix');
        return { mode, interfaceNamePrefix };
      }
      case 'NodeCIDR':
        return { mode };
      case 'ClusterCIDR':
      case undefined:
        return { mode: 'ClusterCIDR' };
      default:
        return mode satisfies never;
    }
  }

  #interfaceName(name: string, mode: string, field: string, flag: string): void {
    const path = this.#config?.object.detectLocal ? ['detectLocal', field] : ['detectLocalMode'];
    if (name === '') {
      this.#error({ path }, 'bad-detect-local', `detectLocalMode ${mode} needs detectLocal.${field}, or ${flag}`);
    } else if (!/^[^\s/"'\\#\p{Cc}]{1,15}$/u.test(name)) {
      const text = `${quote(name)} is no interface name: 15 characters at most, without blanks, quotes or slashes`;
      this.#error({ path }, 'bad-detect-local', text);
    }
  }

  #scheduler(given: Given<string> | undefined): string {
    if (!given || given.value === '') return 'rr';
    if (!nodeSchedulers.includes(given.value)) {
      const text = `${given.name} is ${quote(given.value)}: write one of ${nodeSchedulers.join(', ')}`;
      this.#error(given, 'bad-scheduler', text);
    }
    return given.value;
  }

  #flag(name: string, value: boolean | string | undefined): boolean | undefined {
    if (value === undefined || typeof value === 'boolean') return value;
    if (/^(?:1|t|true)$/i.test(value)) return true;
    if (/^(?:0|f|false)$/i.test(value)) return false;
    this.#error({ path: undefined }, 'bad-flag', `${name} is ${quote(value)}: write true or false`);
    return undefined;
  }

  #masqueradeBit(value: string | undefined): number | undefined {
    if (value === undefined) return undefined;
    const bit = Number(value);
    if (/^\d{1,2}$/.test(value) && bit <= 31) return bit;
    const text = `--iptables-masquerade-bit ${quote(value)}: the bit of the packet mark is a number from 0 to 31`;
    this.#error({ path: undefined }, 'bad-masquerade-bit', text);
    return undefined;
  }

  #conntrackSeconds(
    field: 'tcpEstablishedTimeout' | 'tcpCloseWaitTimeout' | 'udpTimeout' | 'udpStreamTimeout',
    fallback: number,
  ): number {
    const value = this.#config?.object.conntrack?.[field];
    return this.#seconds(this.#pick<string>('', undefined, ['conntrack', field], value), fallback);
  }

  /** Whole seconds, as the kernel has them; 0 leaves its own. */
  #ipvsSeconds(given: Given<string> | undefined): number {
    const seconds = Math.floor(this.#seconds(given, 0));
    if (!given || seconds <= mostIpvsSeconds) return seconds;
    this.#error(
      given,
      'bad-duration',
      `${given.name} is ${quote(given.value)}: ipvsadm takes no more than 31 days (744h)`,
    );
    return 0;
  }

  #seconds(given: Given<string> | undefined, fallback: number): number {
    if (!given) return fallback;
    const seconds = parseDuration(given.value);
    if (seconds !== undefined && seconds >= 0) return seconds;
    this.#error(given, 'bad-duration', `${given.name} is ${quote(given.value)}: write a duration such as 15m0s or 30s`);
    return fallback;
  }
}

/** pflag's StringSlice: commas between the values, and a flag given more than once adds to them. */
function splitList(value: string | readonly string[] | undefined): readonly string[] | undefined {
  if (value === undefined) return undefined;
  const parts = typeof value === 'string' ? [value] : value;
  return parts.flatMap((part) => (part === '' ? [] : part.split(',')));
}
