import { flag, int32, integer } from '../base/json/kubernetes-schema.ts';
import { boolean, wholeNumber } from '../base/json/schema.ts';
import { modeFacts, type ModeFacts } from '../kube-proxy/modes.ts';
import { readNumber, readSwitchOf } from './kinds.ts';
import {
  given,
  ignoredUnlessIn,
  proxyField,
  proxyFlag,
  refuseSetting,
  setting,
  type SettingSource,
} from './setting.ts';

type Section = ModeFacts['masqueradeSection'];

const allFlag = proxyFlag('switch', '--masquerade-all [bool]', 'masquerade all traffic to cluster IPs', { rank: -1 });
const allFields = {
  iptables: proxyField('iptables.masqueradeAll', flag),
  nftables: proxyField('nftables.masqueradeAll', flag),
} satisfies Record<Section, unknown>;

/** The flag --masquerade-all applies to every mode. The field applies only in the mode's own section. */
export const masqueradeAll = setting({
  flags: [allFlag],
  fields: Object.values(allFields),
  defaultIn: () => false,
  read: (source) => {
    const written = given(source, allFlag, allFields[modeFacts[source.mode].masqueradeSection]);
    return written && readSwitchOf(written, source);
  },
  stored: boolean,
});

const bitHint = 'the bit of the packet mark is a number from 0 to 31';

const bitFlag = proxyFlag(
  'text',
  '--iptables-masquerade-bit <bit>',
  'the bit of the packet mark for masquerading, 0 to 31',
);
const bitFields = {
  iptables: proxyField('iptables.masqueradeBit', integer(0, 31, bitHint)),
  // kube-proxy checks this field only in nftables mode.
  nftables: proxyField('nftables.masqueradeBit', int32),
} satisfies Record<Section, unknown>;

/**
 * kube-proxy checks --iptables-masquerade-bit in all modes, but uses it only in modes that read section iptables. It checks the field in
 * section nftables only in nftables mode.
 */
export const masqueradeBit = setting({
  flags: [bitFlag],
  fields: Object.values(bitFields),
  defaultIn: () => 14,
  read: (source) => {
    const bits: Record<Section, number | undefined> = {
      iptables: flaggedBit(source) ?? source.field(bitFields.iptables),
      nftables: nftablesBit(source),
    };
    return bits[modeFacts[source.mode].masqueradeSection];
  },
  stored: wholeNumber(0, 31),
  unseenIn: 'any',
});

function flaggedBit(source: SettingSource): number | undefined {
  const value = source.flag(bitFlag);
  return value === undefined ? undefined : readNumber({ value, name: bitFlag.name, path: undefined }, source, 31);
}

function nftablesBit(source: SettingSource): number | undefined {
  const value = source.field(bitFields.nftables);
  if (value === undefined || (value >= 0 && value <= 31)) return value;
  return refuseSetting(source, bitFields.nftables, 'bad-value', {
    field: 'masqueradeBit',
    found: { type: 'number', value },
    types: ['integer'],
    expected: bitHint,
    ignoredIn: ignoredUnlessIn('nftables', source),
  });
}
