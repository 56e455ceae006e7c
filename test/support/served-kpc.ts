// Makes a program "kpc" for scripts that start it often. The program lets this process run kpc, which is already loaded.
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { projectFolder, runKpcAmong } from './run-kpc.ts';

/**
 * Sends the folder, standard input and each argument, each followed by NUL. Receives pieces: the stream, the number of bytes, and the
 * bytes; last 0 and the status. Calls that need a process of their own (for its files, for threads, or for a folder that records its
 * writer) go to the built program.
 */
const client = (socket: string) => `#!/usr/bin/perl
use strict; use warnings; use Cwd; use IO::Socket::UNIX;
if ((grep { m{^/dev/|^--jobs$} } @ARGV) || $ARGV[0] eq 'compile' && grep { m{^--(?:all-nodes|shard)$} } @ARGV) {
  exec '${process.execPath}', '${join(projectFolder, 'bin', 'kpc.js')}', @ARGV;
}
my $stdin = '';
if (grep { $_ eq '-' } @ARGV) { local $/; $stdin = <STDIN> // ''; }
my $server = IO::Socket::UNIX->new(Peer => '${socket}') or die "kpc: $!";
print $server map { "$_\\0" } getcwd, $stdin, @ARGV;
$server->shutdown(1);
while (read($server, my $head, 9) == 9) {
  my ($stream, $length) = $head =~ /(.)(.{8})/;
  exit $length if $stream == 0;
  read($server, my $text, $length);
  syswrite($stream == 1 ? \\*STDOUT : \\*STDERR, $text);
}
die 'kpc: no answer';
`;

/** Writes the program into a folder for PATH. Programs that kpc starts are also looked for in this folder, before all others. */
export async function serveKpc(folder: string): Promise<Server> {
  const socket = join(folder, 'kpc.sock');
  const server = createServer({ allowHalfOpen: true }, (connection) => void answer(connection, folder));
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  writeFileSync(join(folder, 'kpc'), client(socket));
  chmodSync(join(folder, 'kpc'), 0o755);
  return server;
}

async function answer(connection: Socket, folder: string): Promise<void> {
  const chunks: Buffer[] = [];
  connection.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(connection, 'end');
  const [cwd = '', stdin = '', ...args] = Buffer.concat(chunks).toString().split('\0').slice(0, -1);
  const { status, written } = await runKpcAmong(folder, args, { cwd, stdin });
  for (const { stream, text } of written) {
    const bytes = Buffer.from(text);
    connection.write(`${stream}${String(bytes.length).padStart(8, '0')}`);
    connection.write(bytes);
  }
  connection.end(`0${String(status).padStart(8, '0')}`);
}
