/** The page of a rule. */
export function ruleUrl(name: string): string {
  return `/ui/rules/${encodeURIComponent(name)}/`;
}
