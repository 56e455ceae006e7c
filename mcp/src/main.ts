import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';
import { version } from '../../src/library/index.ts';
import { describeError } from '../../src/base/system-errors.ts';
import { RefusedPath, TextsBelow } from './texts-below.ts';
import { tools, type Tool } from './tools.ts';

const usage = `Usage: kpc-mcp <folder>

Answers the questions of an agent about Kubernetes Services over the Model
Context Protocol, on stdin and stdout: trace, describe, compile, equivalence,
migrate, lint and explain. It reads texts that the agent sends, and files below the
folder; it writes nothing, and opens no connection.

Options:
  -V, --version  print the version
  -h, --help     print this help
`;

const instructions =
  'kpc answers what kube-proxy programs for Kubernetes Services, offline. Ask trace first if something cannot be reached, then describe or explain about what it names. A verdict "unknown" says what to add; do not guess in its place.';

/** An agent reads all of an answer: a long one is cut. */
const longestAnswer = 200_000;

async function main(words: readonly string[]): Promise<number> {
  const [folder, ...others] = words;
  if (folder === '--help' || folder === '-h') process.stdout.write(usage);
  else if (folder === '--version' || folder === '-V') process.stdout.write(`${version}\n`);
  else if (folder === undefined || others.length > 0 || folder.startsWith('-')) {
    process.stderr.write(`error: name one folder\n  help: kpc-mcp FOLDER answers about the files below it\n`);
    return 2;
  } else return serve(folder);
  return 0;
}

async function serve(folder: string): Promise<number> {
  let files: TextsBelow;
  try {
    files = new TextsBelow(folder);
  } catch (error) {
    process.stderr.write(`error: ${folder}: ${describeError(error)}\n  help: name a folder that you may read\n`);
    return 2;
  }
  const server = new McpServer({ name: 'kpc', version }, { instructions });
  for (const each of tools) addTool(server, each, files);
  await server.connect(new StdioServerTransport());
  return 0;
}

function addTool(server: McpServer, { name, title, description, input, answer }: Tool, files: TextsBelow): void {
  const annotations = { title, readOnlyHint: true, idempotentHint: true, openWorldHint: false };
  server.registerTool(name, { title, description, inputSchema: z.strictObject(input), annotations }, (given) => {
    try {
      return { content: [{ type: 'text' as const, text: cut(JSON.stringify(answer(given, files), undefined, 1)) }] };
    } catch (error) {
      // What the library throws is wrong in the question, too.
      if (!(error instanceof RefusedPath || error instanceof TypeError)) throw error;
      return { isError: true, content: [{ type: 'text' as const, text: error.message }] };
    }
  });
}

function cut(text: string): string {
  if (text.length <= longestAnswer) return text;
  return `${text.slice(0, longestAnswer)}\n… cut here, after ${longestAnswer} of ${text.length} characters: ask about less.`;
}

process.exitCode = await main(process.argv.slice(2));
