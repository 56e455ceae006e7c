import { resources, type ObjectLists } from '../input/objects/kinds.ts';
import { mostSaid, type ProgramCall, type ProgramFailure, runProgram } from './run-program.ts';

const ofRules: ReadonlySet<string> = new Set(['services', 'slices', 'nodes', 'serviceCidrs']);

function groupOf(resource: string): string {
  const dot = resource.indexOf('.');
  return dot === -1 ? '' : resource.slice(dot + 1);
}

export interface UnreadResource {
  readonly name: string;
  readonly list: keyof ObjectLists | 'kube-proxy';
}

export type KubectlAnswer =
  | { readonly kind: 'printed'; readonly text: string; readonly unread: readonly UnreadResource[] }
  | { readonly kind: 'failed'; readonly call: ProgramCall; readonly failure: ProgramFailure };

/** `rules`: the objects that kube-proxy reads. `traffic`: these, and also senders and other objects that affect packets. */
export type ClusterUse = 'rules' | 'traffic';

/** Calls kubectl with the given context, or with the current one. Passes each call to `show` before making it. */
export class Cluster {
  readonly #context: readonly string[];
  readonly #show: (call: ProgramCall) => Promise<void>;

  constructor(context: string | undefined, show: (call: ProgramCall) => Promise<void>) {
    this.#context = context === undefined ? [] : ['--context', context];
    this.#show = show;
  }

  /** Reads the objects that kpc uses and kube-proxy's ConfigMap, as JSON. `unread`: the resources that could not be listed. */
  async readObjects(use: ClusterUse): Promise<KubectlAnswer> {
    const known = await this.#call('api-resources', '--verbs=list', '-o', 'name');
    const served = new Set(textOfAnswer(known).trim().split(/\s+/));
    // If the server of one API is down, kubectl fails but still lists the other APIs.
    if (known.kind === 'failed' && (known.failure.problem !== 'failed' || !served.has('services'))) return known;
    const lines = known.kind === 'failed' ? known.failure.lines : [];
    const isHidden = (name: string): boolean =>
      !served.has(name) && groupOf(name) !== '' && lines.some((line) => line.includes(`${groupOf(name)}/`));
    // kpc asks only for resources that the cluster serves, because a cluster may lack some.
    const wanted = resources.filter(({ list }) => use === 'traffic' || ofRules.has(list));
    const names = wanted.flatMap(({ name }) => (served.has(name) ? [name] : []));
    const objects = await this.#call('get', names.join(','), '--all-namespaces', '-o', 'json');
    const forbidden: ReadonlySet<string> =
      objects.kind === 'failed' ? findForbidden(objects.failure, names) : new Set();
    if (objects.kind === 'failed' && forbidden.size === 0) return objects;
    const config = await this.#readConfigMap();
    const isForbidden = config.kind === 'failed' && findForbidden(config.failure, ['configmaps']).size > 0;
    if (config.kind === 'failed' && !isForbidden) return config;
    // Report a missing configuration only for rules, because rules need a mode. Commands about traffic print the mode that they assume.
    const isAbsent = use === 'rules' && config.kind === 'printed' && config.text.trim() === '';
    return {
      kind: 'printed',
      text: `${textOfAnswer(objects)}\n${textOfAnswer(config)}`,
      unread: [
        ...wanted.filter(({ name }) => isHidden(name) || forbidden.has(name)),
        ...(isForbidden ? [{ name: 'the ConfigMap kube-proxy', list: 'kube-proxy' } as const] : []),
        ...(isAbsent ? [{ name: 'the ConfigMap kube-proxy (there is none)', list: 'kube-proxy' } as const] : []),
      ],
    };
  }

