import type { Minor } from '../../kube-proxy/announced.ts';
import type { GateFault } from '../../kube-proxy/feature-gates.ts';
import type { ProxyMode } from '../../kube-proxy/modes.ts';
import { row, type By, type Lists, type None, type Numbers, type Strings } from './rows.ts';

interface After {
  readonly to: ProxyMode | undefined;
}

interface SettingOfModes {
  readonly from: ProxyMode;
  readonly to: ProxyMode;
}

export type PreparationArguments = By<
  'step',
  {
    gate: { readonly fault: GateFault };
    'leave-mode': { readonly mode: ProxyMode; readonly minor: Minor };
    'replace-external-ips': Lists<'services'> & { readonly minor: Minor };
    'set-mode': { readonly mode: ProxyMode };
    'nft-version': None;
    'kube-proxy-version': None;
    /** `nodes` has the nodes with an older kernel, each with its version; empty if no version is known. */
    kernel: Strings<'oldest'> & Lists<'nodes'>;
    'announce-external-ips': After & Lists<'addresses'>;
    'announce-load-balancer-ips': After & Lists<'addresses'>;
    'masquerade-setting': SettingOfModes & Strings<'name' | 'value'>;
    'node-port-addresses': SettingOfModes & Strings<'was' | 'is'>;
    forwarding: After & Strings<'sysctl'> & { readonly isSetBefore: boolean };
    scheduler: After & Lists<'schedulers'>;
    timeouts: { readonly seconds: readonly number[] };
    'bound-addresses': After & Numbers<'addresses'>;
    route: After & Strings<'address'>;
    'accept-health-checks': SettingOfModes & { readonly ports: readonly number[] };
    'accept-forwarded': SettingOfModes;
    'invalid-packets': SettingOfModes;
    'strict-arp': None;
    'excluded-networks': After & Lists<'networks'>;
  }
>;

/** Steps that are certainly needed, as the input shows. The other steps may or may not be needed. */
const required: ReadonlySet<string> = new Set([
  'gate',
  'leave-mode',
  'replace-external-ips',
  'announce-external-ips',
  'masquerade-setting',
]);

export const equivalenceFindings = {
  preparation: row<PreparationArguments>({
    among: ['warning', 'note'],
    weigh: (details) =>
      required.has(details.step) || (details.step === 'kernel' && details.nodes.length > 0) ? 'warning' : 'note',
  }),
};
