import { text, texts } from '../base/json/kubernetes-schema.ts';
import { oneOf, optional, textThat, listOf, text as storedText } from '../base/json/schema.ts';
import { isName } from '../base/names.ts';
import { parseAddress, parseNetwork } from '../kernel/address.ts';
import { proxyModeNames, proxyModes, isNodePortWord, modeFacts, type NodePortWord } from '../kube-proxy/modes.ts';
import {
  plainSetting,
  proxyField,
  proxyFlag,
  refuseValue,
  itemsOf,
  setting,
  type Given,
  type SettingSource,
} from './setting.ts';
import { behaviourChanges, behavioursOf, kubeProxyVersions } from '../kube-proxy/releases.ts';
import { usualHealthz } from '../kube-proxy/node-port-listeners.ts';
import { readNetworkSetting, switchSetting } from './kinds.ts';
import { socket } from './other-fields.ts';

/** The mode. It is chosen before all other settings, because they depend on it (src/input/configuration/read-settings.ts). */
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

/** The node's name in the settings, or "". Trimmed and in lower case, as in kube-proxy (GetHostname in component-helpers). */
export const hostnameOverride = plainSetting({
  flag: proxyFlag('text', '--hostname-override <name>', 'the name that kube-proxy uses for the node', { rank: 3 }),
  field: proxyField('hostnameOverride', text),
  skipsEmpty: true,
  defaultIn: () => '',
  read: (written, source) => {
    const name = written.value.trim().toLowerCase();
    if (isName(name, 'subdomain')) return name;
    return refuseValue(source, written, { form: 'subdomain' });
  },
  stored: textThat("a node's name", 'isNodeName'),
});

/** The node's own address according to the settings, or "". The unspecified addresses 0.0.0.0 and :: count as unset. */
export const bindAddress = plainSetting({
  flag: proxyFlag('text', '--bind-address <ip>', "the node's own address, instead of the Node object's", { rank: 1 }),
  field: proxyField('bindAddress', text),
  skipsEmpty: true,
  defaultIn: () => '',
  read: (written, source) => {
    const address = parseAddress(written.value);
    if (!address) return refuseValue(source, written, { form: 'address' });
    return address.text === '0.0.0.0' || address.text === '::' ? '' : address.text;
  },
  stored: textThat('an IP address', 'isAddressOrNothing'),
  unseenIn: 'own',
});

const healthzField = proxyField('healthzBindAddress', socket);

/** The address at which load balancers of policy Cluster check the node's health. Undefined for the default. */
export const healthzBindAddress = setting({
  flags: [],
  fields: [healthzField],
  defaultIn: () => undefined,
  read: (source) => {
    const value = source.field(healthzField) || undefined;
    return value === usualHealthz || value === '[::]:10256' ? undefined : value;
  },
  stored: optional(storedText),
  unseenIn: 'own',
});

/** CIDRs and words (validateKubeProxyNodePortAddress). Up to 1.36 the only word is primary, which must be the only value. */
export const nodePortAddresses = plainSetting({
  flag: proxyFlag(
    'list',
    '--nodeport-addresses <cidrs>',
    'where node ports listen: CIDRs, and the words primary, localhost and all',
  ),
  field: proxyField('nodePortAddresses', texts),
  defaultIn: (chosen): readonly string[] => modeFacts[chosen].defaultNodePortAddresses,
  read: (written, source) => {
    if (written.value.length === 0) return undefined;
    if (behavioursOf(source.release).has('node-port-words')) checkMixed(written, source);
    else checkUnmixed(written, source);
    return written.value;
  },
  stored: listOf(storedText),
  must: {
    text: 'be CIDRs and the words primary, localhost and all, each word once',
    isMet: (list) =>
      repeatedWord(list) === undefined && list.every((each) => isNodePortWord(each) || parseNetwork(each)),
  },
});

function repeatedWord(list: readonly string[]): NodePortWord | undefined {
  return list.filter(isNodePortWord).find((word, i, words) => words.indexOf(word) !== i);
}

function checkMixed(written: Given<readonly string[]>, source: SettingSource): void {
  const items = itemsOf(written);
  const word = repeatedWord(written.value);
  const repeated = items.findLast(({ value }) => value === word);
  if (repeated)
    refuseValue(source, repeated, 'it once', { because: 'it is listed twice, so kube-proxy does not start' });
  for (const item of items) {
    if (isNodePortWord(item.value) || parseNetwork(item.value)) continue;
    refuseValue(source, item, { form: 'network-or-word' });
  }
}

function checkUnmixed(written: Given<readonly string[]>, source: SettingSource): void {
  const { value: list } = written;
  const version = kubeProxyVersions[source.release];
  const because = `kube-proxy ${version} does not start with it`;
  const expected = `networks; Kubernetes ${behaviourChanges['node-port-words'].since} also accepts the words`;
  if (!list.includes('primary')) {
    for (const item of itemsOf(written)) {
      if (isNodePortWord(item.value)) refuseValue(source, item, expected, { because });
      else readNetworkSetting(item, source);
    }
    return;
  }
  const isWarning = list.length === 1;
  if (isWarning && behavioursOf(source.release).has('primary-node-ports')) return;
  const taken = isWarning ? '; compiled as later releases read it' : '';
  refuseValue(source, { ...written, value: list.join(',') }, expected, { because: because + taken, isWarning });
}

/** See modeFacts for the modes that use this setting. */
export const localhostNodePorts = switchSetting(
  '--iptables-localhost-nodeports [bool]',
  'let iptables mode serve node ports on 127.0.0.1',
  'iptables.localhostNodePorts',
  true,
);
