import { command } from '../command.ts';
import { CommandError } from '../failures.ts';
import { flag, text } from '../options.ts';

/** Indented lines are printed unchanged; paragraphs are wrapped when they are printed. */
const details = `For agents and their programs, on their own machine: a server of the Model Context Protocol on the standard input and output that passes everything on to an instance. The tools are the instance's, those that the token allows. Programs that speak MCP over HTTP need it not: they are given <instance>/mcp and the header "Authorization: Bearer <token>".

The token is looked for in --token, --token-file, LATCHKEY_TOKEN, LATCHKEY_TOKEN_FILE, and then asked for where there is a terminal. Others on the machine can read a command line: prefer the others. It ends with its input. Nothing but the protocol goes to the standard output.

Configuration for Claude Code, for Codex CLI, and for the file that Claude Desktop, Cursor and others read:
  claude mcp add --env LATCHKEY_TOKEN_FILE=$HOME/.latchkey-token --scope user latchkey -- \\
    latchkey mcp --url https://latchkey.example.com
  codex mcp add latchkey --env LATCHKEY_TOKEN_FILE=$HOME/.latchkey-token -- \\
    latchkey mcp --url https://latchkey.example.com
  { "mcpServers": { "latchkey": {
    "command": "latchkey", "args": ["mcp", "--url", "https://latchkey.example.com"],
    "env": { "LATCHKEY_TOKEN_FILE": "/home/ada/.latchkey-token" } } } }

docs/guides/mcp.md has more of them`;

/** Rules: CLI-1, CLI-2, MCP-15. */
export const mcp = command({
  name: 'mcp',
  summary: 'Serve the MCP tools of an instance over standard input and output',
  details,
  examples: [
    'mcp --url https://latchkey.example.com --token-file ~/.latchkey-token',
    'mcp --url http://localhost:3000',
  ],
  options: {
    url: text('address', 'of the instance; without it LATCHKEY_URL counts'),
    tokenFile: text('file', 'a file that holds the token and nothing else'),
    token: text('token', 'the token itself, for all on this machine to see'),
    insecure: flag('send the token to another machine without encryption'),
  },
  async run({ url, insecure, ...given }, context) {
    const { readAddress } = await import('../mcp/instance-address.ts');
    const { findToken } = await import('../mcp/find-token.ts');
    const { checkInstance } = await import('../mcp/check-instance.ts');
    const where = url ?? (context.environment['LATCHKEY_URL'] || null);
    if (where === null) throw new CommandError('usage', 'There is no address: give --url, or set LATCHKEY_URL');
    const address = readAddress(where, insecure);
    const token = await findToken(given, context);
    await checkInstance(address, token);
    const { runBridge } = await import('../mcp/bridge.ts');
    const { stdin, stdout, say } = context;
    await runBridge({ address, token, stdin, stdout, say });
    return null;
  },
});
