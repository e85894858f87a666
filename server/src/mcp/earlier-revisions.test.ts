import { describe, expect, it } from 'vitest';
import { ApiError } from '../base/errors.ts';
import { respondEarlier, type Serving } from './earlier-revisions.ts';

const call = (id: number) => ({
  jsonrpc: '2.0' as const,
  id,
  method: 'tools/call',
  params: { name: 'x', arguments: {} },
});

/** Returns a server whose responses have a given length, and counts calls and turns. */
function servingTexts(lengthOf: (place: number) => number) {
  const seen = { calls: 0, turns: 0 };
  const serving: Serving = {
    newServer: () => {
      throw new Error('calls need none');
    },
    callTool: async () => {
      seen.calls += 1;
      return { content: [{ type: 'text', text: 'x'.repeat(lengthOf(seen.calls)) }] };
    },
    admitAnew: async () => {
      seen.turns += 1;
      return serving;
    },
    hasLeft: () => false,
  };
  return { seen, serving };
}

async function responsesOf(count: number, serving: Serving & { readonly msMax?: number }) {
  const batch = Array.from({ length: count }, (_, place) => call(place + 1));
  const { status, body } = await respondEarlier(batch, undefined, serving);
  return { status, size: body.length, answers: JSON.parse(body) };
}

describe('a batch of calls (MCP-16)', () => {
  it('has at most 20, and lets others have their turn between two', async () => {
    const { seen, serving } = servingTexts(() => 10);
    expect((await responsesOf(20, serving)).answers).toHaveLength(20);
    expect(seen).toEqual({ calls: 20, turns: 19 });
    expect((await responsesOf(21, serving)).status).toBe(400);
    expect(seen.calls).toBe(20);
  });

  it('is answered up to 10 MB: what does not fit is refused, and nothing after it is carried out', async () => {
    const { seen, serving } = servingTexts(() => 3_000_000);
    const { size, answers: responses } = await responsesOf(20, serving);
    expect(size).toBeLessThan(10_100_000);
    expect(seen.calls).toBe(4);
    const outcomes = responses.map(({ id, error }: { id: number; error?: { code: number } }) => [id, error?.code]);
    expect(outcomes.slice(0, 5)).toEqual([
      [1, undefined],
      [2, undefined],
      [3, undefined],
      [4, -32_000],
      [5, -32_000],
    ]);
    expect(outcomes).toHaveLength(20);
  });

  it('gives a short answer all the same: that of a change is never lost', async () => {
    const { seen, serving } = servingTexts((place) => (place === 4 ? 900 : 3_333_000));
    const { answers: responses } = await responsesOf(5, serving);
    expect([seen.calls, responses[3].result.content[0].text.length]).toEqual([4, 900]);
    expect(responses[4].error.code).toBe(-32_000);
  });

  it('takes two seconds at most: the rest is to be called again, by itself (MCP-17)', async () => {
    const { seen, serving } = servingTexts(() => 10);
    const { answers: responses } = await responsesOf(3, { ...serving, msMax: 0 });
    const messages = responses.map(({ error }: { error?: { message: string } }) => error?.message);
    expect(messages).toEqual([
      undefined,
      ...Array(2).fill('The calls of this batch took too long: call this again, by itself'),
    ]);
    expect(seen.calls).toBe(1);
  });

  it('is not carried out any further once its client has left (MCP-17)', async () => {
    const { seen, serving } = servingTexts(() => 10);
    const batch = [call(1), call(2), call(3)];
    expect((await respondEarlier(batch, undefined, { ...serving, hasLeft: () => true })).body).toBe('');
    expect(seen.calls).toBe(0);
    const leaving: Serving = { ...serving, hasLeft: () => seen.calls > 1, admitAnew: async () => leaving };
    await respondEarlier(batch, undefined, leaving);
    expect(seen.calls).toBe(2);
  });

  it('ends with its credential: what is left is refused, and not carried out (SESSION-12)', async () => {
    const { seen, serving } = servingTexts(() => 10);
    const admitAnew = async () => {
      throw new ApiError('tokenRevoked');
    };
    const { answers: responses } = await responsesOf(3, { ...serving, admitAnew });
    const codes = responses.map(({ error }: { error?: { data: { code: string } } }) => error?.data.code);
    expect(codes).toEqual([undefined, 'TOKEN_REVOKED', 'TOKEN_REVOKED']);
    expect(seen.calls).toBe(1);
  });
});
