import { duration, flag, text, texts } from '../../diagnostics/json-schema.ts';
import { joinWords } from '../../base/join-words.ts';
import { listOf, text as storedText, textThat } from '../../base/json-shape.ts';
import { parseNetwork } from '../../kernel/address.ts';
import { mostIpvsSeconds, schedulers } from '../../kernel/ipvs/ipvs.ts';
import { programs } from '../modes.ts';
import { parseDuration } from './durations.ts';
import { field, type Field } from './field.ts';
import { listFlag, switchFlag, textFlag, type Flag } from './flag.ts';
import { noNetwork, readSeconds, secondsSetting, switchSetting } from './kinds.ts';
import {
  given,
  givenList,
  group,
  ignoredUnlessIn,
  itemOf,
  refuse,
  setting,
  type Given,
  type SettingSource,
} from './setting.ts';

const schedulerFlag = textFlag('--ipvs-scheduler <name>', joinWords(schedulers, 'or'));
const schedulerField = field('ipvs.scheduler', text);

const scheduler = setting({
  flags: [schedulerFlag],
  fields: [schedulerField],
  defaultIn: () => 'rr',
  read: (source) => {
    const written = given(source, schedulerFlag, schedulerField);
    if (!written || written.value === '') return undefined;
    if (schedulers.includes(written.value)) return written.value;
    const { name, value } = written;
    const ignoredIn = ignoredUnlessIn('ipvs', source);
    refuse(source, written, 'bad-scheduler', { name, value, known: schedulers, ignoredIn });
    return undefined;
  },
  stored: storedText,
  must: { text: `be one of ${schedulers.join(', ')}`, isMet: (name) => schedulers.includes(name) },
});

const excludeFlag = listFlag('--ipvs-exclude-cidrs <cidrs>', 'never remove virtual servers in these CIDRs');
const excludeField = field('ipvs.excludeCIDRs', texts);

const excludeCIDRs = setting({
  flags: [excludeFlag],
  fields: [excludeField],
  defaultIn: (): readonly string[] => [],
  read: (source) => {
    const written = givenList(source, excludeFlag, excludeField);
    return written?.value.filter((value, i) => {
      if (parseNetwork(value)) return true;
      const one = itemOf(written, value, i);
      refuse(source, one, 'bad-cidr', { ...noNetwork(one), ignoredIn: ignoredUnlessIn('ipvs', source) });
      return false;
    });
  },
  stored: listOf(textThat('a CIDR', (cidr) => parseNetwork(cidr) !== undefined)),
});

/** The settings of IPVS mode. A timeout of 0 leaves the kernel's own timeout as it is. */
export const ipvs = group({
  scheduler,
  strictARP: switchSetting({
    flag: switchFlag('--ipvs-strict-arp [bool]', 'do not answer ARP for addresses on kube-ipvs0'),
    field: field('ipvs.strictARP', flag),
    usual: false,
  }),
  excludeCIDRs,
  tcpTimeout: timeoutSetting(
    textFlag('--ipvs-tcp-timeout <duration>', 'timeout of idle TCP connections, such as 15m'),
    field('ipvs.tcpTimeout', duration),
  ),
  tcpFinTimeout: timeoutSetting(
    textFlag('--ipvs-tcpfin-timeout <duration>', 'timeout of TCP connections after FIN'),
    field('ipvs.tcpFinTimeout', duration),
  ),
  udpTimeout: timeoutSetting(
    textFlag('--ipvs-udp-timeout <duration>', 'timeout of UDP packets'),
    field('ipvs.udpTimeout', duration),
  ),
});

function timeoutSetting<F extends Flag<string, 'text'>, D extends Field<string, string | null>>(
  ownFlag: F,
  ownField: D,
) {
  return secondsSetting({
    flag: ownFlag,
    field: ownField,
    usual: 0,
    read: readTimeout,
    must: { text: `be ${mostIpvsSeconds} seconds at most`, isMet: (seconds) => seconds <= mostIpvsSeconds },
  });
}

/** Whole seconds: the kernel takes nothing finer. */
function readTimeout(source: SettingSource, written: Given<string>): number | undefined {
  const seconds = parseDuration(written.value);
  if (seconds === undefined || (seconds < 0 && programs(source.mode, 'ipvsTimeouts'))) {
    return readSeconds(source, written);
  }
  const whole = Math.floor(seconds);
  if (whole >= 0 && whole <= mostIpvsSeconds) return whole;
  const { name, value } = written;
  const most = `${mostIpvsSeconds / 3600}h`;
  refuse(source, written, 'bad-duration', { name, value, most, ignoredIn: ignoredUnlessIn('ipvs', source) });
  return undefined;
}
