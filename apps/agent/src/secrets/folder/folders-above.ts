/** Folders whose listing a secret can change: all above it, from the root `""` on. */
export function foldersAbove(path: string): string[] {
  const parts = path.split("/");
  return parts.map((_, index) =>
    parts
      .slice(0, index)
      .map((part) => `${part}/`)
      .join(""),
  );
}
