// These packages are installed in bench/ and only when a row needs them, so that their types cannot be counted on.
declare module '@better-auth/api-key';
declare module 'better-auth';
declare module 'better-auth/db/migration';
