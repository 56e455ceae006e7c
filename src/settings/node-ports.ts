import { flag, texts } from '../diagnostics/json-schema.ts';
import { listOf, text } from '../base/shape.ts';
import { parseNetwork } from '../kernel/address.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import { behavioursOf } from '../kube-proxy/releases.ts';
import { field } from './field.ts';
import { listFlag, switchFlag } from './flag.ts';
import { readNetwork, switchSetting } from './kinds.ts';
import { givenList, itemOf, refuse, setting } from './setting.ts';
import type { Given, SettingSource } from './setting.ts';

const addressesFlag = listFlag('--nodeport-addresses <cidrs>', 'where NodePorts listen: CIDRs, or the word primary');
const addressesField = field('nodePortAddresses', texts);

/** CIDRs, or the one word 'primary'. */
export const nodePortAddresses = setting({
  flags: [addressesFlag],
  fields: [addressesField],
  defaultIn: (mode): readonly string[] => modeFacts[mode].defaultNodePortAddresses,
  read: (source) => {
    const written = givenList(source, addressesFlag, addressesField);
    if (!written?.value.length) return undefined;
    if (written.value.includes('primary')) return readPrimary(source, written);
    for (const [i, value] of written.value.entries()) readNetwork(source, itemOf(written, value, i));
    return written.value;
  },
  stored: listOf(text),
  must: {
    text: 'be CIDRs, or the word primary',
    isMet: (list) => (list.length === 1 && list[0] === 'primary') || list.every((cidr) => parseNetwork(cidr)),
  },
  dumped: [],
});

function readPrimary(source: SettingSource, written: Given<readonly string[]>): readonly string[] {
  if (written.value.length > 1) {
    refuse(source, written, 'bad-cidr', { problem: 'primary-with-networks', field: written.name });
  }
  const { release } = source;
  if (!behavioursOf(release).has('primary-node-ports')) {
    refuse(source, written, 'bad-cidr', { problem: 'unknown-primary', field: written.name, release });
  }
  return ['primary'];
}

/** Which modes go by it, modeFacts says. */
export const localhostNodePorts = switchSetting({
  flag: switchFlag('--iptables-localhost-nodeports [bool]', 'let iptables mode serve NodePorts on 127.0.0.1'),
  field: field('iptables.localhostNodePorts', flag),
  usual: true,
});
