import { findNearest } from '../base/find-nearest.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { schedulers } from '../cluster/ipvs-annotations.ts';
import type { DetectLocal, FieldPath, ProxySettings, Sourced } from '../cluster/objects.ts';
import { parseAddress, parseNetwork } from '../kernel/address.ts';
import type { Network } from '../kernel/address.ts';
import { mostIpvsSeconds } from '../kernel/ipvs.ts';
import { isInterfaceName, isInterfacePrefix, isName } from '../cluster/object-names.ts';
import { checkStart } from './check-start.ts';
import { chooseMode } from './choose-mode.ts';
import { parseDuration } from './durations.ts';
import { checkFeatureGates } from './feature-gates.ts';
import { behavioursOf, kubeProxyVersions, newestRelease } from '../kube-proxy/releases.ts';
import type { FeatureGates, Release } from '../kube-proxy/releases.ts';
import { modeFacts, programs } from '../kube-proxy/modes.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import { readFlag, splitList } from './proxy-flags.ts';
import type { ProxyFlags } from './proxy-flags.ts';
import type { KubeProxyConfig } from './schemas/kube-proxy-configuration.ts';
import { quote } from '../base/wording.ts';

/** Settings with what is wrong with the values they came from; not to be used when there is an error. */
export interface ResolvedSettings {
  readonly settings: ProxySettings;
  readonly gates: FeatureGates;
  readonly diagnostics: readonly Diagnostic[];
  /** Which mode was taken and why, where nothing names one. */
  readonly modeNote: Diagnostic | undefined;
}

const detectLocalModes = ['ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix'] as const;

const mostInt32 = 2 ** 31 - 1;

const bitHint = 'the bit of the packet mark is a number from 0 to 31';

const networkHint = 'write it like 10.0.0.0/8 or fd00::/64';

/** A value with where it was written: a flag, or a field of the config file. */
interface Given<T> {
  readonly value: T;
  /** What the user calls it: "--cluster-cidr" or "clusterCIDR". */
  readonly name: string;
  readonly path: FieldPath | undefined;
}

/**
 * Settings from flags over the config file over kube-proxy's defaults (pkg/proxy/apis/config/v1alpha1 defaults.go,
 * checked as in pkg/proxy/apis/config/validation), but that the mode is ipvs where there is no configuration at all.
 */
export function resolveSettings(
  config: Sourced<KubeProxyConfig> | undefined,
  flags: ProxyFlags,
  release: Release = newestRelease,
): ResolvedSettings {
  const resolver = new SettingsResolver(config, flags, release);
  const settings = resolver.resolve();
  const { gates, diagnostics, modeNote } = resolver;
  return { settings, gates, diagnostics, modeNote };
}

/** What is wrong with nodePortAddresses that are the word primary, in a release that does not know it. */
export function describePrimary(name: string, release: Release): string | undefined {
  if (behavioursOf(release).has('primary-node-ports')) return undefined;
  const version = kubeProxyVersions[release];
  return `${name}: kube-proxy ${version} does not know the word primary, and does not start; compiled as later releases read it`;
}

class SettingsResolver {
  readonly diagnostics: Diagnostic[] = [];
  readonly modeNote: Diagnostic | undefined;
  readonly #config: Sourced<KubeProxyConfig> | undefined;
  readonly #flags: ProxyFlags;
  readonly #mode: ProxySettings['mode'];
  readonly #release: Release;
  gates: FeatureGates = new Map();

  constructor(config: Sourced<KubeProxyConfig> | undefined, flags: ProxyFlags, release: Release) {
    this.#release = release;
    this.#config = config;
    this.#flags = flags;
    const { mode, error, note } = chooseMode(flags.proxyMode, config, release);
    this.#mode = mode;
    this.modeNote = note;
    if (error) this.diagnostics.push(error);
  }

