/** Attributes that git exchanges with credential helpers: lines of `key=value` (git-credential(1), "INPUT/OUTPUT FORMAT"). */
export function credentialAttributes(text: string): ReadonlyMap<string, string> {
  return new Map(
    text.split("\n").flatMap((line) => {
      const at = line.indexOf("=");
      return at < 1 ? [] : [[line.slice(0, at), line.slice(at + 1)] as const];
    }),
  );
}