  #readConfigMap(): Promise<KubectlAnswer> {
    const place = ['kube-proxy', '--namespace', 'kube-system'];
    return this.#call('get', 'configmap', ...place, '--ignore-not-found', '-o', 'json');
  }

  /** Runs a node's tools in a debugging pod. Reads the output after the pod has ended, because attaching to the pod can miss the start. */
  async dumpNode(node: string, image: string): Promise<KubectlAnswer> {
    const command = ['--', 'sh', '-c', 'chroot /host sh -c "$0"; true', dumpScript];
    const made = await this.#call('debug', `node/${node}`, '--image', image, '--profile', 'sysadmin', ...command);
    const [, pod] = /^Creating debugging pod ([a-z0-9.-]{1,253}) with /m.exec(textOfAnswer(made)) ?? [];
    if (pod === undefined) return made;
    const printed = made.kind === 'failed' ? made : await this.#readPod(pod);
    const removed = await this.#call('delete', 'pod', pod, '--wait=false', '--ignore-not-found');
    return printed.kind === 'printed' && removed.kind === 'failed' ? removed : printed;
  }

  async #readPod(pod: string): Promise<KubectlAnswer> {
    const ended = '--for=jsonpath={.status.phase}=Succeeded';
    const waited = await this.#call('wait', `pod/${pod}`, ended, `--timeout=${longestDump}s`);
    if (waited.kind === 'failed') return waited;
    const logs: ProgramCall = ['logs', pod];
    const printed = await this.#call(...logs);
    if (printed.kind === 'failed') return printed;
    const text = printed.text.trim();
    if (text.startsWith(firstLine) && text.endsWith(lastLine))
      return { ...printed, text: text.slice(firstLine.length, -lastLine.length) };
    return { kind: 'failed', call: ['kubectl', ...this.#context, ...logs], failure: cutOff(text) };
  }

  async #call(...words: readonly string[]): Promise<KubectlAnswer> {
    const call: ProgramCall = ['kubectl', ...this.#context, ...words];
    await this.#show(call);
    const text = runProgram(call);
    return typeof text === 'string' ? { kind: 'printed', text, unread: [] } : { kind: 'failed', call, failure: text };
  }
}

/** The seconds for pulling the image and printing the rules. They must be fewer than the time limit of a call. */
const longestDump = 240;

/** Marker lines around a dump. They show that the dump is complete. A pod's log can lack its beginning, and a pod can end early. */
const firstLine = '# kpc: the dump begins here';
const lastLine = '# kpc: the dump ends here';

/**
 * The script that prints a node's state without changing the node. If a tool is missing or fails, its title is not printed, so its part
 * stays unknown.
 */
const dumpScript = [
  `echo "${firstLine}"`,
  'for tool in "iptables-save" "ip6tables-save" "nft list ruleset" "ipset save" "ipvsadm -Sn" "ip addr" "ip -d link" ' +
    '"ip route show table all" "ip -6 route show table all" "ip rule" "ip -6 rule"',
  `do printed=$($tool 2>/dev/null) && printf '+ %s\\n%s\\n' "$tool" "$printed"; done`,
  `echo "${lastLine}"`,
].join('; ');

function cutOff(printed: string): ProgramFailure {
  const lines = printed.split('\n').filter((line) => line !== firstLine);
  const said = `it printed no whole dump of the node, but: ${(lines[0] ?? '').slice(0, mostSaid)}`;
  return { problem: 'failed', said, lines, printed };
}

function textOfAnswer(answer: KubectlAnswer): string {
  return answer.kind === 'printed' ? answer.text : answer.failure.printed;
}

/** Finds the resources that the user is not allowed to read. Returns none if the call failed for another reason too. */
function findForbidden({ problem, lines }: ProgramFailure, asked: readonly string[]): ReadonlySet<string> {
  const errors = problem === 'failed' ? lines.filter((line) => /^error/i.test(line)) : [];
  const named = errors.map((line) =>
    asked.find((name) => line.startsWith('Error from server (Forbidden): ') && line.includes(`: ${name} `)),
  );
  return new Set(named.every((name) => name !== undefined) ? named : []);
}
