/**
 * The secret of every link that went by mail in this test file, whatever the mail server did with the mail. A service
 * that closes looks for each of them in all that it wrote.
 */
export const mailedSecrets = new Set<string>();
