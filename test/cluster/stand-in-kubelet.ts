import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { takeAddresses } from './kube-proxy.ts';
import { nodeAddresses, nodeNames } from './objects.ts';
import { setStatus, kubectl, type ClusterFiles } from './start-cluster.ts';

/** A Pod, as far as the stand-in looks at it. */
export interface DebuggingPod {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: {
    readonly hostNetwork?: boolean;
    readonly hostPID?: boolean;
    readonly hostIPC?: boolean;
    readonly restartPolicy: string;
    readonly volumes?: readonly { readonly name: string; readonly hostPath?: { readonly path: string } }[];
    readonly containers: readonly {
      readonly name: string;
      readonly image: string;
      readonly command?: readonly string[];
      readonly args?: readonly string[];
      readonly securityContext?: { readonly privileged?: boolean };
      readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
    }[];
  };
}

/**
 * Stands in for the kubelet of a node, as far as debugging pods go: runs their command in the tests' own network and root, where
 * a real one would mount that root at /host in the image's; says how they end; and serves their log at the node's address, from
 * where the API server fetches it. Images, containers and attaching are not there.
 */
export class StandInKubelet {
  readonly #cluster: ClusterFiles;
  readonly #node: number;
  readonly #logs = new Map<string, string>();
  readonly #server: Server;
  #isEnded = false;
  #release = (): void => {};
  #loop: Promise<void> = Promise.resolve();
  /** The pods that it ran. */
  readonly ran: DebuggingPod[] = [];

  constructor(cluster: ClusterFiles, node: number) {
    this.#cluster = cluster;
    this.#node = node;
    const [cert, key] = [readFileSync(cluster.certificate), readFileSync(cluster.key)];
    this.#server = createServer({ cert, key }, ({ url = '' }, response) => {
      const [, namespace = '', pod = ''] = /^\/containerLogs\/([^/]+)\/([^/]+)\//.exec(url) ?? [];
      const log = this.#logs.get(`${namespace}/${pod}`);
      response.writeHead(log === undefined ? 404 : 200, { 'content-type': 'text/plain' }).end(log);
    });
  }

  async start(): Promise<void> {
    const [address] = nodeAddresses(this.#node);
    this.#release = takeAddresses([address]);
    await new Promise<void>((resolve) => this.#server.listen(10250, address, resolve));
    this.#loop = this.#watch();
  }

  async stop(): Promise<void> {
    this.#isEnded = true;
    await this.#loop;
    await new Promise((resolve) => this.#server.close(resolve));
    this.#release();
  }

  async #watch(): Promise<void> {
    const words = ['get', 'pods', '-A', '-o', 'json', '--field-selector', `spec.nodeName=${nodeNames[this.#node]}`];
    while (!this.#isEnded) {
      const { items } = JSON.parse(kubectl(this.#cluster, words)) as { readonly items: readonly DebuggingPod[] };
      for (const pod of items) {
        const { name, namespace } = pod.metadata;
        if (name.startsWith('node-debugger-') && !this.#logs.has(`${namespace}/${name}`)) await this.#run(pod);
      }
      await sleep(300);
    }
  }

  async #run(pod: DebuggingPod): Promise<void> {
    const { name, namespace } = pod.metadata;
    const [container] = pod.spec.containers;
    const [program = '', ...words] = [...(container?.command ?? []), ...(container?.args ?? [])];
    // This root is what the pod would find at its /host.
    const here = words.map((word) => word.replace('chroot /host ', 'chroot / '));
    const { log, exitCode } = await new Promise<{ readonly log: string; readonly exitCode: number }>((resolve) =>
      execFile(program, here, { maxBuffer: 2 ** 28 }, (error, stdout, stderr) => {
        resolve({ log: `${stdout}${stderr}`, exitCode: error ? 1 : 0 });
      }),
    );
    this.#logs.set(`${namespace}/${name}`, log);
    this.ran.push(pod);
    const terminated = { exitCode, reason: exitCode === 0 ? 'Completed' : 'Error' };
    const containerStatuses = pod.spec.containers.map(({ name: own, image }) => {
      return { name: own, image, imageID: image, ready: false, restartCount: 0, state: { terminated } };
    });
    const phase = exitCode === 0 ? 'Succeeded' : 'Failed';
    const status = { phase, containerStatuses };
    setStatus(this.#cluster, [{ kind: 'Pod', metadata: { name, namespace }, status }]);
  }
}
