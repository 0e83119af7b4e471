/** The package has no types of its own. */
declare module "bcrypt-pbkdf" {
  /** OpenBSD's bcrypt_pbkdf: fills `key`; 0 for success. */
  export function pbkdf(
    pass: Uint8Array,
    passLength: number,
    salt: Uint8Array,
    saltLength: number,
    key: Uint8Array,
    keyLength: number,
    rounds: number,
  ): number;
}
