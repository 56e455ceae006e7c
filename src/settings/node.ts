import { anAddress, nameForms } from '../base/findings/fields.ts';
import { text } from '../base/json/kubernetes-schema.ts';
import { oneOf, textThat } from '../base/json/schema.ts';
import { isName } from '../base/names.ts';
import { parseAddress } from '../kernel/address.ts';
import { proxyModeNames, proxyModes } from '../kube-proxy/modes.ts';
import { plainSetting, proxyField, proxyFlag, refuseValue } from './setting.ts';

/** The mode. All other settings depend on it, so kpc chooses it before them (src/input/configuration/resolve-settings.ts). */
export const mode = plainSetting({
  flag: {
    ...proxyFlag(
      'text',
      '--proxy-mode <mode>',
      `${proxyModeNames} (default: as the config says, iptables if it names none, ipvs without a config)`,
      { rank: -2 },
    ),
    group: undefined,
  },
  field: proxyField('mode', text),
  defaultIn: (chosen) => chosen,
  read: (_, source) => source.mode,
  stored: oneOf(...proxyModes),
});

/** '' if it is not set. Trimmed and in lower case, as kube-proxy reads it (GetHostname of component-helpers). */
export const hostnameOverride = plainSetting({
  flag: proxyFlag('text', '--hostname-override <name>', 'the name that kube-proxy uses for the node', { rank: 3 }),
  field: proxyField('hostnameOverride', text),
  skipsEmpty: true,
  defaultIn: () => '',
  read: (written, source) => {
    const name = written.value.trim().toLowerCase();
    if (isName(name, 'subdomain')) return name;
    return refuseValue(source, written, nameForms.subdomain);
  },
  stored: textThat("a node's name", 'isNodeName'),
});

/** '' if it is not set. The unspecified addresses (0.0.0.0, ::) count as not set. */
export const bindAddress = plainSetting({
  flag: proxyFlag('text', '--bind-address <ip>', "the node's own address, instead of the Node object's", { rank: 1 }),
  field: proxyField('bindAddress', text),
  skipsEmpty: true,
  defaultIn: () => '',
  read: (written, source) => {
    const address = parseAddress(written.value);
    if (!address) return refuseValue(source, written, anAddress);
    return address.text === '0.0.0.0' || address.text === '::' ? '' : address.text;
  },
  stored: textThat('an IP address', 'isAddressOrNothing'),
});
