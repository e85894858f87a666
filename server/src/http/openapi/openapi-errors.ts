import { apiErrors } from '../../base/api-errors.ts';

type Json = Record<string, unknown>;

/** An error of most endpoints. Rule: ERR-2. */
export const errorSchema: Json = {
  type: 'object',
  required: ['message', 'error'],
  properties: {
    message: { type: 'string' },
    failed: {
      description: 'Addresses that mail could not be sent to, where that is what failed',
      type: 'array',
      items: { type: 'string', format: 'email' },
    },
    oldest: {
      description: 'The sequence of the oldest event kept, where older ones were asked for',
      type: 'integer',
    },
    error: {
      type: 'object',
      required: ['code', 'message', 'requestId'],
      properties: {
        code: { type: 'string', enum: [...new Set(Object.values(apiErrors).map(({ code }) => code))] },
        message: { type: 'string' },
        requestId: { type: 'string' },
        details: {
          type: 'array',
          items: {
            type: 'object',
            required: ['field', 'message'],
            properties: { field: { type: 'string' }, message: { type: 'string' } },
          },
        },
      },
    },
  },
};

/** An error of an OAuth endpoint (RFC 6749, section 5.2). Rule: ERR-5. */
export const oauthErrorSchema: Json = {
  type: 'object',
  required: ['error'],
  properties: { error: { type: 'string' }, error_description: { type: 'string' } },
};

/** An error of an endpoint that speaks JSON-RPC (JSON-RPC 2.0, section 5). Rule: ERR-5. */
export const rpcErrorSchema: Json = {
  type: 'object',
  required: ['jsonrpc', 'id', 'error'],
  properties: {
    jsonrpc: { type: 'string', const: '2.0' },
    id: { description: 'Of the message, where it has one that could be read', type: ['string', 'number', 'null'] },
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: { code: { type: 'integer' }, message: { type: 'string' }, data: {} },
    },
  },
};

/** An error in the one spelling of `{ errorMessage }`. Rule: ERR-4. */
export const errorMessageResponse = {
  description: 'Refused',
  content: {
    'application/json': {
      schema: {
        type: 'object',
        required: ['errorMessage'],
        properties: { errorMessage: { type: 'string' } },
      },
    },
  },
};
