/** A resource: the response of a tool without arguments. */
interface Resource {
  readonly definition: {
    readonly uri: string;
    readonly name: string;
    readonly title: string;
    readonly description: string;
    readonly mimeType: string;
  };
  /** The tool whose response it is: the same checks. */
  readonly tool: string;
}

const mimeType = 'application/json';

/** Resources that agents may read. */
export const resources: readonly Resource[] = [
  {
    definition: {
      uri: 'latchkey://organization',
      name: 'organization',
      title: 'The organization',
      description: 'Name, domain, account type and contact of the organization that this service holds.',
      mimeType,
    },
    tool: 'get_organization',
  },
  {
    definition: {
      uri: 'latchkey://me',
      name: 'me',
      title: 'The identity that you act as',
      description:
        'The user that your credential belongs to, whether an administrator, and the scopes of the credential.',
      mimeType,
    },
    tool: 'whoami',
  },
];
