import { count, formatCount, joinWords } from '../../base/printable.ts';
import { cutDescription, descriptionLine, type DescriptionLine } from '../../ask/describe/description-line.ts';
import type { FlowFindings, StaleGroup } from '../../ask/describe/find-flows.ts';
import type { FlowChange, FlowFate } from '../../ask/describe/follow-change.ts';
import type { ShownPort } from '../../cluster/model.ts';

/** Selects Service ports. */
type IsAsked = (port: ShownPort | undefined) => boolean;

const reasons: { readonly [R in StaleGroup['because']]: string } = {
  'not-serving': 'which is no serving endpoint of it',
  'no-rule': 'to which no rule leads now',
  untranslated: 'which is no endpoint: begun before the Service had rules here',
  'no-service': 'where no Service is now: it was deleted, or another program translates them',
};

const fates: { readonly [F in FlowFate]: string } = {
  forgets: 'forgotten',
  keeps: 'kept',
  unknown: 'unknown, because the dump does not show which Service port had this address',
};

/** The findings, with commands that delete exactly these flows. `isAsked` selects Service ports. */
export function describeFlows(
  { listed, stale, change }: FlowFindings,
  limit: number,
  isAsked: IsAsked = () => true,
): readonly DescriptionLine[] {
  const groups = stale.filter(({ port }) => isAsked(port));
  const total = groups.reduce((sum, { flows }) => sum + flows, 0);
  const changed = change && describeFlowChange(change, isAsked);
  const title = `${count(listed, 'flow')} of UDP, ${total === 0 ? 'none' : formatCount(total)} stale`;
  return [
    descriptionLine('heading', 0, title),
    ...cutDescription(
      groups.flatMap((group) => [
        descriptionLine('bad', 1, `${groupName(group)}: ${groupWords(group)}`),
        descriptionLine('plain', 2, group.command),
      ]),
      limit * 2,
      1,
    ),
    ...(changed ? [descriptionLine('heading', 0, changed.title)] : []),
    ...cutDescription(
      (changed?.lines ?? []).map((text) => descriptionLine('plain', 1, text)),
      limit,
      1,
    ),
  ];
}

function groupName({ port, destination }: Pick<StaleGroup, 'port' | 'destination'>): string {
  return `${port?.service === undefined ? '' : `${port.label}, `}${destination}/udp`;
}

function groupWords({ endpoint, flows, unanswered, because }: StaleGroup): string {
  const silent =
    unanswered === 0 ? '' : unanswered === flows ? ' without an answer' : `, ${unanswered} without an answer,`;
  return `${count(flows, 'flow')}${silent} to ${endpoint}, ${reasons[because]}`;
}

export function flowsJson({ listed, stale, change }: FlowFindings, isAsked: IsAsked) {
  return {
    listed,
    stale: groupsJson(stale, isAsked),
    ...(change ? { change: flowChangeJson(change, isAsked) } : {}),
  };
}

/** A change in words, without groups that `isAsked` excludes: a title and a line for each; undefined if nothing is left. */
export function describeFlowChange(
  { release, groups }: FlowChange,
  isAsked: IsAsked = () => true,
): { readonly title: string; readonly lines: readonly string[] } | undefined {
  const asked = groups.filter(({ port }) => isAsked(port));
  if (asked.length === 0) return undefined;
  const totals = Object.entries({ ...fates, unknown: 'unknown' }).flatMap(([fate, words]) => {
    const total = asked.reduce((sum, { kubeProxy, flows }) => sum + (kubeProxy === fate ? flows : 0), 0);
    return total === 0 ? [] : [`${formatCount(total)} ${words}`];
  });
  const lines = asked.map(
    ({ endpoint, flows, kubeProxy, ...ends }) =>
      `${groupName(ends)}: ${count(flows, 'flow')} to ${endpoint}: ${fates[kubeProxy]}`,
  );
  const title = `Stale UDP flows after a change to the Services of the manifests, with kube-proxy ${release}: ${joinWords(totals)}`;
  return { title, lines };
}

export function flowChangeJson({ release, groups }: FlowChange, isAsked: IsAsked = () => true) {
  return { release, flows: groupsJson(groups, isAsked) };
}

function groupsJson<Group extends Pick<StaleGroup, 'port'>>(groups: readonly Group[], isAsked: IsAsked) {
  return groups
    .filter(({ port }) => isAsked(port))
    .map(({ port, ...group }) => ({ servicePort: port?.label, ...group }));
}
