import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ErrorCode, ListToolsRequestSchema, McpError } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { allowEmptyFlag, findIdleFlag, refuseNamedTwice } from '../../src/library/command-flags.ts';
import { optionsOfSide } from '../../src/library/comparisons.ts';
import { findEmpty } from '../../src/library/inputs.ts';
import { version, type ComparedSide } from '../../src/library/index.ts';
import { hasRightValue, valueOfWords } from '../../src/library/node/kpc-yaml-values.ts';
import { Refusal, refuse } from '../../src/library/refusal.ts';
import type { ArgumentsOf } from '../../src/base/findings/codes.ts';
import { diagnose } from '../../src/base/findings/finding.ts';
import { publishedSchema } from '../../src/base/json/published-schema.ts';
import { findNearest } from '../../src/base/names.ts';
import { describeError } from '../../src/base/system-errors.ts';
import { makeEnvelope } from '../../src/say/formats/json.ts';
import { wordsOf } from '../../src/say/words/words.ts';
import type { Flag } from '../../src/settings/flag.ts';
import { envelopeOf } from '../../src/say/outputs/envelope.ts';
import type { SaidFinding } from '../../src/say/words/said.ts';
import { answerQuestions, Answers } from './answers.ts';
import { BoundedInput, longestMessage } from './bounded-input.ts';
import { readConfigured } from './configured.ts';
import { formatPart, type Part, type ToolAnswer } from './long-answers.ts';
import { explained, refuseUse } from './refusals.ts';
import { TextsBelow } from './texts-below.ts';
import { parameterOf, parametersOf, tools, type Tool } from './tools.ts';
import { inParameters } from './words.ts';

const usage = `Usage: kpc-mcp <folder>

Answers the questions of an agent about Kubernetes Services over the Model
Context Protocol, on stdin and stdout: trace, describe, compile, equivalence,
migrate, lint and explain. It reads texts that the agent sends, and files below the
folder, where kpc.yaml has the options of a question that names none, as for kpc;
it writes nothing, and opens no connection.

Options:
  -V, --version  print the version
  -h, --help     print this help
`;

const instructions =
  'kpc answers what kube-proxy programs for Kubernetes Services, offline. Ask trace first if something cannot be reached, then describe or explain about what it names. A verdict "unknown" says what to add; do not guess in its place.';

const answering = '--answer-questions';

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
    const tool = toolOf(name);
    const text = await answers.ask({ name, given }).catch((error: unknown) => format(tool, given, failure(error)));
    const structuredContent = JSON.parse(text) as Record<string, unknown>;
    return { content: [{ type: 'text', text }], structuredContent, isError: !('result' in structuredContent) };
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

function toolOf(name: string): Tool {
  const tool = tools.find((each) => each.name === name);
  if (!tool) throw new McpError(ErrorCode.InvalidParams, `there is no tool ${JSON.stringify(name)}`);
  return tool;
}

/** Options of kpc besides the tool's own parameters, under the library's names, such as "clusterCidr". */
const furtherOptions = z.union([z.string(), z.boolean(), z.number(), z.array(z.string())], {
  error: 'neither a string, a number, true or false, nor a list of strings',
});

function inputOf({ input, flags }: Tool) {
  return flags.length > 0 ? z.object(input).catchall(furtherOptions) : z.strictObject(input);
}

function describeTool(tool: Tool) {
  const { name, title, description, result } = tool;
  const annotations = { title, readOnlyHint: true, idempotentHint: true, openWorldHint: false };
  const inputSchema = z.toJSONSchema(inputOf(tool)) as { type: 'object' };
  const outputSchema = publishedSchema(envelopeOf(result)) as { type: 'object' };
  return { name, title, description, inputSchema, outputSchema, annotations };
}

const questionShape = z.object({ name: z.string(), given: z.record(z.string(), z.unknown()) });

function answer(folder: string): number {
  const files = new TextsBelow(folder);
  // Paths in the folder's kpc.yaml are relative to the folder.
  process.chdir(folder);
  answerQuestions(async (question) => {
    const { name, given } = questionShape.parse(question);
    return answerOf(toolOf(name), given, files);
  });
  return 0;
}

const unconfigured = { values: {}, findings: [], isWrong: false } as const;
const noAnswer: ToolAnswer = { snapshots: [], findings: [] };

type Given = Readonly<Record<string, unknown>>;

