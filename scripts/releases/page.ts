import {
  behaviourChanges,
  behaviours,
  behavioursOf,
  isPreview,
  kubeProxyVersions,
  newestRelease,
  releaseRange,
  releases,
  type Behaviour,
  type BehaviourChange,
  type Release,
  isModeOf,
  modeHistories,
  releasesOfMode,
} from '../../src/kube-proxy/releases.ts';
import { behaviourWords } from '../../src/say/words/behaviours.ts';

/** Returns docs/releases.md, made from the table of releases. */
export function writePage(): string {
  const versions = releases.map((release) => row([release, kubeProxyVersions[release]]));
  return `# Kubernetes releases

Written by \`npm run docs:releases\` from the table that kpc itself uses, src/kube-proxy/releases.ts.

kpc follows the kube-proxy of Kubernetes ${releaseRange}. \`--kubernetes-version 1.34\` names a release, and
\`--kubernetes-version auto\` requires that the Node object names one. By
default, each node follows the release that its Node object names, or without one the newest of the other Nodes, else ${newestRelease}.${previews.length > 0 ? `\n\n${describePreviews()}` : ''}

kpc follows the source of the versions below. Tests compared kpc's output with what each of them programs, except v1.31.14. kpc follows
nftables mode from ${modeHistories.nftables.since} on; in that mode, the output was compared with v1.33.13, v1.34.2, v1.35.4, v1.36.3, v1.37.2 and v1.38.0-beta.0.
For Kubernetes ${releasesOfMode('userspace')}, kpc only follows userspace mode, which later releases do not have.

${row(['Kubernetes', 'kube-proxy'])}
${row(['---', '---'])}
${versions.join('\n')}

A fix can reach several releases at once, so an older patch release may program something else. v1.32.13 and v1.34.4 are newer than
the versions above, but change nothing that affects the rules.

kpc does not follow one known bug ([#142183](https://github.com/kubernetes/kubernetes/issues/142183)). If \`localhost\` is added to
\`nodePortAddresses\` and kube-proxy starts again in nftables mode, the map localhost-nodeport-reject-ports still has the entries of TCP
node ports. kube-proxy v1.37.2, with the feature gate KubeProxyNFTablesLocalhostNodePorts on, then tries to delete the chain that these
entries still refer to, so the whole sync fails (EBUSY). v1.38.0-beta.0 removes the entries first, but leaves the chain, empty, until a later
sync; a dump can show it. kpc writes the rules of a kube-proxy that starts on a fresh node.

There is one more difference that kpc does not reproduce. If an endpoint address is not in canonical form (\`fd00:10:244:0::24\`),
kube-proxy 1.30 in iptables mode names the endpoint's chain by the hash of the address as written. kpc hashes the canonical form for all
releases. Only the name of the chain differs; the rules treat packets alike.

This command shows what an upgrade changes on a node, by Service and with the reason:

\`\`\`sh status=1
kpc diff --kubernetes-version ${followed[0]} --to-kubernetes-version ${newestRelease} -f fixtures/zone-hints/svc.yaml \\
  -f fixtures/cluster/nodes.yaml --node worker-3
\`\`\`

## What differs

${row(['Behaviour', 'since', 'before, kube-proxy', 'since then, it', 'pull request'])}
${row(['---', '---', '---', '---', '---'])}
${behaviours.map((name) => changeRow(name)).join('\n')}

kube-proxy's IPVS mode is deprecated. Kubernetes plans to turn it off by default in 1.40, and to remove it in 1.43. The feature gate
\`KubeProxyIPVS=false\` turns it off from 1.37 on. In 1.40, nftables mode takes the place of iptables mode as the default.

## Which release does what

The defaults, without feature gates:

${row(['Behaviour', ...followed])}
${row(['---', ...followed.map(() => ':-:')])}
${behaviours.map((name) => row([`\`${name}\``, ...followed.map((release) => mark(name, release))])).join('\n')}

## Feature gates

Each of these feature gates turns one behaviour on or off, in the releases where you can set it. kube-proxy does not start if its
configuration names a gate that it does not know, sets a locked gate to its other value, or turns on a gate without the gates that it needs.
kpc reports such a configuration as an error; it knows the gates from the code of each version above. \`AllAlpha: true\` alone is such an error
in 1.37 and 1.38.

${row(['Feature gate', 'behaviour', 'can be set in', 'on by default in'])}
${row(['---', '---', '---', '---'])}
${behaviours.flatMap((name) => gateRow(name)).join('\n')}
`;
}

/** The releases with the modes that kube-proxy still has. */
const followed = releases.filter((release) => isModeOf('iptables', release));

const previews = releases.filter((release) => isPreview(release));

function describePreviews(): string {
  return previews
    .map(
      (release) =>
        `Kubernetes ${release} is not out yet: kpc follows ${kubeProxyVersions[release]}, whose output was recorded. The final version may differ.`,
    )
    .join(' ');
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

function changeRow(name: Behaviour): string {
  const { since, mode, pullRequests, samePackets }: BehaviourChange = behaviourChanges[name];
  const [before, after] = behaviourWords[name];
  const pulls = pullRequests.map((number) => `[#${number}](https://github.com/kubernetes/kubernetes/pull/${number})`);
  return row([
    `\`${name}\`${mode === undefined ? '' : ` (mode ${mode})`}`,
    since === 'never' ? 'gate only' : since === undefined || since === followed[0] ? `before ${followed[0]}` : since,
    escapeCell(before),
    `${escapeCell(after)}${samePackets ? '; packets are treated alike' : ''}`,
    pulls.join(', '),
  ]);
}

/** Escapes only these two characters, because the texts contain no other markup. */
function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('_', '\\_');
}

function mark(name: Behaviour, release: Release): string {
  return behavioursOf(release).has(name) ? 'yes' : '–';
}

function gateRow(name: Behaviour): readonly string[] {
  const { gate }: BehaviourChange = behaviourChanges[name];
  if (!gate) return [];
  const settable = followed.filter(
    (release) =>
      behavioursOf(release, new Map([[gate, true]])).has(name) &&
      !behavioursOf(release, new Map([[gate, false]])).has(name),
  );
  const on = settable.filter((release) => behavioursOf(release).has(name));
  return [row([`\`${gate}\``, `\`${name}\``, settable.join(', '), on.join(', ') || 'none of them'])];
}
