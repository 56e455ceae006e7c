import { findOwners } from '../../diff/changes/owners.ts';
import { isError } from '../../diagnostics/diagnostic.ts';
import { decompile } from '../../describe/decompile.ts';
import { printable } from '../../base/printable.ts';
import { classifyServers } from '../../diff/virtual-servers.ts';
import type { Side } from '../../diff/compared-side.ts';
import { loadInputs } from '../../compile/read-texts.ts';
import { modeOfState } from '../../kube-proxy/mode-of-state.ts';
import { compileAs } from '../../sides/compile-side.ts';
import { recogniseInputs, type SideOptions } from '../../sides/read-side.ts';
import type { SideReading } from '../../sides/stored-side.ts';
import { sceneOf, type Scene } from '../../packet/trace/scene.ts';
import { type MessageOptions, reportInput, refuse } from './messages.ts';
import type { Terminal } from '../shared/terminal.ts';

/**
 * The node that packets are traced on, or each of the input's Nodes; undefined if there is none, which has been
 * reported.
 */
export async function readScenes(
  options: SideOptions & MessageOptions,
  everyNode: boolean,
  terminal: Terminal,
): Promise<readonly Scene[] | undefined> {
  const { file = [], node } = options;
  const { readStdin } = terminal;
  const input = await recogniseInputs(file, { node, readStdin });
  if (input.kind !== 'manifests') {
    const scene = await sceneOfReading(input, options, terminal);
    return scene && [scene];
  }
  const loaded = await loadInputs({ ...options, traffic: true, into: 'kpc describe -' }, readStdin);
  if (!everyNode) {
    const scene = await sceneOfReading(compileAs('-f', loaded, options), options, terminal);
    return scene && [scene];
  }
  const names = [...loaded.prepared.nodes.keys()].toSorted();
  if (loaded.diagnostics.some(isError) || names.length === 0) {
    await reportInput(loaded, options, terminal);
    if (names.length === 0)
      await refuse(terminal, 'the input holds no Node', 'add what kubectl get nodes -o yaml prints');
    return undefined;
  }
  const scenes: Scene[] = [];
  for (const name of names) {
    const reading = compileAs('-f', loaded, { ...options, node: name });
    // All nodes have the same input: its messages come once.
    const diagnostics = scenes.length > 0 ? [] : reading.diagnostics;
    const scene = await sceneOfReading({ ...reading, diagnostics }, options, terminal);
    if (!scene) return undefined;
    scenes.push(scene);
  }
  return scenes;
}

/** A side that was read, as a scene; undefined if it cannot be used, which has been reported. */
export async function sceneOfReading(
  reading: SideReading,
  options: MessageOptions,
  terminal: Terminal,
): Promise<Scene | undefined> {
  const { side, inputs } = reading;
  if (!(await reportInput(reading, options, terminal)) || !side) return undefined;
  const { state, labels, coverage, services } = side;
  const owners = findOwners(labels ? [labels, state] : [state]);
  const isDump = services === undefined;
  const { ports, mode } = isDump ? decompile(state, owners, classifyServers(side, side), coverage) : noPorts;
  for (const text of doubtsOf(side)) await terminal.err(`warning: ${printable(text)}\n`);
  return sceneOf(side, owners, services?.settings.mode ?? mode ?? modeOfState(state), ports, inputs);
}

const noPorts = { ports: [], mode: undefined } as const;

/** What a dump may hold of a packet's way that kpc does not read. Other programs' tables report that themselves. */
function doubtsOf({ doubts }: Side): readonly string[] {
  return doubts.flatMap((doubt) =>
    doubt.kind === 'other-table' ? [] : [`${doubt.file} may hold more than kpc could read of it`],
  );
}
