import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { main } from '../../src/cli/kpc-apply/main.ts';
import type { ToolCommand, Host } from '../../src/apply/node/host.ts';
import { readNodeNetwork } from '../../src/apply/node/network.ts';
import { realHost } from '../../src/apply/node/real-host.ts';
import { stateFolder } from '../../src/apply/state/record.ts';

/** Counts checks and prints each failed one. The last line of a suite is "N passed, N failed". */
export interface Suite {
  check(name: string, work: () => void | Promise<void>): Promise<boolean>;
  /** Prints the closing line and sets the exit status. */
  finish(): void;
}

/** KPC_LAB_UNTIL is a time in seconds since 1970. No check begins after this time; the remaining checks are listed but not run. */
const until = Number(process.env['KPC_LAB_UNTIL'] ?? Number.POSITIVE_INFINITY) * 1000;

export function startSuite(title: string): Suite {
  let passed = 0;
  let failed = 0;
  const started = Date.now();
  const end = (status: 0 | 1): never => {
    console.log(`${title} took ${Math.round((Date.now() - started) / 1000)} s`);
    console.log(`${passed} passed, ${failed} failed`);
    // Exit explicitly, because programs that a failed check left running would keep this process alive.
    process.exit(status);
  };
  return {
    async check(name, work) {
      const from = Date.now();
      if (from > until) {
        console.log(`not run: ${title}, from "${name}" on: the time was up`);
        end(failed > 0 ? 1 : 0);
      }
      try {
        await work();
        passed++;
        console.log(`ok    ${title}: ${name} (${Date.now() - from} ms)`);
        return true;
      } catch (error) {
        failed++;
        console.log(
          `FAIL  ${title}: ${name}\n${indent(error instanceof Error ? (error.stack ?? error.message) : String(error))}`,
        );
        return false;
      }
    },
    finish() {
      end(failed > 0 || passed === 0 ? 1 : 0);
    },
  };
}

function indent(text: string): string {
  return text.replace(/^/gm, '      ');
}

/** Throws if the texts differ, with the lines that differ. */
export function assertSame(what: string, got: string, want: string): void {
  if (got === want) return;
  const [gotLines, wantLines] = [new Set(got.split('\n')), new Set(want.split('\n'))];
  const lines = [
    ...[...wantLines].filter((line) => !gotLines.has(line)).map((line) => `- ${line}`),
    ...[...gotLines].filter((line) => !wantLines.has(line)).map((line) => `+ ${line}`),
  ];
  throw new Error(
    `${what} differs (- wanted, + got):\n${(lines.length > 0 ? lines : ['the order']).slice(0, 40).join('\n')}`,
  );
}

export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message);
}

/** One run of kpc-apply inside this process. Starting Node would take longer than most applies. */
export interface Run {
  readonly status: number;
  readonly out: string;
  readonly err: string;
  /** The tools that kpc-apply ran, in order. */
  readonly commands: readonly ToolCommand[];
}

export const stateDir = '/run/kpc';

/** Returns the folder with kpc-apply's records of this network. */
export async function networkFolder(): Promise<string> {
  return stateFolder(stateDir, await readNodeNetwork(realHost, true)).path;
}

/** Runs kpc-apply with its records in /run, which belongs to this kernel alone. */
export async function kpcApply(args: readonly string[], host: Host = realHost): Promise<Run> {
  let out = '';
  let err = '';
  const commands: ToolCommand[] = [];
  const status = await main(
    [...args, ...(args[0] === 'doctor' || args.includes('--state-dir') ? [] : ['--state-dir', stateDir])],
    {
      terminal: {
        out: async (text) => void (out += text),
        err: async (text) => void (err += text),
        status: async () => {},
        readStdin: async () => '',
        colour: { out: false, err: false },
        interactive: false,
      },
      host: {
        ...host,
        // Trust the owner of the working folder, because in User Mode Linux this machine's files keep their owners.
        user: { uid: 0, invoker: statSync('.') },
        // Name the program explicitly, because otherwise this suite would start itself again.
        program: [process.execPath, resolve(process.env['KPC_APPLY'] ?? 'dist/kpc-apply.js')],
        run: (command) => {
          commands.push(command);
          return host.run(command);
        },
      },
    },
  );
  return { status, out, err, commands };
}

/** Runs kpc-apply and asserts its exit status. */
export async function expectApply(args: readonly string[], status: number): Promise<Run> {
  const run = await kpcApply(args);
  assert(
    run.status === status,
    `kpc-apply ${args.join(' ')}: status ${run.status}, not ${status}\n${run.err}${run.out}`,
  );
  return run;
}

/** Reports whether a command of kpc-apply changes the node. */
export function isRestore({ tool, args }: ToolCommand): boolean {
  if (args[0] === '--version') return false;
  if (tool.endsWith('-restore') || tool === 'modprobe') return true;
  if (tool === 'ip') return args.includes('-batch');
  if (tool === 'nft') return args[0] === '-f';
  if (tool === 'ipset') return args[0] === 'restore';
  return tool === 'ipvsadm' && (args[0] === '-R' || args[0] === '--set');
}
