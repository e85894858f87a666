import { describe, expect, it } from 'vitest';
import { areaOf, overBudget, readBudget } from '../../../scripts/test-budget.mjs';
import { testsOf } from '../../../scripts/test-changed.mjs';
import { countOf } from '../../../scripts/test-records.mjs';
import { chooseFiles, statementsWithoutPostgres } from '../../../scripts/test-statements.mjs';
import { testStores } from '../../../scripts/test-stores.mjs';

const insert = 'server/src/features/tokens/token-store.ts insertToken: insert personal_access_tokens';
const select = 'server/src/features/tokens/token-store.ts selectToken: select personal_access_tokens';

const onPostgres = (file: string, statements: readonly string[], ms = 100) => {
  return { project: 'postgres', file, statements, ms };
};

describe('statements on PostgreSQL', () => {
  it('one that only the embedded store got fails the gate, and says where it is', () => {
    const files = [
      { ...onPostgres('a.test.ts', [insert, select]), project: 'embedded' },
      onPostgres('b.test.ts', [insert]),
    ];
    expect(statementsWithoutPostgres({ files })).toEqual([expect.stringContaining(select)]);
    expect(statementsWithoutPostgres({ files: [...files, onPostgres('c.test.ts', [select])] })).toEqual([]);
  });

  it('files are chosen until they reach every statement, the cheaper first', () => {
    const dear = onPostgres('dear.test.ts', [insert, select], 60_000);
    const first = onPostgres('first.test.ts', [insert]);
    const second = onPostgres('second.test.ts', [select]);
    expect(chooseFiles({ files: [dear, first, second] }, [])).toEqual(['first.test.ts', 'second.test.ts']);
    expect(chooseFiles({ files: [dear, first, second] }, ['second.test.ts'])).toEqual(['first.test.ts']);
    expect(chooseFiles({ files: [dear, first] }, [])).toEqual(['dear.test.ts', 'first.test.ts']);
  });
});

describe('the budget of tests', () => {
  const budget = readBudget(
    '| Area | Files | Tests | CPU % | Why |\n| tokens | 7 | 120 | 3 | it is what this is about |\n',
  );
  const used = { area: 'tokens', files: 7, tests: 120, cpuSeconds: 12, share: 3 };

  it.each([
    [used, []],
    [{ ...used, files: 8 }, ['files 8, and the row allows 7']],
    [{ ...used, tests: 121 }, ['tests 121, and the row allows 120']],
    [{ ...used, share: 3.1 }, ['share 4, and the row allows 3']],
  ])('%j: %j', (one, told) => {
    expect(overBudget([one], budget)).toEqual(told.map((text) => expect.stringContaining(`tokens: ${text}`)));
  });

  it('an area without a row fails', () => {
    expect(overBudget([{ ...used, area: 'other' }], budget)).toEqual([expect.stringContaining('other: has no row')]);
  });

  it('docs/test-budget.md has a row for the area of each test file, and no other', () => {
    const areas = new Set(testStores(true).all.map(areaOf));
    expect(new Set(readBudget().map(({ area }) => area))).toEqual(areas);
  });
});

describe('the results of a run', () => {
  const file = { project: 'embedded', file: 'a.test.ts', state: 'passed', tests: [], errors: [] };
  const test = { name: 'does', state: 'passed', errors: [] };

  const failed = { ...test, state: 'failed' };
  it.each([
    { what: 'a test that passed', of: { tests: [test] }, counts: [1, 0, 0] },
    { what: 'a test that failed', of: { state: 'failed', tests: [failed] }, counts: [0, 0, 1] },
    { what: 'a test that was skipped', of: { tests: [{ ...test, state: 'skipped' }] }, counts: [0, 1, 0] },
    { what: 'something left behind', of: { state: 'failed', tests: [test], errors: ['leaves'] }, counts: [1, 0, 1] },
    { what: 'a file that cannot be loaded', of: { state: 'failed', errors: ['no such'] }, counts: [0, 0, 1] },
    { what: 'an error outside of any test', of: {}, errors: ['thrown'], counts: [0, 0, 1] },
  ])('count, passed, skipped and failed: $what', ({ of, errors = [], counts }) => {
    const { passed, skipped, failures } = countOf({ files: [{ ...file, ...of }], errors });
    expect([passed, skipped.length, failures.length]).toEqual(counts);
  });
});

describe('npm test -- --changed', () => {
  it('takes what imports a file, what is beside it and what names it, and far from everything', () => {
    const of = testsOf(['server/src/features/tokens/token.ts']);
    expect(of).toContain('server/src/features/tokens/token.test.ts');
    expect(of).toContain('server/src/features/tokens/create-token.test.ts');
    expect(of).toContain('server/test/http/access-matrix.test.ts');
    expect(of.length).toBeLessThan(testStores(true).all.length / 4);
    expect(testsOf(['docs/guides/mcp.md'])).toContain('server/test/project/mcp-guide.test.ts');
    expect(testsOf(['README.md'])).toContain('server/test/project/document-links.test.ts');
    expect(testsOf(['server/test/project/gate.test.ts'])).toEqual(['server/test/project/gate.test.ts']);
  });
});
