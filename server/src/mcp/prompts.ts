import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';

/** A task that users start by its name. */
interface Prompt {
  readonly definition: {
    readonly name: string;
    readonly title: string;
    readonly description: string;
    readonly arguments: { readonly name: string; readonly description: string; readonly required: boolean }[];
  };
  readonly text: (given: Readonly<Record<string, string>>) => string;
}

/** The prompts there are. */
export const prompts: readonly Prompt[] = [
  {
    definition: {
      name: 'review_tokens',
      title: 'Review access tokens',
      description:
        'Go through the tokens of the organization and name those that should be revoked. For administrators.',
      arguments: [
        {
          name: 'unusedDays',
          description: 'From how many days without use a token counts as stale; 90',
          required: false,
        },
      ],
    },
    text: ({ unusedDays = '90' }) =>
      'Review the personal access tokens of this organization. Page through list_all_tokens until there is no further page. ' +
      `Make a table of tokens that (1) belong to removed owners, (2) never expire, (3) were not used for ${unusedDays} days ` +
      'or ever, or (4) have org:admin or token:admin. Say for each why it is in the table and what revoking it may break. ' +
      'Revoke nothing before I have agreed, token by token.',
  },
  {
    definition: {
      name: 'offboard_person',
      title: 'A user leaves',
      description: 'The access of a user, and then the removal of the account. For administrators.',
      arguments: [{ name: 'email', description: 'The e-mail address of the user', required: true }],
    },
    text: ({ email = '' }) =>
      `The user with the e-mail address ${JSON.stringify(email)} leaves. Find the account with list_users. Show the groups ` +
      `(list_groups_of_user), the teams as far as you can see them, and the active tokens (list_all_tokens with the user's id). ` +
      'Tell me what stops working when the account is deleted: its tokens and sessions end at once. An administrator must be ' +
      'removed from the admin group first. Ask me before you call delete_user.',
  },
];

const textMax = 300;

/** A prompt, filled in. Throws the error of the protocol for an unknown name, or an argument that is missing or too long. */
export function findPrompt(name: string, given: Readonly<Record<string, string>>) {
  const prompt = prompts.find(({ definition }) => definition.name === name);
  if (!prompt) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown prompt: ${name.slice(0, 100)}`);
  const { definition } = prompt;
  for (const { name: argument, required } of definition.arguments) {
    const value = given[argument];
    if (required && !value) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `${argument} is required`);
    if (value !== undefined && value.length > textMax) {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `${argument} is longer than ${textMax} characters`);
    }
  }
  return {
    description: definition.description,
    messages: [{ role: 'user' as const, content: { type: 'text' as const, text: prompt.text(given) } }],
  };
}
