import { flag, texts } from '../../diagnostics/json-schema.ts';
import { listOf, text } from '../../base/json-shape.ts';
import { parseNetwork } from '../../kernel/address.ts';
import { modeFacts } from '../modes.ts';
import { isNodePortWord, nodePortWords, type NodePortWord } from '../node-port-words.ts';
import { behavioursOf, type Behaviours } from '../releases.ts';
import { field } from './field.ts';
import { listFlag, switchFlag } from './flag.ts';
import { noNetwork, readNetwork, switchSetting } from './kinds.ts';
import { givenList, itemOf, refuse, setting, type Given, type SettingSource } from './setting.ts';

const addressesFlag = listFlag(
  '--nodeport-addresses <cidrs>',
  'where node ports listen: CIDRs, and the words primary, localhost and all',
);
const addressesField = field('nodePortAddresses', texts);

/** CIDRs and words (validateKubeProxyNodePortAddress). Up to Kubernetes 1.36, the one word is primary, alone. */
export const nodePortAddresses = setting({
  flags: [addressesFlag],
  fields: [addressesField],
  defaultIn: (mode): readonly string[] => modeFacts[mode].defaultNodePortAddresses,
  read: (source) => {
    const written = givenList(source, addressesFlag, addressesField);
    if (!written?.value.length) return undefined;
    const behaviours = behavioursOf(source.release);
    if (behaviours.has('node-port-words')) checkMixed(source, written);
    else if (written.value.includes('primary')) checkPrimary(source, written, behaviours);
    else for (const [i, value] of written.value.entries()) readOnlyNetwork(source, itemOf(written, value, i));
    return written.value;
  },
  stored: listOf(text),
  must: {
    text: 'be CIDRs and words of primary, localhost and all, each word once',
    isMet: (list) =>
      repeatedWord(list) === undefined && list.every((each) => isNodePortWord(each) || parseNetwork(each)),
  },
  dumped: [],
});

function repeatedWord(list: readonly string[]): NodePortWord | undefined {
  return list.filter(isNodePortWord).find((word, i, words) => words.indexOf(word) !== i);
}

function checkMixed(source: SettingSource, written: Given<readonly string[]>): void {
  const repeated = repeatedWord(written.value);
  if (repeated !== undefined) {
    const item = itemOf(written, repeated, written.value.lastIndexOf(repeated));
    refuse(source, item, 'bad-cidr', { problem: 'repeated-word', field: written.name, word: repeated });
  }
  for (const [i, value] of written.value.entries()) {
    if (isNodePortWord(value) || parseNetwork(value)) continue;
    refuse(source, itemOf(written, value, i), 'bad-cidr', {
      ...noNetwork({ ...written, value }),
      words: nodePortWords,
    });
  }
}

function checkPrimary(source: SettingSource, written: Given<readonly string[]>, behaviours: Behaviours): void {
  const { release } = source;
  if (written.value.length > 1) {
    refuse(source, written, 'bad-cidr', { problem: 'primary-with-others', field: written.name, release });
  }
  if (!behaviours.has('primary-node-ports')) {
    refuse(source, written, 'bad-cidr', { problem: 'unknown-primary', field: written.name, release });
  }
}

function readOnlyNetwork(source: SettingSource, item: Given<string>): void {
  const { value, name } = item;
  if (!isNodePortWord(value) || value === 'primary') return void readNetwork(source, item);
  refuse(source, item, 'bad-cidr', { problem: 'unknown-word', field: name, word: value, release: source.release });
}

/** Which modes go by it, modeFacts says. */
export const localhostNodePorts = switchSetting({
  flag: switchFlag('--iptables-localhost-nodeports [bool]', 'let iptables mode serve node ports on 127.0.0.1'),
  field: field('iptables.localhostNodePorts', flag),
  usual: true,
});
