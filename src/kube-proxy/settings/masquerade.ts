import { anyInteger, flag, integer } from '../../diagnostics/json-schema.ts';
import { boolean, wholeNumber } from '../../base/json-shape.ts';
import { modeFacts, type ModeFacts } from '../modes.ts';
import { field } from './field.ts';
import { switchFlag, textFlag } from './flag.ts';
import { switchOf } from './kinds.ts';
import { ignoredUnlessIn, onCommandLine, refuse, setting, type SettingSource } from './setting.ts';

/** The sections of the configuration that hold masquerade settings. Each mode reads one of them. */
type Section = ModeFacts['masqueradeSection'];

const allFlag = switchFlag('--masquerade-all [bool]', 'masquerade all traffic to cluster IPs', { rank: -1 });
const allFields = {
  iptables: field('iptables.masqueradeAll', flag),
  nftables: field('nftables.masqueradeAll', flag),
} satisfies Record<Section, unknown>;

/** --masquerade-all counts in every mode, the field only in the mode's own section. */
export const masqueradeAll = setting({
  flags: [allFlag],
  fields: Object.values(allFields),
  defaultIn: () => false,
  read: (source) => switchOf(source, allFlag) ?? source.field(allFields[modeFacts[source.mode].masqueradeSection]),
  stored: boolean,
});

const bitHint = 'the bit of the packet mark is a number from 0 to 31';

const bitFlag = textFlag('--iptables-masquerade-bit <bit>', 'the bit of the packet mark for masquerading, 0 to 31');
const bitFields = {
  iptables: field('iptables.masqueradeBit', integer(0, 31, bitHint, 'bad-masquerade-bit')),
  // kube-proxy checks it in mode nftables only.
  nftables: field('nftables.masqueradeBit', anyInteger),
} satisfies Record<Section, unknown>;

/**
 * The bit of the packet mark. --iptables-masquerade-bit counts only in modes that read the section iptables, but kube-proxy
 * checks it in all modes. It checks the bit in the section nftables only in nftables mode.
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
});

function flaggedBit(source: SettingSource): number | undefined {
  const value = source.flag(bitFlag);
  if (value === undefined) return undefined;
  const bit = Number(value);
  if (/^\d{1,2}$/.test(value) && bit <= 31) return bit;
  refuse(source, onCommandLine, 'bad-masquerade-bit', {
    field: bitFlag.name,
    found: { type: 'string', value },
    expected: 'a number from 0 to 31',
  });
  return undefined;
}

function nftablesBit(source: SettingSource): number | undefined {
  const bit = source.field(bitFields.nftables);
  if (bit === undefined || (bit >= 0 && bit <= 31)) return bit;
  refuse(source, bitFields.nftables, 'bad-masquerade-bit', {
    field: 'masqueradeBit',
    found: { type: 'number', value: bit },
    types: ['integer'],
    expected: bitHint,
    ignoredIn: ignoredUnlessIn('nftables', source),
  });
  return undefined;
}
