import { goldenHead } from '../base/file-names.ts';

/** What a node has whatever its Services are. */
export const goldenNodeFile = 'node.txt';

/** The file of one Service. Neither name has a dot, so no two Services share a file, nor one with the node. */
export function goldenServiceFile(namespace: string, name: string): string {
  return `${namespace}.${name}.txt`;
}

/** Whether a file has the name that goldenServiceFile gives: "shop.web.txt". */
function isGoldenServiceFile(name: string): boolean {
  return /^[a-z0-9-]{1,63}\.[a-z0-9-]{1,63}\.txt$/.test(name);
}

/** Whether a golden may hold a file of that name. */
export function isGoldenFile(name: string): boolean {
  return name === goldenHead || name === goldenNodeFile || isGoldenServiceFile(name);
}
