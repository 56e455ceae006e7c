import { aNetwork } from '../base/findings/fields.ts';
import { texts } from '../base/json/kubernetes-schema.ts';
import { joinWords } from '../base/printable.ts';
import { listOf, text as storedText } from '../base/json/schema.ts';
import { parseNetwork } from '../kernel/address.ts';
import { isNodePortWord, modeFacts, nodePortWords, type NodePortWord } from '../kube-proxy/modes.ts';
import { behaviourChanges, behavioursOf, kubeProxyVersions } from '../kube-proxy/releases.ts';
import { readNetwork, switchSetting } from './kinds.ts';
import {
  itemsOf,
  plainSetting,
  proxyField,
  proxyFlag,
  refuseValue,
  type Given,
  type SettingSource,
} from './setting.ts';

/** CIDRs and words (validateKubeProxyNodePortAddress). Up to Kubernetes 1.36, the one word is primary, alone. */
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
  if (repeated)
    refuseValue(source, repeated, 'it once', { because: 'it is there twice, and kube-proxy does not start' });
  for (const item of items) {
    if (isNodePortWord(item.value) || parseNetwork(item.value)) continue;
    refuseValue(source, item, `${aNetwork}, or one of the words ${joinWords(nodePortWords)}`);
  }
}

/** Of a release that takes either CIDRs or the one word primary. */
function checkUnmixed(written: Given<readonly string[]>, source: SettingSource): void {
  const { value: list } = written;
  const version = kubeProxyVersions[source.release];
  const because = `kube-proxy ${version} does not take this, and does not start`;
  const expected = `networks; Kubernetes ${behaviourChanges['node-port-words'].since} takes the words, too`;
  if (!list.includes('primary')) {
    for (const item of itemsOf(written)) {
      if (isNodePortWord(item.value)) refuseValue(source, item, expected, { because });
      else readNetwork(item, source);
    }
    return;
  }
  const isWarning = list.length === 1;
  if (isWarning && behavioursOf(source.release).has('primary-node-ports')) return;
  const taken = isWarning ? '; compiled as later releases read it' : '';
  refuseValue(source, { ...written, value: list.join(',') }, expected, { because: because + taken, isWarning });
}

/** modeFacts says which modes use it. */
export const localhostNodePorts = switchSetting(
  '--iptables-localhost-nodeports [bool]',
  'let iptables mode serve node ports on 127.0.0.1',
  'iptables.localhostNodePorts',
  true,
);
