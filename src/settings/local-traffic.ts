import { findNearest, isInterfaceName, isInterfacePrefix } from '../base/names.ts';
import { text } from '../base/json/kubernetes-schema.ts';
import { printable } from '../base/printable.ts';
import { listOf, objectOf, text as storedText, textThat, variantOf, type Shaped } from '../base/json/schema.ts';
import { parseNetwork } from '../kernel/address.ts';
import { readNetworkSetting } from './kinds.ts';
import { given, plainSetting, proxyField, proxyFlag, refuseValue, setting, type SettingSource } from './setting.ts';

const modeFlag = proxyFlag(
  'text',
  '--detect-local-mode <mode>',
  'ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix',
);
const modeField = proxyField('detectLocalMode', text);

/** The modes that need the name or prefix of an interface. `most`: the greatest length in bytes. */
const interfaces = {
  BridgeInterface: {
    key: 'bridgeInterface',
    flag: proxyFlag('text', '--pod-bridge-interface <name>', 'the bridge of the pods, for BridgeInterface'),
    field: proxyField('detectLocal.bridgeInterface', text),
    isRight: isInterfaceName,
    most: 15,
  },
  InterfaceNamePrefix: {
    key: 'interfaceNamePrefix',
    flag: proxyFlag(
      'text',
      '--pod-interface-name-prefix <prefix>',
      "the prefix of the pods' interface names, for InterfaceNamePrefix",
    ),
    field: proxyField('detectLocal.interfaceNamePrefix', text),
    isRight: isInterfacePrefix,
    most: 14,
  },
} as const;

const variants = {
  ClusterCIDR: objectOf<object>({}),
  NodeCIDR: objectOf<object>({}),
  BridgeInterface: objectOf({ bridgeInterface: textThat('the name of an interface', 'isInterfaceName') }),
  InterfaceNamePrefix: objectOf({
    interfaceNamePrefix: textThat('what the name of an interface begins with', 'isInterfacePrefix'),
  }),
};
const storedDetectLocal = variantOf('mode', variants);

type DetectLocal = Shaped<typeof storedDetectLocal>;

const detectLocalModes = Object.keys(variants) as readonly DetectLocal['mode'][];

/** How kube-proxy recognises local traffic. The default is ClusterCIDR. */
export const detectLocal = setting({
  flags: [modeFlag, interfaces.BridgeInterface.flag, interfaces.InterfaceNamePrefix.flag],
  fields: [modeField, interfaces.BridgeInterface.field, interfaces.InterfaceNamePrefix.field],
  defaultIn: (): DetectLocal => ({ mode: 'ClusterCIDR' }),
  read: (source) => {
    const written = given(source, modeFlag, modeField);
    const mode = detectLocalModes.find((known) => known === written?.value);
    if (mode === 'ClusterCIDR' || mode === 'NodeCIDR') return { mode };
    if (mode || !written?.value) return mode && readInterface(source, mode);
    const expected = findNearest(written.value, detectLocalModes) ?? `one of ${detectLocalModes.join(', ')}`;
    return refuseValue(source, written, expected);
  },
  stored: storedDetectLocal,
});

function readInterface(source: SettingSource, mode: keyof typeof interfaces): DetectLocal {
  const { key, flag, field, isRight, most } = interfaces[mode];
  const value = given<'text', string | null>(source, flag, field)?.value ?? '';
  const isConfigured = source.hasSection('detectLocal');
  if (!isRight(value)) {
    const name = isConfigured ? field.name : flag.name;
    const { path } = isConfigured ? field : modeField;
    const because =
      value === ''
        ? `detectLocalMode ${mode} needs an interface`
        : 'kube-proxy accepts it, but its rules fail or match other interfaces';
    const expected = `at most ${most} bytes without blanks, quotes, slashes and *`;
    refuseValue(source, { name, value, path }, expected, { because });
  }
  return { mode, [key]: value } as DetectLocal;
}

/** At most one CIDR for each family. kube-proxy checks the CIDRs only in mode ClusterCIDR, and kpc does the same. */
export const clusterCIDRs = plainSetting({
  flag: proxyFlag('commas', '--cluster-cidr <cidrs>', "the pods' CIDRs: other traffic to cluster IPs is masqueraded"),
  field: proxyField('clusterCIDR', text),
  defaultIn: (): readonly string[] => [],
  read: (written, source) => {
    // An empty field counts as unset, but an empty flag counts as one empty CIDR.
    if (written.value === '' && written.path) return undefined;
    const cidrs = written.value.split(',');
    const localMode = given(source, modeFlag, modeField)?.value;
    if (detectLocalModes.some((mode) => mode === localMode && mode !== 'ClusterCIDR')) {
      return written.value === '' ? undefined : cidrs;
    }
    const networks = cidrs.map((value) => readNetworkSetting({ ...written, value }, source));
    const count = new Set(networks.map((network) => network?.family)).size;
    if (count < cidrs.length && !networks.includes(undefined)) {
      refuseValue(source, written, { form: 'networks' });
    }
    return cidrs;
  },
  stored: listOf(storedText),
  must: {
    text: 'be CIDRs',
    isMet: (cidrs, settings: { readonly detectLocal: DetectLocal }) =>
      settings.detectLocal.mode === 'ClusterCIDR'
        ? cidrs.every((cidr) => parseNetwork(cidr.trim()))
        : cidrs.every((cidr) => printable(cidr) === cidr),
  },
});
