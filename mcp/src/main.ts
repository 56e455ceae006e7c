import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { version } from '../../src/library/index.ts';
import { describeError } from '../../src/base/system-errors.ts';
import { answerQuestions, Answers, refusal, type Answer } from './answers.ts';
import { BoundedInput, longestMessage } from './bounded-input.ts';
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

/** The first word of the process that answers for a server. */
const answering = '--answer-questions';

/** An agent reads all of an answer: a long one is cut. */
const longestAnswer = 200_000;

async function main(words: readonly string[]): Promise<number> {
  const [folder, ...others] = words;
  if (folder === '--help' || folder === '-h') process.stdout.write(usage);
  else if (folder === '--version' || folder === '-V') process.stdout.write(`${version}\n`);
  else if (folder === answering && process.send) return answer(others.join());
  else if (folder === undefined || others.length > 0 || folder.startsWith('-')) {
    process.stderr.write(`error: name one folder\n  help: kpc-mcp FOLDER answers about the files below it\n`);
    return 2;
  } else return serve(folder);
  return 0;
}

async function serve(folder: string): Promise<number> {
  try {
    readdirSync(folder);
  } catch (error) {
    process.stderr.write(`error: ${folder}: ${describeError(error)}\n  help: name a folder that you may read\n`);
    return 2;
  }
  const answers = new Answers(fileURLToPath(import.meta.url), [answering, folder]);
  process.on('exit', () => answers.close());
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit());
  const server = new Server({ name: 'kpc', version }, { instructions, capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: tools.map(describeTool) }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params: { name, arguments: given = {} } }) => {
    const { text, isError } = await answers.ask({ name, given });
    return { content: [{ type: 'text' as const, text }], isError };
  });
  const input = process.stdin.pipe(
    new BoundedInput((id) => {
      const message = `the message is longer than ${longestMessage / 2 ** 20} MiB: write its texts to files in the folder, and name these`;
      process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32600, message } })}\n`);
    }),
  );
  await server.connect(new StdioServerTransport(input, process.stdout));
  return 0;
}

function describeTool({ name, title, description, input }: Tool) {
  const annotations = { title, readOnlyHint: true, idempotentHint: true, openWorldHint: false };
  const inputSchema = z.toJSONSchema(z.strictObject(input)) as { type: 'object' };
  return { name, title, description, inputSchema, annotations };
}

const questionShape = z.object({ name: z.string(), given: z.unknown() });

/** Answers for a server, in a process of its own. */
function answer(folder: string): number {
  const files = new TextsBelow(folder);
  answerQuestions((question) => {
    const { name, given } = questionShape.parse(question);
    const tool = tools.find((each) => each.name === name);
    return tool ? answerOf(tool, given, files) : refusal(`there is no tool ${cut(JSON.stringify(name))}`);
  });
  return 0;
}

function answerOf({ name, input, answer: of }: Tool, given: unknown, files: TextsBelow): Answer {
  const checked = z.strictObject(input).safeParse(given);
  if (!checked.success) return refusal(cut(`wrong arguments for ${name}: ${z.prettifyError(checked.error)}`));
  try {
    return { text: cut(JSON.stringify(of(checked.data, files), undefined, 1)), isError: false };
  } catch (error) {
    // What the library throws is wrong in the question, too.
    if (error instanceof RefusedPath || error instanceof TypeError) return refusal(cut(error.message));
    return refusal(cut(`kpc failed on this question: ${describeError(error)}`));
  }
}

function cut(text: string): string {
  if (text.length <= longestAnswer) return text;
  return `${text.slice(0, longestAnswer)}\n… cut here, after ${longestAnswer} of ${text.length} characters: ask about less.`;
}

process.exitCode = await main(process.argv.slice(2));
