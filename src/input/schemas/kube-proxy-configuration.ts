import { flag, integer, list, object, text, texts } from './shared.ts';
import type { Schema } from './shared.ts';

/** A duration as Go writes it. kube-proxy takes no bare numbers. */
const duration: Schema = { ...text, expected: 'a duration such as "15m0s" or "30s"' };
const amount = integer(0, 2 ** 31 - 1, 'a number from 0 up');
const bit = integer(0, 31, 'the bit of the packet mark is a number from 0 to 31', 'bad-masquerade-bit');

function section(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: ['object', 'null'], properties, additionalProperties: false, expected: 'a mapping of fields' };
}

const anything: Schema = {};

const anyInteger: Schema = { type: ['integer', 'null'], expected: 'a whole number' };
const integerOrText: Schema = { type: ['integer', 'string', 'null'], expected: 'a number or a string' };
const logOptions = object({ splitStream: flag, infoBufferSize: integerOrText });

/** kube-proxy's KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1), all of its fields. */
export const kubeProxyConfigurationSchema: Schema = section({
  apiVersion: text,
  kind: text,
  featureGates: { ...object({}), additionalProperties: flag, expected: 'a mapping of true and false' },
  clientConnection: object({ burst: anyInteger }),
  logging: object({
    format: text,
    flushFrequency: integerOrText,
    verbosity: anyInteger,
    vmodule: list({ ...object({ filePattern: text, verbosity: anyInteger }), type: 'object' }),
    options: object({ text: logOptions, json: logOptions }),
  }),
  hostnameOverride: text,
  bindAddress: text,
  healthzBindAddress: text,
  metricsBindAddress: text,
  bindAddressHardFail: flag,
  enableProfiling: flag,
  showHiddenMetricsForVersion: text,
  mode: text,
  iptables: section({
    masqueradeBit: bit,
    masqueradeAll: flag,
    localhostNodePorts: flag,
    syncPeriod: duration,
    minSyncPeriod: duration,
  }),
  ipvs: section({
    syncPeriod: duration,
    minSyncPeriod: duration,
    scheduler: text,
    excludeCIDRs: texts,
    strictARP: flag,
    tcpTimeout: duration,
    tcpFinTimeout: duration,
    udpTimeout: duration,
  }),
  nftables: section({
    // kube-proxy checks it in mode nftables only.
    masqueradeBit: anyInteger,
    masqueradeAll: flag,
    syncPeriod: duration,
    minSyncPeriod: duration,
  }),
  winkernel: anything,
  detectLocalMode: text,
  detectLocal: section({ bridgeInterface: text, interfaceNamePrefix: text }),
  clusterCIDR: text,
  nodePortAddresses: texts,
  oomScoreAdj: integer(-1000, 1000, 'a number from -1000 to 1000'),
  conntrack: section({
    maxPerCore: amount,
    min: amount,
    tcpEstablishedTimeout: duration,
    tcpCloseWaitTimeout: duration,
    tcpBeLiberal: flag,
    udpTimeout: duration,
    udpStreamTimeout: duration,
  }),
  configSyncPeriod: duration,
  portRange: text,
  windowsRunAsService: flag,
});

/** How often rules are written anew. */
export interface RawSyncPeriods {
  readonly syncPeriod?: string | null;
  readonly minSyncPeriod?: string | null;
}

interface RawLogOptions {
  readonly splitStream?: boolean | null;
  readonly infoBufferSize?: number | string | null;
}

/**
 * A KubeProxyConfiguration as its schema has it: the fields that shape rules, and those that can keep kube-proxy from
 * starting. The values of the first become settings later.
 */
export interface KubeProxyConfig {
  readonly featureGates?: Readonly<Record<string, boolean | null>> | null;
  readonly clientConnection?: { readonly burst?: number | null } | null;
  readonly logging?: {
    readonly format?: string | null;
    readonly flushFrequency?: number | string | null;
    readonly verbosity?: number | null;
    readonly vmodule?: readonly { readonly filePattern?: string | null; readonly verbosity?: number | null }[] | null;
    readonly options?: { readonly text?: RawLogOptions | null; readonly json?: RawLogOptions | null } | null;
  } | null;
  readonly hostnameOverride?: string | null;
  readonly bindAddress?: string | null;
  readonly healthzBindAddress?: string | null;
  readonly metricsBindAddress?: string | null;
  readonly showHiddenMetricsForVersion?: string | null;
  readonly configSyncPeriod?: string | null;
  readonly mode?: string | null;
  readonly iptables?:
    | (RawSyncPeriods & {
        readonly masqueradeBit?: number | null;
        readonly masqueradeAll?: boolean | null;
        readonly localhostNodePorts?: boolean | null;
      })
    | null;
  readonly nftables?:
    | (RawSyncPeriods & {
        readonly masqueradeBit?: number | null;
        readonly masqueradeAll?: boolean | null;
      })
    | null;
  readonly ipvs?:
    | (RawSyncPeriods & {
        readonly scheduler?: string | null;
        readonly excludeCIDRs?: readonly string[] | null;
        readonly strictARP?: boolean | null;
        readonly tcpTimeout?: string | null;
        readonly tcpFinTimeout?: string | null;
        readonly udpTimeout?: string | null;
      })
    | null;
  readonly detectLocalMode?: string | null;
  readonly detectLocal?: {
    readonly bridgeInterface?: string | null;
    readonly interfaceNamePrefix?: string | null;
  } | null;
  readonly clusterCIDR?: string | null;
  readonly nodePortAddresses?: readonly string[] | null;
  readonly conntrack?: {
    readonly maxPerCore?: number | null;
    readonly min?: number | null;
    readonly tcpEstablishedTimeout?: string | null;
    readonly tcpCloseWaitTimeout?: string | null;
    readonly tcpBeLiberal?: boolean | null;
    readonly udpTimeout?: string | null;
    readonly udpStreamTimeout?: string | null;
  } | null;
}
