import type { z } from 'zod';
import type { Problem } from './report.ts';

const ofOneMax = 5;

/** The library's own words for a wrong type are no words of ours. */
function messageOf(issue: z.core.$ZodIssue): string {
  if (issue.code !== 'invalid_type') return issue.message;
  return issue.message.endsWith('received undefined') ? 'is missing' : `must be of the type ${issue.expected}`;
}

/** Returns the problems of a record, field by field; never its values. */
export function problemsOf(place: string, error: z.ZodError): readonly Problem[] {
  return error.issues.slice(0, ofOneMax).map((issue) => ({
    place,
    field: issue.path.map(String).join('.') || 'the record',
    message: messageOf(issue),
  }));
}
