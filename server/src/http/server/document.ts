import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';

type Encoding = 'br' | 'gzip' | 'identity';

/** In order of preference. */
const compressors = {
  br: (content: Buffer) =>
    promisify(brotliCompress)(content, {
      params: { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: content.length },
    }),
  gzip: (content: Buffer) => promisify(gzip)(content, { level: 9 }),
};
/** What is smaller fits into one packet anyway. */
const compressedBytesMin = 1_024;

/** Returns the weight of an encoding by Accept-Encoding (RFC 9110, section 12.5.3); 0: it is not accepted. */
function weightOf(encoding: 'br' | 'gzip', accepted: string): number {
  const weights = new Map(
    accepted
      .toLowerCase()
      .split(',')
      .map((part): [string, number] => {
        const [name = '', ...params] = part.split(';').map((piece) => piece.trim());
        const weight = params.find((param) => param.startsWith('q='))?.slice(2);
        return [name, weight === undefined ? 1 : Number(weight) || 0];
      }),
  );
  return weights.get(encoding) ?? (encoding === 'gzip' ? weights.get('x-gzip') : undefined) ?? weights.get('*') ?? 0;
}

function encodingFor(accepted: string | string[] | undefined): Encoding {
  if (typeof accepted !== 'string') return 'identity';
  const [br, zipped] = [weightOf('br', accepted), weightOf('gzip', accepted)];
  if (br > 0 && br >= zipped) return 'br';
  return zipped > 0 ? 'gzip' : 'identity';
}

/** Returns whether If-None-Match names a tag; the comparison is the weak one (RFC 9110, section 13.1.2). */
function isNamed(tag: string, given: string | string[] | undefined): boolean {
  if (typeof given !== 'string') return false;
  return given.split(',').some((part) => part.trim() === '*' || part.trim().replace(/^W\//, '') === tag);
}

/**
 * A document that is the same for every caller and holds no secret: read once and sent from the same memory. It has an
 * `ETag` by its content and is compressed for readers that take that, once for all of them. Responses of operations are
 * never compressed: their length would tell a secret next to text of an attacker's choice (BREACH). Rules: FIT-140,
 * FIT-141.
 */
export class StaticDocument {
  readonly #content: Buffer;
  readonly #hash: string;
  readonly #compressed = new Map<Encoding, Promise<Buffer>>();

  constructor(content: Buffer) {
    this.#content = content;
    this.#hash = hash('sha256', content, 'base64url').slice(0, 22);
  }

  #in(encoding: Encoding): Promise<Buffer> | Buffer {
    if (encoding === 'identity') return this.#content;
    const known = this.#compressed.get(encoding);
    if (known) return known;
    const made = compressors[encoding](this.#content);
    this.#compressed.set(encoding, made);
    made.catch(() => this.#compressed.delete(encoding));
    return made;
  }

  /** Sends the document, or 304 to a reader who has it. */
  async send({ headers }: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const isSmall = this.#content.length < compressedBytesMin;
    const encoding = isSmall ? 'identity' : encodingFor(headers['accept-encoding']);
    const tag = encoding === 'identity' ? `"${this.#hash}"` : `"${this.#hash}-${encoding}"`;
    const vary = reply.getHeader('vary');
    reply.headers({ etag: tag, vary: vary === undefined ? 'Accept-Encoding' : `${String(vary)}, Accept-Encoding` });
    if (isNamed(tag, headers['if-none-match'])) return reply.removeHeader('content-type').code(304).send();
    if (encoding !== 'identity') reply.header('content-encoding', encoding);
    return reply.send(await this.#in(encoding));
  }
}
