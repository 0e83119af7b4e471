/** Numbers of rows in words: `3 users, 12 tokens`. */
export function countsText(rows: Readonly<Record<string, number>>): string {
  const parts = Object.entries(rows)
    .filter(([, count]) => count > 0)
    .map(([table, count]) => `${count} ${(NAMES[table] ?? [table, table])[count === 1 ? 0 : 1]}`);
  return parts.length === 0 ? "no rows" : parts.join(", ");
}

const NAMES: Readonly<Record<string, readonly [string, string]>> = {
  users: ["user", "users"],
  sessions: ["session", "sessions"],
  tokens: ["token", "tokens"],
  cached_repositories: ["cached repository", "cached repositories"],
  apps: ["app", "apps"],
  repository_epochs: ["epoch", "epochs"],
  manifest_pointers: ["manifest pointer", "manifest pointers"],
  audit: ["audit record", "audit records"],
};
