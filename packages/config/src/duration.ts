import { formatDuration, parseDuration } from "@devplat/base";
import { z } from "zod";

/** Format that `parseDuration` accepts, for editors that read the published JSON Schema. */
const FORM = "^(\\d+(\\.\\d+)?(ms|[smhdw]))+$";

/** A duration key: text such as `15m`, `36h`, `7d` in the file, milliseconds in the program. Limits are in milliseconds, inclusive. */
export function duration(options: { readonly min?: number; readonly max?: number } = {}) {
  return z.codec(z.string().meta({ pattern: FORM }), z.number(), {
    decode: (text, context) => {
      const ms = parseDuration(text);
      const fault =
        ms === undefined
          ? "expected a duration such as 30s, 15m, 36h or 7d"
          : options.min !== undefined && ms < options.min
            ? `must be at least ${formatDuration(options.min)}`
            : options.max !== undefined && ms > options.max
              ? `must be at most ${formatDuration(options.max)}`
              : undefined;
      if (fault === undefined && ms !== undefined) return ms;
      context.issues.push({ code: "custom", message: fault ?? "", input: text });
      return z.NEVER;
    },
    encode: formatDuration,
  });
}
