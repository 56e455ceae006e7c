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
  readonly bindAddress?: string | undefined;
  /** "A=true,B=false", or one or more each. */
  readonly featureGates?: string | readonly string[] | undefined;
  readonly conntrackMaxPerCore?: string | undefined;
  readonly conntrackMin?: string | undefined;
  readonly conntrackTcpTimeoutEstablished?: string | undefined;
  readonly conntrackTcpTimeoutCloseWait?: string | undefined;
  readonly conntrackTcpBeLiberal?: boolean | string | undefined;
  readonly conntrackUdpTimeout?: string | undefined;
  readonly conntrackUdpTimeoutStream?: string | undefined;
}

/** Go's strconv.ParseBool, in any case. */
export function readFlag(value: string): boolean | undefined {
  if (/^(?:1|t|true)$/i.test(value)) return true;
  return /^(?:0|f|false)$/i.test(value) ? false : undefined;
}

/** pflag's StringSlice: commas between the values, and a flag given more than once adds to them. */
export function splitList(value: string | readonly string[] | undefined): readonly string[] | undefined {
  if (value === undefined) return undefined;
  const parts = typeof value === 'string' ? [value] : value;
  return parts.flatMap((part) => (part === '' ? [] : part.split(',')));
}
