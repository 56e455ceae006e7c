import { packetProtocols } from '../packet/packet.ts';
import type { Flag } from '../settings/flag.ts';
import { changeFlags, flagRow, openFlags, upgradeFlag } from './options.ts';
import { refuse, type BadCall } from './refusal.ts';

export const traceFlags: readonly Flag[] = [
  flagRow(
    'text',
    '--from <source>',
    'an address, a Pod by its name, deployment/name, pod, remote-pod, node or external',
  ),
  flagRow(
    'text',
    '--to <destination>',
    'address:port, node:port, svc/name[:port], a DNS name as pods write it, ingress/name, gateway/name, httproute/name, or the host/path of one',
    { idle: [{ beside: '--all', why: 'table' }] },
  ),
  flagRow('text', '--proto <protocol>', 'the protocol; icmp is a ping', {
    choices: packetProtocols,
    idle: [{ beside: '--all', why: 'each-protocol' }],
  }),
  flagRow('text', '--in-interface <name>', "the node's interface where the packet arrives", {
    idle: [{ without: '--from' }, { beside: '--from node', why: 'own-packets' }],
  }),
  flagRow(
    'text',
    '--all <service>',
    'print a table: from every kind of source, and from --from, to every address of a Service',
  ),
];

export const migrateFlags: readonly Flag[] = [
  changeFlags.from,
  changeFlags.to,
  upgradeFlag,
  ...openFlags('compares', { proxyMode: { idle: [{ beside: '--from', why: 'mode-twice' }] } }),
];

export const allowEmptyFlag: Flag = flagRow(
  'on',
  '--allow-empty',
  'compile even if that programs nothing, which removes all Services from a node',
  { group: 'input' },
);

export function nodeFlag(help: string): Flag {
  return flagRow('text', '--node <name>', help, {
    needs: 'nodes',
    idle: [{ beside: '--all-nodes', why: 'all-nodes' }],
  });
}

export interface ValuedFlag {
  readonly row: Flag;
  readonly value: unknown;
}

/** Why a flag has no effect together with the others. */
export function findIdleFlag(given: readonly ValuedFlag[]): BadCall | undefined {
  const words = new Set(given.flatMap(({ row: { name }, value }) => [name, `${name} ${String(value)}`]));
  const [found] = given.flatMap(({ row: { name, idle: cases = [] } }) =>
    cases.flatMap((each): BadCall[] => {
      const flag = each.value === undefined ? name : `${name} ${each.value}`;
      if (!words.has(flag)) return [];
      if ('without' in each) {
        return words.has(each.without) ? [] : [{ problem: 'flag-alone', flag, without: each.without }];
      }
      const { beside, why } = each;
      const because = { kind: 'beside', beside, why } as const;
      return words.has(beside) ? [{ problem: 'idle-flag', flags: [flag], because }] : [];
    }),
  );
  return found;
}

/** Refuses flags that both sides override. `sides`: the options of each, undefined for one that is read. */
export function refuseNamedTwice(flags: readonly Flag[], sides: readonly (object | undefined)[]): void {
  const named = flags.filter(({ key }) => sides.every((adds) => adds && key in adds)).map(({ name }) => name);
  if (named.length > 0) refuse({ problem: 'idle-flag', flags: named, because: { kind: 'own-settings' } });
}
