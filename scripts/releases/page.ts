import type { Behaviour, BehaviourChange, Release } from '../../src/kube-proxy/releases.ts';
import {
  behaviourChanges,
  behaviours,
  behavioursOf,
  kubeProxyVersions,
  newestRelease,
  releases,
} from '../../src/kube-proxy/releases.ts';
import { modeFacts } from '../../src/kube-proxy/modes.ts';

/** docs/releases.md: all that the table of releases holds. */
export function writePage(): string {
  const versions = releases.map((release) => row([release, kubeProxyVersions[release]]));
  return `# Kubernetes releases

This page is written by \`npm run docs:releases\` from the one table that kpc itself goes by, src/kube-proxy/releases.ts.

kpc follows the kube-proxy of Kubernetes ${releases[0]} to ${newestRelease}. \`--kubernetes-version 1.34\` names a release, and
\`--kubernetes-version auto\` takes the one that the Node object names; without it kpc follows ${newestRelease}.
These are the versions whose source kpc follows. Its output was compared with what each of them programs, but for v1.31.14;
in nftables mode, which kpc follows since ${modeFacts.nftables.since}, with what v1.33.13, v1.34.2, v1.35.4 and v1.36.3 program:

${row(['Kubernetes', 'kube-proxy'])}
${row(['---', '---'])}
${versions.join('\n')}

A fix can reach several releases at once. So an older patch release of one of them may program something else.

What an upgrade changes on a node, Service by Service and with the reason, is told by

\`\`\`sh status=1
kpc diff --kubernetes-version ${releases[0]} --to-kubernetes-version ${newestRelease} -f fixtures/zone-hints/svc.yaml \\
  -f fixtures/cluster/nodes.yaml --node worker-3
\`\`\`

## What differs

${row(['Behaviour', 'since', 'before, kube-proxy', 'since then, it', 'pull request'])}
${row(['---', '---', '---', '---', '---'])}
${behaviours.map((name) => changeRow(name)).join('\n')}

## Which release does what

By default, that is, without feature gates.

${row(['Behaviour', ...releases])}
${row(['---', ...releases.map(() => ':-:')])}
${behaviours.map((name) => row([`\`${name}\``, ...releases.map((release) => mark(name, release))])).join('\n')}

## Feature gates

These feature gates turn one of the behaviours in the releases where they can be set. A kube-proxy that does not know a gate
that its configuration sets does not start, nor does one that has locked it to true where it is set to false.

${row(['Feature gate', 'turns', 'can be set in', 'on by default in'])}
${row(['---', '---', '---', '---'])}
${behaviours.flatMap((name) => gateRow(name)).join('\n')}
`;
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

function changeRow(name: Behaviour): string {
  const { since, mode, pullRequests, before, after }: BehaviourChange = behaviourChanges[name];
  const pulls = pullRequests.map((number) => `[#${number}](https://github.com/kubernetes/kubernetes/pull/${number})`);
  return row([
    `\`${name}\`${mode === undefined ? '' : ` (mode ${mode})`}`,
    since ?? `before ${releases[0]}`,
    escapeCell(before),
    escapeCell(after),
    pulls.join(', '),
  ]);
}

/** "::/0" and the like are no markup, and stay as they are in code. */
function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('_', '\\_');
}

function mark(name: Behaviour, release: Release): string {
  return behavioursOf(release).has(name) ? 'yes' : '–';
}

function gateRow(name: Behaviour): readonly string[] {
  const { gate }: BehaviourChange = behaviourChanges[name];
  if (!gate) return [];
  const settable = releases.filter(
    (release) =>
      behavioursOf(release, new Map([[gate.name, true]])).has(name) &&
      !behavioursOf(release, new Map([[gate.name, false]])).has(name),
  );
  const on = settable.filter((release) => behavioursOf(release).has(name));
  return [row([`\`${gate.name}\``, `\`${name}\``, settable.join(', '), on.join(', ') || 'none of them'])];
}
