const textCharsMax = 300;
/** Headers that a provider or a gateway may quote. */
const credentials = /\b(Basic|Bearer)\s+[\w+/=.~-]{8,}/gi;
/** Control characters, invisible ones and line ends. */
const unprintable = /[\p{C}\p{Z}\s]+/gu;

/**
 * Returns text of a provider on one line, with at most 300 characters, and without the secrets of the exchange. Rule:
 * FIT-4.
 */
export function cleanProviderText(text: string, secrets: readonly string[] = []): string {
  const spellings = secrets.filter((secret) => secret !== '').flatMap((secret) => [secret, encodeURIComponent(secret)]);
  const masked = spellings.reduce((rest, secret) => rest.replaceAll(secret, '[secret]'), text);
  return masked.replace(credentials, '$1 [secret]').replace(unprintable, ' ').trim().slice(0, textCharsMax);
}