async function answerOf(tool: Tool, given: Given, files: TextsBelow): Promise<string> {
  return orFailure(tool, given, [], async () => {
    const { asked, flags } = readInput(tool, given);
    const { values, findings, isWrong } = tool.flags.length > 0 ? readConfigured(tool, asked, files) : unconfigured;
    return orFailure(tool, given, findings, async () => {
      const { limit, skip, ...question } = asked;
      const own = isWrong ? noAnswer : await tool.answer({ ...values, ...question }, files, flags);
      const all = [...new Map([...findings, ...own.findings].map((each) => [JSON.stringify(each), each])).values()];
      return formatPart(tool, { ...own, findings: all }, { limit, skip } as Part, (part) => format(tool, given, part));
    });
  });
}

/** Returns an answer, or the failure. `findings`: reported before the error. */
async function orFailure(
  tool: Tool,
  given: Given,
  findings: readonly SaidFinding[],
  answered: () => Promise<string>,
): Promise<string> {
  try {
    return await answered();
  } catch (error) {
    return format(tool, given, { ...noAnswer, findings: [...findings, ...explained(error)] });
  }
}

/** Returns the parameters, and the flags among them. Refuses unknown parameters and wrong values. */
function readInput(tool: Tool, given: Given): { readonly asked: Given; readonly flags: readonly Flag[] } {
  const names = [...parametersOf(tool)];
  const strange = Object.keys(given).find((each) => !names.includes(each));
  if (strange !== undefined) {
    const near = findNearest(strange, names);
    refuseUse(`there is no parameter ${strange}`, near === undefined ? undefined : `did you mean ${near}?`);
  }
  const empty = findEmpty(given);
  if (empty !== undefined) refuse({ problem: 'wrong-argument', what: empty, is: 'filled' });
  const { error, data } = inputOf(tool).safeParse(given);
  if (error) refuseUse(error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; '));
  const asked = { ...data, ...furtherValues(tool, data ?? {}) };
  return { asked, flags: usefulFlags(tool, asked) };
}

function furtherValues({ input, flags }: Tool, given: Given): Given {
  const further = flags.filter((row) => given[row.key] !== undefined && !Object.hasOwn(input, parameterOf(row)));
  return Object.fromEntries(further.map((row) => [row.key, furtherValue(row, given[row.key])]));
}

function furtherValue(row: Flag, value: unknown): unknown {
  const refuseValue = (details: ArgumentsOf<'bad-kpc-yaml'>): never => {
    const { text, help } = wordsOf(diagnose('bad-kpc-yaml', details));
    return refuseUse(text, help);
  };
  hasRightValue({ row, value, path: [] }, (_, details) => refuseValue(details), row.key);
  try {
    return valueOfWords(row, [value].flat().map(String));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return refuseValue({ problem: 'refused', flag: row.key, reason: error.message });
  }
}

/** Refuses parameters that have no effect, as kpc refuses flags. Accepts them from kpc.yaml, which is for many questions. */
function usefulFlags({ name, flags }: Tool, given: Given): readonly Flag[] {
  const named = flags.flatMap((row) => {
    const value = given[parameterOf(row)];
    const isSwitch = row.kind === 'on' || row.kind === 'off';
    return value === undefined || (isSwitch && value !== (row.kind === 'on')) ? [] : [{ row, value }];
  });
  const idle = findIdleFlag(named);
  if (idle) refuse(idle);
  const rows = named.map(({ row }) => row);
  if (name === 'equivalence')
    refuseNamedTwice(
      rows,
      [given['from'], given['to']].map((side) => optionsOfSide(side as ComparedSide)),
    );
  return rows;
}

function failure(error: unknown): ToolAnswer {
  return { ...noAnswer, findings: explained(error) };
}

const names = {
  tools: new Set(tools.map(({ name }) => name)),
  options: new Set([...tools.flatMap(({ flags }) => flags), allowEmptyFlag].map(({ key }) => key)),
};

const allParameters = new Set(tools.flatMap((tool) => [...parametersOf(tool)]));

function format(tool: Tool, given: Given, { findings, ...answered }: ToolAnswer): string {
  const takesFlags = tool.flags.length > 0;
  const parameters = takesFlags ? parametersOf(tool) : allParameters;
  const useful = takesFlags ? parametersOf(tool, 'dump' in given) : allParameters;
  const said = inParameters(findings, answered, { ...names, parameters, useful });
  const { kpc, command, result, ...rest } = makeEnvelope({ command: `kpc ${tool.name}`, ...said });
  return JSON.stringify({ kpc, command, result, ...rest }, undefined, 1);
}

process.exitCode = await main(process.argv.slice(2));
