/** The machine or the Pod that a command ran on, by what was pasted above its output. */
export interface Host {
  readonly kind: 'name' | 'address' | 'Pod';
  readonly name: string;
}

/** "root@node1:~#", "[root@node1 ~]#", "root@node1 ~ %", "node1:~ #", "node1#". */
const prompt =
  /^[[(]?(?:[\w.-]{1,64}@([\w.-]{1,253})(?=[\s:\])#$%>])|([\w.-]{1,253})(?::[\w~/.-]{0,80} ?)?[#$%>](?: |$))/;

/** What a shell shows of itself where it shows no host. */
const shellName = /^(?:(?:ba|da|z|k|c|fi)?sh(?:-[\d.]+)?|[~/.-]*)$/;

/** What runs a command somewhere else than the prompt says. */
const remote = /(?:^|[\s$#%>])(ssh|docker|podman|nerdctl|crictl|kubectl|oc|minikube|vagrant|talosctl|lxc)(?= )/;

/** Options of ssh, docker exec and kubectl exec that take a value of their own. */
const withValue: Readonly<Record<string, RegExp>> = {
  ssh: /^-[bcDEeFIiJLlmOopQRSWw]$/,
  exec: /^(?:-[cnuew]|--(?:container|namespace|context|kubeconfig|cluster|user|env|workdir|pod-running-timeout))$/,
};

/** Ansible writes such a line above the output of each host. */
const title = /^([\w.:-]{1,253}) \| (?:CHANGED|SUCCESS)\b/;

/** The host that a title names, where it is one that a tool writes. */
export function readTitle(line: string): Host | undefined {
  const name = title.exec(line)?.[1];
  return name === undefined ? undefined : hostOf(name);
}

/** Where the command on a line runs; undefined where nothing says so. */
export function readHost(line: string): Host | undefined {
  const [elsewhere, tool] = remote.exec(line) ?? [];
  if (elsewhere !== undefined && tool !== undefined) {
    return readTarget(tool, line.slice(line.indexOf(elsewhere) + elsewhere.length).trim());
  }
  const [, ofUser, alone] = prompt.exec(line) ?? [];
  const name = ofUser ?? alone;
  return name === undefined || shellName.test(name) ? undefined : hostOf(name);
}

/** The first word behind the options of ssh, docker exec or kubectl exec: where it goes to. */
function readTarget(tool: string, rest: string): Host | undefined {
  const words = rest.split(/\s+/, 40);
  const start = tool === 'ssh' ? 0 : words.indexOf('exec') + 1;
  if (tool !== 'ssh' && start === 0) return undefined;
  const takesValue = withValue[tool === 'ssh' ? 'ssh' : 'exec'];
  for (let i = start; i < words.length; i++) {
    const word = words[i] ?? '';
    if (takesValue?.test(word)) i++;
    else if (!word.startsWith('-')) {
      const name = word.slice(word.lastIndexOf('@') + 1);
      if (!/^[\w.:/-]+$/.test(name)) return undefined;
      if (tool === 'kubectl' || tool === 'oc') return { kind: 'Pod', name: name.slice(name.lastIndexOf('/') + 1) };
      return hostOf(name);
    }
  }
  return undefined;
}

function hostOf(name: string): Host {
  return { kind: /^[\d.]+$|:/.test(name) ? 'address' : 'name', name };
}

/** Whether two hosts are certainly not one: names with and without their domain are, and a name may have any address. */
export function areApart(one: Host, other: Host): boolean {
  if (one.kind !== other.kind || one.name === other.name) return false;
  return one.kind !== 'name' || !(one.name.startsWith(`${other.name}.`) || other.name.startsWith(`${one.name}.`));
}