  resolve(): ProxySettings {
    const { iptables, ...config } = this.#config?.object ?? {};
    const { masqueradeAll, masqueradeBit } = this.#masquerade();
    const flags = this.#flags;
    const detectLocal = this.#detectLocal();
    const gates = (this.gates = this.#featureGates());
    for (const { path, code, text } of checkStart(this.#config?.object ?? {}, this.#mode, gates, this.#release)) {
      this.#error({ path }, code, text);
    }
    return {
      release: this.#release,
      mode: this.#mode,
      hostnameOverride: this.#hostname(flags.hostnameOverride, config.hostnameOverride),
      bindAddress: this.#bindAddress(
        this.#pick('--bind-address', flags.bindAddress || undefined, ['bindAddress'], config.bindAddress),
      ),
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
      ...(behavioursOf(this.#release, gates).has('external-ips') ? {} : { ignoresExternalIPs: true as const }),
      masqueradeAll,
      masqueradeBit,
      localhostNodePorts:
        this.#flag('--iptables-localhost-nodeports', flags.iptablesLocalhostNodeports) ??
        iptables?.localhostNodePorts ??
        true,
      ipvs: this.#ipvs(),
      conntrack: this.#conntrack(),
    };
  }

  #ipvs(): ProxySettings['ipvs'] {
    const ipvs = this.#config?.object.ipvs;
    const flags = this.#flags;
    return {
      scheduler: this.#scheduler(
        this.#pick('--ipvs-scheduler', flags.ipvsScheduler, ['ipvs', 'scheduler'], ipvs?.scheduler),
      ),
      strictARP: this.#flag('--ipvs-strict-arp', flags.ipvsStrictArp) ?? ipvs?.strictARP ?? false,
      excludeCIDRs: this.#excludeCIDRs(
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
    };
  }

  #conntrack(): ProxySettings['conntrack'] {
    const conntrack = this.#config?.object.conntrack;
    const flags = this.#flags;
    const seconds = (
      flag: string,
      fromFlag: string | undefined,
      field: 'tcpEstablishedTimeout' | 'tcpCloseWaitTimeout' | 'udpTimeout' | 'udpStreamTimeout',
      fallback: number,
    ): number => this.#seconds(this.#pick(flag, fromFlag, ['conntrack', field], conntrack?.[field]), fallback);
    return {
      maxPerCore:
        this.#amount('--conntrack-max-per-core', flags.conntrackMaxPerCore) ?? conntrack?.maxPerCore ?? 32 * 1024,
      min: this.#amount('--conntrack-min', flags.conntrackMin) ?? conntrack?.min ?? 128 * 1024,
      tcpEstablishedTimeout: seconds(
        '--conntrack-tcp-timeout-established',
        flags.conntrackTcpTimeoutEstablished,
        'tcpEstablishedTimeout',
        24 * 3600,
      ),
      tcpCloseWaitTimeout: seconds(
        '--conntrack-tcp-timeout-close-wait',
        flags.conntrackTcpTimeoutCloseWait,
        'tcpCloseWaitTimeout',
        3600,
      ),
      tcpBeLiberal:
        this.#flag('--conntrack-tcp-be-liberal', flags.conntrackTcpBeLiberal) ?? conntrack?.tcpBeLiberal ?? false,
      udpTimeout: seconds('--conntrack-udp-timeout', flags.conntrackUdpTimeout, 'udpTimeout', 0),
      udpStreamTimeout: seconds(
        '--conntrack-udp-timeout-stream',
        flags.conntrackUdpTimeoutStream,
        'udpStreamTimeout',
        0,
      ),
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

  /** What kube-proxy does not look at but in one mode is an error there alone. */
  #faultOf(mode: ProxyMode, { path }: { readonly path: FieldPath | undefined }, code: string, text: string): void {
    if (this.#mode === mode) {
      this.#error({ path }, code, text);
      return;
    }
    const place = path && this.#config?.source.place(path);
    const ignored = `${text}; mode ${this.#mode} ignores it`;
    this.diagnostics.push({ severity: 'warning', code, text: ignored, place });
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

  #bindAddress(given: Given<string> | undefined): string {
    if (!given || given.value === '') return '';
    const address = parseAddress(given.value);
    if (!address) this.#error(given, 'bad-address', `${given.name} ${quote(given.value)} is not an IP address`);
    return address && address.text !== '0.0.0.0' && address.text !== '::' ? address.text : '';
  }

  /** The configuration's gates with those of the flag over them. */
  #featureGates(): FeatureGates {
    const configured = Object.entries(this.#config?.object.featureGates ?? {});
    const flagged = this.#readGates(splitList(this.#flags.featureGates) ?? []);
    const gates = new Map([...configured.map(([name, isOn]) => [name, isOn ?? false] as const), ...flagged]);
    const ofFlag = new Map(flagged);
    for (const { gate, text } of checkFeatureGates(gates, this.#release)) {
      const isConfigured = !ofFlag.has(gate) && configured.some(([name]) => name === gate);
      this.#error({ path: isConfigured ? ['featureGates', gate] : undefined }, 'bad-feature-gate', text);
    }
    return gates;
  }

  /** "Name=true" each, with blanks around both allowed. */
  #readGates(texts: readonly string[]): (readonly [string, boolean])[] {
    return texts.flatMap((text) => {
      if (text.trim() === '') return [];
      const [name = '', ...values] = text.split('=');
      const isOn = readFlag(values.join('=').trim());
      if (values.length > 0 && isOn !== undefined) return [[name.trim(), isOn] as const];
      const hint = 'write the name of a gate, = and true or false';
      this.#error({ path: undefined }, 'bad-feature-gate', `--feature-gates ${quote(text)}: ${hint}`);
      return [];
    });
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

  #excludeCIDRs(given: Given<readonly string[]> | undefined): readonly string[] {
    return (given?.value ?? []).filter((text, i) => {
      if (!given || parseNetwork(text)) return true;
      const path = given.path && [...given.path, i];
      this.#faultOf('ipvs', { path }, 'bad-cidr', `${given.name} ${quote(text)} is not a network: ${networkHint}`);
      return false;
    });
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
      this.#error({ path }, 'bad-cidr', `${name} ${quote(text)} is not a network: ${networkHint}`);
    }
    return network;
  }

