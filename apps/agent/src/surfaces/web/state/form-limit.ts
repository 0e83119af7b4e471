/**
 * Largest form of a secret that is read, in bytes. A secret of 1 MiB has at most 3 MiB in a form. The rest is for text
 * that is too large to be saved: it is read so that it can be given back.
 */
export const MAX_FORM_BYTES = 8 * 1024 * 1024;
