import type { Minor } from '../../kube-proxy/announced.ts';
import type { GateFault } from '../../kube-proxy/feature-gates.ts';
import type { ProxyMode } from '../../kube-proxy/modes.ts';
import { row, type By, type Lists, type None, type Numbers, type Texts } from './rows.ts';

/** The mode after the change; undefined if nothing shows it. */
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
    /** `nodes`: those that are known to be older, each with its kernel; empty if no version is known to be. */
    kernel: Texts<'oldest'> & Lists<'nodes'>;
    'announce-external-ips': After & Lists<'addresses'>;
    'announce-load-balancer-ips': After & Lists<'addresses'>;
    'masquerade-setting': SettingOfModes & Texts<'name' | 'value'>;
    'node-port-addresses': SettingOfModes & Texts<'was' | 'is'>;
    forwarding: After & Texts<'sysctl'> & { readonly isSetBefore: boolean };
    scheduler: After & Lists<'schedulers'>;
    timeouts: { readonly seconds: readonly number[] };
    'bound-addresses': After & Numbers<'addresses'>;
    route: After & Texts<'address'>;
    'strict-arp': None;
    'excluded-networks': After & Lists<'networks'>;
  }
>;

/** The steps that the input shows to be needed: something is lost without them. Of the others only the nodes can tell. */
const required: ReadonlySet<string> = new Set([
  'gate',
  'leave-mode',
  'replace-external-ips',
  'announce-external-ips',
  'masquerade-setting',
]);

/** What kpc migrate asks for before a change. */
export const equivalenceFindings = {
  preparation: row<PreparationArguments>({
    among: ['warning', 'note'],
    weigh: (details) =>
      required.has(details.step) || (details.step === 'kernel' && details.nodes.length > 0) ? 'warning' : 'note',
  }),
};
