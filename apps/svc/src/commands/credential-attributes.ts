/** Attributes that git exchanges with credential helpers: lines of `key=value` (git-credential(1), "INPUT/OUTPUT FORMAT"). */
export function credentialAttributes(text: string): ReadonlyMap<string, string> {
  return new Map(
    text.split("\n").flatMap((line) => {
      const at = line.indexOf("=");
      return at < 1 ? [] : [[line.slice(0, at), line.slice(at + 1)] as const];
    }),
  );
}

/** Values of an attribute that may come several times, such as `capability[]`. An empty value clears the ones before it. */
export function attributeList(text: string, name: string): readonly string[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith(`${name}[]=`))
    .map((line) => line.slice(name.length + 3))
    .reduce<readonly string[]>((values, value) => (value === "" ? [] : [...values, value]), []);
}
