import type { Command } from 'commander';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { FleetFolder, type FleetProblem, type NodeResult, type WrittenNode } from '../../bundle/fleet/fleet-folder.ts';
import { compileFleet, type Fleet } from '../../compile/compile-fleet.ts';
import { loadTexts, type InputOptions, type InputTexts } from '../../compile/load-texts.ts';
import type { FileOptions } from '../../compile/read-texts.ts';
import { TextFile } from '../../input/documents/text-file.ts';
import type { FolderForm } from '../../report/check-report.ts';
import type { MessageOptions } from './messages.ts';
import { writeNode } from './fleet-run.ts';

/** Where the nodes' folders are, and what is known of them. */
interface Target {
  readonly path: string;
  readonly form: FolderForm;
  readonly links: ReadonlyMap<string, string>;
}

/** What a thread works on. It reads the same texts again, not the files, which may have changed by then. */
interface FleetJob extends Target {
  readonly texts: Pick<InputTexts, 'config'> & { readonly manifests: readonly TextFile[] };
  readonly options: InputOptions;
  readonly fleet: Fleet;
}

/** What --jobs divides among threads. */
interface Work {
  readonly texts: InputTexts;
  readonly fleet: Fleet;
  readonly options: FileOptions & MessageOptions & { readonly jobs: number };
}

/** The threads beside the main one, each of which writes the folders of some of the nodes. */
export class FleetThreads {
  readonly #done: (result: WrittenNode) => Promise<void>;
  readonly #workers: Worker[] = [];
  readonly #ends: Promise<void>[] = [];
  #problem: FleetProblem | undefined;

  constructor(done: (result: WrittenNode) => Promise<void>) {
    this.#done = done;
  }

  /** Why a thread could not write a folder. */
  get problem(): FleetProblem | undefined {
    return this.#problem;
  }

  /** Starts the threads: the first node, and each that --jobs says after it, is the main thread's. */
  start({ texts, fleet, options }: Work, target: Target): void {
    const { flagPlaces: _, ...plain } = options;
    for (let thread = 1; thread < Math.min(options.jobs, fleet.nodes.length); thread++) {
      const nodes = fleet.nodes.filter((_node, i) => i % options.jobs === thread);
      const hostAddresses = new Map([...fleet.hostAddresses].filter(([node]) => nodes.includes(node)));
      const job: FleetJob = {
        ...target,
        texts: { manifests: texts.manifests.files, config: texts.config },
        // Whether the input may be empty was said by the main thread.
        options: { ...plain, emptyResult: 'allowed' },
        fleet: { ...fleet, nodes, hostAddresses, diagnostics: [] },
      };
      this.#startThread(job);
    }
  }

  /** Waits for all threads; gives the first problem of any. */
  async finish(): Promise<FleetProblem | undefined> {
    await Promise.all(this.#ends);
    return this.#problem;
  }

  /** Ends what still runs: a folder that is half written was not put in its place yet. */
  async stop(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }

  #startThread(job: FleetJob): void {
    const worker = new Worker(__filename, { argv: [threadCommand], workerData: job });
    this.#workers.push(worker);
    const end = new Promise<void>((resolve, reject) => {
      worker.on('message', (result: NodeResult) => {
        if (result.kind === 'failed') {
          this.#problem ??= result.problem;
          resolve();
        } else void this.#done(result.kind);
      });
      worker.on('error', reject);
      worker.on('exit', () => resolve());
    });
    // If the main thread fails first, it does not wait for this one.
    end.catch(() => {});
    this.#ends.push(end);
  }
}

/** The command that a thread runs, which is of no use to a user. */
const threadCommand = 'fleet-thread';

/** Adds the command of a thread. */
export function addThreadCommand(program: Command): void {
  program.command(threadCommand, { hidden: true }).action(runThread);
}

/** What a thread does: it says of each node what became of its folder. Does nothing in the main thread. */
async function runThread(): Promise<void> {
  if (isMainThread) return;
  const { path, form, links, texts, options, fleet } = workerData as FleetJob;
  const { config } = texts;
  const files = texts.manifests.map(copyFile);
  const loaded = loadTexts(
    {
      manifests: { files, diagnostics: [] },
      config: config && 'text' in config && 'origin' in config ? copyFile(config) : undefined,
      hostAddresses: undefined,
    },
    options,
  );
  const { nodes = [] } = compileFleet(loaded, fleet, options.ipFamily);
  const folder = new FleetFolder(path, links);
  for (const node of nodes) {
    const result = await writeNode(folder, node, form);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window
    parentPort?.postMessage(result);
    if (result.kind === 'failed') break;
  }
}

/** A text that came from another thread has no methods any more. */
function copyFile({ name, text, origin }: TextFile): TextFile {
  return new TextFile(name, text, origin);
}