  #nodePortAddresses(given: Given<readonly string[]> | undefined): readonly string[] {
    if (!given?.value.length) return modeFacts[this.#mode].defaultNodePortAddresses;
    if (!given.value.includes('primary')) return this.#networks(given);
    if (given.value.length > 1) {
      this.#error(given, 'bad-cidr', `${given.name}: write either the one word primary, or networks`);
    }
    const text = describePrimary(given.name, this.#release);
    if (text !== undefined) {
      const place = given.path && this.#config?.source.place(given.path);
      this.diagnostics.push({ severity: 'warning', code: 'bad-cidr', text, place });
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
    } else if (field === 'interfaceNamePrefix' ? !isInterfacePrefix(name) : !isInterfaceName(name)) {
      const [what, most] =
        field === 'interfaceNamePrefix' ? ['a prefix of interface names', 14] : ['an interface name', 15];
      const text = `${quote(name)} is not ${what}: ${most} bytes at most, without blanks, quotes, slashes or *; kube-proxy takes it, and its rules fail or match other interfaces`;
      this.#error({ path }, 'bad-detect-local', text);
    }
  }

  #scheduler(given: Given<string> | undefined): string {
    if (!given || given.value === '') return 'rr';
    if (schedulers.includes(given.value)) return given.value;
    const text = `${given.name} is ${quote(given.value)}: write one of ${schedulers.join(', ')}`;
    this.#faultOf('ipvs', given, 'bad-scheduler', text);
    return 'rr';
  }

  #flag(name: string, value: boolean | string | undefined): boolean | undefined {
    if (value === undefined || typeof value === 'boolean') return value;
    const isOn = readFlag(value);
    if (isOn !== undefined) return isOn;
    this.#error({ path: undefined }, 'bad-flag', `${name} is ${quote(value)}: write true or false`);
    return undefined;
  }

  /**
   * --masquerade-all counts in every mode, --iptables-masquerade-bit only where the section iptables does: kube-proxy
   * checks it all the same. The bit in the section nftables it does not even look at in other modes.
   */
  #masquerade(): Pick<ProxySettings, 'masqueradeAll' | 'masqueradeBit'> {
    const config = this.#config?.object ?? {};
    const { masqueradeSection } = modeFacts[this.#mode];
    const flagBit = this.#masqueradeBit(this.#flags.iptablesMasqueradeBit);
    const bits = { iptables: flagBit ?? config.iptables?.masqueradeBit, nftables: this.#nftablesBit() };
    return {
      masqueradeAll:
        this.#flag('--masquerade-all', this.#flags.masqueradeAll) ?? config[masqueradeSection]?.masqueradeAll ?? false,
      masqueradeBit: bits[masqueradeSection] ?? 14,
    };
  }

  #masqueradeBit(value: string | undefined): number | undefined {
    if (value === undefined) return undefined;
    const bit = Number(value);
    if (/^\d{1,2}$/.test(value) && bit <= 31) return bit;
    this.#error({ path: undefined }, 'bad-masquerade-bit', `--iptables-masquerade-bit ${quote(value)}: ${bitHint}`);
    return undefined;
  }

  #nftablesBit(): number | undefined {
    const bit = this.#config?.object.nftables?.masqueradeBit;
    if (bit === undefined || bit === null || (bit >= 0 && bit <= 31)) return bit ?? undefined;
    const path = ['nftables', 'masqueradeBit'];
    this.#faultOf('nftables', { path }, 'bad-masquerade-bit', `masqueradeBit ${bit}: ${bitHint}`);
    return undefined;
  }

  #amount(name: string, value: string | undefined): number | undefined {
    if (value === undefined) return undefined;
    const amount = Number(value);
    if (/^\d{1,10}$/.test(value) && amount <= mostInt32) return amount;
    this.#error({ path: undefined }, 'bad-number', `${name} ${quote(value)}: write a number from 0 to ${mostInt32}`);
    return undefined;
  }

  /** Whole seconds, as the kernel has them; 0 leaves its own. */
  #ipvsSeconds(given: Given<string> | undefined): number {
    if (!given) return 0;
    const seconds = parseDuration(given.value);
    if (seconds === undefined || (seconds < 0 && programs(this.#mode, 'ipvsTimeouts'))) return this.#seconds(given, 0);
    const whole = Math.floor(seconds);
    if (whole >= 0 && whole <= mostIpvsSeconds) return whole;
    const hint = whole < 0 ? 'write a duration from 0 up' : 'ipvsadm takes no more than 31 days (744h)';
    this.#faultOf('ipvs', given, 'bad-duration', `${given.name} is ${quote(given.value)}: ${hint}`);
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
