import { texts } from '../../diagnostics/json-schema.ts';
import { listOf, text } from '../../base/json-shape.ts';
import { parseNetwork } from '../../kernel/address.ts';
import { isNodePortWord, modeFacts, nodePortWords, type NodePortWord } from '../modes.ts';
import { behavioursOf } from '../releases.ts';
import { noNetwork, readNetwork, switchSetting } from './kinds.ts';
import { itemsOf, plainSetting, proxyField, proxyFlag, refuse, type Given, type SettingSource } from './setting.ts';

/** CIDRs and words (validateKubeProxyNodePortAddress). Up to Kubernetes 1.36, the one word is primary, alone. */
export const nodePortAddresses = plainSetting({
  flag: proxyFlag(
    'list',
    '--nodeport-addresses <cidrs>',
    'where node ports listen: CIDRs, and the words primary, localhost and all',
  ),
  field: proxyField('nodePortAddresses', texts),
  defaultIn: (mode): readonly string[] => modeFacts[mode].defaultNodePortAddresses,
  read: (written, source) => {
    if (written.value.length === 0) return undefined;
    if (behavioursOf(source.release).has('node-port-words')) checkMixed(written, source);
    else checkUnmixed(written, source);
    return written.value;
  },
  stored: listOf(text),
  must: {
    text: 'be CIDRs and words of primary, localhost and all, each word once',
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
  if (repeated && word)
    refuse(source, repeated, 'bad-cidr', { problem: 'repeated-word', field: written.name, value: word });
  for (const item of items) {
    if (isNodePortWord(item.value) || parseNetwork(item.value)) continue;
    refuse(source, item, 'bad-cidr', { ...noNetwork(item), words: nodePortWords });
  }
}

/** Of a release that takes either CIDRs or the one word primary. */
function checkUnmixed(written: Given<readonly string[]>, source: SettingSource): void {
  const { value: list, name: field } = written;
  const { release } = source;
  if (!list.includes('primary')) {
    for (const item of itemsOf(written)) {
      const { value } = item;
      if (!isNodePortWord(value)) readNetwork(item, source);
      else refuse(source, item, 'bad-cidr', { problem: 'word-of-release', field, value, release, isRead: false });
    }
    return;
  }
  const isRead = list.length === 1;
  if (isRead && behavioursOf(release).has('primary-node-ports')) return;
  refuse(source, written, 'bad-cidr', { problem: 'word-of-release', field, value: list.join(','), release, isRead });
}

/** modeFacts says which modes use it. */
export const localhostNodePorts = switchSetting(
  '--iptables-localhost-nodeports [bool]',
  'let iptables mode serve node ports on 127.0.0.1',
  'iptables.localhostNodePorts',
  true,
);
