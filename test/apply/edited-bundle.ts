import { fixtureBundle, recompile, type Editable } from '../bundle/forge.ts';
import { writeFolder } from '../support/write-folder.ts';

/** The dual-stack example in a mode, as kpc compiles it where its services.json is edited. Gives the folder. */
function writeEdited(folder: string, mode: string, edit: (services: Editable) => void): string {
  const files = recompile(fixtureBundle(`dual-stack/expected-${mode}`), edit);
  return writeFolder(folder, Object.fromEntries(files));
}

/** With endpoints of these addresses more in the first Service port, otherwise like its first one except for `changes`. */
export function writeWithEndpoints(
  folder: string,
  mode: string,
  addresses: readonly string[],
  changes: Editable = {},
): string {
  return writeEdited(folder, mode, ({ servicePorts: [port] }) => {
    for (const address of addresses) port.endpoints.push({ ...port.endpoints[0], address, ...changes });
  });
}
