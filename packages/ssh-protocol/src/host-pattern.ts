/**
 * Tells whether a text matches a pattern of ssh_config(5), "PATTERNS": `*` matches any characters, `?` matches one. The
 * maximum time is proportional to the product of both lengths.
 */
export function matchesPattern(text: string, pattern: string): boolean {
  let at = 0;
  let place = 0;
  // Where the last `*` was, and the text that it has taken so far ends.
  let star = -1;
  let taken = 0;
  while (at < text.length) {
    if (pattern[place] === "*") {
      star = place++;
      taken = at;
    } else if (place < pattern.length && (pattern[place] === "?" || pattern[place] === text[at])) {
      place++;
      at++;
    } else if (star >= 0) {
      place = star + 1;
      at = ++taken;
    } else {
      return false;
    }
  }
  while (pattern[place] === "*") place++;
  return place === pattern.length;
}

/**
 * Tells whether a host name matches a list of patterns, without regard to case. A match of a pattern that begins
 * with `!` rejects the name, even if other patterns match.
 */
export function matchesHost(name: string, patterns: readonly string[]): boolean {
  const host = name.toLowerCase();
  let isMatch = false;
  for (const each of patterns) {
    const pattern = each.toLowerCase();
    if (pattern.startsWith("!")) {
      if (matchesPattern(host, pattern.slice(1))) return false;
    } else if (matchesPattern(host, pattern)) {
      isMatch = true;
    }
  }
  return isMatch;
}
