const [majorMin, minorMin] = [20, 19];

/**
 * Says why this Node.js cannot run the product; `null`: it can. The caller loads all else afterwards only: an older
 * Node.js would end with a syntax error. Rule: FIT-110.
 * @param version such as 20.19.0
 */
export function nodeProblem(version: string): string | null {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > majorMin || (major === majorMin && minor >= minorMin)) return null;
  return `Node.js ${majorMin}.${minorMin} or newer is needed, and this is ${version}: https://nodejs.org/en/download`;
}
